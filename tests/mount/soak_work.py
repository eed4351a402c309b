#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""A writer that records its acknowledged writes, and a check of these writes.

    soak_work.py write DIR RECORD [PAUSE [stubborn]]   makes DIR and writes in it until SIGTERM (status 0) or until a call fails (status 1, the call
                                            is on standard output). A line of RECORD before each change, and one when it is acknowledged.
                                            PAUSE: seconds after each block. stubborn: goes on with another file after
                                            each call that fails
    soak_work.py verify DIR RECORD...       DIR has the acknowledged writes of each writer, and no other object

A file is written in blocks and fsynced now and then: only data that an fsync has confirmed has to be present.
It is renamed when it is whole, gets an xattr, is read back, and removed some files later; every fifth has a
folder beside it."""
import contextlib
import os
import random
import signal
import sys
import time

BLOCKS, KEEP = 12, 6


def block(top, n, i):
    dice = random.Random("%s %d %d" % (os.path.basename(top), n, i))
    return dice.randbytes(dice.choice((1, 100, 4096, 20_000, 70_000)))


def content(top, n):
    return b"".join(block(top, n, i) for i in range(BLOCKS))


def get(path):
    with open(path, "rb") as file:
        return file.read()


class Writer:
    def __init__(self, top, record, pause):
        self.top, self.pause, self.stopped = top, pause, False
        self.record = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.dice = random.Random(record)
        self.last = "mkdir"
        signal.signal(signal.SIGTERM, self.stop)

    def stop(self, *_):
        self.stopped = True

    def note(self, what, *numbers):
        os.write(self.record, ("%s %s\n" % (what, " ".join(map(str, numbers)))).encode())

    def acknowledged(self, what, n, function, *args):
        """A capital letter before, a small one after."""
        self.last = "%s%r" % (function.__name__, args[:2])
        self.note(what.upper(), n)
        result = function(*args)
        self.note(what, n)
        return result

    def path(self, kind, n):
        return "%s/%s-%d" % (self.top, kind, n)

    def write(self, n):
        fd = self.acknowledged("c", n, os.open, self.path("open", n), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        try:
            self.fill(fd, n)
        except OSError:
            with contextlib.suppress(OSError):
                os.close(fd)
            raise
        self.last = "close %s" % self.path("open", n)
        os.close(fd)

    def fill(self, fd, n):
        for i in range(BLOCKS):
            data = memoryview(block(self.top, n, i))
            self.last = "write %s" % self.path("open", n)
            while data:
                data = data[os.write(fd, data):]
            if i == BLOCKS - 1 or self.dice.random() < 0.3:
                self.last = "fsync %s" % self.path("open", n)
                os.fsync(fd)
                self.note("f", n, i + 1)
            time.sleep(self.pause)

    def finish(self, n):
        self.acknowledged("r", n, os.rename, self.path("open", n), self.path("done", n))
        self.acknowledged("x", n, os.setxattr, self.path("done", n), "user.number", b"%d" % n)
        self.last = "read %s" % self.path("done", n)
        if get(self.path("done", n)) != content(self.top, n):
            raise OSError("%s: read back, it is another" % self.path("done", n))
        if n % 5 == 0:
            self.acknowledged("m", n, os.mkdir, self.path("folder", n))
        if n % 5 == 0 and n > 5:
            self.acknowledged("d", n - 5, os.rmdir, self.path("folder", n - 5))
        if n > KEEP:
            self.acknowledged("u", n - KEEP, os.unlink, self.path("done", n - KEEP))

    def run(self, is_stubborn):
        os.mkdir(self.top)
        self.note("begun", 0)
        n = failed = 0
        while not self.stopped and (is_stubborn or not failed):
            n += 1
            try:
                self.write(n)
                self.finish(n)
            except OSError as error:
                failed = 1
                print("%s %s: %s" % (time.strftime("%T"), self.last, error), flush=True)
                time.sleep(0.1)
        return failed


def write(top, record, pause="0.02", how=""):
    return Writer(top, record, float(pause)).run(how == "stubborn")


class Record:
    def __init__(self, path):
        self.synced, self.said, self.begun = {}, {}, False
        with open(path, encoding="ascii") as file:
            for line in file:
                what, n, *rest = line.split()
                if what == "begun":
                    self.begun = True
                elif what == "f":
                    self.synced[int(n)] = int(rest[0])
                else:
                    self.said.setdefault(int(n), set()).add(what)


def look(top, n, said, synced, there):
    """Returns the fault of file n, and takes its names out of `there`."""
    names = {kind for kind in ("open", "done", "folder") if "%s-%d" % (kind, n) in there}
    there.difference_update("%s-%d" % (kind, n) for kind in names)
    wrong = []

    def must(holds, what):
        if not holds:
            wrong.append("%s-%d: %s (there: %s; said: %s)" % (top, n, what, sorted(names), "".join(sorted(said))))

    must(not ({"m"} <= said and "D" not in said) or "folder" in names, "the folder is missing")
    must(not ("d" in said or "M" not in said) or "folder" not in names, "a folder that is not to be")
    names.discard("folder")
    # A rename that failed may have been done on some bricks, and healed either way.
    if "u" in said:
        must(names <= (set() if "r" in said else {"open"}), "it was removed")
        return wrong
    if "U" not in said:
        must("c" not in said or names, "it is missing")
        must("r" not in said or names == {"done"}, "it was renamed")
        must("R" in said or "done" not in names, "nobody has renamed it")
    for kind in names:
        path = "%s/%s-%d" % (top, kind, n)
        want, got = content(top, n), get(path)
        sure = want if "R" in said else b"".join(block(top, n, i) for i in range(synced))
        must(got[:len(sure)] == sure, "%d bytes were acknowledged, %d are there, %s" %
             (len(sure), len(got), "the same so far" if sure.startswith(got) else "others"))
        must(len(got) <= len(want), "it is too long")
        if "x" in said:
            must(os.getxattr(path, "user.number") == b"%d" % n, "another xattr")
    return wrong


def verify(top, records):
    wrong, count = [], 0
    for path in records:
        record = Record(path)
        mine = os.path.join(top, os.path.basename(path))
        if not os.path.isdir(mine):
            wrong += ["%s is missing" % mine] * record.begun
            continue
        there = set(os.listdir(mine))
        for n, said in sorted(record.said.items()):
            wrong += look(mine, n, said, record.synced.get(n, 0), there)
            count += 1
        wrong += ["%s/%s: nobody has made it" % (mine, name) for name in there]
    print("\n".join(wrong[:20] + ["%d files were looked for, %d are not as they must be" % (count, len(wrong))]))
    return 1 if wrong else 0


if sys.argv[1] == "write":
    sys.exit(write(*sys.argv[2:]))
sys.exit(verify(sys.argv[2], sys.argv[3:]))
