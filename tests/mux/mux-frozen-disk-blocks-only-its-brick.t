#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Two bricks in one kilnd lie on two file systems. The script freezes a file system (fsfreeze) while many processes
# write to it, so every call to that brick hangs in the kernel. The other brick continues to serve, the daemon answers
# signals, and after the thaw every write has arrived.
# Covers: xlators/performance/io-threads/io-threads.c, libglusterfs/event/worker.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"

writers=40
volume_daemon=both
BRICK_POSIX_OPTIONS="health-check-interval 0"
place_xfs "$T/frozen" 512m
volume_new cold 1x1 "$T/frozen"
volume_new warm 1x1
volume_start cold
mount_volume cold "$T/mnt-cold" plain
mount_volume warm "$T/mnt-warm" plain
pid=${daemon_pid[both]}
for ((i = 0; i < writers; i++)); do
    : >"$T/mnt-cold/file$i" # a kernel lets one process at a time make a name in a folder, so the names are there before
done

thaw() {
    fsfreeze -u "$T/frozen" 2>/dev/null
}
at_end+=(thaw)

fsfreeze -f "$T/frozen"
pids=()
for ((i = 0; i < writers; i++)); do
    dd if=/dev/zero of="$T/mnt-cold/file$i" bs=65536 count=1 conv=notrunc,fsync 2>/dev/null &
    pids+=($!)
done
stuck_workers() {
    grep -l '^State:.*D' /proc/"$pid"/task/*/status 2>/dev/null | wc -l
}
brick_is_full() {
    [[ $(stuck_workers) -ge 16 ]]
}
t "calls to the frozen brick hang up to the bound of a brick" wait_for 240 "workers in the kernel" brick_is_full

other_serves() {
    local i
    for ((i = 0; i < 200; i++)); do
        echo "$i" >"$T/mnt-warm/f$i" && [[ $(<"$T/mnt-warm/f$i") == "$i" ]] && rm "$T/mnt-warm/f$i" || return 1
    done
}
started=$EPOCHSECONDS
t "the other brick serves 200 files" timeout 600 bash -c "$(declare -f other_serves); T=$T; other_serves"
diag "which took $((EPOCHSECONDS - started)) s"
is "$(find "$T/frozen/b0" -name 'file*' -size +63k | wc -l)" 0 "no data has reached the frozen disk"
dump=$(dump_take "$pid" "$T")
t "the daemon still answers signals" test -s "$dump"
diag "$(stuck_workers) workers hang in the frozen disk, $(proc_threads "$pid") threads"
# A thread may be in that state for a moment for other reasons, but a hanging thread stays in it.
brick_has_no_more() {
    [[ $(stuck_workers) -eq 16 ]]
}
t "the frozen brick blocks no more workers than the bound" wait_for 60 "16 workers in the kernel" brick_has_no_more

thaw
all_end_well() {
    local one
    for one in "${pids[@]}"; do # of several, wait tells the status of the last one alone
        wait "$one" || return
    done
}
t_here "every writer succeeds after the thaw" all_end_well
is "$(find "$T/mnt-cold" -name 'file*' -size 64k | wc -l)" "$writers" "every file is whole"
