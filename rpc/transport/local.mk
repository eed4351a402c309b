# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_rpc_a_SOURCES += \
	rpc/transport/admit.c \
	rpc/transport/conn.c \
	rpc/transport/dial.c rpc/transport/dial.h \
	rpc/transport/flow.c rpc/transport/limits.h \
	rpc/transport/fop-path.c rpc/transport/fop-path.h \
	rpc/transport/resolve.c rpc/transport/resolve.h \
	rpc/transport/listener.c \
	rpc/transport/local-socket.c rpc/transport/local-socket.h \
	rpc/transport/port.c rpc/transport/port.h \
	rpc/transport/receive.c \
	rpc/transport/saved.c rpc/transport/saved.h \
	rpc/transport/send.c \
	rpc/transport/tls.c rpc/transport/tls.h rpc/transport/tls-internal.h \
	rpc/transport/tls-config.c rpc/transport/tls-config.h rpc/transport/tls-options.h \
	rpc/transport/transport-internal.h \
	rpc/transport/transport.h \
	rpc/transport/unix-name.c rpc/transport/unix-name.h

check_PROGRAMS += rpc/transport/test-records
rpc_transport_test_records_SOURCES = rpc/transport/test-records.c rpc/transport/test-echo.c rpc/transport/test-echo.h
rpc_transport_test_records_LDADD = $(TEST_LIBS)

check_PROGRAMS += rpc/transport/test-limits
rpc_transport_test_limits_SOURCES = rpc/transport/test-limits.c rpc/transport/test-echo.c rpc/transport/test-echo.h
rpc_transport_test_limits_LDADD = $(TEST_LIBS)

check_PROGRAMS += rpc/transport/test-connections
rpc_transport_test_connections_SOURCES = rpc/transport/test-connections.c rpc/transport/test-echo.c rpc/transport/test-echo.h
rpc_transport_test_connections_LDADD = $(TEST_LIBS)

check_PROGRAMS += rpc/transport/test-dial
rpc_transport_test_dial_SOURCES = rpc/transport/test-dial.c
rpc_transport_test_dial_LDADD = $(TEST_LIBS)

check_PROGRAMS += rpc/transport/test-local-socket
rpc_transport_test_local_socket_SOURCES = rpc/transport/test-local-socket.c
rpc_transport_test_local_socket_LDADD = $(TEST_LIBS)

noinst_PROGRAMS += rpc/transport/bench-transport
rpc_transport_bench_transport_SOURCES = rpc/transport/bench-transport.c
rpc_transport_bench_transport_LDADD = $(TEST_LIBS)

TEST_TLS_SERVER = rpc/transport/test-tls-server.h rpc/transport/test-echo.c rpc/transport/test-echo.h
check_PROGRAMS += rpc/transport/test-tls rpc/transport/test-tls-dial
rpc_transport_test_tls_SOURCES = rpc/transport/test-tls.c $(TEST_TLS_SERVER)
rpc_transport_test_tls_LDADD = $(TEST_LIBS)
rpc_transport_test_tls_dial_SOURCES = rpc/transport/test-tls-dial.c $(TEST_TLS_SERVER)
rpc_transport_test_tls_dial_LDADD = $(TEST_LIBS)

check_PROGRAMS += rpc/transport/test-saved
rpc_transport_test_saved_SOURCES = rpc/transport/test-saved.c rpc/transport/test-echo.c rpc/transport/test-echo.h
rpc_transport_test_saved_LDADD = $(TEST_LIBS)
