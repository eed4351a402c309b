#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Programs extend, append to, cut and remove files in blocks while the bricks are killed and started again. No call fails, because calls
# wait for the bricks; each acknowledged byte is in the file, the sizes are right, and the blocks of removed files are gone.
# Covers: xlators/features/shard/hold.c, xlators/features/hard

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
volfile_shard=4MB
mount_graph=whole
volume_new v 2x2
volume_start v
a=$T/a
mount_kiln v "$a" --hard=120

cat >"$T/work.py" <<'EOS'
import os, sys, time
top, until = sys.argv[1], sys.argv[2]
log = os.open(top + "/log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
lines = 0
rounds = 0
while not os.path.exists(until) or rounds < 3:
    rounds += 1
    fd = os.open(top + "/f", os.O_RDWR | os.O_CREAT)
    for i in range(60):
        os.pwrite(fd, bytes([i + 1]) * 150000, i * 150000)
        if i % 20 == 19:
            os.fsync(fd)
    assert os.fstat(fd).st_size == 9000000, os.fstat(fd).st_size
    os.ftruncate(fd, 4500000)
    assert os.fstat(fd).st_size == 4500000, os.fstat(fd).st_size
    data = b"".join(os.pread(fd, 900000, at) for at in range(0, 4500000, 900000))
    assert data == b"".join(bytes([i + 1]) * 150000 for i in range(30))
    os.close(fd)
    os.unlink(top + "/f")
    for i in range(20):
        os.write(log, (b"%9d" % lines).ljust(9999, b".") + b"\n")
        lines += 1
    os.fsync(log)
print(lines)
EOS
python3 "$T/work.py" "$a" "$T/stop" >"$T/lines" 2>"$T/failed" &
worker=$!
has_lines_or_ended() {
    process_gone "$worker" || [[ $(stat -c %s "$a/log" 2>/dev/null) -ge $1 ]]
}
for i in 1 2 3; do
    wait_for 120 "the next round" has_lines_or_ended $((i * 200000))
    daemon_kill v-kiln
    daemon_start v-kiln
done
touch "$T/stop"
status=0
wait "$worker" || status=$?
is "$status $(<"$T/failed")" "0 " "no call fails while the bricks are away"
is "$(stat -c %s "$a/log")" "$(($(<"$T/lines") * 10000))" "the size is that of all appended lines"
is "$(awk 'length($0) == 9999 {print $1 + 0}' "$a/log" | sort -n | uniq | wc -l)" "$(<"$T/lines")" "each line is there"
rm "$a/log"
blocks_are_gone() {
    [[ -z $(find ${volume_bricks[v]} -path '*/.shard/*' ! -name .remove_me) ]]
}
wait_for 120 "the blocks to be removed" blocks_are_gone
t "no block of a removed file is left" blocks_are_gone
