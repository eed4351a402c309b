# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += xlators/features/read-only/read-only.c

check_PROGRAMS += xlators/features/read-only/test-read-only
xlators_features_read_only_test_read_only_SOURCES = xlators/features/read-only/test-read-only.c xlators/features/test-layers.h
xlators_features_read_only_test_read_only_LDADD = $(TEST_LIBS)
