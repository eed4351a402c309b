#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Scripts ask a mount for facts by virtual names and by its statedump. kiln-mount gives the answers of the stock client for the same
# volume: the lines of the statedump by which a script finds a brick's counter and whether the brick is connected, and the gfid.

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

mkdir "$T/dumps"
volume_split=brick
volume_new v 2x2
volume_start v
kiln=$T/kiln
stock=$T/stock
mount_kiln v "$kiln" --statedump-dir "$T/dumps" --attribute-timeout=0 --entry-timeout=0
mount_volume v "$stock" default --attribute-timeout=0 --entry-timeout=0
mnt=$kiln
wait_for 240 "four children" children_up 4

# ---- the statedump

# FILE: the lines of the replicate layers that a script may look for. What only one of the clients has is left out.
replicate_lines() {
    sed -n '/^\[.*cluster\/replicate\.v-replicate-[0-9]*\]$/,/^$/p' "$1" |
        grep -E '^(child_count|child_up|pending_key|.*_self_heal|heal-wait|background-|healers|read-hash|quorum-)'
}

distribute_lines() {
    grep -E '^(subvol_cnt|subvolumes\[.*\]=cluster|subvolume_status)' "$1"
}

# The way of GlusterFS's own tests to ask whether a brick is connected.
child_up_of() {
    grep -F -B1 "=trusted.afr.v-client-$2" "$1" | head -1 | cut -d= -f2
}

stock_dump=$(dump_take "${mount_pid[$stock]}" /var/run/gluster)
kiln_dump=$(dump_take "${mount_pid[$kiln]}" "$T/dumps")
replicate_lines "$stock_dump" >"$T/replicate.stock"
replicate_lines "$kiln_dump" >"$T/replicate.kiln"
t "the stock client's statedump has four counters' names" test "$(grep -c pending_key "$T/replicate.stock")" -eq 4
t "the statedump's lines of replicate are those of the stock client" diff "$T/replicate.stock" "$T/replicate.kiln"
distribute_lines "$stock_dump" >"$T/distribute.stock"
distribute_lines "$kiln_dump" >"$T/distribute.kiln"
t "the statedump's lines of distribute are those of the stock client" diff "$T/distribute.stock" "$T/distribute.kiln"
is "$(child_up_of "$kiln_dump" 1)" 1 "the line before a brick's counter says that the brick is connected"

# ---- the gfid

echo text >"$stock/file"
mkdir "$kiln/folder"
for name in . file folder; do
    for key in glusterfs.gfid.string glusterfs.gfid; do
        is "$(getfattr -e hex -n "$key" "$kiln/$name" | tail -n +2)" "$(getfattr -e hex -n "$key" "$stock/$name" | tail -n +2)" \
            "$key of $name is that of the stock client"
    done
done

bricks=(${volume_bricks[v]})
daemon_kill "${brick_daemon[${bricks[1]}]}"
wait_for 240 "three children" children_up 3
is "$(child_up_of "$(dump_take "${mount_pid[$kiln]}" "$T/dumps")" 1)" 0 "the line before a killed brick's counter says that it is away"
daemon_start "${brick_daemon[${bricks[1]}]}"
