#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A listing of many files on one brick takes memory in kilnd, which kilnd returns to the system within two periods of
# the sweeper while another brick of the same process works at full load. KILN_FILES=N lists N files instead of
# 200,000.
# Covers: libglusterfs/mem/mem-sweep.c, libglusterfs/mem/mem-span.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/measure.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

files=${KILN_FILES:-200000}
seed_work_build
mkdir -p "$T/b"
resident_kb() {
    awk '/^VmRSS/ { print $2 }' "/proc/$front_pid/status"
}
load() {
    while [[ ! -e $T/stop ]]; do
        "$seed_work" create "$T/mb" 50 && "$seed_work" write "$T/mb" 50
    done >>"$T/log/load.out" 2>&1
}
mount_of() {
    mkdir -p "$T/m$1"
    "$KILN_MOUNT" -N -s localhost --volfile-id "$1" -l "$T/log/mount-$1.log" "$T/m$1" >>"$T/log/mount.out" 2>&1 &
    wait_for 60 "the mount of $1" mountpoint -q "$T/m$1"
}
# The brick keeps the inodes of all files until its limit is lowered: then it forgets most of them at once.
list() {
    kiln volume set a network.inode-lru-limit 1048576 >/dev/null
    mount_of a
    ls -lR "$T/ma" >/dev/null
    peak=$(resident_kb)
    umount "$T/ma"
    kiln volume set a network.inode-lru-limit 1024 >/dev/null
}

front_start --pool-option sweep=1s
for vol in a b;
do
    kiln volume create $vol "$T/b/$vol" >/dev/null
    kiln volume start $vol >/dev/null
done
mount_of b
mount_of a
for ((i = 0; i < files; i += 1000)); do
    mkdir "$T/ma/$i"
    "$seed_work" create "$T/ma/$i" 1000 >>"$T/log/work.out"
done
umount "$T/ma"
load &
load_pid=$!
sleep 4
list # the first one warms what is kept for ever
sleep 6
rest=$(resident_kb)
list
t "the listing takes memory: kilnd grows from $rest to $peak KB" test "$peak" -gt $((rest * 115 / 100))
sleep 2.5
now=$(resident_kb)
diag "$files files: $rest KB at rest, $peak KB at the peak, $now KB two periods after it, beside a brick at load"
t "kilnd is within 10 % of rest after 2N, beside a brick at load" test "$now" -le $((rest * 110 / 100))
touch "$T/stop"
wait "$load_pid"
umount "$T/mb"
