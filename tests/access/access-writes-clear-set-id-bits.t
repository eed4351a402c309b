#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Changing a file through kiln-mount clears its set-id bits and its security.capability as ext4, XFS and tmpfs do. The
# script tries each kind of change as root, as the owner, as a member of the group and as another user. The kernel
# leaves the clearing to the mount (FUSE_HANDLE_KILLPRIV_V2) and does not ask before each write; with handle-killpriv off the
# kernel asks. Bits that another client sets after the kernel has looked are cleared too, also when writes are answered early. The
# replicas, one on each of these file systems, stay equal.
# Covers: xlators/mount/fuse/privs.c, xlators/mount/fuse/data.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

work=$(dirname "$0")/privs_work.py

place_ext4() {
    mkdir -p "$1"
    truncate -s 512m "$1.ext4"
    mkfs.ext4 -q -F "$1.ext4"
    mount -o loop "$1.ext4" "$1"
}

table() {
    python3 "$work" table "$@"
}

# Differences of a FUSE mount. Set-group-id without the group's x stays after a change by a user outside of the group, as on
# stock's mounts. Bricks remove the capability when the kernel writes back a mapping, and keep the capability when nothing is
# changed. A user with write permission can clear the bits by a chown that changes nothing, too.
expected() {
    sed -E -e 's/^((write|two writes|append|O_SYNC|O_DIRECT|truncate|ftruncate|O_TRUNC|fallocate|copy_file_range), other, 2767: well,) 0767/\1 2767/' \
        -e 's/^(mmap.*), capability/\1/' -e 's/^(chown of nothing, .*, 0777: well, 0777)/\1, capability/' \
        -e 's/^(chown of nothing, (member|other), [246]777:) .*/\1 well, 0777/' -e 's/^(chown of nothing, other, 2767:) .*/\1 well, 2767/' "$1"
}

mkdir "$T/v" "$T/bare"
place_tmpfs "$T/v/b0" 512m
place_xfs "$T/v/b1" 512m
place_ext4 "$T/v/b2"
rmdir "$T/v/b2/lost+found"
place_tmpfs "$T/bare/tmpfs" 512m
place_xfs "$T/bare/xfs" 512m
place_ext4 "$T/bare/ext4"
for fs in tmpfs xfs ext4; do
    table "$T/bare/$fs/d" >"$T/$fs.table"
done
t "tmpfs clears the same bits as ext4" diff "$T/ext4.table" "$T/tmpfs.table"
t "XFS clears the same bits as ext4" diff "$T/ext4.table" "$T/xfs.table"
expected "$T/ext4.table" >"$T/expected"

mount_graph=whole
volume_new v 1x3
volume_start v
read -ra bricks <<<"${volume_bricks[v]}"
kiln=$T/kiln stock=$T/stock
mount_kiln v "$kiln"
table "$kiln/d" "${bricks[@]}" >"$T/kiln.table"
t "the mount clears the expected bits" diff "$T/expected" "$T/kiln.table"

# Counts requests: the process calls read(2) only on its device, once for each request and once more to find no request.
reads() {
    awk '/^syscr/ { print $2 }' "/proc/${mount_pid[$1]}/io"
}
writes_cost() {
    local before
    before=$(reads "$1")
    python3 "$work" writes "$1/counted-$(basename "$1")-$2" "$2" 400 || return 1
    echo $(($(reads "$1") - before))
}
chmod 777 "$kiln"
off=$T/off
mount_kiln v "$off" --xlator-option='kiln-mount.handle-killpriv=off'
asks=$(writes_cost "$off" 1000)
for uid in 0 1000; do
    asks_not=$(writes_cost "$kiln" "$uid")
    t "the kernel asks nothing before 400 writes by $uid ($asks_not reads, with handle-killpriv off $asks)" test $((asks - asks_not)) -ge 300
done
mount_end "$off"

# The kernel caches attributes for an hour, so that it does not notice the changes of the other client.
mount_volume v "$stock" default --attribute-timeout=0 --entry-timeout=0
capability=0x0100000200200000000000000000000000000000
modes_there() {
    stat -c %a "${bricks[@]/%//$1}" | sort -u
}
capabilities_there() {
    getfattr --absolute-names -n security.capability "${bricks[@]/%//$1}" 2>/dev/null | grep -c '^security.capability=' || true
}
has_mode() {
    [[ $(stat -c %a "$1") == "$2" ]]
}
stale_writes() {
    local mnt=$1 name=$2 mode brick
    : >"$mnt/$name"
    chmod 777 "$mnt/$name"
    coproc holder { python3 "$work" hold "$mnt/$name" 1001; }
    read -r -u "${holder[0]}" mode
    echo second >&"${holder[1]}"
    read -r -u "${holder[0]}" mode
    is "$mode" 0777 "$name: a mode without set-id bits stays"
    chmod 6777 "$stock/$name"
    is "$(modes_there "$name")" 6777 "$name: another client sets the set-id bits"
    echo third >&"${holder[1]}"
    read -r -u "${holder[0]}" mode
    is "$mode" 0777 "$name: the next write clears the bits, and the writer sees that at once"
    is "$(modes_there "$name")" 777 "$name: the bits are cleared on the bricks"
    for brick in "${bricks[@]}"; do
        setfattr -n security.capability -v "$capability" "$brick/$name"
    done
    is "$(capabilities_there "$name")" "${#bricks[@]}" "$name: another client sets a capability"
    echo fourth >&"${holder[1]}"
    read -r -u "${holder[0]}" mode
    is "$(capabilities_there "$name")" 0 "$name: the next write removes the capability"
    exec {holder[1]}>&-
    # shellcheck disable=SC2154
    wait "$holder_PID" || true
    t "$name: the other client sees the cleared bits" wait_for 240 "the other client" has_mode "$stock/$name" 777
}
old=$T/old
mount_kiln v "$old" --attribute-timeout=3600 --entry-timeout=3600 --negative-timeout=3600
stale_writes "$old" early
mount_end "$old"
mount_kiln v "$old" --attribute-timeout=3600 --entry-timeout=3600 --negative-timeout=3600 --xlator-option='*write-behind.pass-through=on'
stale_writes "$old" in-time

# The kernel believes that the name is free, and asks for a new file.
makes_anew() {
    [[ ! -e $old/taken ]] && echo stock >"$stock/taken" && chown 1001:1001 "$stock/taken" && chmod 6777 "$stock/taken" &&
        setpriv --reuid 1000 --regid 1000 --clear-groups bash -c ': >"$1"' _ "$old/taken"
}
t "a file that another client has created meanwhile is truncated" makes_anew
is "$(stat -c %s "$old/taken") $(modes_there taken)" "0 777" "the truncated file has no set-id bits"
mount_end "$old"
mount_end "$stock"
mount_end "$kiln"
for brick in "${bricks[@]:1}"; do
    t "the replicas are equal" bricks_equal "${bricks[0]}" "$brick"
done
t "no heal is pending" wait_for 240 "the last marks" nothing_pending "${bricks[@]}"
