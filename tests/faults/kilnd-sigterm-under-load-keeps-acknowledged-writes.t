#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# SIGTERM arrives while four clients write. kilnd soon ends with status 0, and every write that it had acknowledged is
# on the bricks.
# Covers: glusterfsd/kilnd.c, bricks/bricks.c

. "$(dirname "$0")/../lib/kiln.sh"

# One client each: files of one block, written synchronously; a file's number is printed once close(2) has succeeded.
writer() {
    exec python3 -c '
import os, sys
folder, who = sys.argv[1], sys.argv[2]
number = 0
try:
    while True:
        fd = os.open("%s/%s-%d" % (folder, who, number), os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_SYNC, 0o644)
        if os.write(fd, ("%s %d\n" % (who, number)).encode() * 64) < 64:
            break
        os.close(fd)
        os.write(1, b"%d\n" % number)
        number += 1
except OSError as error:
    print(error, file=sys.stderr)
' "$@"
}

enough_written() {
    local i
    for i in 1 2 3 4; do
        [[ $(wc -l <"$T/done-$i") -ge 100 ]] || return 1
    done
}

# Every number that was printed is a whole file on one of the bricks.
acknowledged_is_there() {
    python3 - "$T" ${volume_bricks[vol]} <<'EOF'
import os, sys
top, bricks = sys.argv[1], sys.argv[2:]
seen = lost = 0
for who in "1234":
    for line in open("%s/done-%s" % (top, who)):
        number = int(line)
        want = ("%s %d\n" % (who, number)).encode() * 64
        seen += 1
        copies = [open(p, "rb").read() for p in ("%s/%s-%d" % (b, who, number) for b in bricks) if os.path.exists(p)]
        if want not in copies:
            lost += 1
            print("client %s: file %d: %d copies, none whole" % (who, number, len(copies)))
print("%d acknowledged, %d lost" % (seen, lost))
sys.exit(lost > 0 or seen < 400)
EOF
}

volume_new vol 2x1
volume_start vol
for i in 1 2 3 4; do
    mount_volume vol "$T/m$i" plain
    writer "$T/m$i" "$i" >"$T/done-$i" 2>"$T/log/writer-$i.err" </dev/null &
    writers+=($!)
done
t "four clients write" wait_for 240 "a hundred files of each" enough_written
begin=${EPOCHREALTIME/./}
t_here "kilnd ends with status 0 while four clients write" volume_stop vol
took=$(((${EPOCHREALTIME/./} - begin) / 1000))
t "kilnd ends within a minute ($took ms)" [ "$took" -lt 60000 ]
t "every acknowledged write is on the bricks" acknowledged_is_there
for i in 1 2 3 4; do
    kill "${writers[i - 1]}" 2>/dev/null || true
    wait "${writers[i - 1]}" 2>/dev/null || true
    mount_kill "$T/m$i"
done
t "every handle of the first brick is right" brick_handles_hold "$T/vol/b0"
t "every handle of the second brick is right" brick_handles_hold "$T/vol/b1"
volume_start vol
mount_volume vol "$T/again" plain
t "a restarted daemon serves every acknowledged file" diff <(sed 's/^/1-/' "$T/done-1" | sort) \
    <(cd "$T/again" && ls | grep '^1-' | sort | grep -xF -f <(sed 's/^/1-/' "$T/done-1"))
