#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Under load, SIGUSR1 writes a statedump, SIGHUP reopens the log, and SIGTERM completes running calls and ends the
# process with status 0. All data that was acknowledged before the end is on the bricks.
# Covers: glusterfsd/kilnd.c, daemon/statedump.c, libglusterfs/log/log.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"

volume_new v 2x2
volume_start v
mount_volume v "$T/mnt"
daemon=$(volume_daemons v)
pid=${daemon_pid[$daemon]}
python3 "$tests_dir/faults/load.py" run "$T/mnt" "$T/progress" "$T/stop" "$T/state" 2>"$T/log/load.out" &
load=$!
: >"$T/progress"
has_progress() {
    [[ $(stat -c %s "$T/progress") -ge $1 ]]
}
wait_for 240 "the load to begin" has_progress 5

dump=$(dump_take "$pid" "$T")
t "SIGUSR1 writes a dump" test -s "$dump"
is "$(head -n 1 "$dump" | cut -d : -f 1)" DUMP-START-TIME "the dump has its first line"
is "$(tail -n 1 "$dump" | cut -d : -f 1)" DUMP-END-TIME "the dump has its last line"
is "$(stat -c %a "$dump")" 600 "only root may read the dump"
t "the dump has the pools" dump_pools "$dump"
for brick in ${volume_bricks[v]}; do
    t "the dump has the brick $(basename "$brick")" grep -q "$brick" "$dump"
done

log=$T/log/$daemon.log
mv "$log" "$log.old"
kill -HUP "$pid"
mount_volume v "$T/other"
t "after SIGHUP the log is a new file" wait_for 120 "a new log" test -s "$log"
mount_end "$T/other"
t "the load continues after SIGHUP" wait_for 240 "the load to go on" has_progress 6
touch "$T/stop"
status=0
wait "$load" || status=$?
is "$status" 0 "the load has met no error"

# A client without write-behind, because write-behind acknowledges writes before the bricks have them. The first load's
# client may still be writing.
mount_volume v "$T/plain" plain
all_is_there() {
    python3 "$tests_dir/faults/load.py" verify "$@"
}
wait_for 240 "the last writes to arrive" all_is_there "$T/plain" "$T/state" || true
t "another client reads all written files" all_is_there "$T/plain" "$T/state"

rm -f "$T/stop"
mkdir "$T/plain/again"
: >"$T/progress"
python3 "$tests_dir/faults/load.py" run "$T/plain/again" "$T/progress" "$T/stop" "$T/state2" 2>"$T/log/load2.out" &
load=$!
wait_for 240 "the load to begin" has_progress 3
t_here "kilnd ends with status 0 on SIGTERM under load" daemon_stop "$daemon"
status=0
wait "$load" || status=$?
is "$status" 1 "the load stops when the daemon ends"
daemon_start "$daemon"
mount_settle "$T/plain"
mount_settle "$T/mnt"
# A single replica may have executed the interrupted call: the self-heal daemon decides its outcome.
shd_start v
read -r -a bricks <<<"${volume_bricks[v]}"
t "the self-heal daemon heals all files after the restart" wait_for 240 "empty indices" nothing_pending "${bricks[@]}"
t "another client reads all files of the first load" all_is_there "$T/plain" "$T/state" again
t "the first client reads all files of the first load" all_is_there "$T/mnt" "$T/state" again
t "another client reads all files acknowledged under SIGTERM" all_is_there "$T/plain/again" "$T/state2"
for brick in "${bricks[@]}"; do
    t "the handles of $(basename "$brick") are right" brick_handles_hold "$brick"
done
