# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += \
	xlators/features/simple-quota/simple-quota.c \
	xlators/features/simple-quota/squota-internal.h \
	xlators/features/simple-quota/account.c \
	xlators/features/simple-quota/ask.c \
	xlators/features/simple-quota/simple-quota.h \
	xlators/features/simple-quota/folder.c \
	xlators/features/simple-quota/namespace.c \
	xlators/features/simple-quota/recover.c \
	xlators/features/simple-quota/shared.c \
	xlators/features/simple-quota/state.c \
	xlators/features/simple-quota/walk.c \
	xlators/features/simple-quota/xattr.c
check_PROGRAMS += xlators/features/simple-quota/test-squota
xlators_features_simple_quota_test_squota_SOURCES = xlators/features/simple-quota/test-squota.c
xlators_features_simple_quota_test_squota_LDADD = $(TEST_LIBS)
