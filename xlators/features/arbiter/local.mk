# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += xlators/features/arbiter/arbiter.c

check_PROGRAMS += xlators/features/arbiter/test-arbiter
xlators_features_arbiter_test_arbiter_SOURCES = xlators/features/arbiter/test-arbiter.c xlators/features/test-layers.h
xlators_features_arbiter_test_arbiter_LDADD = $(TEST_LIBS)
