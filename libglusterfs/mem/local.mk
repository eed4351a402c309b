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
