# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libglusterfs_la_SOURCES += libglusterfs/base/gfid.c libglusterfs/base/gfid.h libglusterfs/base/probe.h libglusterfs/base/read-section.h \
	libglusterfs/base/refcount.h \
	libglusterfs/base/test-main.h
