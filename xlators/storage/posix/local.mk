# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += xlators/storage/posix/posix.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/posix-internal.h
libkiln_xlators_a_SOURCES += xlators/storage/posix/object/handle.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/object/handle.h
libkiln_xlators_a_SOURCES += xlators/storage/posix/object/obj.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/object/obj.h
libkiln_xlators_a_SOURCES += xlators/storage/posix/object/reach.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/entry/kept.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/entry/path-length.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/entry/takeover.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/object/stat.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/object/stat.h
libkiln_xlators_a_SOURCES += xlators/storage/posix/object/mdata.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/object/mdata.h
libkiln_xlators_a_SOURCES += xlators/storage/posix/entry/gfid2path.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/entry/gfid2path.h
libkiln_xlators_a_SOURCES += xlators/storage/posix/entry/pgfid.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/entry/pgfid.h
libkiln_xlators_a_SOURCES += xlators/storage/posix/entry/entry.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/entry/entry.h
libkiln_xlators_a_SOURCES += xlators/storage/posix/entry/entry-create.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/entry/entry-remove.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/entry/trash.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/entry/trash.h
libkiln_xlators_a_SOURCES += xlators/storage/posix/trash-wish.h
libkiln_xlators_a_SOURCES += xlators/storage/posix/saved.c xlators/storage/posix/saved.h \
	xlators/storage/posix/entry/rename.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/entry/lookup.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/object/setattr.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/statfs.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/health.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/janitor.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/reserve.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/object/xattr-sys.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/object/xattr-sys.h
EXTRA_DIST += xlators/storage/posix/test-brick.h
libkiln_xlators_a_SOURCES += xlators/storage/posix/xattr/xattr-remove.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/xattr/xattr-set.h
libkiln_xlators_a_SOURCES += xlators/storage/posix/xattr/xattr-set.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/xattr/virtual-xattr.h
libkiln_xlators_a_SOURCES += xlators/storage/posix/xattr/virtual-xattr.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/xattr/xattr-get.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/xattr/xattrop.h
libkiln_xlators_a_SOURCES += xlators/storage/posix/xattr/xattrop.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/entry/readdir.h
libkiln_xlators_a_SOURCES += xlators/storage/posix/entry/readdir.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/data/space.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/data/rchecksum.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/data/fsync.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/data/truncate.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/data/write.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/object/attr.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/xattr/xattr-fill.h
libkiln_xlators_a_SOURCES += xlators/storage/posix/xattr/xattr-fill.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/data/read.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/data/open.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/data/fd.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/data/data.h
libkiln_xlators_a_SOURCES += xlators/storage/posix/xattr/xattr-rules.h
libkiln_xlators_a_SOURCES += xlators/storage/posix/xattr/xattr-rules.c
libkiln_xlators_a_SOURCES += xlators/storage/posix/xattr/acl-text.h xlators/storage/posix/capacity.h
libkiln_xlators_a_SOURCES += xlators/storage/posix/xattr/acl-text.c

check_PROGRAMS += xlators/storage/posix/object/test-xattr-sys
xlators_storage_posix_object_test_xattr_sys_SOURCES = xlators/storage/posix/object/test-xattr-sys.c
xlators_storage_posix_object_test_xattr_sys_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/storage/posix/xattr/test-acl-text
xlators_storage_posix_xattr_test_acl_text_SOURCES = xlators/storage/posix/xattr/test-acl-text.c
xlators_storage_posix_xattr_test_acl_text_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/storage/posix/xattr/test-xattr-rules
xlators_storage_posix_xattr_test_xattr_rules_SOURCES = xlators/storage/posix/xattr/test-xattr-rules.c
xlators_storage_posix_xattr_test_xattr_rules_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/storage/posix/test-posix-data
xlators_storage_posix_test_posix_data_SOURCES = xlators/storage/posix/test-posix-data.c
xlators_storage_posix_test_posix_data_LDADD = $(TEST_LIBS)
xlators_storage_posix_test_posix_data_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fallocate64 -Wl,--wrap=pwritev64 -Wl,--wrap=sync_file_range

check_PROGRAMS += xlators/storage/posix/xattr/test-xattrop
xlators_storage_posix_xattr_test_xattrop_SOURCES = xlators/storage/posix/xattr/test-xattrop.c
xlators_storage_posix_xattr_test_xattrop_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/storage/posix/test-posix-xattr
xlators_storage_posix_test_posix_xattr_SOURCES = xlators/storage/posix/test-posix-xattr.c
xlators_storage_posix_test_posix_xattr_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/storage/posix/test-posix-create
xlators_storage_posix_test_posix_create_SOURCES = xlators/storage/posix/test-posix-create.c \
	xlators/storage/posix/test-entry.h
xlators_storage_posix_test_posix_create_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/storage/posix/test-posix-lookup
xlators_storage_posix_test_posix_lookup_SOURCES = xlators/storage/posix/test-posix-lookup.c \
	xlators/storage/posix/test-entry.h
xlators_storage_posix_test_posix_lookup_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/storage/posix/test-posix-remove
xlators_storage_posix_test_posix_remove_SOURCES = xlators/storage/posix/test-posix-remove.c \
	xlators/storage/posix/test-entry.h
xlators_storage_posix_test_posix_remove_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/storage/posix/test-posix-trash
xlators_storage_posix_test_posix_trash_SOURCES = xlators/storage/posix/test-posix-trash.c \
	xlators/storage/posix/test-entry.h
xlators_storage_posix_test_posix_trash_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/storage/posix/test-posix-races
xlators_storage_posix_test_posix_races_SOURCES = xlators/storage/posix/test-posix-races.c \
	xlators/storage/posix/test-entry.h
xlators_storage_posix_test_posix_races_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/storage/posix/test-posix-start
xlators_storage_posix_test_posix_start_SOURCES = xlators/storage/posix/test-posix-start.c \
	xlators/storage/posix/test-entry.h
xlators_storage_posix_test_posix_start_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/storage/posix/test-posix-escape
xlators_storage_posix_test_posix_escape_SOURCES = xlators/storage/posix/test-posix-escape.c \
	xlators/storage/posix/test-entry.h
xlators_storage_posix_test_posix_escape_LDADD = $(TEST_LIBS)
