#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""hungry_replicas.py work FOLDER WHO SECONDS RECORD: makes, writes, overwrites, renames and removes files for so long, keeps a record.
hungry_replicas.py check FOLDER RECORD...: each file of the records has the acknowledged writes of its writer.

Each file has blocks of 4 KiB; a block names its file, its place and the number of the write. The record has a line for each block
that a later fsync acknowledged: the block in the file must be of that write or of a later write."""
import collections
import errno
import os
import random
import sys
import time

BLOCK, BLOCKS, FILES = 4096, 8, 6
answers = collections.Counter()
slowest = (0.0, "")


def attempt(function, *args):
    global slowest
    begin = time.monotonic()
    try:
        result = function(*args)
        answers["done"] += 1
        return result
    except OSError as error:
        answers[errno.errorcode[error.errno]] += 1
        return None
    finally:
        slowest = max(slowest, (time.monotonic() - begin, function.__name__))


def block_of(name, place, write):
    text = ("%s %d %d|" % (name, place, write)).encode()
    return (text * (BLOCK // len(text) + 1))[:BLOCK]


class File:
    def __init__(self, path, name):
        self.path, self.name = path, name
        self.write = 0
        self.open = {}  # place -> write that was answered and not synced
        self.sure = {}

    def change(self):
        fd = attempt(os.open, self.path, os.O_RDWR | os.O_CREAT, 0o644)
        if fd is None:
            return
        for _ in range(random.randrange(1, 6)):
            place = random.randrange(BLOCKS)
            self.write += 1
            data = block_of(self.name, place, self.write)
            if attempt(os.pwrite, fd, data, place * BLOCK) == BLOCK:
                self.open[place] = self.write
        if random.random() < 0.3:
            attempt(os.utime, fd)
        if random.random() < 0.3:
            attempt(os.setxattr, fd, "user.x", b"%d" % self.write)
        if attempt(os.fsync, fd) is not None or attempt(os.fsync, fd) is not None:
            for place, write in self.open.items():
                self.sure[place] = write
        self.open = {}
        attempt(os.close, fd)


def work(folder, who, seconds, record):
    random.seed(int(who))
    files = [File("%s/f-%s-%d" % (folder, who, i), "f-%s-%d" % (who, i)) for i in range(FILES)]
    end, turn = time.monotonic() + float(seconds), 0
    while time.monotonic() < end:
        turn += 1
        random.choice(files).change()
        passing = "%s/t-%s-%d" % (folder, who, turn)
        fd = attempt(os.open, passing, os.O_RDWR | os.O_CREAT, 0o644)
        if fd is not None:
            attempt(os.pwrite, fd, b"x" * 100000, 0)
            attempt(os.close, fd)
        if turn % 3 == 0:
            attempt(os.mkdir, passing + "-d")
            attempt(os.rename, passing, passing + "-d/moved")
        if turn % 3 == 1:
            attempt(os.unlink, passing)
        if turn % 20 == 0:
            attempt(os.listdir, folder)
    with open(record, "w") as out:
        for file in files:
            for place, write in file.sure.items():
                print(file.name, place, write, file=out)
    print(*("%s=%d" % each for each in sorted(answers.items())), "slowest=%.1f,%s" % slowest)


def write_of(name, place, data):
    """Which write of the block it is; None: of none."""
    words = data.split(b"|")[0].split()
    if len(words) != 3 or words[0] != name.encode() or int(words[1]) != place:
        return None
    write = int(words[2])
    return write if data == block_of(name, place, write) else None


def check(folder, records):
    wrong = 0
    for record in records:
        for line in open(record):
            name, place, write = line.split()
            try:
                with open("%s/%s" % (folder, name), "rb") as file:
                    file.seek(int(place) * BLOCK)
                    found = write_of(name, int(place), file.read(BLOCK))
            except OSError as error:
                found = error
            if not isinstance(found, int) or found < int(write):
                print("%s: block %s is of write %s, not %s" % (name, place, found, write))
                wrong += 1
    sys.exit(wrong != 0)


if sys.argv[1] == "check":
    check(sys.argv[2], sys.argv[3:])
else:
    work(*sys.argv[2:])
