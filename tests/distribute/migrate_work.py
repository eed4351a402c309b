#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""migrate_work.py MOUNT DIR [LARGE BYTES]: writes while files are moved between bricks. Each of LARGE large files of BYTES bytes has two
descriptors, is written through both at random places, and read back; the program keeps the expected contents. New files are made
all the while. As long as DIR/calm exists, only one large file is written a second: a copy that a write overtakes fails, and the
rebalance copies the file again. After DIR/stop exists, all files are compared, and DIR/manifest gets the checksum of each file, for a
comparison through another mount. Prints TAP lines; DIR/progress has the number of rounds."""
import errno
import hashlib
import os
import random
import sys
import threading
import time

MOUNT, DIR = sys.argv[1:3]
LARGE, LARGE_BYTES = (int(word) for word in sys.argv[3:5]) if len(sys.argv) > 3 else (10, 16 << 20)
SMALL = 150
STOP = threading.Event()
FAILED = []
CONTENTS = {}  # path below MOUNT: its bytes
LOCK = threading.Lock()


def fail(what):
    with LOCK:
        FAILED.append(what)
    STOP.set()


def small_content(name):
    return hashlib.sha256(name.encode()).digest() * 64


class Large:
    def __init__(self, name):
        self.name = name
        self.shadow = bytearray(random.randbytes(LARGE_BYTES))
        path = os.path.join(MOUNT, name)
        self.fds = [os.open(path, os.O_RDWR | os.O_CREAT, 0o644)]
        os.pwrite(self.fds[0], self.shadow, 0)
        self.fds.append(os.open(path, os.O_RDWR))
        self.rng = random.Random(name)

    def step(self):
        at = self.rng.randrange(LARGE_BYTES - 65536)
        data = self.rng.randbytes(self.rng.choice((1, 4096, 30000, 65536)))
        fd = self.rng.choice(self.fds)
        if os.pwrite(fd, data, at) != len(data):
            raise OSError(errno.EIO, "a short write")
        self.shadow[at:at + len(data)] = data
        at = self.rng.randrange(LARGE_BYTES - 65536)
        if os.pread(self.rng.choice(self.fds), 65536, at) != self.shadow[at:at + 65536]:
            raise ValueError("%s reads wrong at %d" % (self.name, at))

    def end(self):
        for fd in self.fds:
            os.fsync(fd)
            os.close(fd)
        CONTENTS[self.name] = bytes(self.shadow)


def attempt(what, fn):
    try:
        fn()
    except (OSError, ValueError) as error:
        fail("%s: %s" % (what, error))


def write_large(files, rounds):
    while not STOP.is_set():
        for f in files:
            attempt(f.name, f.step)
            if os.path.exists(DIR + "/calm"):
                STOP.wait(1)
        rounds[0] += 1


def make_one(name):
    path = os.path.join(MOUNT, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "xb") as f:
        f.write(small_content(name))
    CONTENTS[name] = small_content(name)


def make_small():
    n = SMALL
    while not STOP.is_set():
        attempt("a new file", lambda: make_one("d%d/new-%06d" % (n // 100, n)))
        n += 1
        time.sleep(0.02)


def report(holds, what, details=()):
    print("%s - %s" % ("ok" if holds else "not ok", what), flush=True)
    for detail in details:
        print("# %s" % detail, flush=True)


def differing():
    for name in sorted(CONTENTS):
        try:
            with open(os.path.join(MOUNT, name), "rb") as f:
                if f.read() != CONTENTS[name]:
                    yield name + " differs"
        except OSError as error:
            yield "%s: %s" % (name, error)


def main():
    for n in range(SMALL):
        make_one("d%d/new-%06d" % (n // 100, n))
    files = [Large("large-%02d" % n) for n in range(LARGE)]
    rounds = [0]
    threads = [threading.Thread(target=write_large, args=(files, rounds)), threading.Thread(target=make_small)]
    for thread in threads:
        thread.start()
    while not os.path.exists(DIR + "/stop") and not STOP.is_set():
        with open(DIR + "/progress.new", "w") as f:
            f.write(str(rounds[0]))
        os.rename(DIR + "/progress.new", DIR + "/progress")
        time.sleep(0.1)
    STOP.set()
    for thread in threads:
        thread.join()
    for f in files:
        attempt(f.name, f.end)
    report(not FAILED, "each call has the expected result", FAILED[:10])
    print("# %d rounds, %d files" % (rounds[0], len(CONTENTS)), flush=True)
    wrong = list(differing())
    report(not wrong, "every file has the written contents", wrong[:10])
    with open(DIR + "/manifest", "w") as f:
        for name in sorted(CONTENTS):
            f.write("%s  %s\n" % (hashlib.md5(CONTENTS[name]).hexdigest(), name))


main()
