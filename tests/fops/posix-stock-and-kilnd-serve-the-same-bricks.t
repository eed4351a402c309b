#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Stock glusterfsd writes the bricks of a 2x2 volume, then kilnd serves and changes them, then stock again. Each finds
# everything that the other wrote, with the same gfids, and objects that neither changed keep every attribute on disk.
# An object that kilnd creates has the same kinds of attributes on disk as one that stock creates.
# Covers: xlators/storage/posix/object/handle.c, xlators/storage/posix/entry/gfid2path.c, xlators/storage/posix/object/mdata.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "it needs kilnd beside stock"

onto="python3 $tests_dir/fops/on_disk.py"
volume_new v 2x2
read -r -a bricks <<<"${volume_bricks[v]}"

serve_with() {
    volume_assign v "$1"
    volume_start v
    mount_volume v "$T/mnt" default --acl
}
put_away() {
    mount_end "$T/mnt"
    volume_stop v
}
all_handles_hold() {
    local brick
    for brick in "${bricks[@]}"; do
        brick_handles_hold "$brick" || return
    done
}

serve_with stock
$onto fill "$T/mnt" stock >"$T/stock.state"
put_away
for brick in "${bricks[@]}"; do
    $onto snapshot "$brick" >"$T/$(basename "$brick").1"
done

serve_with kiln
t "kilnd serves the tree that stock has written" $onto verify "$T/mnt" stock "$T/stock.state"
put_away
for brick in "${bricks[@]}"; do
    $onto snapshot "$brick" >"$T/$(basename "$brick").2"
    t "reading through kilnd changes nothing on $(basename "$brick")" diff "$T/$(basename "$brick").1" "$T/$(basename "$brick").2"
done

serve_with kiln
t "kilnd writes a second tree" bash -c '"$@" >"$0"' "$T/kiln.state" $onto fill "$T/mnt" kiln
put_away
for brick in "${bricks[@]}"; do
    t "objects of stock and of kilnd have the same attributes on $(basename "$brick")" $onto compare "$brick" stock kiln
done

serve_with kiln
t "kilnd changes the tree of stock" $onto change "$T/mnt" stock
put_away
t "every handle on the bricks is right after kilnd's changes" all_handles_hold

serve_with stock
t "stock serves the tree that kilnd has written" $onto verify "$T/mnt" kiln "$T/kiln.state"
t "stock serves kilnd's changes" $onto verify_changed "$T/mnt" stock
t "stock changes the tree of kilnd" $onto change "$T/mnt" kiln
put_away
t "every handle on the bricks is right after stock's changes" all_handles_hold

serve_with kiln
t "kilnd serves the changes of stock" $onto verify_changed "$T/mnt" kiln
t "kilnd deletes both trees" rm -r "$T/mnt/stock" "$T/mnt/kiln"
put_away
t "every handle on the bricks is right after the removal" all_handles_hold
t "the bricks are empty" test -z "$(find "${bricks[@]}" -mindepth 1 -name '.glusterfs*' -prune -o -mindepth 1 -print)"
