#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A thousand times a brick is attached and detached beside 80 that work: nothing is left of it, and the process has not grown.

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"

program=${KILN_BUILD:-$source_dir/build}/glusterfsd/test-churn
t "the program is there" make -s -C "${KILN_BUILD:-$source_dir/build}" glusterfsd/test-churn
t "a thousand rounds leave nothing" env KILN_CHURN_ROUNDS=1000 CK_TIMEOUT_MULTIPLIER=10 "$program"
