# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += xlators/features/utime/utime.c

check_PROGRAMS += xlators/features/utime/test-utime
xlators_features_utime_test_utime_SOURCES = xlators/features/utime/test-utime.c xlators/features/test-layers.h
xlators_features_utime_test_utime_LDADD = $(TEST_LIBS)
