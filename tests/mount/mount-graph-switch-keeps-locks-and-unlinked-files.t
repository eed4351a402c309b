#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The layers of a 2x2 volume change ten times while a program holds fcntl and flock locks, uses unlinked files and an
# unlinked directory, is in the middle of a long listing, and writes. Another client and another process wait for the
# same locks. No call fails, no lock is lost, and the listing shows each name once. When the unlinked files are
# closed, the connections of the old graphs end. The script runs on kilnd and on stock bricks.
# Covers: xlators/mount/fuse/switch.c, xlators/mount/fuse/lock.c, libglusterfs/graph/graph.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

switched() {
    [[ $(grep -c '\[mount-switched\]' "$log") == "$1" ]]
}

switch_to() {
    cp "$1" "$T/new.vol"
    mv "$T/new.vol" "$T/v.vol"
    kill -HUP "$mount"
    wait_for 240 "switch $2" switched "$2"
    echo "$2" >"$dir/round"
}

turns_go_on() {
    [[ $(cat "$dir/turns" 2>/dev/null || echo 0) -gt $1 || $(cat "$dir/turns") == -1 ]]
}

old_have_left() {
    [[ $(grep -c '\[mount-old-left\]' "$log") == "$1" ]]
}

for kind in kiln stock; do
    switches=$([[ $kind == kiln ]] && echo 10 || echo 2)
    vol=v-$kind mnt=$T/mnt-$kind stock=$T/client-$kind dir=$T/work-$kind
    log=$T/log/kiln-mount-mnt-$kind.log
    mkdir "$dir" "$stock"
    volume_new "$vol" 2x2
    volume_assign "$vol" "$kind"
    volume_start "$vol"
    volume_client_volfile "$vol" default >"$T/with.vol"
    volume_client_volfile "$vol" plain >"$T/without.vol"
    t_not "$kind: the two volfiles have different layers" diff -q "$T/with.vol" "$T/without.vol"
    cp "$T/with.vol" "$T/v.vol"
    mkdir -p "$mnt"
    "$KILN_MOUNT" -N -f "$T/v.vol" -l "$log" --attribute-timeout=0 --entry-timeout=0 "$mnt" \
        >>"$T/log/kiln-mount-$kind.out" 2>&1 </dev/null &
    mount=$!
    mount_pid[$mnt]=$mount mount_vol[$mnt]=$vol mount_is_kiln[$mnt]=yes
    wait_for 240 "$mnt to be mounted" mount_is_listed "$mnt"
    mount_volume "$vol" "$stock" plain --attribute-timeout=0 --entry-timeout=0
    python3 "$tests_dir/mount/switch_work.py" "$mnt" "$stock" "$dir" >"$dir/out" 2>&1 &
    work=$!
    t "$kind: the work begins" wait_for 240 "the work" test -e "$dir/ready"
    for ((i = 1; i <= switches; i++)); do
        before=$(cat "$dir/turns" 2>/dev/null || echo 0)
        switch_to "$([[ $((i % 2)) == 1 ]] && echo "$T/without.vol" || echo "$T/with.vol")" "$i"
        wait_for 240 "the work to go on after switch $i" turns_go_on "$before"
    done
    touch "$dir/stop"
    wait "$work" || diag "the work has ended with status $?"
    include "$kind: the work ends with status 0" cat "$dir/out"
    t "$kind: the connections of old graphs end when the last of their files is closed" \
        wait_for 240 "the connections of before to go" old_have_left "$(grep -c '[1-9][0-9]* stay with the old' "$log")"
    mount_end "$stock"
    t_here "$kind: the volume is unmounted" mount_end "$mnt"
    volume_stop "$vol"
done
