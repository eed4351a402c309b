# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += \
	xlators/performance/write-behind/queue.c \
	xlators/performance/write-behind/write-behind-internal.h \
	xlators/performance/write-behind/write-behind.c

check_PROGRAMS += xlators/performance/write-behind/test-write-behind
xlators_performance_write_behind_test_write_behind_SOURCES = \
	xlators/performance/write-behind/test-write-behind.c \
	xlators/features/test-layers.h
xlators_performance_write_behind_test_write_behind_LDADD = $(TEST_LIBS)
