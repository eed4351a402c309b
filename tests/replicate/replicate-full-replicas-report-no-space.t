#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Two of three replicas are full. Writes fail with ENOSPC, never with ENOTCONN, through write-behind too, from one thread and
# from several that write side by side, also if a brick has written the first part of a block. After the file is cut, writes
# succeed again, and the replicas are equal.
# Covers: xlators/cluster/replicate/transaction.c, xlators/cluster/replicate/hold.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

mnt=$T/mnt
volume_split=brick
volume_new v 1x3
read -ra bricks <<<"${volume_bricks[v]}"
for brick in "${bricks[@]:0:2}"; do
    place_tmpfs "$brick" 3m
    brick_make "$brick" "${volume_id[v]}"
done
volume_start v

cat >"$T/fill.py" <<'EOF'
import errno, os, sys, threading

path, threads, seen = sys.argv[1], int(sys.argv[2]), set()
fd = os.open(path, os.O_CREAT | os.O_RDWR)


def attempt(function, *arguments):
    try:
        function(*arguments)
    except OSError as error:
        seen.add(errno.errorcode[error.errno])


def fill(first):
    for n in range(first, 160 * threads, threads):
        attempt(os.pwrite, fd, b"x" * 65536, n * 65536)


workers = [threading.Thread(target=fill, args=(first,)) for first in range(threads)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
attempt(os.fsync, fd)
attempt(os.close, fd)
print(*sorted(seen))
EOF

# Each brick looks every five seconds whether it is below storage.reserve. A file that is made or written between the looks of two
# bricks is on one of them only, and no healer runs, so the file is made again.
writes_equally() {
    rm -f "$mnt/after"
    echo text >"$mnt/after" && cmp -s "${bricks[0]}/after" "${bricks[2]}/after" && cmp -s "${bricks[1]}/after" "${bricks[2]}/after"
}

for mount_graph in bare whole; do
    mount_kiln v "$mnt"
    for threads in 1 4; do
        for round in 1 2; do
            is "$(python3 "$T/fill.py" "$mnt/full" "$threads")" ENOSPC \
                "$mount_graph, $threads threads, $round: full replicas are reported as such"
            truncate -s 0 "$mnt/full"
        done
    done
    t "$mount_graph: a write after the cut succeeds" wait_for 60 "the bricks to see the space" bash -c "echo text >'$mnt/after'"
    rm "$mnt/full"
    t "$mount_graph: the replicas are equal" wait_for 60 "equal replicas" writes_equally
    mount_end "$mnt"
done
volume_stop v
