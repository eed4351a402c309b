#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount mounts volumes of two and of three replicas, on kilnd's bricks and on stock ones. The POSIX tour passes
# without caches, all replicas are equal afterwards, no heal is pending, and unmounting leaves no process and no
# mount.
# Covers: xlators/cluster/replicate, xlators/mount/fuse

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

volume_split=brick
for kind in kiln-3 stock-2; do
    vol=v-$kind mnt=$T/mnt-$kind
    options=(--acl)
    [[ $kind != stock-* ]] || options+=(--xattr-keeps-ctime)
    volume_new "$vol" "1x${kind#*-}"
    volume_assign "$vol" "${kind%-*}"
    volume_start "$vol"
    mount_kiln "$vol" "$mnt" --acl --attribute-timeout=0 --entry-timeout=0
    include "$kind: the POSIX tour ends with status 0" python3 "$tests_dir/fops/posix_tour.py" "$mnt" "${options[@]}"
    mkdir -m 0070 "$mnt/ours" && chgrp 4242 "$mnt/ours"
    t_here "$kind: a user with rights by a supplementary group removes and renames directories" \
        setpriv --reuid 2001 --regid 2001 --groups 2001,4242 sh -ec 'cd "$1"; mkdir a b c; rmdir a; mv b d; mv -T c d; rmdir d' - \
        "$mnt/ours"
    cp -r /etc/ssl /etc/alternatives "$mnt" 2>/dev/null || true
    t_here "$kind: the volume is unmounted" mount_end "$mnt"
    read -ra bricks <<<"${volume_bricks[$vol]}"
    for brick in "${bricks[@]:1}"; do
        t "$kind: the replicas are equal" bricks_equal "${bricks[0]}" "$brick"
    done
    t "$kind: no heal is pending" nothing_pending "${bricks[@]}"
    volume_stop "$vol"
done
