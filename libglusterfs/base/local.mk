# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libglusterfs_a_SOURCES += libglusterfs/base/gfid.c libglusterfs/base/gfid.h libglusterfs/base/hash.h libglusterfs/base/histogram.c libglusterfs/base/histogram.h \
	libglusterfs/base/lock-order.h libglusterfs/base/probe.h \
	libglusterfs/base/moment.h libglusterfs/base/own-dir.c libglusterfs/base/own-dir.h libglusterfs/base/own-program.c libglusterfs/base/own-program.h \
	libglusterfs/base/parcel.c libglusterfs/base/parcel.h \
	libglusterfs/base/procfs.c libglusterfs/base/procfs.h libglusterfs/base/procfs-text.h \
	libglusterfs/base/read-section.h \
	libglusterfs/base/reason.c libglusterfs/base/reason.h libglusterfs/base/refcount.h \
	libglusterfs/base/rights.c libglusterfs/base/rights.h libglusterfs/base/roff.c libglusterfs/base/roff.h libglusterfs/base/spare.h \
	libglusterfs/base/test-child.h libglusterfs/base/test-main.h libglusterfs/base/test-must.h libglusterfs/base/test-root.h libglusterfs/base/ticks.c libglusterfs/base/ticks.h \
	libglusterfs/base/thread.c libglusterfs/base/thread.h \
	libglusterfs/base/tree.c libglusterfs/base/tree.h libglusterfs/base/zero.h

check_PROGRAMS += libglusterfs/base/test-gfid libglusterfs/base/test-histogram libglusterfs/base/test-own-dir libglusterfs/base/test-own-program libglusterfs/base/test-parcel libglusterfs/base/test-procfs libglusterfs/base/test-ticks libglusterfs/base/test-tree
libglusterfs_base_test_histogram_SOURCES = libglusterfs/base/test-histogram.c
libglusterfs_base_test_histogram_LDADD = $(TEST_LIBS)
libglusterfs_base_test_own_dir_SOURCES = libglusterfs/base/test-own-dir.c
libglusterfs_base_test_own_dir_LDADD = $(TEST_LIBS)
libglusterfs_base_test_own_program_SOURCES = libglusterfs/base/test-own-program.c
libglusterfs_base_test_own_program_LDADD = $(TEST_LIBS)
libglusterfs_base_test_parcel_SOURCES = libglusterfs/base/test-parcel.c
libglusterfs_base_test_parcel_LDADD = $(TEST_LIBS)
libglusterfs_base_test_procfs_SOURCES = libglusterfs/base/test-procfs.c
libglusterfs_base_test_procfs_LDADD = $(TEST_LIBS)
libglusterfs_base_test_ticks_SOURCES = libglusterfs/base/test-ticks.c
libglusterfs_base_test_ticks_LDADD = $(TEST_LIBS)
libglusterfs_base_test_gfid_SOURCES = libglusterfs/base/test-gfid.c
libglusterfs_base_test_gfid_LDADD = $(TEST_LIBS)
libglusterfs_base_test_tree_SOURCES = libglusterfs/base/test-tree.c
libglusterfs_base_test_tree_LDADD = $(TEST_LIBS)
