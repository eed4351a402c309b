#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A mount is unmounted while its process may start no further thread (pids.max of its cgroup). The thread that takes
# the mount down starts as soon as the limit allows it, and the process ends. A shared process in that state refuses a
# further mount and keeps its other mounts.
# Covers: mount/mount.c, mount/shared.c, libglusterfs/base/thread.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
pids=$(awk '$3 == "cgroup" && $4 ~ /(^|,)pids(,|$)/ { print $2; exit }' /proc/mounts)
group=$pids/kiln-test-$$-$RANDOM
[[ -n $pids ]] && mkdir "$group" 2>/dev/null || skip_all "there is no cgroup that counts threads"

end_group() {
    wait_for 60 "the end of $group" rmdir "$group"
}
at_end+=(end_group)

may_have_no_thread() {
    echo "$1" >"$group/cgroup.procs"
    echo 1 >"$group/pids.max"
}

volume_new v 1x1
volume_start v
volfile_bare v "$(volume_specs v)" >"$T/v.vol"
mnt=$T/mnt log=$T/log/kiln-mount-mnt.log
mount_kiln v "$mnt"
pid=${mount_pid[$mnt]}
echo text >"$mnt/file"
may_have_no_thread "$pid"
umount "$mnt"
t "the log says that no thread could be started" wait_for 60 "it to say so" grep -q 'mount-no-thread' "$log"
t_not "the process is still running" process_gone "$pid"
echo max >"$group/pids.max"
t "the process ends when a thread can be started" wait_for 60 "kiln-mount to end" process_gone "$pid"
unset "mount_pid[$mnt]"
t_here "the process ended with status 0" mount_ended_well "$mnt" "$pid"

shared=$T/log/shared.log
join() {
    mkdir -p "$T/m/$1"
    "$KILN_MOUNT" --shared -l "$shared" -f "$T/v.vol" "$T/m/$1"
}

join first
pid=$(pgrep -f "kiln-mount --shared")
may_have_no_thread "$pid"
t_not "a shared process without a thread refuses another mount" join second
is "$(cat "$T/m/first/file")" text "the first mount still works"
echo max >"$group/pids.max"
t "the second mount joins when a thread can be started" join second
umount "$T/m/first" "$T/m/second"
t "the process ends after its last unmount" wait_for 60 "the process to end" process_gone "$pid"
