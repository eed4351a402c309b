#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Scripts read facts about a mount through virtual names and through its statedump. kiln-mount gives the same answers
# as the stock client for the same volume: the lines of the statedump that hold a brick's counter and its connection
# state, the gfid, and the files of the hidden directory .meta, which follow changes of the volume's options and
# layers and cannot be changed.
# Covers: xlators/mount/fuse/meta.c, xlators/mount/fuse/xattr.c, libglusterfs/log/dump.c

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

# FILE: the lines of the replicate layers that a script may look for, without the lines that only one of the clients
# has.
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
t "the stock client's statedump has the names of four counters" test "$(grep -c pending_key "$T/replicate.stock")" -eq 4
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

# ---- the ranges of names of a folder

read -ra bricks <<<"${volume_bricks[v]}"
range_of() { getfattr --absolute-names -e hex -n trusted.glusterfs.dht "$1/folder" | sed -n 's/.*=0x.\{16\}//p'; }
# As in a folder that is older than the second pair of bricks.
for i in 0 1 2 3; do
    range=00000000ffffffff
    [[ $i -lt 2 ]] || range=0000000000000000
    setfattr -n trusted.glusterfs.dht -v "0x0000000000000000$range" "${bricks[i]}/folder"
done
t "setting distribute.fix.layout on a directory succeeds" setfattr -n distribute.fix.layout -v yes "$kiln/folder"
is "$(range_of "${bricks[0]}")" "$(range_of "${bricks[1]}")" "both bricks of a pair have the same range"
whole=$(printf '%s\n' "$(range_of "${bricks[0]}")" "$(range_of "${bricks[2]}")" | sort | tr -d '\n')
t "the two ranges cover all hashes" grep -qE '^00000000(........)(........)ffffffff$' <<<"$whole"
t "the two ranges are halves" grep -qE '^000000007f......(7f|80)......ffffffff$' <<<"$whole"
t "setting distribute.fix.layout with another value succeeds" setfattr -n distribute.fix.layout -v no "$kiln/folder"
is "$(printf '%s\n' "$(range_of "${bricks[0]}")" "$(range_of "${bricks[2]}")" | sort | tr -d '\n')" "$whole" "complete ranges stay unchanged"
for mount in "$kiln" "$stock"; do
    is "$(LC_ALL=C setfattr -n distribute.fix.layout -v yes "$mount/file" 2>&1 | sed 's/.*: //')" "Operation not supported" \
        "distribute.fix.layout of a file, ${mount##*/}"
done

bricks=(${volume_bricks[v]})
daemon_kill "${brick_daemon[${bricks[1]}]}"
wait_for 240 "three children" children_up 3
is "$(child_up_of "$(dump_take "${mount_pid[$kiln]}" "$T/dumps")" 1)" 0 "the line before a killed brick's counter says that the brick is down"
daemon_start "${brick_daemon[${bricks[1]}]}"

# ---- .meta

active=.meta/graphs/active
t_not "a listing of the root does not show .meta" grep -qx .meta <(ls -a "$kiln")
for file in v-replicate-0/type v-dht/name v-client-0/options/remote-subvolume v-replicate-1/options/afr-pending-xattr v-client-3/type; do
    is "$(cat "$kiln/$active/$file")" "$(cat "$stock/$active/$file")" "$file equals that of the stock client"
done
is "$(ls "$kiln/$active/v-dht/subvolumes")" "$(ls "$stock/$active/v-dht/subvolumes")" "the subvolumes of distribute are listed as with stock"
is "$(cat "$kiln/$active/v-dht/subvolumes/1/name")" v-replicate-1 "the folder of a subvolume leads to the layer of the subvolume"
is "$(cat "$kiln/.meta/root/type")" mount/fuse "root is the layer of the mount point"
is "$(cat "$kiln/.meta/root/subvolumes/0/name")" "$(cat "$kiln/$active/top/name")" "top is the layer below mount/fuse"
is "$(cat "$kiln/.meta/root/options/mountpoint")" "$kiln" "the layer mount/fuse shows its mount point"
is "$(cat "$kiln/.meta/logging/loglevel")" "$(cat "$stock/.meta/logging/loglevel")" "the log level equals the stock client's number"
t "the version file names the version" grep -q '"Package Version": "' "$kiln/.meta/version"
t "the cmdline file shows the command line" grep -q "Cmdlinestr.*$kiln" "$kiln/.meta/cmdline"
wait_for 240 "four children" children_up 4
mount_settle "$stock"
lines_of() {
    cat "$1/$active"/v-client-?/private "$1/$active"/v-replicate-?/private "$1/$active/v-dht/private" |
        grep -E '^(connected|child_count|child_up.*|pending_key.*|subvolume_status.*|quorum-type) = '
}
t "the private files have the stock client's lines about bricks" diff <(lines_of "$stock") <(lines_of "$kiln")
t "find reads the whole of .meta" bash -c "test \$(find '$kiln/.meta/' -type f -exec cat {} + | wc -l) -gt 100"
t ".meta has every file of the stock client" test -z "$(comm -13 <(cd "$kiln/$active/" && find v-client-0 v-dht -path '*options*' -type f | sort) \
    <(cd "$stock/$active/" && find v-dht -path '*options*' -type f | sort))"
is "$(stat -c %a "$kiln/$active/volfile")" 400 "only root can read the volfile, which has the bricks' login"
denied() {
    ! "$@" 2>"$T/denied" && grep -Eq 'not permitted|Permission denied|Stale|exists|overwrite' "$T/denied"
}
t "a file in .meta cannot be written" denied bash -c "echo 9 >'$kiln/.meta/logging/loglevel'"
t "a file in .meta cannot be removed" denied rm "$kiln/.meta/version"
t "a file in .meta cannot be created" denied touch "$kiln/.meta/new"
t "no file can be renamed into .meta" denied mv "$kiln/file" "$kiln/.meta/file"
t "a directory .meta cannot be created" denied mkdir "$kiln/.meta"
t "no file can be renamed to .meta" denied mv -T "$kiln/file" "$kiln/.meta"
t ".meta cannot be renamed" denied mv "$kiln/.meta" "$kiln/other"
mkdir "$kiln/folder/.meta"
t ".meta is an ordinary name in other directories" test -d "$stock/folder/.meta"
t_not "no brick has a .meta in its root" ls -d "${bricks[@]/%//.meta}"
runuser -u nobody -- cat "$kiln/$active/v-client-0/type" >"$T/nobody"
is "$(cat "$T/nobody")" protocol/client "an ordinary user can read a layer's type"

sed -e '/option ping-timeout/d' -e '/type protocol\/client/a option ping-timeout 43' "$T/v-kiln.kiln.vol" >"$T/new.vol"
cp "$T/new.vol" "$T/v-kiln.kiln.vol"
kill -HUP "${mount_pid[$kiln]}"
has_new_option() {
    [[ $(cat "$kiln/$active/v-client-2/options/ping-timeout") == 43 ]]
}
t ".meta shows a new option of the volume" wait_for 240 "the option" has_new_option
t "the volfile in .meta has the new option" grep -q 'option ping-timeout 43' "$kiln/$active/volfile"
# Another layer: another graph, while scripts read.
volfile_layer v-more features/read-only "$(sed -n 's/^volume //p' "$T/new.vol" | tail -1)" "read-only off" >>"$T/v-kiln.kiln.vol"
(while [[ ! -e $T/stop ]]; do find "$kiln/.meta/" -type f -exec cat {} + >/dev/null 2>&1 || true; done) &
kill -HUP "${mount_pid[$kiln]}"
is_switched() {
    [[ -d $kiln/$active/v-more && $(cat "$kiln/$active/v-more/type") == features/read-only ]]
}
t ".meta shows the new graph after a change of layers" wait_for 240 "the graph" is_switched
touch "$T/stop"
wait $!
is "$(cat "$kiln/file")" text "the volume is still served"
