#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount mounts dispersed volumes of kilnd's bricks and of stock ones. The POSIX tour passes without caches, all
# fragments belong together afterwards, no object waits for heal, and unmounting leaves no process and no mount.
# Covers: xlators/cluster/disperse, xlators/mount/fuse

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

work=$(dirname "$(readlink -f "$0")")/disperse_work.py
volume_split=brick
for kind in kiln stock; do
    vol=v-$kind mnt=$T/mnt-$kind
    options=(--acl)
    [[ $kind != stock ]] || options+=(--xattr-keeps-ctime)
    volume_new "$vol" 1x2+1
    volume_assign "$vol" "$kind"
    volume_start "$vol"
    mount_kiln "$vol" "$mnt" --acl --attribute-timeout=0 --entry-timeout=0
    include "$kind: the POSIX tour ends with status 0" python3 "$tests_dir/fops/posix_tour.py" "$mnt" "${options[@]}"
    cp -r /etc/ssl /etc/alternatives "$mnt" 2>/dev/null || true
    t "$kind: copies of folders with links are equal" diff -r --no-dereference /etc/alternatives "$mnt/alternatives"
    t_here "$kind: the volume is unmounted" mount_end "$mnt"
    read -ra bricks <<<"${volume_bricks[$vol]}"
    t "$kind: all fragments belong together" python3 "$work" fragments 1 "${bricks[@]}"
    t "$kind: no object waits for heal" nothing_pending "${bricks[@]}"
    volume_stop "$vol"
done
