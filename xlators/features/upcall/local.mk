# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += \
	xlators/features/upcall/upcall.h \
	xlators/features/upcall/upcall.c \
	xlators/features/upcall/watchers.h \
	xlators/features/upcall/watchers.c \
	xlators/features/upcall/xattr-names.h \
	xlators/features/upcall/xattr-names.c

check_PROGRAMS += xlators/features/upcall/test-upcall
xlators_features_upcall_test_upcall_SOURCES = xlators/features/upcall/test-upcall.c xlators/features/test-layers.h
xlators_features_upcall_test_upcall_LDADD = $(TEST_LIBS)
