#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# `volume stop` and `volume start` follow each other at once, with and without multiplexing. Each time the bricks are
# online and serve, in processes that are independent of the previous ones (a late SIGNOUT would take the new brick
# offline). A killed brick returns by `start force`. A deleted volume can be created again on the same directories.
# The socket and the pidfile stay while a brick runs, and the brick's root is open under its exact path.
# Covers: bricks/management.c, bricks/bricks.c, glusterfsd/hand-over.c

. "$(dirname "$0")/../lib/kiln.sh"

glusterd_bricks_start
none_run() { [[ -z $(glusterd_brick_pids) ]]; }
online() { wait_for 120 "$2 bricks of $1 to be online" bricks_all_online "$1" "$2"; }
pid_of() { cat /run/gluster/vols/"$1"/*"$1-$2.pid"; }
socket_of() { tr '\0' '\n' <"/proc/$1/cmdline" | grep -A1 -x -e -S | tail -n 1; }
roots_open() { find "/proc/$1/fd" -lname "$2" | wc -l; }
brick_log() { echo "/var/log/glusterfs/bricks/$(tr / - <<<"${T#/}")-bricks-$1.log"; }
stop_and_start() { gl volume stop "$1" && gl volume start "$1"; }
new_volume() {
    gl_create "$1" "$2" >/dev/null
    gl volume start "$1" >/dev/null
    online "$1" "$(volume_brick_count "$2")"
}

diag "without multiplexing"
new_volume v 2x1
pid=$(pid_of v 0)
t "the brick's socket exists" test -S "$(socket_of "$pid")"
is "$(roots_open "$pid" "$T/bricks/v-0")" 1 "one descriptor of the brick's root is open"
for round in 1 2 3; do
    before=$(glusterd_brick_pids | sort)
    t "round $round: the volume stops and starts" stop_and_start v
    online v 2
    is "$(comm -12 <(echo "$before") <(glusterd_brick_pids | sort))" "" "round $round: new processes serve the bricks"
done
is "$(glusterd_brick_pids | wc -l)" 2 "each brick has one process"
# glusterd gives a process one second to end and then starts the next process on the same brick.
slow=$(pid_of v 0)
kill -STOP "$slow"
t "glusterd stops a brick whose process does not end in time" gl volume stop v
gl volume start v >"$T/start.out" 2>&1 &
start=$!
waits_for_it() { grep -q 'another process serves it: waiting' "$(brick_log v-0)"; }
if [[ $BRICKD == kiln ]]; then
    t "the next process waits for the end of the old process" wait_for 120 "the next one to wait" waits_for_it
    t "the volume's start waits, too" kill -0 "$start"
fi
kill -CONT "$slow"
t_here "the volume starts after the old process has ended" wait "$start"
online v 2
is "$(pid_of v 0 | grep -cx "$slow")" 0 "the new process serves the brick"
kill -KILL "$(pid_of v 1)"
online v 1
t "start force starts a killed brick" gl volume start v force
online v 2
pids=$(glusterd_brick_pids | sort)
t "start force of running bricks succeeds" gl volume start v force
is "$(glusterd_brick_pids | sort)" "$pids" "start force of running bricks starts no process"
t "stop force succeeds" gl volume stop v force
wait_for 120 "all to end" none_run
t "glusterd deletes the volume" gl volume delete v
rm -rf "$T"/bricks/v-*
new_volume v 2x1
gl_mount v "$T/mnt"
t "the volume serves after its second creation" bash -c "echo text >'$T/mnt/file' && [[ \$(cat '$T/mnt/file') == text ]]"
umount "$T/mnt"
gl volume stop v >/dev/null
wait_for 120 "all to end" none_run
gl volume delete v >/dev/null
rm -rf "$T"/bricks/v-*

diag "with multiplexing"
gl volume set all cluster.brick-multiplex on >/dev/null
new_volume stays 1x1
pid=$(glusterd_brick_pids)
new_volume v 1x1
gl_mount stays "$T/mnt"
echo text >"$T/mnt/file"
failed=
for round in {1..20}; do
    stop_and_start v >/dev/null && online v 1 && [[ $(cat "$T/mnt/file") == text ]] || failed+=" $round"
done
is "$failed" "" "20 times: the brick is online after stop and start, and the other brick serves"
is "$(glusterd_brick_pids)" "$pid" "one process serves all bricks"
for vol in stays v; do
    is "$(roots_open "$pid" "$T/bricks/$vol-0")" 1 "one descriptor of the root of $vol is open"
    is "$(pid_of $vol 0)" "$pid" "the pidfile of $vol names the process"
done
t "the socket of the process exists" test -S "$(socket_of "$pid")"
t "glusterd stops the volume" gl volume stop v
brick_let_go() { [[ $(roots_open "$pid" "$T/bricks/v-0") == 0 ]]; }
wait_for 120 "the brick to be let go" brick_let_go
t "glusterd deletes the volume" gl volume delete v
rm -rf "$T/bricks/v-0"
new_volume v 1x1
is "$(roots_open "$pid" "$T/bricks/v-0")" 1 "the volume is in the same process after its second creation"
kill -KILL "$pid"
online v 0
online stays 0
t "start force starts a brick after the process was killed" gl volume start v force
online v 1
t "start force starts the other brick" gl volume start stays force
online stays 1
reads() { [[ $(cat "$T/mnt/file") == text ]]; }
wait_for 120 "the mount to find its brick again" reads
is "$(glusterd_brick_pids | wc -l)" 1 "one process serves both bricks again"
umount "$T/mnt"
for vol in v stays; do
    t "glusterd stops $vol" gl volume stop $vol
done
wait_for 120 "all to end" none_run
if [[ $BRICKD == kiln ]]; then
    cat /var/log/glusterfs/bricks/*.log >"$T/log/bricks.log"
    is "$(grep -c 'graph-audit' "$T/log/bricks.log")" 0 "kilnd keeps nothing of any detached brick"
fi
