#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Extended attributes with special names clear locks. A stock brick lets any user do that. kiln-mount lets only root
# do it, on stock bricks as well as on Kiln's, and the locks of other clients stay.
# Covers: xlators/mount/fuse/xattr.c, xlators/features/locks/clrlk.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

user() {
    setpriv --reuid 21001 --regid 21001 --clear-groups "$@"
}

is_free() {
    flock --nonblock "$1" true
}

for kind in stock kiln; do
    mnt=$T/mnt-$kind
    volume_new "$kind" 1x1
    volume_assign "$kind" "$kind"
    volume_start "$kind"
    mount_kiln "$kind" "$mnt"
    echo text >"$mnt/file"
    exec 7<>"$mnt/file"
    flock 7
    for key in glusterfs.clrlk.tposix.kall glusterfs.clrlk.tposix.kgranted glusterfs.intrlk.tposix.kall; do
        user getfattr --only-values -n "$key" "$mnt/file" >"$T/user.out" 2>&1 || true
        t "$kind bricks: $key is refused to a user" grep -q "Operation not permitted" "$T/user.out"
    done
    t_not "$kind bricks: the lock of another client is still held" is_free "$mnt/file"
    t "$kind bricks: root may clear the lock" getfattr -n glusterfs.clrlk.tposix.kall -e hex "$mnt/file"
    t "$kind bricks: the lock is released" is_free "$mnt/file"
    exec 7>&-
    mount_end "$mnt"
done
