# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libglusterfs_la_SOURCES += \
	libglusterfs/log/dump.c \
	libglusterfs/log/dump.h \
	libglusterfs/log/log.c \
	libglusterfs/log/log.h
