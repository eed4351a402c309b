#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Work on files in blocks, compared with a plain file.

shard_work.py model SEED STEPS PLAIN FILE [FILE2]
    Makes random writes, appends, truncates, punches, allocations and reads on PLAIN, a file on a local file
    system, and on FILE. With FILE2, the same file through a second mount, the mounts take turns.
shard_work.py beside SEED STEPS PLAIN FILE FILE2
    The same, with a mount of stock's client behind FILE2, and only changes that stock's client stands: it zeroes
    the last block that a truncate to a block's end keeps, its zero-range zeroes nothing, and it fails with ENOENT
    after another client has removed a block that it knows.
shard_work.py compare PLAIN FILE
    Compares sizes and contents.
"""
import ctypes
import errno
import os
import random
import sys

BLOCK = 4 << 20
SIZE_MAX = 5 * BLOCK
PIECE_MAX = 600000
libc = ctypes.CDLL(None, use_errno=True)
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16


def fallocate(fd, mode, offset, size):
    if libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(size)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def zero(fd, offset, size):
    """Neither tmpfs nor a dispersed volume has the call."""
    try:
        fallocate(fd, ZERO_RANGE, offset, size)
    except OSError as e:
        if e.errno != errno.EOPNOTSUPP:
            raise
        os.pwrite(fd, bytes(size), offset)


def some_offset(rng):
    """Prefers the neighbourhood of a block's end."""
    if rng.random() < 0.6:
        return max(0, rng.randrange(1, 6) * BLOCK + rng.choice([-70000, -4096, -100, -1, 0, 1, 512, 4096]))
    return rng.randrange(SIZE_MAX)


def some_bytes(rng):
    return rng.randbytes(rng.choice([1, 100, 4096, 70001, PIECE_MAX]))


def step(rng, fds, has_stock, is_stock):
    """Makes one random change on each of the open files, the first of which is plain. Returns its description."""
    kind = rng.choice(["write"] * 6 + ["append"] * 2 + ["truncate"] * 3 + ["punch", "zero", "allocate"])
    offset, data = some_offset(rng), some_bytes(rng)
    size = rng.randrange(1, BLOCK * 2)
    if is_stock and kind in ("punch", "zero", "allocate"):
        kind = "write"
    if kind == "truncate" and rng.random() < 0.5:
        offset = offset // BLOCK * BLOCK
    if kind == "truncate" and has_stock:
        offset = max(offset, os.fstat(fds[0]).st_size)
    for fd in fds:
        if kind == "write":
            os.pwrite(fd, data, offset)
        elif kind == "append":
            os.pwrite(fd, data, os.fstat(fd).st_size)
        elif kind == "truncate":
            os.ftruncate(fd, offset)
        elif kind == "punch":
            fallocate(fd, PUNCH_HOLE | KEEP_SIZE, offset, size)
        elif kind == "zero":
            zero(fd, offset, size)
        else:
            fallocate(fd, 0, offset, size)
    return "%s at %d, %d bytes" % (kind, offset, size if kind in ("punch", "zero", "allocate") else len(data))


def read_all(fd):
    parts, at = [], 0
    while True:
        part = os.pread(fd, 1 << 20, at)
        if not part:
            return b"".join(parts)
        parts.append(part)
        at += len(part)


def first_difference(a, b):
    for i in range(0, max(len(a), len(b)), 4096):
        if a[i:i + 4096] != b[i:i + 4096]:
            return i + next((k for k, (x, y) in enumerate(zip(a[i:i + 4096], b[i:i + 4096])) if x != y), 0)
    return -1


def check(plain, other, what):
    want, got = os.fstat(plain).st_size, os.fstat(other).st_size
    if want != got:
        sys.exit("%s: the size is %d instead of %d" % (what, got, want))
    a, b = read_all(plain), read_all(other)
    if a != b:
        sys.exit("%s: the contents differ from byte %d on" % (what, first_difference(a, b)))


def check_part(rng, plain, other, what):
    offset, size = some_offset(rng), rng.choice([1, 4096, 200000, BLOCK])
    os.fstat(other)  # stock's client reads up to the size that it has seen last
    want, got = os.pread(plain, size, offset), os.pread(other, size, offset)
    if want != got:
        sys.exit("%s: a read at %d of %d bytes differs from byte %d on (%d and %d bytes)" %
                 (what, offset, size, offset + first_difference(want, got), len(want), len(got)))


def model(seed, steps, has_stock, plain_path, *paths):
    rng = random.Random(seed)
    plain = os.open(plain_path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    fds = [os.open(path, os.O_RDWR | os.O_CREAT, 0o644) for path in paths]
    history = []
    for i in range(steps):
        fd = fds[i % len(fds)]
        history.append(step(rng, (plain, fd), has_stock, has_stock and i % 2 == 1))
        if len(fds) > 1:
            os.fsync(fd)  # a mount may answer a write before the bricks have it
        what = "step %d (%s)" % (i, ", then ".join(history[-3:]))
        check_part(rng, plain, fds[(i + 1) % len(fds)], what)
        if i % 10 == 9 or i == steps - 1:
            for other in fds:
                check(plain, other, what)
        if rng.random() < 0.1:
            os.fsync(fd)
    for fd in fds:
        os.close(fd)


def compare(plain_path, path):
    check(os.open(plain_path, os.O_RDONLY), os.open(path, os.O_RDONLY), path)


if __name__ == "__main__":
    if sys.argv[1] in ("model", "beside"):
        model(int(sys.argv[2]), int(sys.argv[3]), sys.argv[1] == "beside", *sys.argv[4:])
    else:
        compare(*sys.argv[2:])
