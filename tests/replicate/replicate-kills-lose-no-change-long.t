#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# KILN_TORTURE_ROUNDS (1000) rounds of tests/replicate/torture on each layout: a quarter for each kind of kill, half
# of each with the stock self-heal daemon as healer and half with the mount. Takes an hour for each layout on a quiet
# machine. KILN_SEED chooses the changes and the moments.
# Covers: xlators/cluster/replicate

exec "$(dirname "$0")/torture" --tap --seed "${KILN_SEED:-$RANDOM}" --rounds $((${KILN_TORTURE_ROUNDS:-1000} / 8))
