# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += \
	xlators/protocol/client/client.c \
	xlators/protocol/client/client-internal.h \
	xlators/protocol/client/client.h \
	xlators/protocol/client/connection.c \
	xlators/protocol/client/held-locks.c \
	xlators/protocol/client/late-release.c \
	xlators/protocol/client/remote-fd.c \
	xlators/protocol/client/saved.c \
	xlators/protocol/client/saved.h

check_PROGRAMS += xlators/protocol/client/test-client xlators/protocol/client/test-client-release
TEST_CLIENT_BRICK = xlators/protocol/client/test-client-brick.h rpc/client/test-peer.h
xlators_protocol_client_test_client_SOURCES = xlators/protocol/client/test-client.c $(TEST_CLIENT_BRICK)
xlators_protocol_client_test_client_LDADD = $(TEST_LIBS)
xlators_protocol_client_test_client_release_SOURCES = xlators/protocol/client/test-client-release.c $(TEST_CLIENT_BRICK)
xlators_protocol_client_test_client_release_LDADD = $(TEST_LIBS)
