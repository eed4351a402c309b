#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A stock client mounts a volume of each layout and writes a file, and a second mount reads the same bytes.
# Covers: xlators/protocol/server, xlators/storage/posix

. "$(dirname "$0")/../lib/kiln.sh"

for layout in 1x1 2x1 1x2 2x2 1x2+1 2x2+1; do
    vol=v$layout
    volume_new "$vol" "$layout"
    volume_start "$vol"
    mount_volume "$vol" "$T/m1"
    head -c 300000 /dev/urandom >"$T/data"
    # With fsync: the client would answer close() while its writes are still under way, and the other mount would see less.
    t "$layout: the first mount writes a file" dd if="$T/data" of="$T/m1/file" bs=100000 conv=fsync
    mount_volume "$vol" "$T/m2" plain
    t "$layout: the other mount reads the same bytes" cmp "$T/data" "$T/m2/file"
    t "$layout: the first mount unlinks the file" rm "$T/m1/file"
    t "$layout: the file is gone on the other mount" wait_for 60 "the name to go" test ! -e "$T/m2/file"
    mount_end "$T/m1"
    mount_end "$T/m2"
    volume_stop "$vol"
done
