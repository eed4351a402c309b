#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Three rounds of tests/replicate/torture on dispersed volumes: up to all redundant bricks and the mount are killed within
# 30 ms while writers work, and a second mount continues without the bricks. In one round a process with libgfapi is in
# the place of the mount. A kiln-mount heals: all fragments belong together, and kiln-mount and stock's client read every acknowledged change.
# Covers: xlators/cluster/disperse

exec "$(dirname "$0")/../replicate/torture" --tap --seed "${KILN_SEED:-7}" --rounds "${KILN_TORTURE_ROUNDS:-1}" \
    --cell 1x2+1:both:kiln --cell 1x4+2:both:kiln --cell 1x2+1:both:kiln:gfapi
