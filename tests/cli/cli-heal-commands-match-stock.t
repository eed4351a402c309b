#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# `gluster volume heal` with the stock self-heal daemon: info, info summary, info split-brain, statistics, heal-count,
# heal, full, enable, disable and both ways out of a split-brain print and do the same on kilnd's bricks as on stock
# ones.
# Covers: xlators/features/index, xlators/storage/posix/xattr/xattrop.c, xlators/features/locks/counts.c

. "$(dirname "$0")/../lib/kiln.sh"

twins_start 1x2
# The mount does not heal, so that pending heals are counted; without quorum each half may be written.
for vol in twin-a twin-b; do
    gl volume set $vol cluster.quorum-type none >/dev/null
    gl volume set $vol cluster.self-heal-daemon on >/dev/null
done
twins_mount
twins_run bash -c 'for i in 1 2 3 4 5; do echo one >MNT/f$i; done; mkdir MNT/d'

entries() { gl volume heal "$1" info | awk '/^Number of entries:/ { n += $4 } END { print n + 0 }'; }
entries_are() { [[ $(entries "$1") == "$2" ]]; }
brick_pid() { cat /run/gluster/vols/"$1"/*"$1-$2.pid"; }
brick_kill() {
    local vol
    for vol in twin-a twin-b; do
        kill -KILL "$(brick_pid $vol "$1")"
        wait_for 120 "glusterd to see that a brick of $vol is gone" bricks_all_online $vol 1
    done
}
bricks_restart() {
    local vol
    for vol in twin-a twin-b; do
        gl volume start $vol force >/dev/null
        wait_for 120 "the bricks of $vol to be back" bricks_all_online $vol 2
    done
    for vol in twin-a twin-b; do
        wait_for 120 "the mount of $vol to reach all bricks" gl_mount_reaches "${twin_mnt[$vol]}" $vol 1x2
    done
}

# Entries come in the order of the index's folder.
TWINS_SHAPE='sort=^(/|<gfid:)'
t_twins "heal info of equal replicas" heal VOL info
t_twins "heal info as XML" heal VOL info --xml
t_twins "heal info summary" heal VOL info summary
t_twins "heal info summary as XML" heal VOL info summary --xml
t_twins "heal info split-brain" heal VOL info split-brain
t_twins "statistics heal-count" heal VOL statistics heal-count

brick_kill 1
t_twins "heal info while a brick is down" heal VOL info
t_twins "heal while a brick is down" heal VOL
twins_run bash -c 'for i in 1 2 3; do echo two >MNT/f$i; done; touch MNT/d/new'
for vol in twin-a twin-b; do
    wait_for 120 "entries of $vol that wait" entries_are $vol 5
done
t_twins "heal info with pending heals" heal VOL info
t_twins "heal info summary with pending heals" heal VOL info summary
t_twins "statistics heal-count with pending heals" heal VOL statistics heal-count
bricks_restart
heal() {
    local vol
    for vol in twin-a twin-b; do
        gl volume heal $vol "$@" >/dev/null || true
        wait_for 240 "$vol to be healed" entries_are $vol 0
    done
}
heal
is "$(cat "$T/bricks/twin-b-1/f2")" two "the brick has the missed contents"
t "the brick has the missed name" test -e "$T/bricks/twin-b-1/d/new"
t_twins "heal without a pending heal" heal VOL
t_twins "heal full" heal VOL full
heal full
t_twins "disable" heal VOL disable
t_twins "heal while the heal is disabled" heal VOL
t_twins "enable" heal VOL enable


# Each half is written while the other is away.
for vol in twin-a twin-b; do
    gl volume set $vol cluster.self-heal-daemon off >/dev/null
    gl volume set $vol cluster.favorite-child-policy none >/dev/null
done
brick_kill 1
twins_run bash -c 'echo left >MNT/f4; echo left >MNT/f5'
bricks_restart
brick_kill 0
twins_run bash -c 'echo longer-right >MNT/f4; echo longer-right >MNT/f5'
bricks_restart
split() { [[ $(gl volume heal "$1" info split-brain | grep -c '^Number of entries in split-brain: [1-9]') == 2 ]]; }
for vol in twin-a twin-b; do
    wait_for 120 "two files of $vol to be in split-brain" split $vol
done
TWINS_SHAPE='drop=^(/|<gfid:)'
t_twins "heal info split-brain with two files" heal VOL info split-brain
t_twins "heal info split-brain as XML" heal VOL info split-brain --xml
t_twins "split-brain of a file with good copies" heal VOL split-brain bigger-file /f1
t_twins "split-brain bigger-file" heal VOL split-brain bigger-file /f4
t_twins "split-brain source-brick" heal VOL split-brain source-brick "$glusterd_host:BRICK-0" /f5
t_twins "heal info split-brain after the resolution" heal VOL info split-brain
is "$(cat "$T"/bricks/twin-b-[01]/f4 | sort -u)" longer-right "both bricks have the bigger file"
is "$(cat "$T"/bricks/twin-b-[01]/f5 | sort -u)" left "both bricks have the file of the source brick"
t_twins "heal of a missing volume" heal nowhere
