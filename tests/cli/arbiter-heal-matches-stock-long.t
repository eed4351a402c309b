#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# `gluster volume create replica 3 arbiter 1` runs on kilnd's bricks and on stock ones, mounted by stock clients and
# healed by the stock self-heal daemon. A data brick and the arbiter miss changes and get them by heal. A stale data
# brick and the arbiter together never return stale data. In the end the arbiter's tree equals that of a stock
# arbiter: all names and attributes, and no contents.
# Covers: xlators/features/arbiter/arbiter.c, xlators/features/index

. "$(dirname "$0")/../lib/kiln.sh"

onto="python3 $tests_dir/fops/on_disk.py"
twins_start 1x2+1
twins_mount --acl

brick_pid() { cat /run/gluster/vols/"$1"/*"$1-$2.pid"; }
brick_kill() {
    local vol
    for vol in twin-a twin-b; do
        kill -KILL "$(brick_pid $vol "$1")"
        wait_for 120 "glusterd to see that a brick of $vol is gone" bricks_all_online $vol 2
    done
}
bricks_restart() {
    local vol
    for vol in twin-a twin-b; do
        gl volume start $vol force >/dev/null
        wait_for 120 "the bricks of $vol to be back" bricks_all_online $vol 3
    done
    for vol in twin-a twin-b; do
        wait_for 120 "the mount of $vol to reach all bricks" gl_mount_reaches "${twin_mnt[$vol]}" $vol 1x2+1
    done
}
is_healed() {
    [[ $(gl volume heal "$1" info summary | awk '/Total Number of entries:/ { n += $5; all++ } END { print all, n }') == "3 0" ]]
}
heal() {
    local vol
    for vol in twin-a twin-b; do
        gl volume heal $vol >/dev/null || true
        wait_for 240 "$vol to be healed" is_healed $vol
    done
}
arbiters_look_alike() {
    $onto kinds "$T/bricks/twin-a-2" | sort >"$T/arbiter-a"
    $onto kinds "$T/bricks/twin-b-2" | sort >"$T/arbiter-b"
    [[ $(wc -l <"$T/arbiter-b") -gt 20 ]] && diff --label stock --label "$BRICKD" "$T/arbiter-a" "$T/arbiter-b"
}
# The daemon's own files apart.
no_contents() { [[ -z $(find "$1" -path "$1/.glusterfs/indices" -prune -o -type f -size +0 -not -name health_check -print) ]]; }
# A second after the last change the post-op tells the replicas that all replicas have the change.
arbiters_get_alike() { wait_for 120 "arbiters that look alike" arbiters_look_alike || arbiters_look_alike; }
check_all() {
    t "$1: both data bricks are equal" bricks_get_equal "$T/bricks/twin-b-0" "$T/bricks/twin-b-1"
    t "$1: the arbiter's tree equals stock's" arbiters_get_alike
    t "$1: the arbiter has no contents" no_contents "$T/bricks/twin-b-2"
    t "$1: every handle of the arbiter is right" brick_handles_hold "$T/bricks/twin-b-2"
}

t_twins "volume status" status VOL
twins_run bash -c "$onto fill MNT tree >MNT.state"
t "the client reads the tree as it was made" $onto verify "$T/mnt-b" tree "$T/mnt-b.state"
check_all "written"

brick_kill 1
twins_run bash -c "$onto change MNT tree"
t "the client changes the tree while a data brick is down" $onto verify_changed "$T/mnt-b" tree
bricks_restart
heal
check_all "a data brick was away"

brick_kill 2
twins_run bash -c 'cd MNT/tree; echo more >file1; mkdir e; echo new >e/f; chmod 700 b; setfattr -n user.x -v 1 file2; rm file3'
bricks_restart
heal
check_all "the arbiter was away"

brick_kill 0
is "$(cat "$T/mnt-b/tree/e/f")" new "the client reads from a data brick beside the arbiter"
bricks_restart
heal

# The arbiter knows that brick 1 has missed a change, so the arbiter and brick 1 do not serve the old contents.
for vol in twin-a twin-b; do
    gl volume set $vol cluster.self-heal-daemon off >/dev/null
done
brick_kill 1
twins_run bash -c 'echo right >MNT/tree/file1'
bricks_restart
brick_kill 0
not_stale() { ! cat "$1/tree/file1" >"$T/read" 2>&1; }
t "stock: a stale data brick and the arbiter return no stale data" not_stale "$T/mnt-a"
t "kiln: a stale data brick and the arbiter return no stale data" not_stale "$T/mnt-b"
bricks_restart
for vol in twin-a twin-b; do
    gl volume set $vol cluster.self-heal-daemon on >/dev/null
done
heal
is "$(cat "$T/mnt-b/tree/file1")" right "all three bricks together return the right data"
check_all "in the end"
