#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# As mux-hundreds-of-bricks-attach.t, with 4,000: time, memory and descriptors of a brick are printed.
KILN_BRICKS=4000 exec "$(dirname "$0")/mux-hundreds-of-bricks-attach.t"
