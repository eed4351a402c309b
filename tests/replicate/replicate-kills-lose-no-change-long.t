#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# KILN_TORTURE_ROUNDS (1000) rounds of tests/replicate/torture on each layout: a quarter for each kind of kill. Of each, a third
# has the stock self-heal daemon as healer, a third the mount, and in a third libgfapi is in the place of the mount. Takes
# an hour for each layout on a quiet machine. KILN_SEED chooses the changes and the moments.
# Covers: xlators/cluster/replicate

exec "$(dirname "$0")/torture" --tap --seed "${KILN_SEED:-$RANDOM}" --rounds $((${KILN_TORTURE_ROUNDS:-1000} / 12)) \
    --client kiln --client gfapi
