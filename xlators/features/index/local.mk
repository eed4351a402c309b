# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += \
	xlators/features/index/index-internal.h \
	xlators/features/index/index.c \
	xlators/features/index/index-entry.c \
	xlators/features/index/index-xattrop.c \
	xlators/features/index/index-dead.c \
	xlators/features/index/index-names.c \
	xlators/features/index/index-virtual.c \
	xlators/features/index/index-readdir.c

check_PROGRAMS += xlators/features/index/test-index
xlators_features_index_test_index_SOURCES = xlators/features/index/test-index.c xlators/features/test-layers.h
xlators_features_index_test_index_LDADD = $(TEST_LIBS)
check_PROGRAMS += xlators/features/index/test-index-names
xlators_features_index_test_index_names_SOURCES = xlators/features/index/test-index-names.c \
	xlators/features/test-layers.h
xlators_features_index_test_index_names_LDADD = $(TEST_LIBS)
