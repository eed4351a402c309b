# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
coroutine_sources = \
	libglusterfs/coro/coroutine.c \
	libglusterfs/coro/coroutine.h \
	libglusterfs/coro/switch.c \
	libglusterfs/coro/switch.h
libglusterfs_a_SOURCES += $(coroutine_sources)
# The stacks of coroutines: a cache that ages with the memory pools.
libglusterfs_a_SOURCES += \
	libglusterfs/coro/stack-pool.h \
	libglusterfs/coro/stack-internal.h \
	libglusterfs/coro/stack-pool.c \
	libglusterfs/coro/stack-slab.c \
	libglusterfs/coro/stack-dump.c
# Settings and statistics of pools and stacks, for operators.
libglusterfs_a_SOURCES += \
	libglusterfs/coro/pool-control.c \
	libglusterfs/coro/pool-control.h

check_PROGRAMS += \
	libglusterfs/coro/test-coroutine \
	libglusterfs/coro/test-coroutine-ucontext \
	libglusterfs/coro/test-stack-pool \
	libglusterfs/coro/test-stack-refuse \
	libglusterfs/coro/test-pool-control
libglusterfs_coro_test_pool_control_SOURCES = libglusterfs/coro/test-pool-control.c $(TEST_MEM_SHARED)
libglusterfs_coro_test_pool_control_LDADD = $(JANSSON_LIBS) $(TEST_LIBS)
libglusterfs_coro_test_stack_pool_SOURCES = libglusterfs/coro/test-stack-pool.c
libglusterfs_coro_test_stack_pool_LDADD = $(TEST_LIBS)
libglusterfs_coro_test_stack_refuse_SOURCES = libglusterfs/coro/test-stack-refuse.c $(TEST_MEM_SHARED)
libglusterfs_coro_test_stack_refuse_LDADD = $(TEST_LIBS)
libglusterfs_coro_test_coroutine_SOURCES = libglusterfs/coro/test-coroutine.c
libglusterfs_coro_test_coroutine_LDADD = $(TEST_LIBS)
# Built with ucontext, as on machines without a switch in switch.c.
libglusterfs_coro_test_coroutine_ucontext_SOURCES = libglusterfs/coro/test-coroutine.c $(coroutine_sources)
libglusterfs_coro_test_coroutine_ucontext_CPPFLAGS = $(AM_CPPFLAGS) -DCORO_UCONTEXT
libglusterfs_coro_test_coroutine_ucontext_LDADD = $(TEST_LIBS)
