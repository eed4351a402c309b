#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# SIGUSR1 writes a statedump, SIGHUP reopens the log, SIGTERM finishes what runs and ends with 0: all under load.

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
wait_for 30 "the load to begin" has_progress 5

dump=$(dump_take "$pid" "$T")
t "SIGUSR1 writes a dump" test -s "$dump"
is "$(head -n 1 "$dump" | cut -d : -f 1)" DUMP-START-TIME "its first line"
is "$(tail -n 1 "$dump" | cut -d : -f 1)" DUMP-END-TIME "its last line"
is "$(stat -c %a "$dump")" 600 "only root may read it"
t "it tells of pools" dump_pools "$dump"
for brick in ${volume_bricks[v]}; do
    t "it tells of the brick $(basename "$brick")" grep -q "$brick" "$dump"
done

log=$T/log/$daemon.log
mv "$log" "$log.old"
kill -HUP "$pid"
mount_volume v "$T/other"
t "after SIGHUP the log is a new file" wait_for 10 "a new log" test -s "$log"
mount_end "$T/other"
t "and the load goes on" has_progress 6
touch "$T/stop"
status=0
wait "$load" || status=$?
is "$status" 0 "the load saw no error of all this"

rm -f "$T/stop"
mkdir "$T/mnt/again"
: >"$T/progress"
python3 "$tests_dir/faults/load.py" run "$T/mnt/again" "$T/progress" "$T/stop" "$T/state2" 2>/dev/null &
load=$!
wait_for 30 "the load to begin" has_progress 3
t "SIGTERM under load" true
daemon_stop "$daemon" && tap_ok "kilnd ends with status 0" || tap_not_ok "kilnd ends with status 0"
wait "$load" || true
daemon_start "$daemon"
t "what was finished before is there after a new start" wait_for 60 "the mount" test -e "$T/mnt/held-open"
rm -rf "$T/mnt/again"
t "all that was written is there" python3 "$tests_dir/faults/load.py" verify "$T/mnt" "$T/state"
