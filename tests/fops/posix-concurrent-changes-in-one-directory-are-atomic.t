#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# 32 processes on two mounts create, rename and delete in one directory. Names that one process uses alone behave as
# if it were alone, exactly one process wins each name that all compete for, and in the end the directory can be
# removed.
# Covers: xlators/storage/posix/entry/entry-create.c, xlators/storage/posix/entry/rename.c, xlators/features/locks/entrylk.c

. "$(dirname "$0")/../lib/kiln.sh"

for layout in 1x1 2x2; do
    strict=
    [[ $layout != 1x1 ]] || strict=--strict
    volume_new "v$layout" "$layout"
    volume_start "v$layout"
    mount_volume "v$layout" "$T/m1"
    mount_volume "v$layout" "$T/m2"
    mkdir "$T/m1/dir"
    include "$layout: every process succeeds" \
        python3 "$tests_dir/fops/crowd.py" 32 40 $strict "$T/m1/dir" "$T/m2/dir"
    t "$layout: the directory is empty" rmdir "$T/m1/dir"
    mount_end "$T/m1"
    mount_end "$T/m2"
    volume_stop "v$layout"
done
