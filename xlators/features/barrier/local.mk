# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += xlators/features/barrier/barrier.c xlators/features/barrier/barrier.h

check_PROGRAMS += xlators/features/barrier/test-barrier
xlators_features_barrier_test_barrier_SOURCES = xlators/features/barrier/test-barrier.c xlators/features/test-layers.h
xlators_features_barrier_test_barrier_LDADD = $(TEST_LIBS)
