# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += xlators/features/trash/trash.c

check_PROGRAMS += xlators/features/trash/test-trash
xlators_features_trash_test_trash_SOURCES = xlators/features/trash/test-trash.c xlators/features/test-layers.h
xlators_features_trash_test_trash_LDADD = $(TEST_LIBS)
