#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# With kiln-mount --kernel-writeback-cache=yes, many small writes reach the bricks as few, and the bricks have the
# data after fsync and close. Files have the same contents as without the cache, also files that are open only for
# writing or appending and files that their writer may not read.
# Covers: xlators/mount/fuse/fuse.c, xlators/mount/fuse/data.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/measure.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

volume_new v 2x2
volume_start v
kept=$T/kept
mount_kiln v "$kept" --kernel-writeback-cache=yes
mount_kiln v "$T/plain" --attribute-timeout=0 --entry-timeout=0

writes() {
    calls_take "${mount_pid[$1]}" "$T/sent"
    awk '$1 == "writev" { n += $2 } END { print n + 0 }' "$T/sent"
}

for mnt in "$kept" "$T/plain"; do
    before=$(writes "$mnt")
    python3 - "$mnt/small" <<'EOS'
import sys
with open(sys.argv[1], "wb", buffering=0) as f:
    for i in range(2000):
        f.write(b"%04d" % i * 25)
EOS
    echo $(($(writes "$mnt") - before)) >"$T/writes.$(basename "$mnt")"
done
is "$(sha256sum <"$kept/small")" "$(python3 -c 'import sys; sys.stdout.write("".join("%04d" % i * 25 for i in range(2000)))' | sha256sum)" \
    "small writes: the file is right"
diag "$(cat "$T/writes.kept") writes on both replicas with the cache, $(cat "$T/writes.plain") without"
t "the bricks get at most 10 writes with the cache" test "$(cat "$T/writes.kept")" -le 10

# Prints the contents on another mount after each step.
python3 - "$kept" "$T/plain" >"$T/seen" <<'EOS'
import os, sys
here, there = sys.argv[1:]
fd = os.open(f"{here}/late", os.O_CREAT | os.O_WRONLY)
os.write(fd, b"1" * 5000)
print(os.fstat(fd).st_size)
os.fsync(fd)
print(os.stat(f"{there}/late").st_size)
os.write(fd, b"2" * 5000)
os.close(fd)
print(os.stat(f"{there}/late").st_size)
EOS
is "$(tr '\n' ' ' <"$T/seen")" "5000 5000 10000 " "another mount sees the data after fsync and close"

# A write into the middle of a file that is open only for writing, after its pages were dropped.
head -c 20000 /dev/urandom >"$T/plain/middle"
cp "$T/plain/middle" "$T/want"
sleep 1.1
echo 3 >/proc/sys/vm/drop_caches
python3 - "$kept/middle" "$T/want" <<'EOS'
import os, sys
for name in sys.argv[1:]:
    for at in 10, 4090, 9999, 19998:
        fd = os.open(name, os.O_WRONLY)
        os.pwrite(fd, b"middle", at)
        os.close(fd)
EOS
t "a write in the middle keeps the surrounding data" cmp "$kept/middle" "$T/want"
t "a write in the middle keeps the surrounding data on the bricks" cmp "$T/plain/middle" "$T/want"

# Appends through one mount: by a shell, and by a process that also reads.
for ((i = 0; i < 50; i++)); do
    echo "line $i" >>"$kept/log"
done
python3 - "$kept/log" <<'EOS'
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_APPEND)
for i in range(50, 60):
    os.write(fd, b"line %d\n" % i)
    os.pread(fd, 10, 0)
os.close(fd)
EOS
is "$(cat "$T/plain/log")" "$(for ((i = 0; i < 60; i++)); do echo "line $i"; done)" "all appended lines are in the file in order"

# A user with the permission to write, but not to read.
mkdir -m 777 "$kept/his"
setpriv --reuid 1234 --regid 1234 --clear-groups sh -c "
    echo first line >'$kept/his/secret' && chmod 200 '$kept/his/secret' && echo more >>'$kept/his/secret' &&
    printf FIRST | dd of='$kept/his/secret' conv=notrunc 2>/dev/null"
is "$(cat "$T/plain/his/secret")" "FIRST line
more" "a file that its writer may not read"

# Against a file of the machine: writes, appends, truncations, mapped memory, times.
t "a thousand random steps have the same results as on a local file" python3 - "$kept/steps" "$T/steps" <<'EOS'
import mmap, os, random, sys
dice = random.Random(23)
names = sys.argv[1:]
for name in names:
    os.close(os.open(name, os.O_CREAT))
for step in range(1000):
    what, at, n, byte = dice.randrange(7), dice.randrange(200000), dice.randrange(1, 30000), bytes([dice.randrange(256)])
    found = []
    for name in names:
        size = os.path.getsize(name)
        if what < 3:
            fd = os.open(name, os.O_WRONLY)
            os.pwrite(fd, byte * n, at)
        elif what == 3:
            fd = os.open(name, (os.O_WRONLY if n % 2 else os.O_RDWR) | os.O_APPEND)
            os.write(fd, byte * (n // 10))
        elif what == 4:
            fd = os.open(name, os.O_WRONLY)
            os.ftruncate(fd, at)
        elif what == 5 and size:
            fd = os.open(name, os.O_RDWR)
            with mmap.mmap(fd, size) as m:
                m[at % size] = byte[0]
        else:
            fd = os.open(name, os.O_RDONLY)
            found.append(os.pread(fd, n, at))
        if n % 5 == 0:
            os.fsync(fd)
        os.close(fd)
    if found and len(set(found)) != 1:
        sys.exit(f"step {step}: read something else")
    if os.path.getsize(names[0]) != os.path.getsize(names[1]):
        sys.exit(f"step {step}: {os.path.getsize(names[0])} bytes for {os.path.getsize(names[1])}")
EOS
t "the bricks have the result of the thousand steps" cmp "$T/plain/steps" "$T/steps"
touch -d @1000000000 "$kept/steps"
is "$(stat -c %Y "$T/plain/steps")" 1000000000 "a modification time that was set stays"
chmod 4755 "$kept/steps"
setpriv --reuid 1234 --regid 1234 --clear-groups sh -c "echo x >>'$kept/his/bits'; chmod 4777 '$kept/his/bits'"
setpriv --reuid 1235 --regid 1235 --clear-groups sh -c "printf y >>'$kept/his/bits'"
is "$(stat -c %a "$T/plain/his/bits")" 777 "another user's write clears the set-id bits"

# Unmounted with a file that is written and not closed.
python3 -c '
import os, sys, time
fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
os.write(fd, b"dirty" * 1000)
print("written", flush=True)
time.sleep(60)' "$kept/dirty" >"$T/writer" &
writer=$!
wait_for 20 "the writer" grep -q written "$T/writer"
umount -l "$kept"
kill "$writer"
wait "$writer" || true
t_here "the volume is unmounted while a file is open" wait_for 20 "the end" bash -c "! kill -0 ${mount_pid[$kept]} 2>/dev/null"
is "$(wc -c <"$T/plain/dirty")" 5000 "the data of the open file is on the bricks"
for brick in ${volume_bricks[v]}; do
    (cd "$brick" && find . -path ./.glusterfs -prune -o -type f -size +0 -exec sha256sum {} + | sort) >"$T/tree.$(basename "$brick")"
done
t "the replicas of the first set are equal" cmp "$T/tree.b0" "$T/tree.b1"
t "the replicas of the second set are equal" cmp "$T/tree.b2" "$T/tree.b3"
t_here "the second mount is unmounted" mount_end "$T/plain"
volume_stop v
