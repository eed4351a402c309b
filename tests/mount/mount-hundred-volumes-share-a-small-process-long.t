#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# 100 volumes are mounted by 100 commands in a loop, within a minute, in one process of at most 15 MB and 12 threads.
# Before, while no client has called their bricks, /metrics of their kilnd has at most 100 KB.
# Covers: mount/shared.c, mount/mount.c, cli/mount.c, glusterfsd/metrics.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/front.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"
[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

mkdir -p "$T/b" "$T/m"
front_start
for i in {1..100}; do
    kiln create "v$i" "$T/b/$i" >>"$T/log/kiln.out"
    kiln start "v$i" >>"$T/log/kiln.out"
    mkdir "$T/m/$i"
done
curl -sS --fail --max-time 120 --unix-socket /run/kiln/kilnd.socket http://kiln/metrics >"$T/metrics"
is "$(grep -c '^gluster_brick_up{' "$T/metrics")" 100 "/metrics has all bricks"
t "/metrics has at most 100 KB ($(stat -c %s "$T/metrics"))" test "$(stat -c %s "$T/metrics")" -le 100000
begin=$EPOCHREALTIME
failed=0
for i in {1..100}; do
    kiln mount "v$i" "$T/m/$i" || failed=$((failed + 1))
done
ms=$(((${EPOCHREALTIME/./} - ${begin/./}) / 1000))
is "$failed" 0 "100 mounts are made"
is "$(pgrep -fc '^mount.kiln')" 1 "one process has the 100 mounts"
pid=$(pgrep -f '^mount.kiln')
for i in {1..100}; do
    echo "$i" >"$T/m/$i/file"
done
is "$(cat "$T"/b/*/file | sort -n | tr '\n' ' ')" "$(seq 100 | tr '\n' ' ')" "each mount writes to its volume"
rss=$(awk '/^Rss:/ { print $2 }' "/proc/$pid/smaps_rollup")
threads=$(find "/proc/$pid/task" -mindepth 1 -maxdepth 1 | wc -l)
diag "100 mounts: $ms ms, $rss KiB resident, $threads threads, $(find "/proc/$pid/fd" | wc -l) descriptors"
t "the mounts are made within a minute ($ms ms)" test "$ms" -le 60000
grep -q '^SAN_FLAGS = ..*' "$(dirname "$KILN_MOUNT")/Makefile" || t "the process takes at most 15 MB ($rss KiB)" test "$rss" -le 15000
t "the process has at most 12 threads ($threads)" test "$threads" -le 12
kill -KILL "$pid"
wait_for 60 "the process to end" process_gone "$pid"
mkdir "$T/m/101"
begin=$EPOCHREALTIME
t "one more mount is made after a kill" kiln mount v1 "$T/m/101"
all_back() {
    [[ $(cat "$T"/m/*/file 2>/dev/null | wc -l) == 101 ]]
}
t "all mounts come back" wait_for 60 "the mounts" all_back
diag "100 mounts are back after $(((${EPOCHREALTIME/./} - ${begin/./}) / 1000)) ms"
kill -TERM "$(pgrep -f '^mount.kiln')"
no_mount() {
    [[ -z $(findmnt -n -t fuse.glusterfs) ]]
}
t "SIGTERM unmounts all" wait_for 120 "the mounts to go" no_mount
