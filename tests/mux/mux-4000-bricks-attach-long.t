#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Runs mux-hundreds-of-bricks-attach.t with 4,000 bricks, and prints time, memory and descriptors for each brick.
# Covers: bricks/bricks.c, bricks/management.c

KILN_BRICKS=4000 exec "$(dirname "$0")/mux-hundreds-of-bricks-attach.t"
