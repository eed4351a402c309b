# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_rpc_a_SOURCES += \
	rpc/client/rpc-client.c rpc/client/rpc-client.h rpc/client/rpc-client-internal.h \
	rpc/client/rpc-call.c rpc/client/rpc-watch.c rpc/client/rpc-fop.c rpc/client/rpc-saved.c \
	rpc/client/rpc-sequence.c \
	rpc/client/xid-table.c rpc/client/xid-table.h \
	rpc/client/brick-peer.c rpc/client/brick-peer.h \
	rpc/client/glusterd-calls.c rpc/client/glusterd-calls.h

check_PROGRAMS += rpc/client/test-fop-path
rpc_client_test_fop_path_SOURCES = rpc/client/test-fop-path.c
rpc_client_test_fop_path_LDADD = $(TEST_LIBS)
check_PROGRAMS += rpc/client/test-xid-table rpc/client/test-rpc-client rpc/client/test-brick-peer rpc/client/test-rpc-fop
rpc_client_test_xid_table_SOURCES = rpc/client/test-xid-table.c
rpc_client_test_xid_table_LDADD = $(TEST_LIBS)
rpc_client_test_rpc_client_SOURCES = rpc/client/test-rpc-client.c rpc/client/test-client.h rpc/client/test-peer.h
rpc_client_test_rpc_client_LDADD = $(TEST_LIBS)
rpc_client_test_rpc_fop_SOURCES = rpc/client/test-rpc-fop.c rpc/client/test-client.h rpc/client/test-peer.h
rpc_client_test_rpc_fop_LDADD = $(TEST_LIBS)
rpc_client_test_brick_peer_SOURCES = rpc/client/test-brick-peer.c rpc/client/test-client.h rpc/client/test-peer.h
rpc_client_test_brick_peer_LDADD = $(TEST_LIBS)

# Programs that tests/wire runs against real bricks.
noinst_PROGRAMS += tests/wire/brick-client
tests_wire_brick_client_SOURCES = tests/wire/brick-client.c
tests_wire_brick_client_LDADD = $(KILN_LIBS)

noinst_PROGRAMS += rpc/client/bench-rpc-client
rpc_client_bench_rpc_client_SOURCES = rpc/client/bench-rpc-client.c rpc/client/test-peer.h
rpc_client_bench_rpc_client_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=pthread_mutex_lock
rpc_client_bench_rpc_client_LDADD = $(TEST_LIBS)
