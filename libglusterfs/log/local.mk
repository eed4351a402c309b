# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libglusterfs_a_SOURCES += \
	libglusterfs/log/dump.c \
	libglusterfs/log/dump.h \
	libglusterfs/log/escape.c \
	libglusterfs/log/escape.h \
	libglusterfs/log/log.c \
	libglusterfs/log/log.h

check_PROGRAMS += libglusterfs/log/test-log
libglusterfs_log_test_log_SOURCES = libglusterfs/log/test-log.c
libglusterfs_log_test_log_LDADD = $(TEST_LIBS)
