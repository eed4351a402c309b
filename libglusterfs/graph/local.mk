# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libglusterfs_a_SOURCES += \
	libglusterfs/graph/dir-offset.c \
	libglusterfs/graph/dir-offset.h \
	libglusterfs/graph/graph-internal.h \
	libglusterfs/graph/graph.c \
	libglusterfs/graph/graph.h libglusterfs/graph/saved-brick.h \
	libglusterfs/graph/pools.c \
	libglusterfs/graph/pools.h \
	libglusterfs/graph/reconfigure.c \
	libglusterfs/graph/unbuilt.c \
	libglusterfs/graph/unbuilt.h \
	libglusterfs/graph/volfile.c \
	libglusterfs/graph/volfile.h
check_PROGRAMS += libglusterfs/graph/test-dir-offset libglusterfs/graph/test-volfile libglusterfs/graph/test-tree
libglusterfs_graph_test_volfile_SOURCES = libglusterfs/graph/test-volfile.c
libglusterfs_graph_test_volfile_LDADD = $(TEST_LIBS)
libglusterfs_graph_test_tree_SOURCES = libglusterfs/graph/test-tree.c
libglusterfs_graph_test_tree_LDADD = $(TEST_LIBS)
libglusterfs_graph_test_dir_offset_SOURCES = libglusterfs/graph/test-dir-offset.c
libglusterfs_graph_test_dir_offset_LDADD = $(TEST_LIBS)
