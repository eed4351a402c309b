#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A brick dies while a large directory of a 2x2 volume is being listed. The listing is complete or fails; it is never
# silently short. The next listing shows every name.
# Covers: xlators/cluster/distribute/readdir.c, xlators/cluster/replicate/read.c, xlators/mount/fuse/dir.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

names=3000
volume_split=brick
volume_new v 2x2
volume_start v
read -ra bricks <<<"${volume_bricks[v]}"
mnt=$T/mnt
mkdir "$T/dumps"
mount_kiln v "$mnt" --attribute-timeout=0 --entry-timeout=0 --statedump-dir="$T/dumps"
mkdir "$mnt/folder"
(cd "$mnt/folder" && seq "$names" | xargs touch)

list_whole() {
    [[ $(find "$mnt/folder" -mindepth 1 | wc -l) -eq $names ]]
}

# Prints "whole", "short" or the errno that the list has failed with.
list_while_dies() {
    python3 - "$mnt/folder" "$names" "$T" <<'EOS'
import errno, os, sys, time
folder, names, top = sys.argv[1], int(sys.argv[2]), sys.argv[3]
seen = 0
try:
    with os.scandir(folder) as entries:
        for entry in entries:
            seen += 1
            if seen == 1:
                os.close(os.open(top + "/begun", os.O_CREAT))
                while not os.path.exists(top + "/go-on"):
                    time.sleep(0.01)
except OSError as error:
    print(errno.errorcode[error.errno])
else:
    print("whole" if seen == names else f"short: {seen}")
EOS
}

t "all names are listed before a brick dies" list_whole
for brick in "${bricks[@]}"; do
    daemon=${brick_daemon[$brick]}
    rm -f "$T/begun" "$T/go-on"
    list_while_dies >"$T/list.out" &
    list_pid=$!
    wait_for 60 "the list" test -e "$T/begun"
    daemon_kill "$daemon"
    touch "$T/go-on"
    wait "$list_pid"
    said=$(<"$T/list.out")
    diag "${brick##*/} died: $said"
    t "a listing is complete or fails while ${brick##*/} dies" grep -qxE 'whole|ENOTCONN' "$T/list.out"
    t_here "a listing is complete without ${brick##*/}" wait_for 60 "whole list" list_whole
    daemon_start "$daemon"
    # A 2x2 volume lists the names of its other set when both bricks of a set are down.
    t "the mount finds ${brick##*/} again" wait_for 240 "all bricks" children_up 4
    t_here "a listing is complete with ${brick##*/} again" wait_for 60 "whole list" list_whole
done
t_here "the volume is unmounted" mount_end "$mnt"
volume_stop v
