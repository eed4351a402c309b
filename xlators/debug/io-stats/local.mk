# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_la_SOURCES += xlators/debug/io-stats/io-stats.c
