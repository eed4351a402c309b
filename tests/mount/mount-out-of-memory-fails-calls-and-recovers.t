#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A limit (RLIMIT_AS) keeps kiln-mount from getting more memory while applications create, write and list files.
# Every call is answered, some with ENOMEM; no call hangs; the process does not crash, and its log says that memory
# is short. Data read without an error is right. When the limit is lifted everything works, each file has its
# acknowledged contents, and reads equal the reads of a mount that always had memory. KILN_HUNGRY_ROUNDS (1) is the
# number of times the memory is limited.
# Covers: xlators/mount/fuse/task.c, xlators/protocol/client/client.c, libglusterfs/mem

. "$(dirname "$0")/../lib/kiln.sh"
. "$kiln_lib/hunger.sh"

hunger_skip_unless_possible
mkdir "$T/dumps"

mount_graph=whole
mnt=$T/mnt log=$T/log/kiln-mount-mnt.log
volume_new v 2x3 # of two replicas one alone may answer, with what it has missed
volume_start v
mount_kiln v "$mnt" --statedump-dir "$T/dumps"
wait_for 240 "the volume" test -d "$mnt/."
pid=${mount_pid[$mnt]}

cat >"$T/hungry.py" <<'EOS'
"""hungry.py work FOLDER WHO RECORD: makes, writes, reads and lists files, and says how many calls were answered with what.
hungry.py check FOLDER RECORD...: reads each file of the records. hungry.py show FOLDER: what each file of a folder is, in a line.

A file's bytes follow from its name. A record has a line for each file: its name, and how many bytes its writer was told are written."""
import collections
import errno
import hashlib
import os
import sys

SIZE, MANY, OLD = 131072, 200, 40
answers = collections.Counter()
wrong = []


def bytes_of(name):
    return hashlib.sha256(name.encode()).digest() * (SIZE // 32)


def attempt(function, *args):
    try:
        result = function(*args)
        answers["done"] += 1
        return result
    except OSError as error:
        answers[errno.errorcode[error.errno]] += 1
        return None


def read_all(fd):
    """To the end of the file, or None. What the kernel has before a page that fails it hands out as a short read."""
    data = b""
    while True:
        piece = attempt(os.pread, fd, SIZE + 1, len(data))
        if not piece:
            return piece if piece is None else data
        data += piece


def look(folder, name, told):
    """What a reader gets of a file without an error."""
    fd = attempt(os.open, "%s/%s" % (folder, name), os.O_RDONLY)
    if fd is None:
        return
    got = read_all(fd)
    if got is not None and (len(got) < told or got != bytes_of(name)[:len(got)]):
        wrong.append("%s: %d bytes of %d, %s" % (name[-30:], len(got), told, "right" if got == bytes_of(name)[:len(got)] else "others"))
    attempt(os.close, fd)


def make(folder, name):
    """How many bytes are there for sure, and the descriptor."""
    fd = attempt(os.open, "%s/%s" % (folder, name), os.O_RDWR | os.O_CREAT, 0o644)
    if fd is None:
        return 0, None
    told = attempt(os.pwrite, fd, bytes_of(name), 0) or 0
    attempt(os.setxattr, fd, "user.large", b"x" * 8000)
    if told and attempt(os.fsync, fd) is None and attempt(os.fsync, fd) is None:
        told = 0
    return told, fd


def work(folder, who, record):
    told, fds = {}, []
    for i in range(MANY):
        name = "%s-%s-%d" % ("x" * 150, who, i)
        told[name], fd = make(folder, name)
        if fd is not None:
            fds.append(fd)
        look(folder, "old-%d" % (i % OLD), SIZE)
        look(folder, "%s-%s-%d" % ("x" * 150, who, i // 2), told["%s-%s-%d" % ("x" * 150, who, i // 2)])
        if i % 50 == 0:
            attempt(os.listdir, folder)
    for fd in fds:
        attempt(os.close, fd)
    with open(record, "w") as file:
        for name, size in told.items():
            print(name, size, file=file)


def old(folder, record):
    with open(record, "w") as file:
        for i in range(OLD):
            with open("%s/old-%d" % (folder, i), "wb") as data:
                data.write(bytes_of("old-%d" % i))
            print("old-%d" % i, SIZE, file=file)


def check(folder, records):
    for record in records:
        for line in open(record):
            name, size = line.split()
            if int(size):
                look(folder, name, int(size))
    if set(answers) - {"done"}:
        wrong.append("a call failed")


def show(folder):
    for name in sorted(os.listdir(folder)):
        path = "%s/%s" % (folder, name)
        with open(path, "rb") as file:
            data = file.read()
        print(name[-30:], os.stat(path).st_size, len(data), hashlib.sha256(data).hexdigest()[:16])


if sys.argv[1] == "show":
    show(sys.argv[2])
    sys.exit(0)
if sys.argv[1] == "check":
    check(sys.argv[2], sys.argv[3:])
else:
    {"work": work, "old": old}[sys.argv[1]](*sys.argv[2:])
print(*("%s=%d" % each for each in sorted(answers.items())), flush=True)
for text in wrong[:10]:
    print("WRONG", text)
sys.exit(1 if wrong else 0)
EOS

work() {
    timeout 120 python3 "$T/hungry.py" work "$mnt" "$round-$1" "$T/record.$round-$1"
}

works() {
    seq 1000 >"$mnt/after-$round" && cmp <(seq 1000) "$mnt/after-$round"
}

has_all_children() {
    [[ $(grep -c '^child_up\[.*=1$' "$(dump_take "$pid" "$T/dumps")") -eq 6 ]]
}

reads_alike() {
    python3 "$T/hungry.py" show "$mnt" >"$T/shown" && python3 "$T/hungry.py" show "$T/other" >"$T/shown.other" && diff "$T/shown" "$T/shown.other"
}

python3 "$T/hungry.py" old "$mnt" "$T/record.old" >"$T/old.out"
for ((round = 1; round <= ${KILN_HUNGRY_ROUNDS:-1}; round++)); do
    hunger_limit "$pid" $(($(hunger_has "$pid") + (round - 1) % 4 * 1024))
    t_here "without memory each call is answered, and reads return right data" hunger_crowd 6 "$round" work
    diag "$(cat "$T/told.$round-"*)"
    t "the process is alive" kill -0 "$pid"
    hunger_ends "$pid"
    t "all operations succeed after the limit was lifted" wait_for 60 "it to work" works
    wait_for 240 "all bricks" has_all_children
    t "each file has all acknowledged writes" python3 "$T/hungry.py" check "$mnt" "$T"/record.*
done
t "some calls failed with ENOMEM" grep -q ENOMEM "$T"/told.*
t "the log says that memory is short" grep -qE "no memory|out of memory" "$log"
mount_kiln v "$T/other"
wait_for 240 "the other mount" test -d "$T/other/."
t "every file reads the same through another mount" reads_alike
t_here "the other mount is unmounted" mount_end "$T/other"
t_here "the mount is unmounted" mount_end "$mnt"
