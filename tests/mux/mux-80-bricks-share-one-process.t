#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# One kilnd serves the 80 bricks of 20 volumes with at most 8 descriptors for each brick and with no more threads than
# for 4 bricks. Each volume has its own files.
# Covers: bricks/bricks.c, libglusterfs/event/worker.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"

volume_new few 2x2
volume_start few
few=${daemon_pid[few-kiln]}
volume_daemon=many
for ((i = 1; i <= 20; i++)); do
    volume_new "v$i" 2x2
done
volume_start v1
many=${daemon_pid[many]}

# A daemon that had to wait during its start may have an additional worker until it has been idle for a while.
as_many_threads() {
    [[ $(proc_threads "$many") -eq $(proc_threads "$few") ]]
}
t "80 bricks need as many threads as 4 bricks" wait_for 240 "as many threads" as_many_threads
diag "$(proc_threads "$few") threads with 4 bricks, $(proc_threads "$many") with 80"
fds=$(($(proc_fds "$many") - $(proc_fds "$few")))
diag "$(proc_fds "$few") descriptors with 4 bricks, $(proc_fds "$many") with 80"
t "kilnd has at most 8 descriptors for each brick" test "$fds" -le $((76 * 8))
diag "RSS idle: $(proc_rss_kb "$few") KiB with 4 bricks, $(proc_rss_kb "$many") KiB with 80"

for i in 1 7 13 20; do
    mount_volume "v$i" "$T/m$i"
    echo "of volume $i" >"$T/m$i/file"
done
for i in 1 7 13 20; do
    is "$(cat "$T/m$i/file")" "of volume $i" "volume $i has its own file"
done
rm "$T/m7/file"
is "$(cat "$T/m13/file")" "of volume 13" "the removal of a file in one volume leaves the files of other volumes"
