# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libglusterfs_la_SOURCES += \
	libglusterfs/graph/brick-table.c \
	libglusterfs/graph/graph.c \
	libglusterfs/graph/graph.h \
	libglusterfs/graph/volfile.c \
	libglusterfs/graph/volfile.h
check_PROGRAMS += libglusterfs/graph/test-volfile libglusterfs/graph/test-graph
libglusterfs_graph_test_volfile_SOURCES = libglusterfs/graph/test-volfile.c
libglusterfs_graph_test_volfile_LDADD = $(TEST_LIBS)
libglusterfs_graph_test_graph_SOURCES = libglusterfs/graph/test-graph.c libglusterfs/graph/test-brick-stack.h
libglusterfs_graph_test_graph_LDADD = $(TEST_LIBS)
