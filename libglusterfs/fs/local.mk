# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libglusterfs_a_SOURCES += \
	libglusterfs/fs/fs-internal.h \
	libglusterfs/fs/ctx-pools.c \
	libglusterfs/fs/inode.c libglusterfs/fs/inode.h \
	libglusterfs/fs/fd.c libglusterfs/fs/fd.h \
	libglusterfs/fs/brick-client.c libglusterfs/fs/brick-client.h
check_PROGRAMS += libglusterfs/fs/test-inode
libglusterfs_fs_test_inode_SOURCES = libglusterfs/fs/test-inode.c
libglusterfs_fs_test_inode_LDADD = $(TEST_LIBS)
