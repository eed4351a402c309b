# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libglusterfs_la_SOURCES += \
	libglusterfs/event/source.c \
	libglusterfs/event/event-internal.h \
	libglusterfs/event/timer.c \
	libglusterfs/event/timer.h \
	libglusterfs/event/worker.c \
	libglusterfs/event/worker.h
