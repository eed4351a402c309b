#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Work on files of a dispersed volume, and the state of its bricks.

    disperse_work.py random DIR COPIES SEED N   N random changes of files in DIR, each also made to a plain file in COPIES; reads are
                                                compared. N 0: until SIGTERM. Prints the number of changes
    disperse_work.py same DIR COPIES            compares all files
    disperse_work.py fragments R BRICK...       checks the bricks of one dispersed set, with R redundant bricks: equal versions, sizes and
                                                configurations, no dirty mark, fragments of the right length, and each fragment equal
                                                to the one computed from the first K; prints each difference
"""
import itertools
import os
import random
import signal
import sys

from fragments import fault_of, words


# ---- random changes ----------------------------------------------------------------------------------------------------------

class Pair:
    """A file on the volume and its plain copy."""

    def __init__(self, path, copy):
        self.fds = [os.open(p, os.O_RDWR | os.O_CREAT, 0o644) for p in (path, copy)]
        self.appenders = [os.open(p, os.O_WRONLY | os.O_APPEND) for p in (path, copy)]
        self.paths = (path, copy)

    def write(self, offset, data):
        for fd in self.fds:
            at = 0
            while at < len(data):
                at += os.pwrite(fd, data[at:], offset + at)

    def append(self, data):
        for fd in self.appenders:
            if os.write(fd, data) != len(data):
                raise SystemExit("short append")

    def truncate(self, size, by_path):
        for fd, path in zip(self.fds, self.paths):
            if by_path:
                os.truncate(path, size)
            else:
                os.ftruncate(fd, size)

    def allocate(self, offset, length):
        for fd in self.fds:
            os.posix_fallocate(fd, offset, length)

    def check(self, offset, length):
        got, want = (os.pread(fd, length, offset) for fd in self.fds)
        if got != want:
            at = next((i for i in range(min(len(got), len(want))) if got[i] != want[i]), min(len(got), len(want)))
            raise SystemExit(f"{self.paths[0]}: bytes differ at {offset + at} (read of {length} at {offset}: {len(got)} and "
                             f"{len(want)} bytes)")

    def check_size(self):
        sizes = [os.fstat(fd).st_size for fd in self.fds] + [os.stat(p).st_size for p in self.paths]
        if len(set(sizes)) != 1:
            raise SystemExit(f"{self.paths[0]}: sizes differ: {sizes}")

    def sync(self):
        os.fsync(self.fds[0])

    def reopen(self):
        os.close(self.fds[0])
        os.close(self.appenders[0])
        self.fds[0] = os.open(self.paths[0], os.O_RDWR)
        self.appenders[0] = os.open(self.paths[0], os.O_WRONLY | os.O_APPEND)


def change(pair, rng):
    size = os.fstat(pair.fds[1]).st_size
    length = rng.choice((1, 7, 100, 511, 512, 513, 1024, 2048, 3000, 4096, 10000, 40000))
    offset = rng.choice((rng.randrange(size + 1), size, rng.randrange(size + 5000), rng.randrange(120000)))
    kind = rng.random()
    if kind < 0.55:
        pair.write(offset, rng.randbytes(length))
    elif kind < 0.65:
        pair.append(rng.randbytes(length))
    elif kind < 0.75:
        pair.truncate(rng.choice((0, size // 2, offset, size + length, size // 512 * 512)), rng.random() < 0.5)
    elif kind < 0.78:
        pair.allocate(offset, length)
    elif kind < 0.92:
        pair.check(offset, length)
    elif kind < 0.95:
        pair.check_size()
    elif kind < 0.98:
        pair.sync()
    else:
        pair.reopen()


def work_at_random(root, copies, seed, count):
    rng = random.Random(seed)
    names = [f"file{seed}-{n}" for n in range(4)]
    pairs = [Pair(os.path.join(root, name), os.path.join(copies, name)) for name in names]
    stops = []
    signal.signal(signal.SIGTERM, lambda *_: stops.append(1))
    done = 0
    for done in itertools.count(1):
        change(rng.choice(pairs), rng)
        if count == 0:
            print(done, flush=True)
        if stops or done == count:
            break
    for pair in pairs:
        pair.check(0, 1 << 20)
        pair.check_size()
    print("well", done)


def compare(root, copies):
    differs = 0
    for name in sorted(os.listdir(copies)):
        with open(os.path.join(root, name), "rb") as f, open(os.path.join(copies, name), "rb") as g:
            got, want = f.read(), g.read()
        if got != want:
            differs += 1
            print(f"{name}: {len(got)} and {len(want)} bytes, not the same")
    sys.exit(1 if differs else 0)


# ---- fragments ---------------------------------------------------------------------------------------------------------------

def check_file(path, bricks, redundancy, complain):
    paths = [os.path.join(b, path) for b in bricks]
    if not all(os.path.lexists(p) for p in paths):
        complain(path, "is on " + " ".join(b for b, p in zip(bricks, paths) if os.path.lexists(p)))
        return
    for name in ("version", "size", "config"):
        values = {words(p, name) for p in paths}
        if len(values) > 1:
            complain(path, f"{name}: {[words(p, name) for p in paths]}")
    if any(any(words(p, "dirty")) for p in paths):
        complain(path, f"dirty: {[words(p, 'dirty') for p in paths]}")
    if os.path.islink(paths[0]) or not os.path.isfile(paths[0]):
        return
    if fault := fault_of(paths, redundancy):
        complain(path, fault)


def check_fragments(redundancy, bricks):
    found = []
    names = set()
    for brick in bricks:
        for at, dirs, files in os.walk(brick):
            if at == brick and ".glusterfs" in dirs:
                dirs.remove(".glusterfs")
            names |= {os.path.relpath(os.path.join(at, name), brick) for name in dirs + files}
    for name in sorted(names | {"."}):
        check_file(name, bricks, redundancy, lambda *text: found.append(": ".join(text)))
    print("\n".join(found))
    sys.exit(1 if found else 0)


def main(command, *args):
    if command == "random":
        work_at_random(args[0], args[1], int(args[2]), int(args[3]))
    elif command == "same":
        compare(*args)
    else:
        check_fragments(int(args[0]), args[1:])


main(*sys.argv[1:])
