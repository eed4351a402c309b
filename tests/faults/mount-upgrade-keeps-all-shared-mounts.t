#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln upgrade mounts replaces the program of the process of many shared mounts, while a program works in all of them with a
# locked open file and a removed open file in each. No call fails, another process cannot take the locks, the process takes further
# mounts after the upgrade, and after a kill the next process takes all mounts back.
# KILN_MOUNTS (12) and KILN_UPGRADES (3) are the numbers of mounts and upgrades.
# Covers: mount/upgrade.c, mount/shared.c, mount/mount.c, xlators/mount/fuse/saved.c, cli/upgrade-mounts.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/front.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"
[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
mounts=${KILN_MOUNTS:-12}

process() {
    pgrep -f "^$T/bin/mount.kiln " | head -n 1
}
mount_volume() { # NUMBER FOLDER
    mkdir -p "$T/m/$2"
    "$T/bin/mount.kiln" "localhost:/v$1" "$T/m/$2"
}

mkdir -p "$T/b" "$T/m" "$T/bin"
cp "$KILN_MOUNT" "$T/bin/kiln-mount"
ln -s kiln-mount "$T/bin/mount.kiln"
t_here "kilnd starts" front_start
for ((i = 1; i <= mounts; i++)); do
    kiln create "v$i" "$T/b/$i" >>"$T/log/kiln.out"
    kiln start "v$i" >>"$T/log/kiln.out"
    mount_volume "$i" "$i"
done
cat >"$T/work.py" <<'EOF'
import fcntl, os, sys, time

top, count, stop = sys.argv[1], int(sys.argv[2]), sys.argv[3]
files, removed, worst = [], [], 0.0
for i in range(count):
    file = os.open("%s/%d/locked" % (top, i + 1), os.O_CREAT | os.O_RDWR)
    fcntl.lockf(file, fcntl.LOCK_EX)
    files.append(file)
    gone = os.open("%s/%d/gone" % (top, i + 1), os.O_CREAT | os.O_RDWR)
    os.unlink("%s/%d/gone" % (top, i + 1))
    removed.append(gone)
number = 0
while not os.path.exists(stop):
    i, text = number % count, b"%010d" % number
    begun = time.monotonic()
    os.pwrite(files[i], text, 0)
    os.pwrite(removed[i], text, 0)
    assert os.pread(files[i], 10, 0) == text and os.pread(removed[i], 10, 0) == text
    worst = max(worst, time.monotonic() - begun)
    number += 1
    if number == count:
        print("ready", flush=True)
print("the longest round took %d ms" % (1000 * worst), flush=True)
EOF
python3 "$T/work.py" "$T/m" "$mounts" "$T/stop" >"$T/log/work.out" 2>&1 &
work=$!
wait_for 240 "the work" grep -q ready "$T/log/work.out"
pid=$(process)
for ((i = 1; i <= ${KILN_UPGRADES:-3}; i++)); do
    t "upgrade $i" kiln upgrade mounts "$pid"
done
is "$(process)" "$pid" "the process is the same"
taken=0
for ((i = 1; i <= mounts; i++)); do
    python3 -c 'import fcntl, sys; fcntl.lockf(open(sys.argv[1], "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB)' "$T/m/$i/locked" \
        2>/dev/null && taken=$((taken + 1))
done
is "$taken" 0 "no lock can be taken by another process"
t_here "a further mount is made" mount_volume 1 further
is "$(pgrep -fc "^$T/bin/mount.kiln ")" 1 "the same process makes the further mount"
touch "$T/stop"
t_here "the work has seen no error" wait "$work"
diag "$(tail -n 1 "$T/log/work.out")"

kill -KILL "$pid"
wait_for 60 "the process to end" process_gone "$pid"
t_here "one more mount is made after a kill" mount_volume 2 after
all_back() {
    [[ $(cat "$T"/m/*/locked 2>/dev/null | wc -c) == $(((mounts + 2) * 10)) ]]
}
t "the next process takes all mounts back" wait_for 120 "the mounts" all_back
kill -TERM "$(process)"
no_mount() {
    [[ -z $(findmnt -n -t fuse.glusterfs) ]]
}
t "SIGTERM unmounts all" wait_for 120 "the mounts to go" no_mount
