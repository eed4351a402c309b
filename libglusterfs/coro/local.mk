# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
coroutine_sources = \
	libglusterfs/coro/coroutine.c \
	libglusterfs/coro/coroutine.h \
	libglusterfs/coro/switch.c \
	libglusterfs/coro/switch.h
libglusterfs_la_SOURCES += $(coroutine_sources)

check_PROGRAMS += libglusterfs/coro/test-coroutine libglusterfs/coro/test-coroutine-ucontext
libglusterfs_coro_test_coroutine_SOURCES = libglusterfs/coro/test-coroutine.c
libglusterfs_coro_test_coroutine_LDADD = $(TEST_LIBS)
# As on machines that have no switch of their own.
libglusterfs_coro_test_coroutine_ucontext_SOURCES = libglusterfs/coro/test-coroutine.c $(coroutine_sources)
libglusterfs_coro_test_coroutine_ucontext_CPPFLAGS = $(AM_CPPFLAGS) -DCORO_UCONTEXT
libglusterfs_coro_test_coroutine_ucontext_LDADD = $(TEST_LIBS)
