#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Processes on two mounts of Kiln's append to one file: nothing is lost, and no write is cut in two by another's. What one has written
# through a map is read on the other. (Two of the cells of tests/mount/matrix.)

exec "$(dirname "$0")/matrix" --tap --brick kiln --client kiln --beside kiln --layout 1 --only append --repeat 3 --only maps
