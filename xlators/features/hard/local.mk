# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += xlators/features/hard/hard.c

check_PROGRAMS += xlators/features/hard/test-hard
xlators_features_hard_test_hard_SOURCES = xlators/features/hard/test-hard.c xlators/features/test-layers.h
xlators_features_hard_test_hard_LDADD = $(TEST_LIBS)
