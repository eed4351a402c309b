#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Applications write open files through two descriptors each and create new ones while the stock rebalance moves files
# to an added brick, and away from a brick whose removal is then committed. No call fails, every file has the written
# contents, a stock mount reads the same, and no new file appears on the brick that is being removed. By the protocol,
# copying a file fails (EBUSY) while a client writes it; such files are moved later, when writes are less frequent.
# Covers: xlators/cluster/distribute/file.c, xlators/cluster/distribute/linkto.c, xlators/cluster/distribute/create.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

# The task that `gluster volume ARG...` has started.
is_over() {
    local out
    out=$(gl volume "$@" status)
    [[ $out != *"in progress"* && $out == *completed* ]]
}

failures() {
    gl volume "$@" status --xml | python3 -c '
import sys, xml.etree.ElementTree as xml
print(xml.parse(sys.stdin).find(".//aggregate").findtext("failures"))'
}

# All files are moved, if need be by trying again.
moves_all() {
    local try
    for try in {1..20}; do
        gl volume "$@" start >/dev/null
        wait_for 600 "files to be moved" is_over "$@"
        [[ $(failures "$@") -gt 0 ]] || return 0
        gl volume "$@" stop >/dev/null || true
        : >"$work/calm"
    done
    return 1
}

progress() {
    cat "$work/progress" 2>/dev/null || echo 0
}

has_gone_on() {
    [[ $(progress) -gt $1 ]] || process_gone "$work_pid"
}

# Files with data below a brick: no linkto files.
data_files() {
    find "$1" -path "$1/.glusterfs" -prune -o -type f -not -perm 1000 -print
}

has_said() {
    grep -q "\[$1\]" "$log"
}

system_cover
ln -s "$KILN_MOUNT" /usr/sbin/mount.kiln
use_kiln on
glusterd_start

for layout in 2x1 2x2; do
    vol=v$layout
    copies=${layout#*x}
    work=$T/work-$layout
    mnt=$T/mnt-$layout
    log=$T/log/kiln-mount-$layout.log
    mkdir "$work" "$mnt"
    gl_create "$vol" "$layout" >/dev/null
    gl volume start "$vol" >/dev/null
    wait_for 240 "the bricks of $vol" bash -c "$(declare -f bricks_online gl); [[ \$(bricks_online $vol) == $((2 * copies)) ]]"
    t "$layout: the volume is mounted" mount -t kiln -o "log-file=$log" "$glusterd_host:/$vol" "$mnt"
    python3 "$(dirname "$0")/migrate_work.py" "$mnt" "$work" >"$work/out" 2>"$T/log/migrate-work-$layout.log" &
    work_pid=$!
    wait_for 480 "writes to begin" has_gone_on 0

    added=()
    leaving=()
    for ((i = 0; i < copies; i++)); do
        added+=("$glusterd_host:$T/bricks/$vol-$((2 * copies + i))")
        leaving+=("$glusterd_host:$T/bricks/$vol-$i")
    done
    gl volume add-brick "$vol" "${added[@]}" force >/dev/null
    t "$layout: the mount switches to a graph with the added bricks" wait_for 240 "the switch" has_said mount-switched
    gl volume rebalance "$vol" start force >/dev/null
    wait_for 600 "the rebalance" is_over rebalance "$vol"
    wait_for 240 "a round after it" has_gone_on "$(progress)"
    t "$layout: the rebalance moved files to the added bricks" test "$(data_files "${added[0]#*:}" | wc -l)" -gt 0

    t_here "$layout: all files leave the bricks that are being removed" moves_all remove-brick "$vol" "${leaving[@]}"
    t "$layout: the mount learned of the removal" has_said distribute-leaving
    has_made=$(progress)
    rm -f "$work/calm"
    wait_for 240 "a round after it" has_gone_on "$has_made"
    is "$(data_files "${leaving[0]#*:}")" "" "$layout: no file is left, and no new file was created, on a brick that is being removed"
    gl volume remove-brick "$vol" "${leaving[@]}" commit >/dev/null
    wait_for 240 "a round without them" has_gone_on "$(progress)"
    : >"$work/stop"
    wait_for 480 "the work's end" process_gone "$work_pid"
    include "$layout: the work ended without an error" cat "$work/out"
    wait "$work_pid" || true
    gl_mount "$vol" "$T/stock-$layout"
    t "$layout: a stock mount reads the same contents" bash -c "cd '$T/stock-$layout' && md5sum --quiet -c '$work/manifest'"
    umount "$T/stock-$layout"
    t "$layout: the volume is unmounted" umount "$mnt"
    t_not "$layout: the mount leaked no object" grep -E 'graph-audit|graph-inodes-left|fuse-audit' "$log"
    gl volume stop "$vol" >/dev/null
done
kill "$glusterd_pid"
