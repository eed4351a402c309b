#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# One brick of a dispersed volume (2+1) is down while files are created, changed, renamed and removed, and their
# owners, modes and xattrs change. The stock self-heal daemon brings all changes to the brick: the indices are empty
# in the end, and any two bricks are enough to read the contents.
# Covers: xlators/features/index, xlators/storage/posix/xattr/xattrop.c

. "$(dirname "$0")/../lib/kiln.sh"

files=${KILN_HEAL_FILES:-60}
volume_split=yes
volume_new v 1x2+1
volume_start v
mount_volume v "$T/mnt"
[[ $BRICKD == stock ]] && part=v-b || part=v-r
read -r -a bricks <<<"${volume_bricks[v]}"

# WORD NUMBER: the same text for the same arguments, whose length is no multiple of the stripe.
content() {
    printf "$1 $2 %.0s" {1..300}
}

mkdir "$T/mnt/old" "$T/mnt/old/gone"
for ((i = 0; i < files; i++)); do
    content old "$i" >"$T/mnt/old/$i"
done

change() {
    local i
    mkdir "$T/mnt/new"
    rmdir "$T/mnt/old/gone"
    for ((i = 0; i < files; i++)); do
        content new "$i" >"$T/mnt/new/$i"
        case $((i % 6)) in
        0) content changed "$i" >"$T/mnt/old/$i" ;;
        1) content more "$i" >>"$T/mnt/old/$i" ;;
        2) chmod 640 "$T/mnt/old/$i" && chown 12:34 "$T/mnt/old/$i" ;;
        3) setfattr -n user.colour -v "blue $i" "$T/mnt/old/$i" ;;
        4) mv "$T/mnt/old/$i" "$T/mnt/old/moved$i" ;;
        5) rm "$T/mnt/old/$i" ;;
        esac
    done
}

# Everything a client can see, in one text.
view() {
    (cd "$1" && find old new | sort | while read -r path; do
        stat -c '%n %f %u:%g %s' "$path"
        getfattr -d "$path"
        [[ ! -f $path ]] || sha256sum "$path"
    done)
}

daemon_kill "${part}1"
t_here "with a brick down $files files are made and $files changed" change
view "$T/mnt" >"$T/want"
t "more than $files objects wait for heal" test "$(brick_pending "${bricks[0]}" | wc -l)" -gt "$files"
daemon_start "${part}1"
mount_settle "$T/mnt"
shd_start v
t "the heal ends" wait_for 240 "empty indices" nothing_pending "${bricks[@]}"
mount_end "$T/mnt"
for brick in "${bricks[@]}"; do
    t "the handles of $(basename "$brick") are right" brick_handles_hold "$brick"
done

# The healed brick has to carry its third now.
for away in 0 2; do
    daemon_kill "$part$away"
    mount_volume v "$T/without$away"
    view "$T/without$away" >"$T/got$away"
    t "without brick $away every file has the written contents" diff "$T/want" "$T/got$away"
    mount_end "$T/without$away"
    daemon_start "$part$away"
done
