#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A brick that dies while it creates an object leaves the object empty and without a gfid. While the brick is away, a mount removes the
# name or its folder, or makes an object of another kind under it. When the brick is back, a mount that heals removes the brick's object, so that the
# folder becomes the same on all replicas. A file without a gfid that holds data is left alone, because no client made it. The stock
# self-heal daemon can remove the brick's objects, too.

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

volume_split=brick
mkdir "$T/dumps"

names() {
    (cd "$1/d" && find . -printf '%P %y\n' | sort)
}

# The index entry of an object that has gone stays until a self-heal daemon walks the index.
pending() {
    PYTHONPATH=$tests_dir/replicate python3 -c 'import sys, torture_bricks
print("\n".join(torture_bricks.pending(sys.argv[1:], indices_are_walked=False)), end="")' "${bricks[@]}"
}

is_healed() {
    ls -lR "$mnt/d" >/dev/null 2>&1
    [[ $(names "${bricks[0]}") == "$(names "${bricks[-1]}")" ]] && [[ -z $(pending) ]]
}

# On a mount that heals nothing.
daemon_removes() {
    local mnt=$1
    mount_kiln "$vol" "$mnt" --attribute-timeout=0 --entry-timeout=0 --statedump-dir "$T/dumps"
    wait_for 60 "all bricks" children_up "$count"
    mkdir "$mnt/e"
    daemon_kill "${brick_daemon[${bricks[last]}]}"
    wait_for 60 "the mount to know it" children_up "$last"
    touch "${bricks[last]}/e/file"
    mkdir "${bricks[last]}/e/folder"
    touch "$mnt/e/file" && rm "$mnt/e/file"
    mkdir "$mnt/e/folder" && rmdir "$mnt/e/folder"
    sleep 1 # a younger object may be in the making
    daemon_start "${brick_daemon[${bricks[last]}]}"
    wait_for 60 "all bricks" children_up "$count"
    shd_start "$vol"
    t "$vol: the stock daemon removes a file without a gfid" wait_for 60 "heal" is_absent "${bricks[last]}/e/file"
    t "$vol: the stock daemon removes a folder without a gfid" wait_for 60 "heal" is_absent "${bricks[last]}/e/folder"
    kill -TERM "$shd_pid" && wait "$shd_pid" || true
    shd_pid=
    t_here "$vol: the second mount ends" mount_end "$mnt"
}

is_absent() {
    [[ ! -e $1 ]]
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
    mkdir -p "$mnt/d/gone-tree"
    daemon_kill "${brick_daemon[${bricks[last]}]}"
    wait_for 60 "the mount to know it" children_up "$last"
    touch "${bricks[last]}/d/"{gone-file,file-then-folder}
    mkdir "${bricks[last]}/d/"{gone-folder,folder-then-file,gone-tree/folder}
    touch "${bricks[last]}/d/gone-tree/file"
    mkfifo "${bricks[last]}/d/gone-tree/fifo"
    rmdir "$mnt/d/gone-tree"
    touch "$mnt/d/gone-file" && rm "$mnt/d/gone-file"
    mkdir "$mnt/d/gone-folder" && rmdir "$mnt/d/gone-folder"
    mkdir "$mnt/d/file-then-folder"
    echo contents >"$mnt/d/folder-then-file"
    daemon_start "${brick_daemon[${bricks[last]}]}"
    wait_for 60 "all bricks" children_up "$count"
    t "$vol: the folder becomes the same on all replicas" wait_for 60 "heal" is_healed
    is "$(names "${bricks[last]}")" $' d\nfile-then-folder d\nfolder-then-file f' "$vol: the brick has the names of the mount"
    is "$(cat "${bricks[last]}/d/folder-then-file")" contents "$vol: the brick has the contents of the new file"
    t "$vol: each object of the brick has its handle" brick_handles_hold "${bricks[last]}"
    daemon_kill "${brick_daemon[${bricks[last]}]}"
    wait_for 60 "the mount to know it" children_up "$last"
    echo data >"${bricks[last]}/d/data"
    touch "$mnt/d/data" && rm "$mnt/d/data"
    daemon_start "${brick_daemon[${bricks[last]}]}"
    wait_for 60 "all bricks" children_up "$count"
    ls -l "$mnt/d" "$mnt/d/data" >/dev/null 2>&1 || true
    sleep 2
    is "$(cat "${bricks[last]}/d/data")" data "$vol: a file without a gfid that holds data stays on the brick"
    t_here "$vol: the mount ends" mount_end "$mnt"
    [[ $count == 2 ]] || daemon_removes "$mnt-daemon"
    volume_stop "$vol"
done
