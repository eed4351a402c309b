#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Several thousand unusual POSIX calls (posix_corners.py) have the same results through kiln-mount as on the bricks'
# own file system, on one brick and on a distributed replicated volume.
# Covers: xlators/mount/fuse, xlators/cluster, xlators/storage/posix

exec "$(dirname "$0")/matrix" --tap --brick kiln --client kiln --layout 1 --layout 2x2 --only corners
