# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
kilnd_SOURCES += \
	bricks/brick-ops.c \
	bricks/brick-ops.h \
	bricks/bricks.c \
	bricks/bricks.h \
	bricks/figures.c \
	bricks/figures.h \
	bricks/management.c \
	bricks/management.h \
	bricks/statedump-json.c \
	bricks/statedump-json.h \
	bricks/status.c \
	bricks/top-answer.c \
	bricks/top-answer.h \
	bricks/top-sample.c \
	bricks/top-sample.h \
	bricks/upgrade.c \
	bricks/upgrade.h \
	bricks/volfiles.c \
	bricks/volfiles.h

check_PROGRAMS += bricks/test-bricks
bricks_test_bricks_SOURCES = bricks/test-bricks.c bricks/bricks.c glusterfsd/brick-types.c bricks/test-brick-stack.h
bricks_test_bricks_LDADD = $(TEST_LIBS)
check_PROGRAMS += bricks/test-churn
bricks_test_churn_SOURCES = bricks/test-churn.c bricks/bricks.c glusterfsd/brick-types.c bricks/test-brick-stack.h
bricks_test_churn_LDADD = $(TEST_LIBS)
check_PROGRAMS += bricks/test-top-sample
bricks_test_top_sample_SOURCES = bricks/test-top-sample.c bricks/top-sample.c
bricks_test_top_sample_LDADD = $(TEST_LIBS)
