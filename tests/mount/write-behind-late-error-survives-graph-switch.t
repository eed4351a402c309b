#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Writes that a mount had answered early fail because the brick is killed. Then the volume gets other layers, and the
# brick is back. The mount carries the open file over to the new graph. The first fsync or close afterwards reports
# the lost write to the application, and the next one succeeds.
# Covers: xlators/performance/write-behind/queue.c, xlators/mount/fuse/switch.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

work=$tests_dir/mount/dirty_work.py
mount_graph=whole
mnt=$T/mnt log=$T/log/kiln-mount-mnt.log
volume_new v 1x1
volume_start v
brick=${volume_bricks[v]}
daemon=${brick_daemon[$brick]}
volume_client_volfile v default >"$T/with.vol"
volume_client_volfile v plain >"$T/without.vol"
cp "$T/with.vol" "$T/v.vol"
mkdir "$mnt"
"$KILN_MOUNT" -N -f "$T/v.vol" -l "$log" --hard=0 --attribute-timeout=600 --entry-timeout=600 "$mnt" >>"$T/log/kiln-mount-mnt.out" 2>&1 </dev/null &
mount_pid[$mnt]=$! mount_vol[$mnt]=v mount_is_kiln[$mnt]=yes
wait_for 240 "$mnt to be mounted" mount_is_listed "$mnt"
wait_for 240 "the volume" test -d "$mnt/."

say() {
    local answer=none
    echo "$*" >&"$to"
    read -r -t 100 answer <&"$from" || true
    echo "$answer"
}

hold_begins() {
    local answer
    coproc HOLD { exec python3 "$work" hold "$1" 2>>"$T/log/hold.out"; }
    hold=$HOLD_PID
    exec {to}>&"${HOLD[1]}" {from}<&"${HOLD[0]}"
    eval "exec ${HOLD[1]}>&- ${HOLD[0]}<&-"
    read -r -t 100 answer <&"$from"
}

has_failed() {
    grep -q write-behind-failed "$log"
}

is_back() {
    [[ $(grep -c '\[brick-peer-up\]' "$log") -gt $1 ]]
}

switched() {
    [[ $(grep -c '\[mount-switched\]' "$log") == "$1" ]]
}

switch_to() {
    cp "$T/$1.vol" "$T/new.vol"
    mv "$T/new.vol" "$T/v.vol"
    kill -HUP "${mount_pid[$mnt]}"
    wait_for 240 "the switch" switched "$2"
}

for way in fsync close; do
    hold_begins "$mnt/file-$way"
    is "$(say write 1) $(say fsync)" "ok ok" "$way: a file is written"
    kill -STOP "${daemon_pid[$daemon]}"
    wait_for 60 "the brick to stand still" bash -c "! grep -h '^State:' /proc/${daemon_pid[$daemon]}/task/*/status | grep -qv 'T (stopped)'"
    is "$(say write 20)" ok "$way: writes are answered while the brick is stopped"
    : >"$log"
    daemon_kill "$daemon"
    t "$way: the brick dies, and the writes fail" wait_for 100 "the failure" has_failed
    ups=$(grep -c '\[brick-peer-up\]' "$log" || true)
    daemon_start "$daemon" {to}>&- {from}<&-
    wait_for 100 "the brick" is_back "$ups"
    t "$way: the mount follows a volfile with other layers" switch_to without 1
    answer=$(say "$way")
    t_not "$way: the first call after the switch reports the lost write ($answer)" grep -qE '^(ok|none)$' <<<"$answer"
    [[ $way == close ]] || is "$(say write 5) $(say fsync) $(say close)" "ok ok ok" "$way: later calls succeed"
    exec {to}>&- {from}<&-
    wait "$hold" || true
    t "$way: the mount returns to the first layers" switch_to with 2
done
t_here "the volume is unmounted" mount_end "$mnt"
