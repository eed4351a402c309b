#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount keeps the lock on all names of a folder after changes of names there (client 3.22), here for a minute, so a
# slow machine needs no more locks than a fast one. kilnd reports another client that waits for the lock (brick 8.8), so
# a stock mount and a second kiln-mount change names in the folder without waiting for the end of the minute. Afterwards
# the first mount locks single names for a while. Three mounts that
# change names in one folder at the same time leave equal replicas.
# Covers: xlators/cluster/replicate/hold.c, xlators/cluster/replicate/entry.c, xlators/features/locks/contention.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/measure.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
[[ $BRICKD == kiln ]] || skip_all "stock bricks do not report clients that wait for a lock on names"

kiln=$T/kiln second=$T/second stock=$T/stock
timeouts=(--attribute-timeout=0 --entry-timeout=0 --negative-timeout=0)
volume_new v 2x2
volume_start v
read -ra bricks <<<"${volume_bricks[v]}"
mount_volume v "$stock" plain --attribute-timeout=0 --entry-timeout=0
mount_kiln v "$kiln" "${timeouts[@]}" --xlator-option='*.names-lock-kept-ms=60000'
mount_kiln v "$second" "${timeouts[@]}" --xlator-option='*.names-lock-kept-ms=60000'

entrylks() {
    calls_take "${mount_pid[$1]}" "$T/calls"
    awk '$1 == "entrylk" { n = $2 } END { print n + 0 }' "$T/calls"
}

# Makes and removes names in FOLDER, so that the lock is kept there. Prints the number of lock calls.
names_change() {
    local i before
    before=$(entrylks "$1")
    for ((i = 0; i < 20; i++)); do
        : >"$2/name$i" || return 1
    done
    rm "$2"/name* || return 1
    echo $(($(entrylks "$1") - before))
}

# Succeeds when a command that must not take a minute takes less than 40 s. SECONDS counts whole seconds.
soon() {
    local start=$SECONDS
    "$@" && [[ $((SECONDS - start)) -lt 40 ]]
}

mkdir "$kiln/a" "$kiln/b" "$kiln/c"
locks=$(names_change "$kiln" "$kiln/a")
# Two locks for the first name of each subvolume, and one lock that is kept: of two replicas each.
t "40 changes of names need few locks ($locks)" test "$locks" -le 16
is "$(names_change "$kiln" "$kiln/a")" 0 "the next 40 changes need no lock, because the lock is kept"
t "a stock mount makes a file in the folder without waiting" soon touch "$stock/a/of-stock"
t "a stock mount removes the file without waiting" soon rm "$stock/a/of-stock"

names_change "$kiln" "$kiln/b" >"$T/log/b.out"
t "a second kiln-mount makes a file in a folder whose names are locked without waiting" soon touch "$second/b/of-second"
t "the second kiln-mount makes a folder there without waiting" soon mkdir "$second/b/folder"
names_change "$second" "$second/c" >"$T/log/c.out"
t "the first kiln-mount renames the file into a folder whose names the second has locked without waiting" \
    soon mv "$kiln/b/of-second" "$kiln/c/moved"
t "the first kiln-mount removes a folder without waiting" soon rmdir "$kiln/b/folder"
names_change "$kiln" "$kiln/b" >"$T/log/b2.out"
t "the stock mount removes the folder itself without waiting" soon rmdir "$stock/b"

# ---- all at once
storm() {
    local i
    for ((i = 0; i < 150; i++)); do
        : >"$1/s/$2.$i" && mv "$1/s/$2.$i" "$1/s/$2.moved.$((i % 50))" || return 1
    done
}
mkdir "$kiln/s"
pids=()
for mnt in kiln second stock; do
    storm "$T/$mnt" "$mnt" >"$T/log/storm.$mnt" 2>&1 &
    pids+=($!)
done
status=0
for pid in "${pids[@]}"; do
    wait "$pid" || status=1
done
is "$status" 0 "three mounts change names in one folder at the same time"
names_of() { (cd "$1" && find . -path ./.glusterfs -prune -o -print | LC_ALL=C sort); }
for i in 0 2; do
    t "replicas $i and $((i + 1)) have the same names" diff <(names_of "${bricks[i]}") <(names_of "${bricks[i + 1]}")
done
is "$(find "$kiln/s" -type f | wc -l)" 150 "the last 50 names of each mount are there"
t "nothing is left to heal" nothing_pending "${bricks[@]}"
mount_end "$stock"
mount_end "$second"
t_here "the volume is unmounted although a lock is kept" mount_end "$kiln"
