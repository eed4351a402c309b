# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += \
	xlators/features/access-control/access-content.c \
	xlators/features/access-control/access-control.c \
	xlators/features/access-control/access-ctx.c \
	xlators/features/access-control/access-internal.h \
	xlators/features/access-control/access-name.c \
	xlators/features/access-control/acl.c \
	xlators/features/access-control/acl.h

check_PROGRAMS += xlators/features/access-control/test-acl xlators/features/access-control/test-access-control
xlators_features_access_control_test_acl_SOURCES = xlators/features/access-control/test-acl.c
xlators_features_access_control_test_acl_LDADD = $(TEST_LIBS)
xlators_features_access_control_test_access_control_SOURCES = \
	xlators/features/access-control/test-access-control.c xlators/features/test-layers.h
xlators_features_access_control_test_access_control_LDADD = $(TEST_LIBS)
