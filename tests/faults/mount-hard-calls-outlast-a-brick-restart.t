#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# All bricks of a volume are restarted, by SIGTERM and by SIGKILL, while an application creates, appends to, truncates,
# renames and removes files on a hard kiln-mount. No call fails, and the mount shows each acknowledged change
# afterwards. A call fails with ENOTCONN when the bricks stay away for longer than the mount waits, and at once on a
# mount that does not wait. A forced unmount ends the wait.
# KILN_RESTARTS (4) is the number of restarts.
# Covers: xlators/features/hard/hard.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

mkdir "$T/dumps"
load() {
    python3 "$tests_dir/faults/load.py" "$@"
}
has_progress() {
    [[ $(stat -c %s "$T/progress") -ge $1 ]]
}

volume_new v 2x2
volume_start v
daemon=$(volume_daemons v)
mnt=$T/hard
mount_kiln v "$mnt" --hard=60 --statedump-dir "$T/dumps"
mkdir "$mnt/work"
: >"$T/progress"
load run "$mnt/work" "$T/progress" "$T/stop" "$T/state" 2>"$T/log/load.out" &
load=$!
for ((i = 1; i <= ${KILN_RESTARTS:-4}; i++)); do
    wait_for 120 "the load to go on" has_progress $((i * 4))
    if ((i % 2)); then
        t_here "restart $i: the daemon ends on SIGTERM" daemon_stop "$daemon"
    else
        t_here "restart $i: the daemon is killed" daemon_kill "$daemon"
    fi
    sleep 0.5
    daemon_start "$daemon"
    : >"$T/progress"
    wait_for 120 "the load to go on after restart $i" has_progress 2
    printf '%*s' $((i * 4)) '' | tr ' ' . >"$T/progress"
done
touch "$T/stop"
status=0
wait "$load" || status=$?
is "$status" 0 "the application saw no error in ${KILN_RESTARTS:-4} restarts"
t "the mount shows every acknowledged change" load verify "$mnt/work" "$T/state"
dump=$(dump_take "${mount_pid[$mnt]}" "$T/dumps")
t "the statedump counts the calls that waited" bash -c "grep -q '^held_ever=[1-9]' '$dump'"

# ---- the wait is bounded
mount_kiln v "$T/short" --hard=2
mount_kiln v "$T/soft"
echo text >"$T/short/file"
cat "$T/short/file" "$T/soft/file" >/dev/null
daemon_stop "$daemon"
soft_fails() {
    fails_with "not connected" stat "$T/soft/new"
}
t "a mount that does not wait fails with ENOTCONN" wait_for 30 "the loss to be noticed" soft_fails
t "a mount that waits two seconds fails with ENOTCONN afterwards" fails_with "not connected" stat "$T/short/new"
stat "$mnt/new" >/dev/null 2>&1 &
waiting=$!
sleep 0.5
# The call that the kernel ends may hold the mount point for a moment. kiln-mount unmounts when the kernel is gone.
force_unmount() {
    local pid=${mount_pid[$1]}
    unset "mount_pid[$1]"
    umount -f "$1" 2>/dev/null || true
    wait_for 30 "the process to end" process_gone "$pid" && mount_ended_well "$1" "$pid"
}
t "a call waits" kill -0 "$waiting"
t_here "umount -f while a call waits ends the process with status 0" force_unmount "$mnt"
status=0
wait "$waiting" || status=$?
t "the waiting call has failed" test "$status" -eq 1
t_not "the mount point is still there" mountpoint -q "$mnt"
daemon_start "$daemon"
t_here "the other mounts are unmounted" mount_end "$T/short"
mount_end "$T/soft"
