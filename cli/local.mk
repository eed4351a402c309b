# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
sbin_PROGRAMS += kiln
kiln_SOURCES = \
	cli/ask.c \
	cli/completion.c \
	cli/kiln.c \
	cli/kiln.h \
	cli/mount.c \
	cli/show.c \
	cli/verbs.c \
	cli/volume.c
kiln_LDADD = $(CURL_LIBS) $(JANSSON_LIBS)
