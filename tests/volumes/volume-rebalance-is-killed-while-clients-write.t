#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount and a stock mount write open files and create new ones while a rebalance moves the files to added bricks,
# its process is killed up to five times, and the first bricks are drained and removed. No call fails, every file has the
# written contents through both mounts, and no brick has a file that is still marked as being moved.
# Covers: xlators/cluster/distribute/migrate.c, xlators/cluster/distribute/file.c, xlators/cluster/distribute/rebalance.c,
# Covers: heal/rebalance-jobs.c, volumes/heal/rebalance.c, volumes/volumes-bricks.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

is_over() {
    kiln volume "$@" status | grep -qE '^Rebalance of .*: (completed|failed)$'
}
# The walk of the present process has begun, or has ended.
is_under_way() {
    kiln volume rebalance v status | grep -qE '^Rebalance of .*: (running|completed|failed)$'
}
progress() {
    cat "$T/work-$1/progress" 2>/dev/null || echo 0
}
has_gone_on() {
    [[ $(progress "$1") -gt $2 ]] || process_gone "${work_pid[$1]}"
}
both_go_on() {
    local a b
    a=$(progress kiln) b=$(progress stock)
    wait_for 240 "a round of kiln-mount" has_gone_on kiln "$a"
    wait_for 240 "a round of the stock mount" has_gone_on stock "$b"
}
# A rebalance that clients overtake all the time gives up, and is begun again.
moves_all() {
    local try
    for try in {1..10}; do
        wait_for 240 "the end" is_over remove-brick v "$@"
        kiln volume remove-brick v "$@" status | grep -q 'failed: 0$' && return
        kiln volume remove-brick v "$@" stop
        kiln volume remove-brick v "$@" start
    done
    return 1
}
marked_files() {
    local file
    getfattr --absolute-names -R -h -m '^trusted.glusterfs.dht.linkto$' "$T"/b/[3-6] 2>/dev/null |
        sed -n 's/^# file: //p' | while read -r file; do
        [[ $(stat -c %a "$file") == 1000 || $file == */.glusterfs/* ]] || echo "$file"
    done
}

mkdir -p "$T"/{b,kiln,stock,work-kiln,work-stock}
declare -A work_pid
front_start
kiln volume create v replica 2 "$T"/b/{1,2,3,4}
kiln volume start v
mount -t glusterfs -o "log-file=$T/log/client.log" localhost:/v "$T/stock"
"$KILN_MOUNT" -N -l "$T/log/kiln-mount.log" localhost:/v "$T/kiln" >"$T/log/kiln-mount.out" 2>&1 </dev/null &
wait_for 240 "kiln-mount" mountpoint -q "$T/kiln"
for mnt in kiln stock; do
    mkdir "$T/$mnt/of-$mnt"
    python3 "$source_dir/tests/distribute/migrate_work.py" "$T/$mnt/of-$mnt" "$T/work-$mnt" 4 4194304 \
        >"$T/work-$mnt/out" 2>"$T/log/work-$mnt.log" &
    work_pid[$mnt]=$!
done
both_go_on

kiln volume add-brick v "$T"/b/{5,6}
kiln volume rebalance v start
kills=0
while [[ $kills -lt 5 ]]; do
    wait_for 240 "the walk" is_under_way
    sleep "0.$((RANDOM % 4))"
    ! is_over rebalance v || break
    heal_pid=$(pgrep -x kiln-heal) || continue
    kill -KILL "$heal_pid"
    wait_for 240 "kiln-heal to end" process_gone "$heal_pid"
    kills=$((kills + 1))
done
t "its process was killed ($kills times)" test "$kills" -gt 0
t "the rebalance ends" wait_for 240 "the end" is_over rebalance v
include "... without a failure" grep 'failed: 0' <<<"$(kiln volume rebalance v status)"
t "files were moved" test "$(find "$T/b/5" -path "$T/b/5/.glusterfs" -prune -o -type f ! -perm 1000 -print | wc -l)" -gt 0
both_go_on
kiln volume remove-brick v "$T"/b/{1,2} start
t "all files leave the bricks" moves_all "$T"/b/{1,2}
t "the bricks are removed" kiln volume remove-brick v "$T"/b/{1,2} commit
both_go_on
touch "$T"/work-{kiln,stock}/stop
for mnt in kiln stock; do
    wait_for 240 "the work of $mnt to end" process_gone "${work_pid[$mnt]}"
    include "$mnt: no call failed, and every file has the written contents" cat "$T/work-$mnt/out"
    wait "${work_pid[$mnt]}" || true
done
t "the stock mount reads the files of kiln-mount" bash -c "cd '$T/stock/of-kiln' && md5sum --quiet -c '$T/work-kiln/manifest'"
t "kiln-mount reads the files of the stock mount" bash -c "cd '$T/kiln/of-stock' && md5sum --quiet -c '$T/work-stock/manifest'"
is "$(marked_files)" "" "no file is left marked"
umount "$T/stock" "$T/kiln"
