# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
MEM_POOL_SOURCES = \
	libglusterfs/mem/mem-pool.h \
	libglusterfs/mem/mem-inline.h \
	libglusterfs/mem/mem-internal.h \
	libglusterfs/mem/mem-pool.c \
	libglusterfs/mem/mem-type.c \
	libglusterfs/mem/mem-thread.c \
	libglusterfs/mem/mem-depot.c \
	libglusterfs/mem/mem-span.c \
	libglusterfs/mem/mem-sweep.c \
	libglusterfs/mem/mem-pressure.c \
	libglusterfs/mem/mem-account.c \
	libglusterfs/mem/mem-dump.c \
	libglusterfs/mem/mem-option.c \
	libglusterfs/mem/mem-lock.c \
	libglusterfs/mem/mem-debug.c \
	libglusterfs/mem/mem-trace.c
libglusterfs_la_SOURCES += $(MEM_POOL_SOURCES)

check_PROGRAMS += \
	libglusterfs/mem/test-mem-pool \
	libglusterfs/mem/test-mem-thread \
	libglusterfs/mem/test-mem-debug \
	libglusterfs/mem/test-mem-handshake
libglusterfs_mem_test_mem_pool_SOURCES = libglusterfs/mem/test-mem-pool.c
libglusterfs_mem_test_mem_pool_LDADD = $(TEST_LIBS)
libglusterfs_mem_test_mem_thread_SOURCES = libglusterfs/mem/test-mem-thread.c
libglusterfs_mem_test_mem_thread_LDADD = $(TEST_LIBS)
libglusterfs_mem_test_mem_debug_SOURCES = libglusterfs/mem/test-mem-debug.c
libglusterfs_mem_test_mem_debug_LDADD = $(TEST_LIBS)
# A pool of its own, that stops where the test wants it to.
libglusterfs_mem_test_mem_handshake_SOURCES = libglusterfs/mem/test-mem-handshake.c $(MEM_POOL_SOURCES)
libglusterfs_mem_test_mem_handshake_CPPFLAGS = $(AM_CPPFLAGS) -DMEM_TEST_HOOKS
libglusterfs_mem_test_mem_handshake_LDADD = $(CHECK_LIBS)
