#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# POSIX record locks that one mount takes are visible to another mount, which waits for them and gets them on release,
# on each layout.
# Covers: xlators/features/locks/posixlk.c

. "$(dirname "$0")/../lib/kiln.sh"

for layout in 1x1 2x2; do
    volume_new "v$layout" "$layout"
    volume_start "v$layout"
    mount_volume "v$layout" "$T/m1"
    mount_volume "v$layout" "$T/m2"
    include "$layout: every check of locks succeeds" python3 "$tests_dir/locks/two_mounts.py" "$T/m1" "$T/m2"
    mount_end "$T/m1"
    mount_end "$T/m2"
    volume_stop "v$layout"
done
