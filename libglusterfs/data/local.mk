# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libglusterfs_a_SOURCES += \
	libglusterfs/data/dict-keys.def \
	libglusterfs/data/dict.c \
	libglusterfs/data/dict.h \
	libglusterfs/data/iatt.c \
	libglusterfs/data/iatt.h \
	libglusterfs/data/option.c \
	libglusterfs/data/option.h
# Here and not in mem/, because they use Kiln's types, and mem/ is a separate library.
libglusterfs_a_SOURCES += \
	libglusterfs/mem/arena.c \
	libglusterfs/mem/arena.h \
	libglusterfs/mem/iobuf.c \
	libglusterfs/mem/iobuf.h \
	libglusterfs/mem/mem-ids.h
check_PROGRAMS += libglusterfs/data/test-dict libglusterfs/data/test-option libglusterfs/mem/test-mem-ids
libglusterfs_mem_test_mem_ids_SOURCES = libglusterfs/mem/test-mem-ids.c
libglusterfs_mem_test_mem_ids_LDADD = $(TEST_LIBS)
libglusterfs_data_test_dict_SOURCES = libglusterfs/data/test-dict.c
libglusterfs_data_test_dict_LDADD = $(TEST_LIBS)
libglusterfs_data_test_option_SOURCES = libglusterfs/data/test-option.c
libglusterfs_data_test_option_LDADD = $(TEST_LIBS)
