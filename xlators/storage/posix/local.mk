# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_la_SOURCES += xlators/storage/posix/xattr-sys.c
libkiln_xlators_la_SOURCES += xlators/storage/posix/xattr-sys.h

check_PROGRAMS += xlators/storage/posix/test-xattr-sys
xlators_storage_posix_test_xattr_sys_SOURCES = xlators/storage/posix/test-xattr-sys.c
xlators_storage_posix_test_xattr_sys_LDADD = $(TEST_LIBS)
