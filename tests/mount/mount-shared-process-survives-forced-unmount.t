#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A mount of a shared process is removed by force, with umount -f and by cutting its kernel connection, while its
# bricks are stopped and an application writes. The application gets ENOTCONN at once, the applications of other
# mounts see no error, and the process continues, keeps nothing of the removed mount, and can mount the volume again.
# Covers: mount/shared.c, mount/mount.c, xlators/mount/fuse/fuse.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

work=$tests_dir/mount/soak_work.py
log=$T/log/shared.log
for vol in a b; do
    volume_new "$vol" 1x2
    volume_start "$vol"
    volume_client_volfile "$vol" default >"$T/$vol.vol"
done
mkdir "$T/records"
mount -t fusectl none /sys/fs/fuse/connections

join() {
    mkdir -p "$T/$2"
    "$KILN_MOUNT" --shared -l "$log" -f "$T/$1.vol" "$T/$2" && wait_for 240 "$2" test -d "$T/$2/."
}

begin() {
    python3 "$work" write "$T/$1/$2" "$T/records/$2" 0 >"$T/log/work-$2.out" 2>&1 &
    begun=$!
}

# So many files more are finished.
goes_on() {
    local before
    before=$(grep -c '^r' "$T/records/$1" || true)
    wait_for 100 "$1 to go on" finished "$1" $((before + 3))
}

finished() {
    [[ $(grep -c '^r' "$T/records/$1") -ge $2 ]]
}

left() {
    [[ $(grep -c '\[mount-left\]' "$log") == "$1" ]]
}

t "the first volume is mounted by the shared process" join a a1
t "the second volume is mounted by the shared process" join b b1
pid=$(pgrep -f "kiln-mount --shared -l $log")
is "$(wc -w <<<"$pid")" 1 "one process serves both mounts"
begin b1 steady
steady=$begun
t "the work on the second volume runs" goes_on steady
daemon=${brick_daemon[${volume_bricks[a]%% *}]}
departed=0
for way in force abort; do
    begin a1 "$way"
    victim=$begun
    t "$way: the work on the first volume runs" goes_on "$way"
    device=$(stat -c %d "$T/a1")
    kill -STOP "${daemon_pid[$daemon]}"
    if [[ $way == force ]]; then
        umount -f "$T/a1" || true # busy, but cut off
    else
        echo 1 >"/sys/fs/fuse/connections/$device/abort"
    fi
    t "$way: the application ends while the bricks are stopped" wait_for 30 "the writer's end" process_gone "$victim"
    # ENOENT: the mount has gone before the next name is looked for.
    t "$way: the application got ENOTCONN, ECONNABORTED or ENOENT" grep -qE 'Errno (107|103|2)\]' "$T/log/work-$way.out"
    t "$way: the work on the other mount continues" goes_on steady
    kill -CONT "${daemon_pid[$daemon]}"
    departed=$((departed + 1))
    t "$way: the mount leaves the process" wait_for 100 "its end" left "$departed"
    t_not "$way: the mount table has no entry for the mount point" mount_is_listed "$T/a1"
    t "$way: the process is alive" kill -0 "$pid"
    t "$way: the process mounts the volume again" join a a1
    is "$(pgrep -f "kiln-mount --shared -l $log")" "$pid" "$way: the process is the same as before"
    t "$way: the new mount reads all acknowledged writes" python3 "$work" verify "$T/a1" "$T/records/$way"
done 2>"$T/log/script.out"
kill -TERM "$steady"
t_here "no call of the other mount failed" wait "$steady"
t "the other mount reads all acknowledged writes" python3 "$work" verify "$T/b1" "$T/records/steady"
umount "$T/a1"
umount "$T/b1"
t "the process ends with its last mount" wait_for 100 "its end" process_gone "$pid"
t "the process ended with status 0" grep -q "exit status 0" "$log"
t_not "the process leaked no object" grep -E 'graph-audit|graph-inodes-left|fuse-audit' "$log"
