# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += \
	xlators/protocol/server/server.h xlators/protocol/server/server-internal.h \
	xlators/protocol/server/server.c \
	xlators/protocol/server/handshake.c \
	xlators/protocol/server/auth.c xlators/protocol/server/auth.h \
	xlators/protocol/server/bounds.c \
	xlators/protocol/server/door.c xlators/protocol/server/door.h \
	xlators/protocol/server/volspec.c \
	xlators/protocol/server/session.c \
	xlators/protocol/server/saved.c \
	xlators/protocol/server/resolve.c \
	xlators/protocol/server/roll.c \
	xlators/protocol/server/fops.c \
	xlators/protocol/server/callback.c \
	xlators/protocol/server/subdir.c \
	xlators/protocol/server/groups.c xlators/protocol/server/groups.h \
	xlators/protocol/server/squash.c
check_PROGRAMS += xlators/protocol/server/test-auth xlators/protocol/server/test-server \
	xlators/protocol/server/test-bounds xlators/protocol/server/test-blocked \
	xlators/protocol/server/test-groups xlators/protocol/server/test-names \
	xlators/protocol/server/test-roll
xlators_protocol_server_test_auth_SOURCES = xlators/protocol/server/test-auth.c
xlators_protocol_server_test_auth_LDADD = $(TEST_LIBS)
xlators_protocol_server_test_auth_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=strdup -Wl,--wrap=getaddrinfo
xlators_protocol_server_test_server_SOURCES = xlators/protocol/server/test-server.c xlators/protocol/server/test-bench.h
xlators_protocol_server_test_server_LDADD = $(TEST_LIBS)
xlators_protocol_server_test_bounds_SOURCES = xlators/protocol/server/test-bounds.c xlators/protocol/server/test-bench.h
xlators_protocol_server_test_bounds_LDADD = $(TEST_LIBS)
xlators_protocol_server_test_blocked_SOURCES = xlators/protocol/server/test-blocked.c xlators/protocol/server/test-bench.h
xlators_protocol_server_test_blocked_LDADD = $(TEST_LIBS)
xlators_protocol_server_test_groups_SOURCES = xlators/protocol/server/test-groups.c xlators/protocol/server/test-bench.h
xlators_protocol_server_test_groups_LDADD = $(TEST_LIBS)
xlators_protocol_server_test_groups_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=getpwuid_r -Wl,--wrap=getgrouplist
xlators_protocol_server_test_names_SOURCES = xlators/protocol/server/test-names.c xlators/protocol/server/test-bench.h
xlators_protocol_server_test_names_LDADD = $(TEST_LIBS)
xlators_protocol_server_test_roll_SOURCES = xlators/protocol/server/test-roll.c xlators/protocol/server/test-bench.h
xlators_protocol_server_test_roll_LDADD = $(TEST_LIBS)
