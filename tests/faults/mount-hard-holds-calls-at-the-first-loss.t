#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The daemon of a plain and of a distributed volume, both without replicas, is killed for the first time while writers of synchronous
# records are at work on a hard kiln-mount. The calls in flight are answered with ENOTCONN before the mount knows of the loss; they wait
# like later calls, and no writer sees an error.
# Covers: xlators/features/hard/hard.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

work=$(dirname "$0")/upgrade_work.py
for shape in 1x1 3x1; do
    vol=v$shape
    volume_new "$vol" "$shape"
    volume_start "$vol"
    mount_kiln "$vol" "$T/mnt$shape" --hard=60
    pids=()
    for i in {1..6}; do
        mkdir "$T/mnt$shape/$i"
        python3 "$work" sync "$T/mnt$shape/$i" "$T/stop$shape" >"$T/log/$vol-$i.out" 2>&1 &
        pids+=($!)
    done
    for i in {1..6}; do
        wait_for 120 "writer $i" grep -q ready "$T/log/$vol-$i.out"
    done
    daemon=$(volume_daemons "$vol")
    t_here "$shape: the daemon is killed for the first time" daemon_kill "$daemon"
    daemon_start "$daemon"
    size=$(stat -c %s "$T/mnt$shape/1/sync")
    has_grown() {
        [[ $(stat -c %s "$T/mnt$shape/1/sync") -gt $size ]]
    }
    wait_for 120 "the writers to go on" has_grown
    touch "$T/stop$shape"
    for i in {1..6}; do
        t_here "$shape: writer $i saw no error" wait "${pids[i - 1]}"
    done
    mount_end "$T/mnt$shape"
done
