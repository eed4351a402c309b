#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Processes on two kiln-mounts, and a program with Kiln's libgfapi beside them, append to one file, also to one in shards. No data
# is lost, and no write is split by a write of another client. Data written through a memory map on one mount is read on the other.
# (These are three of the cells of tests/mount/matrix.)
# Covers: xlators/mount/fuse/data.c, xlators/protocol/client/client.c, xlators/storage/posix/data/write.c, api/io.c

exec "$(dirname "$0")/matrix" --tap --brick kiln --client kiln --beside kiln --layout 1 --layout shard --only append --repeat 3 --only maps \
    --only gfapi
