# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_rpc_a_SOURCES += \
	rpc/xdr/xdr.c rpc/xdr/xdr.h rpc/xdr/xdr-types.h \
	rpc/xdr/xdr-iatt.c rpc/xdr/xdr-locks.c rpc/xdr/xdr-dirents.c \
	rpc/xdr/typed-dict.c rpc/xdr/old-dict.c \
	rpc/xdr/open-flags.c rpc/xdr/open-flags.h \
	rpc/xdr/fop-codec.c rpc/xdr/fop-codec.h rpc/xdr/fop-fields.def \
	rpc/xdr/rpc-message.c rpc/xdr/rpc-message.h rpc/xdr/cred.c rpc/xdr/cred.h \
	rpc/xdr/dump-program.c rpc/xdr/dump-program.h \
	rpc/xdr/handshake-program.c rpc/xdr/handshake-program.h \
	rpc/xdr/callback-program.c rpc/xdr/callback-program.h rpc/xdr/portmap-program.c rpc/xdr/portmap-program.h \
	rpc/xdr/brick-op-program.c rpc/xdr/brick-op-program.h \
	rpc/xdr/sequence-program.c rpc/xdr/sequence-program.h

check_PROGRAMS += rpc/xdr/test-fop-codec rpc/xdr/test-cred rpc/xdr/test-programs
rpc_xdr_test_fop_codec_SOURCES = rpc/xdr/test-fop-codec.c rpc/xdr/test-random-fop.h rpc/xdr/test-vector.h
rpc_xdr_test_fop_codec_LDADD = $(TEST_LIBS)
rpc_xdr_test_cred_SOURCES = rpc/xdr/test-cred.c
rpc_xdr_test_cred_LDADD = $(TEST_LIBS)
rpc_xdr_test_programs_SOURCES = rpc/xdr/test-programs.c
rpc_xdr_test_programs_LDADD = $(TEST_LIBS)

noinst_PROGRAMS += rpc/xdr/bench-fop-codec
rpc_xdr_bench_fop_codec_SOURCES = rpc/xdr/bench-fop-codec.c
rpc_xdr_bench_fop_codec_LDADD = $(TEST_LIBS)
