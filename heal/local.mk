# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
sbin_PROGRAMS += kiln-heal
kiln_heal_SOURCES = \
	heal/answers.c \
	heal/channel.c \
	heal/channel.h \
	heal/heal-volume.c \
	heal/heal-volume.h \
	heal/kiln-heal.c \
	heal/rebalance-jobs.c \
	heal/rebalance-jobs.h \
	daemon/daemon.c \
	daemon/daemon.h \
	daemon/sandbox.c \
	daemon/sandbox.h \
	daemon/sandbox-calls.c \
	daemon/sandbox-calls.h
kiln_heal_LDADD = $(ALLOCATOR_LIBS) $(KILN_LIBS) $(JANSSON_LIBS) $(SANDBOX_LIBS)
