#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""mangling_work.py MOUNT PROBE SECONDS MAX: file operations of all kinds below MOUNT for SECONDS, with any result.
Each has to end within MAX seconds. PROBE, a file of 1 MiB whose blocks say what they are, is read: if
MOUNT's brick mangles no data, a read without an error must return the right bytes. For a brick that mangles data
PROBE is "-". Prints TAP lines."""
import collections
import errno
import fcntl
import mmap
import os
import random
import sys
import threading
import time

MOUNT, PROBE, SECONDS, MAX = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
BLOCK = 4096
ERRORS = collections.Counter()
WRONG = []
BEGAN = {}  # thread: when its operation began, and which
END = time.monotonic() + SECONDS

# A lying brick chooses the targets of links below MOUNT, and this process is root: chroot keeps the links from
# leading outside.
if PROBE != "-":
    PROBE = "/" + os.path.relpath(PROBE, MOUNT)
ROOT = os.open("/", os.O_PATH)
while True:
    try:
        os.chroot(MOUNT)
        os.chdir("/")
        break
    except OSError as error: # a lie about the mount's root
        os.fchdir(ROOT)
        os.chroot(".")
        if time.monotonic() > END:
            sys.exit("the root of the mount could not be entered: %s" % error)
os.close(ROOT)
MOUNT = "/"


def block(n):
    return (b"%015d\n" % n) * (BLOCK // 16)


def probe(rng):
    fd = os.open(PROBE, os.O_RDONLY | os.O_DIRECT if rng.randrange(2) else os.O_RDONLY)
    try:
        n = rng.randrange(250)
        buf = mmap.mmap(-1, 4 * BLOCK)
        got = os.preadv(fd, [buf], n * BLOCK)
        # When a page in the middle fails, the kernel returns the bytes before it; only the next read gets the error.
        while 0 < got < len(buf) and got % BLOCK == 0:
            more = os.preadv(fd, [memoryview(buf)[got:]], n * BLOCK + got)
            if not more:
                break
            got += more
        want = b"".join(block(n + i) for i in range(4))
        if buf[:got] != want[:got] or got != len(want):
            WRONG.append("block %d: %d bytes, %r" % (n, got, buf[:20]))
    finally:
        os.close(fd)


def write(rng):
    fd = os.open(name(rng), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        os.pwrite(fd, rng.randbytes(rng.choice((1, 4096, 100000))), rng.randrange(1 << 20))
        rng.choice((os.fsync, os.fstat, lambda f: os.ftruncate(f, 100), lambda f: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)))(fd)
    finally:
        os.close(fd)


def read(rng):
    with open(name(rng), "rb") as f:
        f.read()


def name(rng):
    name = "f%d" % rng.randrange(12)
    if not rng.randrange(8):
        name = "n" * rng.choice((255, 256, 300, 1024, 1025))
    return os.path.join(MOUNT, rng.choice(("", "d0", "d1")), name)


def folder(rng):
    return os.path.join(MOUNT, "d%d" % rng.randrange(3))


OPERATIONS = [write, write, read, lambda r: os.stat(name(r)), lambda r: os.unlink(name(r)), lambda r: os.rename(name(r), name(r)),
              lambda r: os.link(name(r), name(r)), lambda r: os.mkdir(folder(r)), lambda r: os.rmdir(folder(r)),
              lambda r: os.symlink("x" * r.randrange(1, 300), name(r)), lambda r: os.readlink(name(r)),
              lambda r: os.listdir(MOUNT), lambda r: [e.stat() for e in os.scandir(folder(r))],
              lambda r: os.setxattr(name(r), "user.a", b"v" * 50), lambda r: os.listxattr(name(r)),
              lambda r: os.getxattr(name(r), "user.a"), lambda r: os.chmod(name(r), 0o600), lambda r: os.statvfs(MOUNT)]


def work(number):
    rng = random.Random(number)
    operations = OPERATIONS + ([probe] * 6 if PROBE != "-" else [])
    while time.monotonic() < END:
        BEGAN[number] = time.monotonic()
        try:
            rng.choice(operations)(rng)
            ERRORS["good"] += 1
        except OSError as error:
            ERRORS[errno.errorcode.get(error.errno, error.errno)] += 1
    BEGAN.pop(number, None)


def main():
    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(6)]
    for thread in threads:
        thread.start()
    longest = 0
    while any(thread.is_alive() for thread in threads) and longest < MAX:
        longest = max([longest] + [time.monotonic() - began for began in list(BEGAN.values())])
        time.sleep(0.05)
    print("%s - each call ends" % ("ok" if longest < MAX else "not ok"))
    if PROBE != "-":
        print("%s - what is read without an error is right" % ("not ok" if WRONG else "ok"))
    for text in WRONG[:5]:
        print("# " + text)
    print("# the longest took %.1f s, %s" % (longest, " ".join("%s=%d" % pair for pair in sorted(ERRORS.items(), key=str))), flush=True)
    os._exit(0)


main()
