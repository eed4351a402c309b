#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A 2x2 volume with the stock client's default stack follows POSIX. The bricks are on XFS, which supports all kinds of
# fallocate.
# Covers: xlators/storage/posix, xlators/protocol/server

. "$(dirname "$0")/../lib/kiln.sh"

place_xfs "$T/disk" 4g
volume_new v 2x2 "$T/disk"
volume_start v
mount_volume v "$T/mnt" default --acl
options=(--acl --cached --groups-are-kept)
include "the tour ends well" python3 "$tests_dir/fops/posix_tour.py" "$T/mnt" "${options[@]}"
