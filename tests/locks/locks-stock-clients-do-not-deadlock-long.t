#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Two stock mounts race for 60 seconds: one renames x to y while the other unlinks y; one makes d/x while the other
# removes d. Neither pair deadlocks. (On stock bricks both do: a removal waits for the locks of distribute, whose
# holder waits for the removal.)
# Covers: xlators/features/locks/removal.c

. "$(dirname "$0")/../lib/kiln.sh"

volume_new v 2x2
volume_start v
mount_volume v "$T/m1"
mount_volume v "$T/m2"
for pair in rename mkdir; do
    t "$pair: no deadlock in 60 seconds" python3 "$tests_dir/locks/pairs.py" "$pair" 60 "$T/m1" "$T/m2"
done
mount_end "$T/m1"
mount_end "$T/m2"
volume_stop v
