#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kilnd has mounted a replicated volume whose second brick belongs to another kilnd. Fops to the first brick go as calls,
# fops to the second as bytes, and both replicas have all files. While the other process is dead, files are made and written;
# they accuse the other replica (pending xattr). After the return of the process later writes reach both.
# Covers: rpc/server/inside.c, rpc/client/rpc-client.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/measure.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"
[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

mnt=$T/mnt
mkdir -p "$mnt"
volume_split=brick
volume_new far 1x1
volume_start far
volume_new near 1x1
kilnd_options=(--management-socket="$T/kilnd.socket" --inside-mounts)
volume_start near
near_brick=${volume_bricks[near]} far_brick=${volume_bricks[far]}
near_pid=${daemon_pid[${brick_daemon[$near_brick]}]}

for name in near far; do
    volfile_bare "$name" "$(volume_specs "$name")" >"$T/$name.vol"
    sed "s/^volume /&$name-/; s/subvolumes /&$name-/" "$T/$name.vol" >>"$T/both.vol"
done
top() { awk '/^volume / { name = $2 } END { print name }' "$1"; }
printf 'volume both\n    type cluster/replicate\n    subvolumes near-%s far-%s\nend-volume\n' \
    "$(top "$T/near.vol")" "$(top "$T/far.vol")" >>"$T/both.vol"
t "kilnd mounts the volume" "$KILN_MOUNT" --inside="$T/kilnd.socket" --xlator-option='both.quorum-type=none' -f "$T/both.vol" "$mnt"
end_mount() { umount -l "$mnt" 2>/dev/null; }
at_end+=(end_mount)

# Prints the clients' lines `inside=` in order.
ways() { grep -o '^inside=[01]' "$(dump_take "$near_pid" "$T")" | sort | tr '\n' ' '; }
is "$(ways)" "inside=0 inside=1 " "one brick is called inside of kilnd, the other by its connection"
writes_many() {
    local i
    mkdir -p "$mnt/$1"
    for ((i = 0; i < 50; i++)); do
        echo "$1 $i" >"$mnt/$1/file$i" || return 1
    done
}
same() { diff -r "$near_brick/$1" "$far_brick/$1" && [[ $(find "$far_brick/$1" -type f | wc -l) -eq 50 ]]; }
t "files are written" writes_many before
t "both replicas have the files" same before

daemon_kill "${brick_daemon[$far_brick]}"
t "files are written without the other process" writes_many without
is "$(find "$near_brick/without" -type f | wc -l)" 50 "the replica inside of kilnd has the files"
accuses_far() { getfattr --absolute-names -d -m 'trusted.afr.*far' -e hex "$near_brick/without/file7" | grep -qE '=0x0*[1-9a-f]'; }
t "the files accuse the replica that missed them" accuses_far
kilnd_options=()
daemon_start "${brick_daemon[$far_brick]}"
writes_after() { rm -rf "$mnt/after" && writes_many after && same after; }
t "later files are on both replicas again" wait_for 240 "the other brick to be back" writes_after
is "$(ways)" "inside=0 inside=1 " "the ways of the calls are as before"
t "the mount is unmounted" umount "$mnt"
