# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
MEM_POOL_SOURCES = \
	libglusterfs/mem/mem-pool.h \
	libglusterfs/mem/mem-inline.h \
	libglusterfs/mem/mem-internal.h \
	libglusterfs/mem/mem-malloc.h \
	libglusterfs/mem/mem-shared.h \
	libglusterfs/mem/mem-span.h \
	libglusterfs/mem/mem-pool.c \
	libglusterfs/mem/mem-type.c \
	libglusterfs/mem/mem-thread.c \
	libglusterfs/mem/mem-depot.c \
	libglusterfs/mem/mem-reserve.c \
	libglusterfs/mem/mem-span.c \
	libglusterfs/mem/mem-pages.c \
	libglusterfs/mem/mem-sweep.c \
	libglusterfs/mem/mem-pressure.c \
	libglusterfs/mem/mem-account.c \
	libglusterfs/mem/mem-dump.c \
	libglusterfs/mem/mem-option.c \
	libglusterfs/mem/mem-lock.c \
	libglusterfs/mem/mem-malloc.c \
	libglusterfs/mem/mem-direct.c \
	libglusterfs/mem/mem-debug.c \
	libglusterfs/mem/mem-trace.c
libglusterfs_a_SOURCES += $(MEM_POOL_SOURCES)

check_PROGRAMS += \
	libglusterfs/mem/test-mem-owner \
	libglusterfs/mem/test-mem-pool \
	libglusterfs/mem/test-mem-age \
	libglusterfs/mem/test-mem-rest \
	libglusterfs/mem/test-mem-pages \
	libglusterfs/mem/test-mem-system \
	libglusterfs/mem/test-mem-refuse \
	libglusterfs/mem/test-mem-pressure \
	libglusterfs/mem/test-mem-stress \
	libglusterfs/mem/test-arena \
	libglusterfs/mem/test-iobuf \
	libglusterfs/mem/test-mem-thread \
	libglusterfs/mem/test-mem-debug \
	libglusterfs/mem/test-mem-handshake
TEST_MEM_SHARED = libglusterfs/mem/test-mem.h libglusterfs/mem/test-refuse.h
libglusterfs_mem_test_mem_owner_SOURCES = libglusterfs/mem/test-mem-owner.c $(TEST_MEM_SHARED)
libglusterfs_mem_test_mem_owner_LDADD = $(TEST_LIBS)
libglusterfs_mem_test_mem_pool_SOURCES = libglusterfs/mem/test-mem-pool.c $(TEST_MEM_SHARED)
libglusterfs_mem_test_mem_pool_LDADD = $(TEST_LIBS)
libglusterfs_mem_test_mem_age_SOURCES = libglusterfs/mem/test-mem-age.c $(TEST_MEM_SHARED)
libglusterfs_mem_test_mem_age_LDADD = $(TEST_LIBS)
libglusterfs_mem_test_mem_pages_SOURCES = libglusterfs/mem/test-mem-pages.c $(TEST_MEM_SHARED)
libglusterfs_mem_test_mem_pages_LDADD = $(TEST_LIBS)
libglusterfs_mem_test_mem_rest_SOURCES = libglusterfs/mem/test-mem-rest.c $(TEST_MEM_SHARED)
libglusterfs_mem_test_mem_rest_LDADD = $(ALLOCATOR_LIBS) $(TEST_LIBS)
libglusterfs_mem_test_mem_system_SOURCES = libglusterfs/mem/test-mem-system.c $(TEST_MEM_SHARED)
libglusterfs_mem_test_mem_system_LDADD = $(TEST_LIBS)
libglusterfs_mem_test_mem_refuse_SOURCES = libglusterfs/mem/test-mem-refuse.c $(TEST_MEM_SHARED)
libglusterfs_mem_test_mem_refuse_LDADD = $(TEST_LIBS)
libglusterfs_mem_test_mem_pressure_SOURCES = libglusterfs/mem/test-mem-pressure.c $(TEST_MEM_SHARED)
libglusterfs_mem_test_mem_pressure_LDADD = $(TEST_LIBS)
libglusterfs_mem_test_mem_stress_SOURCES = libglusterfs/mem/test-mem-stress.c $(TEST_MEM_SHARED)
libglusterfs_mem_test_mem_stress_LDADD = $(TEST_LIBS)
libglusterfs_mem_test_arena_SOURCES = libglusterfs/mem/test-arena.c $(TEST_MEM_SHARED)
libglusterfs_mem_test_arena_LDADD = $(TEST_LIBS)
libglusterfs_mem_test_iobuf_SOURCES = libglusterfs/mem/test-iobuf.c $(TEST_MEM_SHARED)
libglusterfs_mem_test_iobuf_LDADD = $(TEST_LIBS)
libglusterfs_mem_test_mem_thread_SOURCES = libglusterfs/mem/test-mem-thread.c $(TEST_MEM_SHARED)
libglusterfs_mem_test_mem_thread_LDADD = $(TEST_LIBS)
libglusterfs_mem_test_mem_debug_SOURCES = libglusterfs/mem/test-mem-debug.c $(TEST_MEM_SHARED)
libglusterfs_mem_test_mem_debug_LDADD = $(TEST_LIBS)
# Has its own copy of the pool, which stops at the test's hooks.
libglusterfs_mem_test_mem_handshake_SOURCES = libglusterfs/mem/test-mem-handshake.c $(MEM_POOL_SOURCES)
libglusterfs_mem_test_mem_handshake_CPPFLAGS = $(AM_CPPFLAGS) -DMEM_TEST_HOOKS
libglusterfs_mem_test_mem_handshake_LDADD = $(CHECK_LIBS)

# The pool as a library, for any threaded C program.
lib_LTLIBRARIES += libkiln-mempool.la
libkiln_mempool_la_SOURCES = $(MEM_POOL_SOURCES)
libkiln_mempool_la_CPPFLAGS = $(KILN_CPPFLAGS)
libkiln_mempool_la_CFLAGS = $(AM_CFLAGS) -fvisibility=default
libkiln_mempool_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:0:0 -no-undefined \
	-export-symbols $(top_srcdir)/libglusterfs/mem/libkiln-mempool.sym
EXTRA_libkiln_mempool_la_DEPENDENCIES = $(top_srcdir)/libglusterfs/mem/libkiln-mempool.sym
kilnmemdir = $(includedir)/kiln/mem
kilnmem_HEADERS = libglusterfs/mem/mem-pool.h libglusterfs/mem/mem-inline.h
mempoolexampledir = $(docdir)/examples
dist_mempoolexample_DATA = libglusterfs/mem/mempool-example.c
dist_man_MANS += libglusterfs/mem/kiln-mempool.3
pkgconfig_DATA += libglusterfs/mem/kiln-mempool.pc
CLEANFILES += libglusterfs/mem/kiln-mempool.pc
EXTRA_DIST += libglusterfs/mem/kiln-mempool.pc.in libglusterfs/mem/libkiln-mempool.sym
libglusterfs/mem/kiln-mempool.pc: $(top_srcdir)/libglusterfs/mem/kiln-mempool.pc.in Makefile
	$(AM_V_GEN)$(MKDIR_P) libglusterfs/mem && sed -e 's|@prefix[@]|$(prefix)|' -e 's|@libdir[@]|$(libdir)|' \
		-e 's|@includedir[@]|$(includedir)|' -e 's|@VERSION[@]|$(VERSION)|' \
		$(top_srcdir)/libglusterfs/mem/kiln-mempool.pc.in > $@

# The tests also build it like a user's program.
check_PROGRAMS += libglusterfs/mem/mempool-example
libglusterfs_mem_mempool_example_SOURCES = libglusterfs/mem/mempool-example.c
libglusterfs_mem_mempool_example_CPPFLAGS = $(KILN_CPPFLAGS)
libglusterfs_mem_mempool_example_LDADD = libkiln-mempool.la

# The cost of the pool, compared with general allocators: tests/bench/pool.
EXTRA_DIST += tests/pool
