#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# KILN_TORTURE_ROUNDS (1000) rounds of tests/replicate/torture on each of four dispersed layouts, a quarter for each kind
# of kill, half of each with libgfapi in the place of the mount; a kiln-mount heals. Takes some hours for each layout on a
# quiet machine. KILN_SEED chooses the changes and the moments.
# Covers: xlators/cluster/disperse

layouts=()
for layout in 1x2+1 1x4+2 1x8+3 2x4+2; do
    layouts+=(--layout "$layout")
done
exec "$(dirname "$0")/../replicate/torture" --tap --seed "${KILN_SEED:-$RANDOM}" --rounds $((${KILN_TORTURE_ROUNDS:-1000} / 8)) \
    --client kiln --client gfapi --healer kiln "${layouts[@]}"
