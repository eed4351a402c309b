#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount answers writes before the bricks have executed them (performance/write-behind), and no application
# sees a difference: each application reads its own writes, other mounts see the writes after close, errors are
# reported, and a mount that a signal ends first sends all acknowledged writes.
# Covers: xlators/performance/write-behind

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/measure.sh"
. "$(dirname "$0")/../lib/place.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

work=$tests_dir/mount/write_behind_work.py
place_tmpfs "$T/small" 48m
volume_new v 2x1 "$T/small/v"
volume_start v
a=$T/a
b=$T/b
mount_kiln v "$a"
mount_kiln v "$b" --attribute-timeout=0 --entry-timeout=0 --direct-io-mode=enable

writes_sent() {
    calls_take "${mount_pid[$a]}" "$T/calls"
    awk '$1 == "writev" { n = $2 } END { print n + 0 }' "$T/calls"
}

t "a file equals its shadow copy after random writes, on the same mount and on another mount" python3 "$work" shadow "$a" "$b" 600
before=$(writes_sent)
read -r brick _ <<<"${volume_bricks[v]}"
t "writes are answered while the bricks are stopped" python3 "$work" small "$a/tiny" 16000 "${daemon_pid[${brick_daemon[$brick]}]}"
sent=$(($(writes_sent) - before))
t "small writes reach the bricks together ($sent WRITEs for 1000)" test "$sent" -lt 4
is "$(stat -c %s "$b/tiny")" 16000 "all written bytes are in the file"
is "$(python3 "$work" fill "$a/full")" ENOSPC "a writer that fills the volume gets ENOSPC and keeps the data that fsync confirmed"
rm "$a/full"
wait_for 60 "room" touch "$a/stream" # a brick looks each five seconds whether its disk is full (storage.reserve)

# Ended by a signal in the middle of writes.
where() {
    local brick
    for brick in ${volume_bricks[v]}; do
        [[ ! -s $brick/$1 ]] || echo "$brick/$1"
    done
}
has_written() {
    [[ $(cat "$T/count" 2>/dev/null || true) -gt 300 ]]
}
python3 "$work" stream "$a/stream" "$T/count" >"$T/log/stream.out" 2>&1 &
writer=$!
t "a process writes" wait_for 240 "writes" has_written
pid=${mount_pid[$a]}
unset "mount_pid[$a]"
kill -TERM "$pid"
t "SIGTERM ends the mount" wait_for 240 "the client to end" process_gone "$pid"
t_here "the mount ended with status 0" mount_ended_well "$a" "$pid"
t_here "the writing process gets an error" wait "$writer"
diag "$(cat "$T/count") blocks were answered; then: $(cat "$T/log/stream.out")"
t "the answered blocks are on the brick" python3 "$work" ring "$(where stream)" "$T/count"
