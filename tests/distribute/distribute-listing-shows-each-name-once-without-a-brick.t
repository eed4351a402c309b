#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The bricks of a 2x2 volume die one after the other. A directory with directories, files and files that were renamed
# to the other subvolume is listed with each name once and with its type, and rm -r removes it.
# Covers: xlators/cluster/distribute/readdir.c, xlators/cluster/distribute/rmdir.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

fill() {
    local i
    mkdir "$1" "$1"/folder-{1..20}
    touch "$1"/file-{1..20} "$1"/before-{1..20}
    for i in {1..20}; do
        mv "$1/before-$i" "$1/after-$i"
    done
}

# Prints the names and types of the listing, without a stat of any entry.
names() {
    python3 -c '
import os, sys
for entry in sorted(os.scandir(sys.argv[1]), key=lambda entry: entry.name):
    print(entry.name, entry.is_dir(follow_symlinks=False))' "$1"
}

linktos() {
    find "$1" -path '*/top/*' -not -path '*/.glusterfs/*' -perm 1000 | wc -l
}

is_away() {
    [[ $(grep -c "v-client-$2: the connection.*lost" "$T/log/kiln-mount-$(basename "$1").log") -ge 1 ]]
}

volume_split=brick
volume_new v 2x2
volume_start v
read -ra bricks <<<"${volume_bricks[v]}"
one=$T/one
mount_kiln v "$one" --attribute-timeout=0 --entry-timeout=0
wait_for 240 "the volume" test -d "$one/."
shd_start v
for i in "${!bricks[@]}"; do
    two=$T/two-$i
    mount_kiln v "$two" --attribute-timeout=0 --entry-timeout=0
    fill "$one/top"
    t "some names were renamed to the other subvolume" test "$(linktos "${volume_dir[v]}")" -gt 0
    names "$one/top" >"$T/all"
    is "$(cut -d ' ' -f 1 "$T/all" | uniq | wc -l)" 60 "all names are listed"
    daemon_kill "${brick_daemon[${bricks[$i]}]}"
    wait_for 240 "the loss of brick $i" is_away "$two" "$i"
    touch "$one/top/file-1" # the index of the set is not empty
    t "brick $i is down: each name is listed once, with its type" diff "$T/all" <(names "$two/top")
    t "rm -r removes the tree" rm -r "$two/top"
    t_here "the volume is unmounted" mount_end "$two"
    daemon_start "${brick_daemon[${bricks[$i]}]}"
    rm -rf "$one/top"
    wait_for 240 "the heal" nothing_pending "${bricks[@]}"
done
