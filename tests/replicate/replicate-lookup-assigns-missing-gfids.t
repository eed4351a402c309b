#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Some objects have no gfid: data that lay in a folder before the folder became a brick, files and directories whose creator died
# between two steps, and objects whose gfid a brick has lost. LOOKUP by a kiln-mount gives each object the gfid of its other
# copies, or a new one, the same on all bricks. KILN_LAYOUTS selects layouts.
# Covers: xlators/cluster/replicate/heal-name.c, xlators/cluster/distribute/heal.c, xlators/mount/fuse/entry.c,
# xlators/storage/posix/entry/lookup.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"


gfid_hex() {
    getfattr --absolute-names -e hex -n trusted.gfid "$1" 2>/dev/null | sed -n 's/^trusted.gfid=0x//p'
}

# Removes the gfid, as after a crash between the creation of an object and of its gfid.
lose_gfid() {
    local gfid
    gfid=$(gfid_hex "$1")
    setfattr -x trusted.gfid "$1"
    rm "${1%/*}/.glusterfs/${gfid:0:2}/${gfid:2:2}/${gfid:0:8}-${gfid:8:4}-${gfid:12:4}-${gfid:16:4}-${gfid:20}"
}

# Succeeds when COUNT bricks have the object, all with the same gfid.
same_gfid() {
    local name=$1 count=$2 brick gfids=
    for brick in "${bricks[@]}"; do
        [[ ! -e $brick/$name ]] || gfids+="$(gfid_hex "$brick/$name")"$'\n'
    done
    [[ $(grep -c . <<<"$gfids") == "$count" && $(sort -u <<<"$gfids" | grep -c .) == 1 ]] || { echo "$gfids"; return 1; }
}

# Succeeds when all objects on the bricks are older than a second, because a brick takes a younger object without a gfid for an
# unfinished object.
are_old() {
    [[ -z $(find "${bricks[@]}" -newerct '1 second ago' -print -quit) ]]
}

is_read() {
    [[ $(cat "$1" 2>&1) == "$2" ]]
}

is_folder() {
    [[ -d $1 ]] && ls "$1" >/dev/null
}

mkdir "$T/dumps"
for layout in ${KILN_LAYOUTS:-1x1 2x1 1x2 2x2 arbiter}; do
    shape=$layout volfile_arbiter=
    [[ $layout != arbiter ]] || { shape=1x3 volfile_arbiter=yes; }
    vol=v$layout mnt=$T/mnt$layout
    volume_split=brick
    volume_new "$vol" "$shape"
    volume_start "$vol"
    read -ra bricks <<<"${volume_bricks[$vol]}"
    size=${shape#*x} # bricks of a replica set
    last=${bricks[-1]}
    mount_graph=full
    mount_kiln "$vol" "$mnt" --statedump-dir "$T/dumps"
    wait_for 240 "the mount" mkdir "$mnt/lost-folder"
    mkdir "$mnt/lost-all"
    for name in one all; do
        echo "$name" >"$mnt/lost-$name-file"
    done
    mount_end "$mnt"
    volume_stop "$vol"

    # The last brick has lost the gfids, or all bricks have.
    for brick in "${bricks[@]}"; do
        lose_gfid "$brick/lost-all"
        [[ ! -e $brick/lost-all-file ]] || lose_gfid "$brick/lost-all-file"
        mkdir "$brick/by-hand"
    done
    [[ ${#bricks[@]} == 1 ]] || lose_gfid "$last/lost-folder"
    [[ $size == 1 || ! -e $last/lost-one-file ]] || lose_gfid "$last/lost-one-file"
    # Data from before the volume: files that lie on all copies of the first set, or on one copy.
    for brick in "${bricks[@]:0:size}"; do
        for n in 1 2 3; do
            echo "data $n" >"$brick/data-$n"
        done
    done
    echo alone >"${bricks[0]}/alone"
    mkdir "${bricks[0]}/alone-folder"
    wait_for 60 "the objects to be a second old" are_old
    volume_start "$vol"
    mount_kiln "$vol" "$mnt" --statedump-dir "$T/dumps"
    [[ $size == 1 ]] || wait_for 240 "the mount's bricks" children_up "${#bricks[@]}"

    t "$layout: a file that lost its gfid on one brick is read" wait_for 60 "the contents" is_read "$mnt/lost-one-file" one
    t "$layout: the file that lost its gfid on one brick has one gfid" same_gfid lost-one-file "$size"
    t "$layout: a directory that lost its gfid on one brick is listed" wait_for 60 "the listing" is_folder "$mnt/lost-folder"
    t "$layout: the directory that lost its gfid on one brick has one gfid" same_gfid lost-folder "${#bricks[@]}"
    t "$layout: a file that lost its gfid on all bricks is read" wait_for 60 "the contents" is_read "$mnt/lost-all-file" all
    t "$layout: the file that lost its gfid on all bricks has one gfid" same_gfid lost-all-file "$size"
    t "$layout: a directory that lost its gfid on all bricks is listed" wait_for 60 "the listing" is_folder "$mnt/lost-all"
    t "$layout: the directory that lost its gfid on all bricks has one gfid" same_gfid lost-all "${#bricks[@]}"
    t "$layout: a directory made on the bricks is listed" wait_for 60 "the listing" is_folder "$mnt/by-hand"
    t "$layout: the directory made on the bricks has one gfid" same_gfid by-hand "${#bricks[@]}"
    for n in 1 2 3; do
        t "$layout: file $n from before the brick's first use is read" wait_for 60 "the contents" is_read "$mnt/data-$n" "data $n"
        t "$layout: file $n from before has one gfid" same_gfid "data-$n" "$size"
        t "$layout: file $n from before is written" bash -c "echo more >>'$mnt/data-$n'"
    done
    t "$layout: a file that was on one brick only is read" wait_for 60 "the contents" is_read "$mnt/alone" alone
    t "$layout: each copy of that file has the same gfid" same_gfid alone "$size"
    t "$layout: a directory that was on one brick only is listed" wait_for 60 "the listing" is_folder "$mnt/alone-folder"
    t "$layout: each copy of that directory has the same gfid" same_gfid alone-folder "${#bricks[@]}"
    t "$layout: a file is created in that directory" touch "$mnt/alone-folder/file"
    t "$layout: the whole tree is listed" bash -c "ls -lR '$mnt'"
    t_here "$layout: the volume is unmounted" mount_end "$mnt"
    volume_stop "$vol"
done
