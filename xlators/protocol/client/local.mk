# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_la_SOURCES += \
	xlators/protocol/client/client.c \
	xlators/protocol/client/client-internal.h \
	xlators/protocol/client/remote-fd.c
