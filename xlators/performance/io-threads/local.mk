# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += xlators/performance/io-threads/io-threads.c xlators/performance/io-threads/io-threads.h

check_PROGRAMS += xlators/performance/io-threads/test-io-threads
xlators_performance_io_threads_test_io_threads_SOURCES = xlators/performance/io-threads/test-io-threads.c \
	xlators/features/test-layers.h
xlators_performance_io_threads_test_io_threads_LDADD = $(TEST_LIBS)
