#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# glusterd is killed and started again, with and without multiplexing. Bricks serve meanwhile, glusterd finds the
# bricks in the same processes, and the bricks follow later changes of their volumes. Then two processes get the same
# socket name: calls that glusterd sends to the wrong one are answered, nothing hangs, and all processes end.
# Covers: bricks/management.c, glusterfsd/hand-over.c

. "$(dirname "$0")/../lib/kiln.sh"

glusterd_bricks_start
none_run() { [[ -z $(glusterd_brick_pids) ]]; }
online() { wait_for 120 "$2 bricks of $1 to be online" bricks_all_online "$1" "$2"; }
new_volume() {
    gl_create "$1" "$2" >/dev/null
    gl volume start "$1" >/dev/null
    online "$1" "$(volume_brick_count "$2")"
}
glusterd_restart() {
    kill -KILL "$glusterd_pid"
    wait_for 120 "glusterd to end" process_gone "$glusterd_pid"
    t "$1: a file is written while glusterd is down" bash -c "echo away >'$T/mnt/away-$1'"
    rm -f "$T/glusterd.pid"
    glusterd -N -l "$T/log/glusterd.log" -p "$T/glusterd.pid" >>"$T/log/glusterd.out" 2>&1 </dev/null &
    glusterd_pid=$!
    wait_for 240 "glusterd to answer" gluster --mode=script volume list
}
refuses_writes() { ! { echo x >"$T/mnt/refused"; } 2>/dev/null; }
takes_writes() { { echo x >"$T/mnt/taken"; } 2>/dev/null; }

for mux in off on; do
    gl volume set all cluster.brick-multiplex $mux >/dev/null
    new_volume v 2x1
    new_volume w 2x1
    gl_mount v "$T/mnt"
    pids=$(glusterd_brick_pids | sort)
    for round in 1 2; do
        glusterd_restart $mux-$round
        online v 2
        online w 2
        is "$(glusterd_brick_pids | sort)" "$pids" "mux $mux, round $round: the same processes serve"
    done
    t "mux $mux: status clients succeeds" gl volume status v clients
    # The volfile comes over the new connection.
    gl volume set v features.read-only on >/dev/null
    t_here "mux $mux: an option reaches the bricks" wait_for 120 "the bricks to be read-only" refuses_writes
    gl volume set v features.read-only off >/dev/null
    t_here "mux $mux: another option reaches the bricks" wait_for 120 "the bricks to take writes" takes_writes
    umount "$T/mnt"
    for vol in v w; do
        t "mux $mux: glusterd stops $vol" gl volume stop $vol
        t "mux $mux: glusterd deletes $vol" gl volume delete $vol
        rm -rf "$T/bricks/$vol"-*
    done
    wait_for 120 "all to end" none_run
done

diag "two processes of one socket name"
new_volume v 1x1
new_volume w 1x1
old=$(glusterd_brick_pids)
gl_mount w "$T/mnt"
echo text >"$T/mnt/file"
gl volume stop v >/dev/null
# Different options keep the volume out of the process, so glusterd starts another process with the same name.
gl volume set v storage.max-hardlinks 50 >/dev/null
gl volume start v >/dev/null
online v 1
is "$(glusterd_brick_pids | wc -l)" 2 "two processes run"
glusterd_restart one-name
online v 1
is "$(cat "$T/mnt/file")" text "the older process serves"
t "status clients of the older process's volume ends" timeout 110 gluster --mode=script volume status w clients
t "status clients of the newer process's volume ends" timeout 110 gluster --mode=script volume status v clients
umount "$T/mnt"
t "glusterd stops the older process's volume" gl volume stop w
t_here "the older process ends" wait_for 120 "the older process to end" process_gone "$old"
is "$(bricks_online v)" 1 "the newer process's brick is online"
t "glusterd stops the newer process's volume" gl volume stop v
t_here "all brick processes end" wait_for 120 "all to end" none_run
