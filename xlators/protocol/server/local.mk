# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_la_SOURCES += \
	xlators/protocol/server/server.h xlators/protocol/server/server-internal.h \
	xlators/protocol/server/server.c \
	xlators/protocol/server/handshake.c \
	xlators/protocol/server/auth.c xlators/protocol/server/auth.h \
	xlators/protocol/server/session.c \
	xlators/protocol/server/resolve.c \
	xlators/protocol/server/fops.c \
	xlators/protocol/server/callback.c \
	xlators/protocol/server/subdir.c \
	xlators/protocol/server/squash.c
