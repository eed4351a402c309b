# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libglusterfs_a_SOURCES += \
	libglusterfs/stack/call-pack.c \
	libglusterfs/stack/call-pack.h \
	libglusterfs/stack/call-stack.c \
	libglusterfs/stack/call-stack.h \
	libglusterfs/stack/coro-call.c \
	libglusterfs/stack/coro-call.h \
	libglusterfs/stack/coro-stacks.h \
	libglusterfs/stack/fop.c \
	libglusterfs/stack/fop.h \
	libglusterfs/stack/fops.def \
	libglusterfs/stack/lock-cmd.h \
	libglusterfs/stack/xlator.h

noinst_PROGRAMS += libglusterfs/stack/bench-call-stack
libglusterfs_stack_bench_call_stack_SOURCES = libglusterfs/stack/bench-call-stack.c
libglusterfs_stack_bench_call_stack_LDADD = $(TEST_LIBS)

check_PROGRAMS += libglusterfs/stack/test-call-stack libglusterfs/stack/test-call-stack-release
libglusterfs_stack_test_call_stack_SOURCES = libglusterfs/stack/test-call-stack.c
libglusterfs_stack_test_call_stack_LDADD = $(TEST_LIBS)
# Its own call-stack.o, without assertions, replaces the library's.
libglusterfs_stack_test_call_stack_release_SOURCES = libglusterfs/stack/test-call-stack.c libglusterfs/stack/call-stack.c
libglusterfs_stack_test_call_stack_release_CPPFLAGS = $(AM_CPPFLAGS) -DNDEBUG
libglusterfs_stack_test_call_stack_release_LDADD = $(TEST_LIBS)

check_PROGRAMS += libglusterfs/stack/test-coro-call
libglusterfs_stack_test_coro_call_SOURCES = libglusterfs/stack/test-coro-call.c
libglusterfs_stack_test_coro_call_LDADD = $(TEST_LIBS)
