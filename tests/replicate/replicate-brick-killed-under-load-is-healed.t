#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# One replica of a 2x2 volume is killed with SIGKILL and started again, twice, while a stock client works. The client
# never sees an error. Afterwards the stock self-heal daemon makes the replicas equal by the index and the changelogs
# of the surviving brick.
# Covers: xlators/features/index, xlators/storage/posix/xattr/xattrop.c, xlators/features/locks

. "$(dirname "$0")/../lib/kiln.sh"

volume_split=yes
volume_new v 2x2
volume_start v
mount_volume v "$T/mnt"
mkdir "$T/mnt/load"

if [[ $BRICKD == stock ]]; then
    second=(v-b1 v-b3)
else
    second=(v-r1)
fi
python3 "$tests_dir/faults/load.py" run "$T/mnt/load" "$T/progress" "$T/stop" "$T/state" 2>"$T/log/load.out" &
load=$!

# The load has gone on for so many tens of operations since the mark.
: >"$T/progress"
went_on() {
    [[ $(stat -c %s "$T/progress") -ge $(($1 + $2)) ]]
}
work_on() {
    local mark
    mark=$(stat -c %s "$T/progress")
    wait_for 240 "the load to go on" went_on "$mark" "$1"
}
for round in 1 2; do
    t "round $round: the load runs on both replicas" work_on 20
    for daemon in "${second[@]}"; do
        daemon_kill "$daemon"
    done
    t "round $round: the load runs on one replica" work_on 30
    for daemon in "${second[@]}"; do
        daemon_start "$daemon"
    done
    mount_settle "$T/mnt"
    t "round $round: the load runs on both replicas again" work_on 20
done
touch "$T/stop"
status=0
wait "$load" || status=$?
is "$status" 0 "the load saw no error"

shd_start v
read -r -a bricks <<<"${volume_bricks[v]}"
t "the heal completes" wait_for 240 "empty indices" nothing_pending "${bricks[@]}"
# The daemon's last step, after the indices, is to clear the hidden folder of files without a name.
t "the first pair is equal" bricks_get_equal "${bricks[0]}" "${bricks[1]}"
t "the second pair is equal" bricks_get_equal "${bricks[2]}" "${bricks[3]}"
for brick in "${bricks[@]}"; do
    t "every object of $(basename "$brick") has its handle" brick_handles_hold "$brick"
done
mount_volume v "$T/fresh"
t "all acknowledged files have their contents" python3 "$tests_dir/faults/load.py" verify "$T/fresh/load" "$T/state"
