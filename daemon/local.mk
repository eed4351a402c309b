# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
kilnd_SOURCES += \
	daemon/daemon.c \
	daemon/daemon.h \
	daemon/http-answer.c \
	daemon/http-library.c \
	daemon/http-library.h \
	daemon/http.c \
	daemon/http.h \
	daemon/notify.c \
	daemon/notify.h \
	daemon/sandbox-calls.c \
	daemon/sandbox-calls.h \
	daemon/sandbox.c \
	daemon/sandbox.h \
	daemon/statedump-options.c \
	daemon/statedump-options.h \
	daemon/statedump.c

check_PROGRAMS += daemon/test-statedump-options
daemon_test_statedump_options_SOURCES = daemon/test-statedump-options.c daemon/statedump-options.c
daemon_test_statedump_options_LDADD = $(TEST_LIBS)
check_PROGRAMS += daemon/test-http
daemon_test_http_SOURCES = daemon/test-http.c daemon/http.c daemon/http-answer.c daemon/http-library.c
daemon_test_http_LDADD = $(TEST_LIBS)
check_PROGRAMS += daemon/test-notify
daemon_test_notify_SOURCES = daemon/test-notify.c daemon/notify.c
daemon_test_notify_LDADD = $(TEST_LIBS)
check_PROGRAMS += daemon/test-sandbox
daemon_test_sandbox_SOURCES = daemon/test-sandbox.c daemon/sandbox.c daemon/sandbox-calls.c
daemon_test_sandbox_LDADD = $(TEST_LIBS) $(SANDBOX_LIBS)
