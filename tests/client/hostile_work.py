#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Random operations below a folder whose bricks lie: results may be wrong, but every call must return.

    hostile_work.py DIR SECONDS SEED
"""
import errno
import fcntl
import os
import random
import sys
import time

FOLDER, SECONDS, RNG = sys.argv[1], float(sys.argv[2]), random.Random(int(sys.argv[3]))
done, failed = 0, 0

# A lying brick chooses the targets of links in the folder, and this process is root: chroot keeps the links
# from leading outside. The brick may lie already, so that the folder cannot be entered at once.
until = time.monotonic() + SECONDS + 60
while True:
    try:
        os.chdir(FOLDER)
        os.chroot(".")
        break
    except OSError as problem:
        if time.monotonic() > until:
            sys.exit("the folder cannot be entered: %s" % problem)
        time.sleep(0.05)
FOLDER = "/"


def path(folders=2):
    return os.path.join(FOLDER, *["d%d" % RNG.randrange(3) for _ in range(RNG.randrange(folders + 1))], RNG.choice(("f%d" % RNG.randrange(6),) * 7 + ("n" * RNG.choice((255, 256, 1024, 1025)),)))


def folder():
    return os.path.join(FOLDER, *["d%d" % RNG.randrange(3) for _ in range(RNG.randrange(3))])


def write():
    with open(path(), RNG.choice(("wb", "ab", "r+b"))) as f:
        f.write(RNG.randbytes(RNG.choice((10, 4096, 200000))))
        if RNG.random() < 0.3:
            os.fsync(f.fileno())


def read():
    with open(path(), "rb") as f:
        f.seek(RNG.choice((0, 0, 1000, 1 << 40)))
        f.read()


def lock():
    with open(path(), "r+b") as f:
        fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, RNG.randrange(1, 100), RNG.randrange(100))


def holes():
    with open(path(), "r+b") as f:
        os.posix_fallocate(f.fileno(), RNG.randrange(10000), 5000)
        os.lseek(f.fileno(), RNG.randrange(5000), RNG.choice((os.SEEK_DATA, os.SEEK_HOLE)))


OPERATIONS = (
    write, write, read, read, lock, holes,
    lambda: os.mkdir(folder()),
    lambda: os.rmdir(folder()),
    lambda: os.unlink(path()),
    lambda: os.rename(path(), path()),
    lambda: os.rename(folder(), folder()),
    lambda: os.link(path(), path()),
    lambda: os.symlink(RNG.choice(("x", "/", "../" * 20, "y" * 1000)), path()),
    lambda: os.readlink(path()),
    lambda: os.stat(path()),
    lambda: os.chmod(path(), 0o600 | RNG.randrange(64)),
    lambda: os.chown(path(), RNG.randrange(3), RNG.randrange(3)),
    lambda: os.utime(path(), (RNG.randrange(1 << 31), 5)),
    lambda: os.truncate(path(), RNG.randrange(100000)),
    lambda: os.setxattr(path(), "user.a%d" % RNG.randrange(3), RNG.randbytes(RNG.randrange(2000))),
    lambda: os.getxattr(path(), "user.a%d" % RNG.randrange(3)),
    lambda: os.removexattr(path(), "user.a%d" % RNG.randrange(3)),
    lambda: [os.getxattr(path(), name) for name in os.listxattr(path())],
    lambda: os.mknod(path()),
    lambda: os.statvfs(FOLDER),
    lambda: os.listdir(folder()),
    lambda: [e.stat(follow_symlinks=False) for e in os.scandir(folder())],
    lambda: [None for _, _ in zip(os.walk(FOLDER), range(50))],
)

end = time.monotonic() + SECONDS
while time.monotonic() < end:
    try:
        RNG.choice(OPERATIONS)()
        done += 1
    except OSError as error:
        failed += 1
        if error.errno == errno.ENOTCONN:
            time.sleep(0.01)
    except ValueError: # what the brick says of a name or a number is none
        failed += 1
print("# %d operations succeeded, %d failed" % (done, failed), flush=True)
