# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += xlators/features/worm/worm.c
libkiln_xlators_a_SOURCES += xlators/features/worm/worm-file.c xlators/features/worm/worm-file.h

check_PROGRAMS += xlators/features/worm/test-worm xlators/features/worm/test-worm-file
xlators_features_worm_test_worm_SOURCES = xlators/features/worm/test-worm.c xlators/features/test-layers.h
xlators_features_worm_test_worm_LDADD = $(TEST_LIBS)
xlators_features_worm_test_worm_file_SOURCES = xlators/features/worm/test-worm-file.c xlators/features/test-layers.h
xlators_features_worm_test_worm_file_LDADD = $(TEST_LIBS)
