#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# While a replica is down, directories and files move out of directories that are then removed, and two directories
# swap places. A healing mount looks up the removed directories first, so the mount deletes these directories on the
# replica while they still hold objects that now live elsewhere. All replicas get the same names, no mark stays
# pending, and the hidden directory in which healers park objects is empty.
# Covers: xlators/cluster/replicate/heal-entry.c, xlators/cluster/replicate/heal-park.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

volume_split=brick
mkdir "$T/dumps"

# Names, kinds, contents; the hidden folder of healers left out.
tree() {
    (cd "$1" && find . -path ./.glusterfs -prune -o -path ./.trashcan -prune -o -name '.glusterfs-anonymous-inode-*' -prune \
        -o -printf '%P %y\n' | sort && find . -path './.glusterfs*' -prune -o -type f -exec sha1sum {} + | sort -k 2)
}

# The times of folders and of a moved file, as features/utime keeps the times for the volume.
times() {
    (cd "$1" && getfattr -n trusted.glusterfs.mdata -e hex . to to/folder to/file deeper lower lower/upper)
}

# Looks up the removed folders first, by their old names.
look() {
    local name
    for name in from/folder from from2/folder/deeper from2/folder from2 dead upper/lower upper "$@"; do
        ls -l "$mnt/$name" >/dev/null 2>&1 || true
    done
}

pending() {
    PYTHONPATH=$tests_dir/replicate python3 -c 'import sys, torture_bricks; print("\n".join(torture_bricks.pending(sys.argv[1:])), end="")' "${bricks[@]}"
}

is_healed() {
    look
    find "$mnt" -ls >/dev/null 2>&1
    [[ -z $(pending) ]]
}

for count in 2 3; do
    vol=v$count mnt=$T/mnt-$count last=$((count - 1))
    volume_new "$vol" "1x$count"
    volume_start "$vol"
    read -ra bricks <<<"${volume_bricks[$vol]}"
    volfile_heal=heal
    mount_kiln "$vol" "$mnt" --attribute-timeout=0 --entry-timeout=0 --statedump-dir "$T/dumps"
    volfile_heal=
    wait_for 60 "all bricks" children_up "$count"
    mkdir -p "$mnt"/{from/folder,from2/folder/deeper,dead/a/b,upper/lower,to}
    for name in from/folder/file from/file from2/folder/deeper/file dead/file dead/a/file dead/a/b/file upper/file upper/lower/file; do
        echo "$name" >"$mnt/$name"
    done
    ln "$mnt/dead/a/file" "$mnt/to/other-name"
    daemon_kill "${brick_daemon[${bricks[last]}]}"
    wait_for 60 "the mount to know it" children_up "$last"
    mv "$mnt/from/folder" "$mnt/to/folder"
    mv "$mnt/from/file" "$mnt/to/file"
    mv "$mnt/dead/a/b/file" "$mnt/to/file-of-dead"
    rmdir "$mnt/from"
    mv "$mnt/from2/folder/deeper" "$mnt/deeper"
    rm -r "$mnt/from2" "$mnt/dead"
    mv "$mnt/upper/lower" "$mnt/lower"
    mv "$mnt/upper" "$mnt/lower/upper"
    daemon_start "${brick_daemon[${bricks[last]}]}"
    wait_for 60 "all bricks" children_up "$count"
    look
    t "$vol: the heal completes" wait_for 60 "heal" is_healed
    is "$(pending)" "" "$vol: no mark is pending, and no object is parked"
    for brick in "${bricks[@]:1}"; do
        is "$(tree "$brick")" "$(tree "${bricks[0]}")" "$vol: ${brick##*/} has the same tree as the first brick"
        is "$(times "$brick")" "$(times "${bricks[0]}")" "$vol: ${brick##*/} has the same times as the first brick"
        t "$vol: each object of ${brick##*/} has its handle" brick_handles_hold "$brick"
    done
    is "$(cat "$mnt/to/folder/file" "$mnt/lower/upper/file" "$mnt/deeper/file" "$mnt/to/file-of-dead" "$mnt/to/other-name")" \
        $'from/folder/file\nupper/file\nfrom2/folder/deeper/file\ndead/a/b/file\ndead/a/file' "$vol: the mount reads the files"
    t_here "$vol: the volume is unmounted" mount_end "$mnt"
    volume_stop "$vol"
done
