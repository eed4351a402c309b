# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
sbin_PROGRAMS += kilnd
kilnd_SOURCES = \
	glusterfsd/bricks.c \
	glusterfsd/bricks.h \
	glusterfsd/brick-types.c \
	glusterfsd/brick-types.h \
	glusterfsd/brick-ops.c \
	glusterfsd/brick-ops.h \
	glusterfsd/config.c \
	glusterfsd/config.h \
	glusterfsd/daemon.c \
	glusterfsd/daemon.h \
	glusterfsd/figures.c \
	glusterfsd/figures.h \
	glusterfsd/hand-over.c \
	glusterfsd/http.c \
	glusterfsd/http.h \
	glusterfsd/http-library.c \
	glusterfsd/http-library.h \
	glusterfsd/http-routes.c \
	glusterfsd/http-routes.h \
	glusterfsd/inside-mounts.h \
	glusterfsd/kilnd.c \
	glusterfsd/kilnd.h \
	glusterfsd/metrics.c \
	glusterfsd/metrics.h \
	glusterfsd/management.c \
	glusterfsd/management.h \
	glusterfsd/volfiles.c \
	glusterfsd/volfiles.h \
	glusterfsd/notify.c \
	glusterfsd/notify.h \
	glusterfsd/option-table.c \
	glusterfsd/option-table.h \
	glusterfsd/options.c \
	glusterfsd/questions.c \
	glusterfsd/questions.h \
	glusterfsd/sandbox.c \
	glusterfsd/sandbox.h \
	glusterfsd/sandbox-calls.c \
	glusterfsd/sandbox-calls.h \
	glusterfsd/status.c \
	glusterfsd/statedump.c \
	glusterfsd/statedump-json.c \
	glusterfsd/statedump-json.h \
	glusterfsd/statedump-options.c \
	glusterfsd/statedump-options.h \
	glusterfsd/top-answer.c \
	glusterfsd/top-sample.c \
	glusterfsd/top-sample.h \
	glusterfsd/upgrade.c \
	glusterfsd/upgrade.h \
	mount/inside.c \
	mount/mount.c \
	mount/place.c \
	mount/records.c \
	mount/option-table.c mount/option-table.h mount/shared.c \
	mount/spec.c \
	mount/client-volume.c \
	mount/client-volume.h \
	mount/types.c \
	mount/volume.c
# The allocator first: it takes malloc's place.
kilnd_LDADD = $(ALLOCATOR_LIBS) libkiln-fuse.a $(KILN_LIBS) $(JANSSON_LIBS) $(SANDBOX_LIBS) $(FUSE_LIBS)

check_PROGRAMS += glusterfsd/test-bricks glusterfsd/test-churn glusterfsd/test-options-table glusterfsd/test-statedump-options
glusterfsd_test_options_table_SOURCES = glusterfsd/test-options-table.c glusterfsd/brick-types.c
glusterfsd_test_options_table_LDADD = $(TEST_LIBS)
glusterfsd_test_statedump_options_SOURCES = glusterfsd/test-statedump-options.c glusterfsd/statedump-options.c
glusterfsd_test_statedump_options_LDADD = $(TEST_LIBS)
glusterfsd_test_bricks_SOURCES = glusterfsd/test-bricks.c glusterfsd/bricks.c glusterfsd/brick-types.c glusterfsd/test-brick-stack.h
glusterfsd_test_bricks_LDADD = $(TEST_LIBS)
glusterfsd_test_churn_SOURCES = glusterfsd/test-churn.c glusterfsd/bricks.c glusterfsd/brick-types.c glusterfsd/test-brick-stack.h
glusterfsd_test_churn_LDADD = $(TEST_LIBS)
check_PROGRAMS += glusterfsd/test-http
glusterfsd_test_http_SOURCES = glusterfsd/test-http.c glusterfsd/http.c glusterfsd/http-library.c
glusterfsd_test_http_LDADD = $(TEST_LIBS)
check_PROGRAMS += glusterfsd/test-notify
glusterfsd_test_notify_SOURCES = glusterfsd/test-notify.c glusterfsd/notify.c
glusterfsd_test_notify_LDADD = $(TEST_LIBS)
check_PROGRAMS += glusterfsd/test-top-sample
glusterfsd_test_top_sample_SOURCES = glusterfsd/test-top-sample.c glusterfsd/top-sample.c
glusterfsd_test_top_sample_LDADD = $(TEST_LIBS)
check_PROGRAMS += glusterfsd/test-config
glusterfsd_test_config_SOURCES = glusterfsd/test-config.c glusterfsd/config.c
glusterfsd_test_config_LDADD = $(TEST_LIBS)
check_PROGRAMS += glusterfsd/test-sandbox
glusterfsd_test_sandbox_SOURCES = glusterfsd/test-sandbox.c glusterfsd/sandbox.c glusterfsd/sandbox-calls.c
glusterfsd_test_sandbox_LDADD = $(TEST_LIBS) $(SANDBOX_LIBS)
