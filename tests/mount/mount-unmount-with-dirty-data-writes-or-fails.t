#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A mount of two replicas is removed by umount -l, fusermount3 -u, fusermount3 -uz or SIGTERM while the bricks are
# stopped and an application has written data that only the mount has (write-behind) or only the kernel has (a shared
# memory map). When the bricks continue, either both of them get all of the data, or fsync, msync or close fails. If
# the bricks die instead, these calls fail. The mount leaves no process and no mount each time. A process that sees late
# that its mount point was unmounted leaves the mount alone that another process has made there meanwhile.
# Covers: xlators/performance/write-behind/queue.c, xlators/mount/fuse/fuse.c, xlators/mount/fuse/mounted-as.c, mount/mount.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

work=$tests_dir/mount/dirty_work.py
mount_graph=whole
volume_new v 1x2
volume_start v
read -ra bricks <<<"${volume_bricks[v]}"
daemon=${brick_daemon[${bricks[0]}]}
count=0

# A missing answer is printed as none.
say() {
    local answer=none
    echo "$*" >&"$to"
    read -r -t 100 answer <&"$from" || true
    echo "$answer"
}

all_stopped() {
    ! grep -h '^State:' "/proc/$1/task/"*/status | grep -qv 'T (stopped)'
}

bricks_stop() {
    kill -STOP "${daemon_pid[$daemon]}"
    wait_for 60 "the bricks to stand still" all_stopped "${daemon_pid[$daemon]}"
}

bricks_go_on() {
    kill -CONT "${daemon_pid[$daemon]}"
}

begin() {
    local answer
    count=$((count + 1))
    mnt=$T/m$count file=file$count
    # The kernel asks nothing before a write.
    mount_kiln v "$mnt" --attribute-timeout=600 --entry-timeout=600
    wait_for 240 "the volume" test -d "$mnt/."
    wait_for 240 "a file" touch "$mnt/$file"
    coproc HOLD { exec python3 "$work" hold "$mnt/$file" 2>>"$T/log/hold.out"; }
    hold=$HOLD_PID
    exec {to}>&"${HOLD[1]}" {from}<&"${HOLD[0]}"
    eval "exec ${HOLD[1]}>&- ${HOLD[0]}<&-"
    read -r -t 100 answer <&"$from"
    pid=${mount_pid[$mnt]}
}

hold_ends() {
    exec {to}>&- {from}<&-
    wait "$hold" || true
}

ends_well() {
    local status=0
    wait_for 240 "kiln-mount to end" process_gone "$pid"
    wait "$pid" || status=$?
    unset "mount_pid[$mnt]" "mount_is_kiln[$mnt]"
    [[ $status -eq 0 ]] || { echo "status $status"; return 1; }
    ! grep -E 'graph-audit|graph-inodes-left|fuse-audit' "$T/log/kiln-mount-$(basename "$mnt").log"
}

on_both() {
    local brick
    for brick in "${bricks[@]}"; do
        python3 "$work" look "$brick/$file" "$1" || return 1
    done
}

no_marks() {
    ! python3 "$tests_dir/replicate/replica_work.py" marks "${bricks[@]}" | grep -v ' None'
}

# The kernel lets go of the process's hold first.
taken_away_lazily() {
    case $1 in
    umount-l) umount -l "$mnt" ;;
    fusermount3-uz) fusermount3 -u -z "$mnt" ;;
    esac
}

for way in umount-l fusermount3-uz; do
    begin
    bricks_stop
    is "$(say write 40)" ok "$way: writes are answered while the bricks are stopped"
    t "$way: the mount is removed" taken_away_lazily "$way"
    t_not "$way: the mount table has no entry for the mount" mount_is_listed "$mnt"
    t "$way: the process stays while the file is open" kill -0 "$pid"
    bricks_go_on
    is "$(say write 5) $(say fsync) $(say map 5) $(say msync) $(say unmap) $(say close)" "ok ok ok ok ok ok" "$way: the open file can be written, synced, mapped and closed"
    hold_ends
    t_here "$way: the process ends with status 0" ends_well
    t "$way: both bricks have all of the data" on_both 50
    t "$way: no pending mark is left" wait_for 60 "no marks" no_marks

    # Data that only a memory map holds, without a call that requests a write.
    begin
    is "$(say map 20) $(say close)" "ok ok" "$way: a memory map of a closed file is changed"
    taken_away_lazily "$way"
    is "$(say unmap)" ok "$way: the memory map is released after the mount was removed"
    hold_ends
    t_here "$way: the process ends with status 0 after the map was released" ends_well
    t "$way: both bricks have the data of the memory map" on_both 20
done

# Without -z the kernel refuses the unmount under an open file, and the file is not affected.
begin
bricks_stop
is "$(say write 40)" ok "fusermount3 -u: writes are answered while the bricks are stopped"
t_not "fusermount3 -u: the unmount is refused while a file is open" fusermount3 -u "$mnt"
t "fusermount3 -u: the volume is still mounted" mount_is_listed "$mnt"
bricks_go_on
is "$(say map 10) $(say close) $(say unmap)" "ok ok ok" "fusermount3 -u: the file is changed and closed"
hold_ends
t "fusermount3 -u: the unmount succeeds after the file was closed" fusermount3 -u "$mnt"
t_here "fusermount3 -u: the process ends with status 0" ends_well
t "fusermount3 -u: both bricks have all of the data" on_both 50

# The bricks continue before the mount has ended: acknowledged data is written out, and other calls have failed.
begin
bricks_stop
is "$(say write 40)" ok "SIGTERM: writes are answered while the bricks are stopped"
kill -TERM "$pid"
bricks_go_on
t_here "SIGTERM: the process ends with status 0" ends_well
t_not "SIGTERM: the mount table has no entry for the mount" mount_is_listed "$mnt"
t "SIGTERM: both bricks have the answered writes" on_both 40
t_not "SIGTERM: a later write fails" test "$(say write 1)" = ok
hold_ends

begin
is "$(say map 20)" ok "SIGTERM: a memory map is changed"
kill -TERM "$pid"
t_here "SIGTERM: the process ends with status 0 while a map is dirty" ends_well
answer="$(say msync)"
t "SIGTERM: both bricks have the data of the map, or msync fails ($answer)" eval "test '$answer' != ok || on_both 20"
hold_ends

# The bricks never go on.
for way in umount-l SIGTERM; do
    begin
    bricks_stop
    is "$(say write 40)" ok "$way, dead bricks: writes are answered while the bricks are stopped"
    if [[ $way == SIGTERM ]]; then
        kill -TERM "$pid"
    else
        umount -l "$mnt"
    fi
    daemon_kill "$daemon"
    answer="$(say fsync)"
    t_not "$way, dead bricks: fsync fails ($answer)" grep -qE '^(ok|none)$' <<<"$answer"
    [[ $way == SIGTERM ]] || is "$(say write 1)" ok "$way, dead bricks: one more write is answered"
    answer="$(say close)"
    t_not "$way, dead bricks: close then fails ($answer)" grep -qE '^(ok|none)$' <<<"$answer"
    hold_ends
    t_here "$way, dead bricks: the process ends with status 0" ends_well
    daemon_start "$daemon"
done

mnt=$T/late
mount_kiln v "$mnt"
late=${mount_pid[$mnt]}
kill -STOP "$late"
wait_for 60 "the process to stand still" all_stopped "$late"
device=$(awk -v at="$mnt" '$5 == at { print $3 }' /proc/self/mountinfo)
t "the mount point is unmounted" python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).umount2(sys.argv[1].encode(), 0))' "$mnt"
unset "mount_pid[$mnt]"
mount_kiln v "$mnt"
diag "the kernel gives the number of the file system again: $device, $(awk -v at="$mnt" '$5 == at { print $3 }' /proc/self/mountinfo)"
kill -CONT "$late"
wait_for 60 "the end of the first process" process_gone "$late"
t "a process that ends late leaves the next mount alone" mount_is_listed "$mnt"
t_here "the next mount is unmounted" mount_end "$mnt"
