# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""One kind of work on a mount until a file exists: upgrade_work.py KIND MOUNT STOP. Prints "ready" when the work has begun, and
"longest N ms", the longest time of one call. Any error, and any result that is not the expected one, is status 1.

    sync       records to a file opened with O_SYNC; afterwards the file has exactly these records
    buffered   records with an fsync now and then
    names      files are made, renamed and removed; afterwards the folder has exactly the ones that are left
    lock       takes an fcntl lock on a file, holds it for 20 ms, and writes its name inside before releasing
    waiter     the same as another process: the two exclude each other
    flock      the same as lock with flock(2)
    flockwaiter    the same as another process
    removed    reads and writes a file that was removed after it had been opened
    tail       one descriptor appends lines, another follows the file and reads each line once
    listing    lists a folder of 300 files again and again, each time in several steps
"""
import fcntl
import os
import random
import sys
import time

kind, mount, stop = sys.argv[1:]
longest = 0.0


def timed(call, *args):
    global longest
    begun = time.monotonic()
    result = call(*args)
    longest = max(longest, time.monotonic() - begun)
    return result


def rounds():
    number = 0
    while not os.path.exists(stop):
        yield number
        if number == 0:
            print("ready", flush=True)
        number += 1


def check(is_right, words):
    if not is_right:
        raise SystemExit("%s: %s" % (kind, words))


def write_records(flags, syncs):
    path = os.path.join(mount, kind)
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | flags, 0o644)
    expected = []
    for number in rounds():
        record = b"record %d\n" % number
        check(timed(os.write, fd, record) == len(record), "a short write")
        expected.append(record)
        if syncs and number % 50 == 0:
            timed(os.fsync, fd)
    timed(os.close, fd)
    with open(path, "rb") as file:
        check(file.read() == b"".join(expected), "the records are not the written ones")


def names():
    folder = os.path.join(mount, kind)
    os.mkdir(folder)
    left, draw = set(), random.Random(1)
    for number in rounds():
        name = os.path.join(folder, "new%d" % number)
        timed(os.close, timed(os.open, name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        renamed = os.path.join(folder, "old%d" % number)
        timed(os.rename, name, renamed)
        left.add(renamed)
        if len(left) > 20:
            gone = draw.choice(sorted(left))
            timed(os.unlink, gone)
            left.remove(gone)
    check({os.path.join(folder, name) for name in os.listdir(folder)} == left, "other names than expected")


def lock():
    fd = os.open(os.path.join(mount, "locked"), os.O_CREAT | os.O_RDWR, 0o644)
    mine = kind.encode().ljust(8)
    for _ in rounds():
        timed(fcntl.lockf, fd, fcntl.LOCK_EX)
        os.pwrite(fd, mine, 0)
        time.sleep(0.02)
        check(os.pread(fd, 8, 0) == mine, "another process wrote while this one had the lock")
        timed(fcntl.lockf, fd, fcntl.LOCK_UN)


def flock():
    fd = os.open(os.path.join(mount, "flocked"), os.O_CREAT | os.O_RDWR, 0o644)
    mine = kind.encode().ljust(16)
    for _ in rounds():
        timed(fcntl.flock, fd, fcntl.LOCK_EX)
        os.pwrite(fd, mine, 0)
        time.sleep(0.02)
        check(os.pread(fd, 16, 0) == mine, "another process wrote while this one had the lock")
        timed(fcntl.flock, fd, fcntl.LOCK_UN)


def tail():
    path = os.path.join(mount, kind)
    out = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    follower = os.open(path, os.O_RDONLY)
    for number in rounds():
        line = b"line %d\n" % number
        timed(os.write, out, line)
        seen = b""
        while len(seen) < len(line):
            seen += timed(os.read, follower, 100)
        check(seen == line, "the follower reads %r, not %r" % (seen, line))


def removed():
    path = os.path.join(mount, kind)
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
    os.unlink(path)
    for number in rounds():
        record = b"%020d" % number
        timed(os.pwrite, fd, record, 0)
        check(timed(os.pread, fd, 20, 0) == record, "another record than written")


def listing():
    folder = os.path.join(mount, kind)
    os.mkdir(folder)
    expected = set()
    for number in range(300):
        os.close(os.open(os.path.join(folder, "file%d" % number), os.O_CREAT | os.O_WRONLY))
        expected.add("file%d" % number)
    for _ in rounds():
        seen = set()
        with os.scandir(folder) as entries:
            for entry in entries:
                seen.add(entry.name)
                if len(seen) % 100 == 0:
                    time.sleep(0.01)
        check(seen == expected, "%d names of %d" % (len(seen), len(expected)))


{"sync": lambda: write_records(os.O_SYNC, False), "buffered": lambda: write_records(0, True), "names": names, "lock": lock,
 "waiter": lock, "flock": flock, "flockwaiter": flock, "removed": removed, "tail": tail, "listing": listing}[kind]()
print("longest %d ms" % (longest * 1000))
