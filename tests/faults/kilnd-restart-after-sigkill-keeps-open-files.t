#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# All bricks are killed with SIGKILL at once and restart on the same ports. The client reconnects by itself, open
# files work through the same descriptors, and no earlier write is lost.
# Covers: xlators/protocol/server/handshake.c, glusterfsd/kilnd.c

. "$(dirname "$0")/../lib/kiln.sh"

volume_new v 2x2
volume_start v
mount_volume v "$T/mnt" plain
for i in 1 2 3 4 5 6 7 8; do
    echo "before $i" >"$T/mnt/file$i"
done
exec 7<>"$T/mnt/file1"
(cd "$T/mnt" && sha256sum file[2-8]) >"$T/sums"

for daemon in $(volume_daemons v); do
    daemon_kill "$daemon"
done
t_not "no file can be made without bricks" touch "$T/mnt/new"
for daemon in $(volume_daemons v); do
    daemon_start "$daemon" 7>&-    # else the daemon would keep the file open, too
done
t "the client reconnects to its bricks" mount_settle "$T/mnt"
t "the client makes a file" touch "$T/mnt/new"
t "the written files have their contents" env -C "$T/mnt" sha256sum --quiet --check "$T/sums"
write_by_descriptor() {
    echo "through the old descriptor" >&7
}
t "the open file can be written" wait_for 120 "the descriptor to be reopened" write_by_descriptor
exec 7>&-
t "the open file holds the written text" grep -q "through the old descriptor" "$T/mnt/file1"
t "all files can be deleted" rm "$T"/mnt/file{1,2,3,4,5,6,7,8} "$T/mnt/new"
