# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += \
	xlators/debug/io-stats/io-stats.c xlators/debug/io-stats/latency.c xlators/debug/io-stats/profile.c xlators/debug/io-stats/top.c \
	xlators/debug/io-stats/slow.c xlators/debug/io-stats/stats-file.c xlators/debug/io-stats/throughput.c \
	xlators/debug/io-stats/io-stats.h xlators/debug/io-stats/io-stats-internal.h

check_PROGRAMS += xlators/debug/io-stats/test-io-stats
xlators_debug_io_stats_test_io_stats_SOURCES = xlators/debug/io-stats/test-io-stats.c xlators/features/test-layers.h
xlators_debug_io_stats_test_io_stats_LDADD = $(TEST_LIBS)
