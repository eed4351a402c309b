#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kilnd dies at the system calls by which MKDIR makes the directory and its handle. The brick never has a directory with a gfid and without a
# handle: a healer that asks for the gfid would make a second directory of this gfid, if other bricks have renamed the first one.
# After a restart the directory can be used and removed, and no handle is left.
# Covers: xlators/storage/posix/entry/entry-create.c

. "$(dirname "$0")/../lib/kiln.sh"
command -v strace >/dev/null || skip_all "no strace"

volume_new v 1x1
volume_start v
brick=${volume_bricks[v]}
mount_kiln v "$T/mnt" --attribute-timeout=0 --entry-timeout=0
mkdir "$T/mnt/warm"

is_traced() {
    local task
    for task in /proc/"${daemon_pid[v-kiln]}"/task/*; do
        grep -q "^TracerPid:[[:space:]]*[1-9]" "$task/status" || return 1
    done
}
# The folder has both, or no gfid.
is_whole_or_nameless() {
    local gfid
    [[ -d $brick/$1 ]] || return 0
    gfid=$(getfattr --absolute-names -n trusted.gfid -e hex "$brick/$1" 2>/dev/null | sed -n 's/.*=0x//p')
    [[ -z $gfid || -d $brick/.glusterfs/${gfid:0:2}/${gfid:2:2}/${gfid:0:8}-${gfid:8:4}-${gfid:12:4}-${gfid:16:4}-${gfid:20}/. ]]
}

number=0
for cut in mkdirat:1 symlinkat:1; do
    number=$((number + 1))
    strace -f -qq -p "${daemon_pid[v-kiln]}" -o "$T/trace" -e "trace=${cut%:*}" -e "inject=${cut%:*}:signal=SIGKILL:when=${cut#*:}" &
    tracer=$!
    wait_for 60 "strace to trace each thread" is_traced
    timeout 20 mkdir "$T/mnt/d$number" 2>"$T/mkdir.out" &
    maker=$!
    wait_for 20 "the end of kilnd" process_gone "${daemon_pid[v-kiln]}" || kill -INT "$tracer"
    wait "$tracer" || true
    t "cut at $cut: no directory has a gfid without a handle" is_whole_or_nameless "d$number"
    process_gone "${daemon_pid[v-kiln]}" && { daemon_kill v-kiln || true; volume_start v; }
    wait "$maker" || true
    t "cut at $cut: the directory can be made or is there" wait_for 60 "the brick" bash -c "mkdir -p '$T/mnt/d$number/sub'"
    t "cut at $cut: the directory can be removed" rm -r "$T/mnt/d$number"
done
mount_end "$T/mnt"
volume_stop v
