# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_la_SOURCES += xlators/storage/posix/xattr-sys.c
libkiln_xlators_la_SOURCES += xlators/storage/posix/xattr-sys.h
libkiln_xlators_la_SOURCES += xlators/storage/posix/xattr-remove.c
libkiln_xlators_la_SOURCES += xlators/storage/posix/xattr-set.h
libkiln_xlators_la_SOURCES += xlators/storage/posix/xattr-set.c
libkiln_xlators_la_SOURCES += xlators/storage/posix/virtual-xattr.h
libkiln_xlators_la_SOURCES += xlators/storage/posix/virtual-xattr.c
libkiln_xlators_la_SOURCES += xlators/storage/posix/xattr-get.c
libkiln_xlators_la_SOURCES += xlators/storage/posix/xattrop.h
libkiln_xlators_la_SOURCES += xlators/storage/posix/xattrop.c
libkiln_xlators_la_SOURCES += xlators/storage/posix/readdir.h
libkiln_xlators_la_SOURCES += xlators/storage/posix/readdir.c
libkiln_xlators_la_SOURCES += xlators/storage/posix/space.c
libkiln_xlators_la_SOURCES += xlators/storage/posix/rchecksum.c
libkiln_xlators_la_SOURCES += xlators/storage/posix/fsync.c
libkiln_xlators_la_SOURCES += xlators/storage/posix/truncate.c
libkiln_xlators_la_SOURCES += xlators/storage/posix/write.c
libkiln_xlators_la_SOURCES += xlators/storage/posix/attr.c
libkiln_xlators_la_SOURCES += xlators/storage/posix/xattr-fill.h
libkiln_xlators_la_SOURCES += xlators/storage/posix/xattr-fill.c
libkiln_xlators_la_SOURCES += xlators/storage/posix/read.c
libkiln_xlators_la_SOURCES += xlators/storage/posix/open.c
libkiln_xlators_la_SOURCES += xlators/storage/posix/fd.c
libkiln_xlators_la_SOURCES += xlators/storage/posix/data.h
libkiln_xlators_la_SOURCES += xlators/storage/posix/xattr-rules.h
libkiln_xlators_la_SOURCES += xlators/storage/posix/xattr-rules.c
libkiln_xlators_la_SOURCES += xlators/storage/posix/acl-text.h
libkiln_xlators_la_SOURCES += xlators/storage/posix/acl-text.c

check_PROGRAMS += xlators/storage/posix/test-xattr-sys
xlators_storage_posix_test_xattr_sys_SOURCES = xlators/storage/posix/test-xattr-sys.c
xlators_storage_posix_test_xattr_sys_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/storage/posix/test-acl-text
xlators_storage_posix_test_acl_text_SOURCES = xlators/storage/posix/test-acl-text.c
xlators_storage_posix_test_acl_text_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/storage/posix/test-xattr-rules
xlators_storage_posix_test_xattr_rules_SOURCES = xlators/storage/posix/test-xattr-rules.c
xlators_storage_posix_test_xattr_rules_LDADD = $(TEST_LIBS)
