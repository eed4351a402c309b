#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Stock clients that have not fetched the volfile with the added bricks yet: a rebalance names such a client and moves nothing
# until each has fetched the volfile or is gone. The writes of a client in the meantime are in the moved files.
# Covers: xlators/cluster/old-clients.c, xlators/protocol/server/roll.c, xlators/cluster/distribute/rebalance.c,
# Covers: heal/rebalance-jobs.c, cli/show.c

. "$(dirname "$0")/../lib/kiln.sh"

get_volfile() {
    python3 "$kiln_lib/getspec.py" localhost 24007 /v "$1"
}
status() {
    kiln volume rebalance v status
}
status_says() {
    status | grep -qE "$1"
}
files_on() {
    find "$@" -path '*/.glusterfs' -prune -o -type f ! -perm 1000 -printf '%P\n'
}
# Of the files that were there before the bricks were added: a client with the new volfile makes new files on these bricks.
moved_files() {
    files_on "$T"/b/{5,6} | grep -Fxf "$T/before" || true
}
progress() {
    cat "$T/work/progress" 2>/dev/null || echo 0
}
has_gone_on() {
    [[ $(progress) -gt $1 ]] || process_gone "$work_pid"
}
works_on() {
    local n
    for n in {1..3}; do
        wait_for 240 "a round of the client" has_gone_on "$(progress)"
    done
}
pid_of_mount() {
    pgrep -f -- "^[^ ]*glusterfs .* $1\$"
}
# Only the new graph of the process is logged in to the bricks.
has_new_graph() {
    local text
    text=$(grep -E "PID:$1-.*-PC_NAME:v-client-[04]-" "$T/log/kilnd.log")
    grep -q 'PC_NAME:v-client-4.*\[login\]' <<<"$text" && grep -q 'PC_NAME:v-client-0.* is gone' <<<"$text"
}
mount_stock() {
    local mnt=$1
    shift
    mkdir "$mnt"
    glusterfs --process-name fuse -l "$T/log/client-$(basename "$mnt").log" "$@" "$mnt"
    wait_for 240 "the mount on $mnt" mountpoint -q "$mnt"
}

mkdir -p "$T"/{b,work}
front_start
kiln volume create v replica 2 "$T"/b/{1,2,3,4}
kiln volume start v
get_volfile "$T/served.vol"
cp "$T/served.vol" "$T/old.vol"
python3 "$kiln_lib/volfile-server.py" 127.0.0.1 25000 "$T/served.vol" &
server_pid=$!
wait_for 240 "the volfile server" bash -c 'exec 3<>/dev/tcp/127.0.0.1/25000'
mount_stock "$T/slow" -s 127.0.0.1 --volfile-server-port=25000 --volfile-id v
mount_stock "$T/fixed" -f "$T/old.vol"
mkdir "$T/slow/d"
python3 "$source_dir/tests/distribute/migrate_work.py" "$T/slow/d" "$T/work" 4 4194304 >"$T/work/out" 2>"$T/log/work.log" &
work_pid=$!
works_on

files_on "$T"/b/{1,2,3,4} >"$T/before"
kiln volume add-brick v "$T"/b/{5,6}
kiln volume rebalance v start
t "the rebalance waits for a client" wait_for 240 "the wait" status_says '^Waits for a client '
t "the status says waiting" status_says '^Rebalance of v \(files\): waiting$'
is "$(grep -cE "^Waits for a client .*: process ($(pid_of_mount "$T/slow")|$(pid_of_mount "$T/fixed")) on $(uname -n)\$" \
    <<<"$(status)")" 1 "the status names the client's process and host"
works_on
sleep 2
is "$(moved_files)" "" "no file is moved meanwhile"

get_volfile "$T/new.vol"
slow_pid=$(pid_of_mount "$T/slow")
mv "$T/new.vol" "$T/served.vol"
kill -HUP "$server_pid"
t "the first client follows" wait_for 240 "the new graph" has_new_graph "$slow_pid"
t "the rebalance waits for the other client" wait_for 240 "the other client" \
    status_says "^Waits for a client .*: process $(pid_of_mount "$T/fixed") on "
works_on
is "$(moved_files)" "" "no file is moved meanwhile"
umount "$T/fixed"
t "the rebalance ends when no client has the old volfile" wait_for 240 "the end" status_says '^Rebalance of .*: completed$'
t_not "the status names no client" status_says '^Waits for'
t "no file failed" status_says 'failed: 0$'
t "files were moved" test -n "$(moved_files)"
works_on
touch "$T/work/stop"
wait_for 240 "the work to end" process_gone "$work_pid"
include "no call failed, and every file has the written contents" cat "$T/work/out"
umount "$T/slow"
