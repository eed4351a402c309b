#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""quota_storm.py FOLDER SEED OPERATIONS [THREADS]: changes files in FOLDER of a mount in all ways that change how much a folder
uses: writes over, beyond and into holes, truncates, fallocate, punched holes, links, renames over others, removals of open files,
folders, symlinks, big xattrs. Errors are expected: EDQUOT, and ENOTCONN while the brick is away. It prints how many operations
succeeded."""
import ctypes, os, random, sys, threading

libc = ctypes.CDLL(None, use_errno=True)
KEEP_SIZE, PUNCH = 1, 2

def fallocate(fd, mode, offset, length):
    if libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)) < 0:
        raise OSError(ctypes.get_errno(), "fallocate")

class Storm:
    def __init__(self, top, seed):
        self.top, self.r, self.done, self.open = top, random.Random(seed), 0, []

    def name(self):
        d = self.r.choice(["", "a", "b", "a/c"])
        return os.path.join(self.top, d, "f%d" % self.r.randrange(24))

    def folder(self):
        return os.path.join(self.top, "d%d" % self.r.randrange(6))

    def write(self):
        with open(self.name(), "r+b" if self.r.random() < 0.5 else "ab", buffering=0) as f:
            f.seek(self.r.randrange(0, 300000))
            f.write(b"x" * self.r.choice([1, 511, 4096, 10000, 70000]))

    def make(self):
        with open(self.name(), "wb", buffering=0) as f:
            f.write(b"y" * self.r.randrange(0, 50000))

    def cut(self):
        os.truncate(self.name(), self.r.choice([0, 1, 5000, 100000, 5000000]))

    def allot(self):
        with open(self.name(), "r+b", buffering=0) as f:
            fallocate(f.fileno(), self.r.choice([0, KEEP_SIZE]), self.r.randrange(0, 100000), self.r.randrange(1, 90000))

    def punch(self):
        with open(self.name(), "r+b", buffering=0) as f:
            fallocate(f.fileno(), PUNCH | KEEP_SIZE, self.r.randrange(0, 100000), self.r.randrange(1, 90000))

    def link(self):
        os.link(self.name(), self.name())

    def move(self):
        os.rename(self.name(), self.name())

    def remove(self):
        os.unlink(self.name())

    def symlink(self):
        os.symlink("z" * self.r.choice([3, 500]), self.name())

    def hold(self):
        if len(self.open) > 4:
            os.close(self.open.pop(0))
        self.open.append(os.open(self.name(), os.O_RDWR))

    def write_held(self):
        if self.open:
            os.pwrite(self.r.choice(self.open), b"h" * 20000, self.r.randrange(0, 200000))

    def mkdir(self):
        os.mkdir(self.folder())

    def rmdir(self):
        os.rmdir(self.folder())

    def move_folder(self):
        os.rename(self.folder(), self.folder())

    def xattr(self):
        os.setxattr(self.name(), "user.big", b"v" * self.r.choice([10, 3000]))

    def run(self, count):
        for d in ("a", "b", "a/c"):
            try:
                os.mkdir(os.path.join(self.top, d))
            except OSError:
                pass
        kinds = [self.write] * 6 + [self.make] * 4 + [self.remove] * 3 + [self.move] * 2 + [self.link] * 2 + [
            self.cut, self.allot, self.punch, self.symlink, self.hold, self.write_held, self.mkdir, self.rmdir,
            self.move_folder, self.xattr]
        for _ in range(count):
            try:
                self.r.choice(kinds)()
                self.done += 1
            except OSError:
                pass
        for fd in self.open:
            try:
                os.close(fd)
            except OSError:
                pass

top, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
storms = [Storm(top, seed * 100 + i) for i in range(int(sys.argv[4]) if len(sys.argv) > 4 else 3)]
threads = [threading.Thread(target=s.run, args=(count,)) for s in storms]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(sum(s.done for s in storms))
