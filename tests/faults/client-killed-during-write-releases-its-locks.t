#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A client dies while it writes. Other clients can use the volume at once: the internal locks of the dead client are
# gone, its file can be read, written and deleted, and after a heal the replicas are equal.
# Covers: xlators/protocol/server/session.c, xlators/features/locks/locks.c

. "$(dirname "$0")/../lib/kiln.sh"

volume_new v 1x2
volume_start v
mount_volume v "$T/m2"
shd_start v

writer() {
    python3 -c '
import os, sys
fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY, 0o644)
block = bytes(range(256)) * 512
while True:
    os.write(fd, block)
' "$1"
}
big_enough() {
    [[ $(stat -c %s "$1") -gt 4000000 ]]
}
for round in 1 2 3; do
    mount_volume v "$T/m1"
    writer "$T/m1/file$round" 2>/dev/null &
    writer_pid=$!
    wait_for 120 "the writer to be at work" big_enough "$T/v/b0/file$round"
    mount_kill "$T/m1"
    wait "$writer_pid" || true
    t "round $round: another client reads the file" timeout 120 cp "$T/m2/file$round" /dev/null
    t "round $round: another client writes to the file" timeout 120 bash -c 'echo more >>"$0"' "$T/m2/file$round"
    t "round $round: the self-heal daemon makes the replicas equal" wait_for 240 "equal replicas" \
        cmp "$T/v/b0/file$round" "$T/v/b1/file$round"
    t "round $round: another client deletes the file" timeout 120 rm "$T/m2/file$round"
done
t "the folder is empty" test -z "$(ls -A "$T/m2")"
