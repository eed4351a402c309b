# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libglusterfs_la_SOURCES += \
	libglusterfs/mem/mem-pool.h \
	libglusterfs/mem/mem-pool.c
