#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# 32 processes on two mounts create, rename and delete in one directory of a 2x2 volume: each one's own names behave as
# if it were alone, of each name that all fight for exactly one gets it, and in the end the directory can be removed.

. "$(dirname "$0")/../lib/kiln.sh"

volume_new v 2x2
volume_start v
mount_volume v "$T/m1"
mount_volume v "$T/m2"
mkdir "$T/m1/dir"
include "the processes end well" python3 "$tests_dir/fops/crowd.py" 32 40 "$T/m1/dir" "$T/m2/dir"
t "the directory is empty" rmdir "$T/m1/dir"
