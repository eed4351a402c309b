# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
EXTRA_DIST += COPYING COPYING-GPLV2 COPYING-LGPLV3 COPYING-GPLV3 debian .ci/run \
	extras/build.sh extras/client-state.sh extras/format.sh extras/install-deps.sh extras/monitoring extras/pools-table.sh extras/quickstart.sh extras/volfile.sh \
	tests/run.sh tests/check/programs.list tests/lib tests/wire tests/fops tests/locks tests/access tests/cli tests/client tests/distribute tests/management tests/mount tests/mux tests/faults tests/volumes tests/packages tests/bench tests/harness tests/kadalu tests/replicate tests/disperse tests/shard tests/gfapi

# The corpora of the fuzz targets, without a fuzzer: tests/wire/fuzz runs them with one.
FUZZ_REPLAYS = tests/wire/replay-codec tests/wire/replay-record tests/wire/replay-session tests/wire/replay-text \
	tests/wire/replay-disk tests/wire/replay-front tests/wire/replay-client
check_PROGRAMS += $(FUZZ_REPLAYS)
tests_wire_replay_codec_SOURCES = tests/wire/fuzz-codec.c tests/wire/fuzz-replay.c
tests_wire_replay_codec_LDADD = $(TEST_LIBS)
tests_wire_replay_record_SOURCES = tests/wire/fuzz-record.c tests/wire/fuzz-replay.c
tests_wire_replay_record_LDADD = $(TEST_LIBS)
tests_wire_replay_session_SOURCES = tests/wire/fuzz-session.c tests/wire/fuzz-replay.c
tests_wire_replay_session_LDADD = $(TEST_LIBS)
FUZZ_MEMORY = -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=reallocarray -Wl,--wrap=strdup
tests_wire_replay_text_SOURCES = tests/wire/fuzz-text.c tests/wire/fuzz-memory.h tests/wire/fuzz-replay.c
tests_wire_replay_text_LDADD = $(TEST_LIBS)
tests_wire_replay_text_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=getaddrinfo -Wl,--wrap=freeaddrinfo $(FUZZ_MEMORY)
tests_wire_replay_disk_SOURCES = tests/wire/fuzz-disk.c tests/wire/fuzz-memory.h tests/wire/fuzz-replay.c
tests_wire_replay_disk_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_MEMORY)
tests_wire_replay_disk_LDADD = $(TEST_LIBS)
tests_wire_replay_client_SOURCES = tests/wire/fuzz-client.c tests/wire/fuzz-replay.c mount/shared.c mount/option-table.c
tests_wire_replay_client_LDADD = $(TEST_LIBS)
FUZZ_CALLS = -Wl,--wrap=openat64,--wrap=fstat64,--wrap=pread64,--wrap=pwrite64,--wrap=write,--wrap=fsync,--wrap=close,--wrap=flock \
	-Wl,--wrap=mkdirat,--wrap=renameat,--wrap=unlinkat,--wrap=readdir64,--wrap=fdopendir,--wrap=open_memstream
tests_wire_replay_front_SOURCES = tests/wire/fuzz-front.c tests/wire/fuzz-calls.h tests/wire/fuzz-memory.h tests/wire/fuzz-replay.c \
	$(VOLUME_STATE_SOURCES)
tests_wire_replay_front_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_MEMORY) $(FUZZ_CALLS)
tests_wire_replay_front_LDADD = $(TEST_LIBS) $(JANSSON_LIBS)
