#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Some thousand calls in the corners of POSIX come through kiln-mount to what they come to on the bricks' own file system (posix_corners.py),
# on one brick and on a distributed, replicated volume.

exec "$(dirname "$0")/matrix" --tap --brick kiln --client kiln --layout 1 --layout 2x2 --only corners
