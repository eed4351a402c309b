#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""write_behind_work.py: guarantees for applications while a mount answers writes early.

    write_behind_work.py shadow A B OPS     OPS random changes of a file in A, through several descriptors; each read is compared with a
                                            shadow copy, and after each close so is a read through B, another mount of the folder
    write_behind_work.py fill FILE          writes until the volume is full: a call must fail, and the data that fsync confirmed must be in FILE
    write_behind_work.py stream FILE COUNT  writes blocks around a ring until the mount has ended; the file COUNT has the number of answered
                                            blocks
    write_behind_work.py ring FILE COUNT    checks that FILE has each answered block, or a later block in the same place
    write_behind_work.py small FILE N PID   writes N bytes, 16 at a time, while PID, the process of the bricks, is stopped; closes after it continues
"""
import errno
import os
import random
import signal
import sys
import time

BLOCK, RING = 48 << 10, 128


class Shadow:
    SIZE_MAX = 600_000

    def __init__(self, a, b, seed):
        self.path, self.other = os.path.join(a, "shadow"), os.path.join(b, "shadow")
        self.link = self.path + "-link"
        self.bytes = bytearray()
        self.rng = random.Random(seed)
        self.fds = []
        self.open_all(os.O_CREAT)
        if not os.path.exists(self.link):
            os.link(self.path, self.link)

    def open_all(self, more=0):
        self.fds = [os.open(self.path, os.O_RDWR | more, 0o644), os.open(self.path, os.O_RDWR), os.open(self.path, os.O_RDWR | os.O_DSYNC)]

    def must(self, is_so, what):
        if not is_so:
            sys.exit(f"write_behind_work: {what}")

    def fd(self):
        return self.rng.choice(self.fds)

    def write(self):
        """Mostly small ones, that follow one another."""
        fd, at = self.fd(), self.rng.randrange(self.SIZE_MAX // 2)
        for _ in range(self.rng.choice((1, 1, 3, 9))):
            data = self.rng.randbytes(self.rng.choice((1, 100, 4096, 10_000, 70_000)))
            if at + len(data) > self.SIZE_MAX:
                break
            self.must(os.pwrite(fd, data, at) == len(data), "a short write")
            if at > len(self.bytes):
                self.bytes.extend(bytes(at - len(self.bytes)))
            self.bytes[at:at + len(data)] = data
            at += len(data) if self.rng.random() < 0.8 else self.rng.randrange(20_000)

    def append(self):
        if len(self.bytes) > self.SIZE_MAX:
            return
        data = self.rng.randbytes(self.rng.randrange(1, 9000))
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        os.write(fd, data[:100])
        os.write(fd, data[100:])
        os.close(fd)
        self.bytes.extend(data)

    def read(self):
        at = self.rng.randrange(self.SIZE_MAX)
        size = self.rng.choice((10, 5000, 200_000))
        self.must(os.pread(self.fd(), size, at) == self.bytes[at:at + size], f"{size} bytes at {at} are others")

    def truncate(self):
        size = self.rng.randrange(self.SIZE_MAX)
        if self.rng.random() < 0.5:
            os.ftruncate(self.fd(), size)
        else:
            os.truncate(self.link, size)
        del self.bytes[size:]
        self.bytes.extend(bytes(size - len(self.bytes)))

    def look(self):
        size = len(self.bytes)
        folder = os.path.dirname(self.path)
        told = [os.fstat(self.fd()).st_size, os.stat(self.path).st_size, os.stat(self.link).st_size]
        with os.scandir(folder) as entries:
            told += [e.stat().st_size for e in entries if e.name.startswith("shadow")]
        self.must(set(told) == {size}, f"sizes {told}, not {size}")

    def sync(self):
        os.fsync(self.fd())

    def times(self):
        """A time that was set stays after any earlier write."""
        os.utime(self.path, (5, 1_000_000))
        self.must(os.stat(self.link).st_mtime == 1_000_000, "the time that was set is gone")

    def close(self):
        for fd in self.fds:
            os.close(fd)
        with open(self.other, "rb", buffering=0) as f:
            there = b"".join(iter(lambda: f.read(1 << 20), b""))
        self.must(there == self.bytes, "the other mount sees something else after a close")
        self.open_all()

    def run(self, count):
        ways = (self.write, self.write, self.write, self.append, self.read, self.read, self.truncate, self.look, self.sync, self.times,
                self.close)
        for _ in range(count):
            self.rng.choice(ways)()
        self.close()
        for fd in self.fds:
            os.close(fd)


def block(number):
    return number.to_bytes(8, "big") * (BLOCK // 8)


def fill(path):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    told, number, confirmed = "", 0, 0
    try:
        while not told and number < 4096:
            os.write(fd, block(number))
            number += 1
            if number % 16 == 0:
                os.fsync(fd)
                confirmed = number
    except OSError as e:
        told = errno.errorcode[e.errno]
    try:
        os.close(fd)
    except OSError as e:
        told = told or errno.errorcode[e.errno]
    print(told or "nobody was told")
    blocks(path, confirmed)


def blocks(path, count):
    with open(path, "rb") as f:
        for i in range(count):
            if f.read(BLOCK) != block(i):
                sys.exit(f"write_behind_work: block {i} of {count} is not there")


def stream(path, count_path):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    count = os.open(count_path, os.O_WRONLY | os.O_CREAT)
    number = 0
    try:
        while True:
            os.pwrite(fd, block(number), number % RING * BLOCK)
            number += 1
            os.pwrite(count, f"{number:8}".encode(), 0)
    except OSError as e:
        print(errno.errorcode[e.errno])


def ring(path, count):
    with open(path, "rb") as f:
        for i in range(max(0, count - RING), count):
            there = os.pread(f.fileno(), BLOCK, i % RING * BLOCK)
            number = int.from_bytes(there[:8], "big")
            if there != block(number) or number % RING != i % RING or number < i:
                sys.exit(f"write_behind_work: block {i} was answered, and is not there; {number} is")


def has_stopped(pid):
    """Returns whether all threads of the process have stopped. Each thread stops only when it gets to run."""
    states = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/stat", encoding="ascii") as f:
            states.append(f.read().rpartition(")")[2].split()[0])
    return set(states) == {"T"}


def small(path, count, bricks):
    def give_up(*_):
        os.kill(bricks, signal.SIGCONT)
        sys.exit("write_behind_work: a write waits for the bricks")
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(30)
    os.kill(bricks, signal.SIGSTOP)
    while not has_stopped(bricks):
        time.sleep(0.001)
    for i in range(0, count, 16):
        os.write(fd, bytes([i // 16 % 256]) * 16)
    os.kill(bricks, signal.SIGCONT)
    os.close(fd)


if __name__ == "__main__":
    name, *args = sys.argv[1:]
    if name == "shadow":
        Shadow(args[0], args[1], 11).run(int(args[2]))
    elif name == "fill":
        fill(args[0])
    elif name == "stream":
        stream(*args)
    elif name == "ring":
        with open(args[1], encoding="ascii") as f:
            ring(args[0], int(f.read()))
    else:
        small(args[0], int(args[1]), int(args[2]))
