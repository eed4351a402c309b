#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Stock glusterfsd writes the bricks of a 2x2 volume, then kilnd serves and changes them, then stock again. Each finds
# everything that the other wrote, with the same gfids, and objects that neither changed keep every attribute on disk.
# An object that kilnd creates has the same kinds of attributes on disk as one that stock creates.
# Covers: xlators/storage/posix/handle.c, xlators/storage/posix/gfid2path.c, xlators/storage/posix/mdata.c

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
t "kilnd serves what stock wrote" $onto verify "$T/mnt" stock "$T/stock.state"
put_away
for brick in "${bricks[@]}"; do
    $onto snapshot "$brick" >"$T/$(basename "$brick").2"
    t "reading changed nothing on $(basename "$brick")" diff "$T/$(basename "$brick").1" "$T/$(basename "$brick").2"
done

serve_with kiln
t "kilnd fills a tree of its own" bash -c '"$@" >"$0"' "$T/kiln.state" $onto fill "$T/mnt" kiln
put_away
for brick in "${bricks[@]}"; do
    t "objects of both look alike on $(basename "$brick")" $onto compare "$brick" stock kiln
done

serve_with kiln
t "kilnd changes what stock made" $onto change "$T/mnt" stock
put_away
t "every handle on the bricks holds" all_handles_hold

serve_with stock
t "stock serves what kilnd wrote" $onto verify "$T/mnt" kiln "$T/kiln.state"
t "and what kilnd changed" $onto verify_changed "$T/mnt" stock
t "and changes kilnd's" $onto change "$T/mnt" kiln
put_away
t "every handle on the bricks holds" all_handles_hold

serve_with kiln
t "kilnd serves what stock changed" $onto verify_changed "$T/mnt" kiln
t "and deletes all of it" rm -r "$T/mnt/stock" "$T/mnt/kiln"
put_away
t "every handle on the bricks holds" all_handles_hold
t "the bricks are empty" test -z "$(find "${bricks[@]}" -mindepth 1 -name '.glusterfs*' -prune -o -mindepth 1 -print)"
