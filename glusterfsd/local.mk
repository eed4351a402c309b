# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
sbin_PROGRAMS += kilnd
kilnd_SOURCES = \
	glusterfsd/daemon.c \
	glusterfsd/failing.c \
	glusterfsd/kilnd.c \
	glusterfsd/kilnd.h \
	glusterfsd/options.c \
	glusterfsd/statedump.c
# The allocator first: it takes malloc's place.
kilnd_LDADD = $(ALLOCATOR_LIBS) $(KILN_LIBS)
