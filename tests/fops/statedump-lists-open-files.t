#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A statedump of a brick lists the files that clients have open, in the sections and fields of stock: the gfid and the
# number of open descriptors of each file.
# Covers: daemon/statedump.c, libglusterfs/fs/inode.c, libglusterfs/fs/fd.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "a stock brick writes its statedump elsewhere"
mnt=$T/mnt
volume_new v 1x1
volume_start v
mount_volume v "$mnt"
brick=${volume_bricks[v]}
echo one >"$mnt/open"
echo two >"$mnt/closed"
exec 7>>"$mnt/open" 8>>"$mnt/open"
echo more >&7
echo more >&8
gfid_of() { getfattr -n trusted.gfid -e hex "$1" 2>/dev/null | sed -n 's/.*=0x\(.\{8\}\)\(.\{4\}\)\(.\{4\}\)\(.\{4\}\)/\1-\2-\3-\4-/p'; }
# The lines of the section of an object that is open.
section_of() {
    local gfid
    gfid=$(gfid_of "$brick/$1")
    awk -v gfid="gfid=$gfid" '/^\[/ { is_active = /^\[conn\.0\.bound_xl\..*\.active\.[0-9]+\]$/; is_it = 0 }
        is_active && $0 == gfid { is_it = 1 } is_it' "$T/dump"
}
dump() {
    cp "$(dump_take "${daemon_pid[${brick_daemon[$brick]}]}" "$T")" "$T/dump"
}
dump
is "$(section_of open | grep ^fd-count)" "fd-count=2" "the open file has two descriptors"
is "$(section_of open | grep ^ia_type)" "ia_type=1" "the open file has the type of a file"
is "$(section_of closed)" "" "a closed file is not listed"
is "$(grep -c '^open-inodes=1$' "$T/dump")" 1 "one object is open"
exec 7>&- 8>&-
closed() { dump && [[ -z $(section_of open) ]]; }
t_here "the closed file is no longer listed" wait_for 60 "the release" closed
mount_end "$mnt"
volume_stop v
