#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A brick is attached and detached a thousand times next to 80 working bricks. The process keeps nothing of the brick
# and does not grow.
# Covers: bricks/bricks.c, libglusterfs/graph/graph.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"

program=${KILN_BUILD:-$source_dir/build}/bricks/test-churn
t "make builds the program" make -s -C "${KILN_BUILD:-$source_dir/build}" bricks/test-churn
t "a thousand attaches leave nothing behind" env KILN_CHURN_ROUNDS=1000 CK_TIMEOUT_MULTIPLIER=10 "$program"
