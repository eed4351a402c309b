#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Two mounts that extend one file at the same time agree on its size: writes at the same places count once, and appends of both are
# all in the file. Each mount sees the size that the other has set; so does a cached mount when the bricks report changes.
# Covers: xlators/features/shard/hold.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
volfile_shard=4MB
mount_graph=whole
volume_new v 2x2
volume_start v
a=$T/a b=$T/b
mount_kiln v "$a" --entry-timeout=0 --attribute-timeout=0
mount_kiln v "$b" --entry-timeout=0 --attribute-timeout=0

for i in 1 2 3; do
    : >"$a/same$i"
    # Both write the same 9 MB, piece by piece, in the same order.
    writer='import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY)
for i in range(90):
    os.pwrite(fd, bytes([i]) * 100000, i * 100000)
os.fsync(fd)'
    python3 -c "$writer" "$a/same$i" &
    python3 -c "$writer" "$b/same$i"
    wait $!
    is "$(stat -c %s "$a/same$i") $(stat -c %s "$b/same$i")" "9000000 9000000" "round $i: both writers of the same bytes count once"
done
t "both mounts read the same" cmp "$a/same1" "$b/same1"

# Lines of a fixed length, whose writer and number are in them; O_APPEND writes of one line each.
appender='import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
for i in range(150):
    os.write(fd, ("%s %5d " % (sys.argv[2], i)).encode().ljust(39999, b".") + b"\n")'
touch "$a/log"
python3 -c "$appender" "$a/log" first &
python3 -c "$appender" "$b/log" second
wait $!
is "$(stat -c %s "$a/log")" 12000000 "appends of two mounts do not overwrite each other"
is "$(awk 'length($0) == 39999 {print $1, $2}' "$b/log" | sort -u | wc -l)" 300 "each appended line is whole, and once in the file"

# A mount that has the file open sees the other's truncate, and extends from there.
exec 7<>"$a/log"
truncate -s 5000000 "$b/log"
is "$(stat -L -c %s /dev/fd/7)" 5000000 "the other mount sees the truncate"
echo end >>"$a/log"
is "$(stat -c %s "$b/log")" 5000004 "an append begins at the new end"
python3 -c 'import os; os.pwrite(7, b"x", 9999999); os.fsync(7)'
is "$(stat -c %s "$b/log")" 10000000 "a write behind the new end makes the file longer again"
is "$(tail -c +5000005 "$b/log" | head -c 4999995 | tr -d '\0' | wc -c)" 0 "what lies between reads as zeros"
exec 7>&-
