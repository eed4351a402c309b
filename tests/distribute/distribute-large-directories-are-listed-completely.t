#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount lists a directory with one READDIRP to each subvolume, all at the same time, and the last reply carries
# the end of the listing. Large directories are listed completely from any offset. A listing that starts again shows
# the changes of other clients.
# Covers: xlators/cluster/distribute/readdir.c, xlators/mount/fuse/dir.c, libglusterfs/graph/dir-offset.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/measure.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

work=$(dirname "$(readlink -f "$0")")/listing_work.py
volume_split=brick
volume_new v 3x2
volume_start v
kiln=$T/kiln
stock=$T/stock
mount_kiln v "$kiln"
mount_volume v "$stock" plain --attribute-timeout=0 --entry-timeout=0
mkdir "$kiln"/{empty,small,large}
touch "$kiln"/small/f{1..20}
mkdir "$kiln"/small/d{1..5}
(cd "$kiln/large" && seq -f 'a-name-of-some-length-%04g' 900 | xargs touch)
mkdir "$kiln"/large/folder{1..20}

# How many READDIRPs the command sends.
readdirps() {
    local before after
    calls_take "${mount_pid[$kiln]}" "$T/before"
    "$@" >>"$T/log/list.out" || return 1
    calls_take "${mount_pid[$kiln]}" "$T/after"
    before=$(awk '$1 == "readdirp" { print $2 }' "$T/before")
    after=$(awk '$1 == "readdirp" { print $2 }' "$T/after")
    echo $((after - before))
}

is "$(readdirps ls -a "$kiln/empty")" 3 "listing an empty directory takes one READDIRP for each subvolume"
is "$(readdirps ls -a "$kiln/small")" 3 "listing a small directory takes one READDIRP for each subvolume"
is "$(find "$kiln/empty" | wc -l) $(find "$kiln/small" | wc -l) $(find "$kiln/large" | wc -l)" "1 26 921" "empty, small and large directories are listed completely"
for folder in empty small large; do
    is "$(python3 "$work" "$kiln/$folder" "$stock/$folder")" "" "$folder: listings from any offset and repeated listings are right"
done
mapfile -t bricks < <(tr ' ' '\n' <<<"${volume_bricks[v]}")
daemon_kill "${brick_daemon[${bricks[2]}]}"
daemon_kill "${brick_daemon[${bricks[3]}]}"
some_are_listed() {
    local n
    n=$(find "$kiln/large" -type f | wc -l) && [[ $n -gt 300 && $n -lt 900 ]]
}
t "with a subvolume down the mount lists the names of the other subvolumes" wait_for 240 "the rest to be listed" some_are_listed
