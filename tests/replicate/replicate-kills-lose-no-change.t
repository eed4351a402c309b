#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Seven rounds of tests/replicate/torture: a brick and the mount are killed within 30 ms while writers work, and a
# second mount continues without the brick. The stock self-heal daemon heals five of them, the mount two.
# In one round a process with libgfapi is in the place of the mount.
# Covers: xlators/cluster/replicate

exec "$(dirname "$0")/torture" --tap --seed "${KILN_SEED:-7}" --rounds "${KILN_TORTURE_ROUNDS:-1}" \
    --cell 2x2:both:daemon --cell 1x3:both:daemon --cell arbiter:both:daemon --cell 2x2:sets:daemon --cell 2x2:both:mount --cell 1x3:both:mount \
    --cell 2x2:both:daemon:gfapi
