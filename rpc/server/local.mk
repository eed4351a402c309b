# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_rpc_a_SOURCES += \
	rpc/server/rpc-server.c rpc/server/rpc-server.h rpc/server/rpc-server-internal.h \
	rpc/server/fop-call.c rpc/server/dump-serve.c rpc/server/rpc-callback.c rpc/server/volfile-serve.c \
	rpc/server/inside.c rpc/server/sequence.c

check_PROGRAMS += rpc/server/test-rpc-server
rpc_server_test_rpc_server_SOURCES = rpc/server/test-rpc-server.c
rpc_server_test_rpc_server_LDADD = $(TEST_LIBS)
