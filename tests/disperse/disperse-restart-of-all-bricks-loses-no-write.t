#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kilnd, which serves all bricks of a dispersed volume, is killed and started again while a program extends files through kiln-mount,
# with appends and with writes at offsets, and without a sync. No call fails, and the files have all bytes: kiln-mount records the sizes
# that the bricks did not have yet. The same with files in blocks.
# Covers: xlators/cluster/disperse/debt.c, xlators/cluster/disperse/hold.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

mkdir -p "$T/b" "$T/mnt"

# Extends three files by 100 bytes every 50 ms, 120 times; `quiet` is extended only in the first seconds, and left open.
extend() {
    python3 - "$T/mnt" "$T/started" <<'EOS'
import os, sys, time
flags = {"append": os.O_APPEND, "pwrite": 0, "direct": os.O_APPEND | os.O_DIRECT, "quiet": 0}
fds = {name: os.open(sys.argv[1] + "/" + name, os.O_CREAT | os.O_RDWR | more) for name, more in flags.items()}
open(sys.argv[2], "w").close()
for i in range(120):
    for name, fd in fds.items():
        if name != "quiet" or i < 50:
            assert os.pwrite(fd, b"%99d\n" % i, i * 100) == 100 if not flags[name] else os.write(fd, b"%99d\n" % i) == 100
    time.sleep(0.05)
for name, fd in fds.items():
    if name != "quiet":
        os.fsync(fd)
    os.close(fd)
for name in fds:
    wanted = b"".join(b"%99d\n" % i for i in range(50 if name == "quiet" else 120))
    with open(sys.argv[1] + "/" + name, "rb") as f:
        got = f.read()
    print("ok" if got == wanted else "not ok", "- %s has %d of %d bytes" % (name, len(got), len(wanted)))
EOS
}

program_ends() {
    wait "$program" || { cat "$T/results"; return 1; }
}

front_start
for vol in plain blocks; do
    kiln volume create "$vol" disperse 3 redundancy 1 "$T/b/$vol"{1,2,3} >/dev/null
    [[ $vol == plain ]] || kiln volume set "$vol" features.shard on >/dev/null
    kiln volume start "$vol" >/dev/null
    "$KILN_MOUNT" -l "$T/log/kiln-mount-$vol.log" "localhost:/$vol" "$T/mnt"
    extend >"$T/results" 2>&1 &
    program=$!
    wait_for 60 "the program" test -e "$T/started"
    rm "$T/started"
    sleep 2.6
    front_kill
    sleep 1
    front_start
    t_here "$vol: no call of the program fails" program_ends
    include "$vol: the files" cat "$T/results"
    umount "$T/mnt"
done
