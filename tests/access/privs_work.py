#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""The remaining set-id bits and security.capability of a file after each kind of change, by each kind of
user.

    privs_work.py table DIR [BRICK...]   a line for each case: kind of change, user, old mode, result. DIR is on the mount, or on a
                                         file system; the capability is set and read on the bricks, or on the file in DIR
    privs_work.py hold FILE UID          opens the file as that user, and appends a line for each line read; prints the mode of the
                                         file after each line
    privs_work.py writes FILE UID N      writes N pieces of 4 KiB, at once
"""
import ctypes
import mmap
import os
import sys

MODES = (0o4777, 0o2777, 0o6777, 0o2767, 0o6755, 0o0777)
WHO = {"root": (0, 0), "owner": (1000, 1000), "member": (1001, 1000), "other": (1001, 1001)}
CAPABILITY = bytes.fromhex("0100000200200000000000000000000000000000")  # cap_net_raw=ep
SIZE = 8192
libc = ctypes.CDLL(None, use_errno=True)


def on_fd(flags, change):
    def run(path):
        fd = os.open(path, flags)
        try:
            change(fd)
        finally:
            os.close(fd)
    return run


def direct(fd):
    with mmap.mmap(-1, 4096) as page:
        page.write(b"d" * 4096)
        os.pwritev(fd, [page], 0)


def fallocate(fd):
    if libc.fallocate(fd, 0, ctypes.c_long(0), ctypes.c_long(2 * SIZE)):
        raise OSError(ctypes.get_errno(), "fallocate")


def copy(path):
    source = os.open(path + ".from", os.O_RDONLY)
    to = os.open(path, os.O_WRONLY)
    try:
        os.copy_file_range(source, to, 4096)
    finally:
        os.close(source)
        os.close(to)


def by_map(fd):
    with mmap.mmap(fd, SIZE) as page:
        page[0:4] = b"maps"
        page.flush()


HOW = {
    "write": on_fd(os.O_WRONLY, lambda fd: os.write(fd, b"w" * 100)),
    "two writes": on_fd(os.O_WRONLY, lambda fd: (os.write(fd, b"w" * 100), os.write(fd, b"w" * 100))),
    "append": on_fd(os.O_WRONLY | os.O_APPEND, lambda fd: os.write(fd, b"a" * 100)),
    "O_SYNC": on_fd(os.O_WRONLY | os.O_SYNC, lambda fd: os.write(fd, b"s" * 100)),
    "O_DIRECT": on_fd(os.O_WRONLY | os.O_DIRECT, direct),
    "truncate": lambda path: os.truncate(path, 10),
    "ftruncate": on_fd(os.O_WRONLY, lambda fd: os.ftruncate(fd, 2 * SIZE)),
    "O_TRUNC": on_fd(os.O_WRONLY | os.O_TRUNC, lambda fd: None),
    "fallocate": on_fd(os.O_WRONLY, fallocate),
    "copy_file_range": copy,
    "mmap": on_fd(os.O_RDWR, by_map),
    "chown": lambda path: os.chown(path, -1, os.stat(path).st_gid),
    "chown of nothing": lambda path: os.chown(path, -1, -1),
    "chown to another": lambda path: os.chown(path, 1002, 1002),
    "chmod": lambda path: os.chmod(path, 0o6711),
    "read": on_fd(os.O_RDONLY, lambda fd: os.read(fd, 100)),
}


def as_user(who, run):
    """In a process of his own. Returns the error, or an empty text. After a success the mode follows, as the
    same process sees the mode."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        uid, gid = who
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        try:
            told = run() or ""
        except OSError as e:
            told = os.strerror(e.errno)
        os.write(writer, told.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as f:
        told = f.read()
    os.waitpid(pid, 0)
    return told


def places(path, directory, bricks):
    """The brick of the file; a linkto file on another brick does not count."""
    if not bricks:
        return [path]
    name = os.path.join(os.path.basename(directory), os.path.basename(path))
    all_of = [os.path.join(b, name) for b in bricks]
    return [p for p in all_of if os.path.exists(p) and os.stat(p).st_mode & 0o7777 != 0o1000]


def has_capability(path):
    try:
        return os.getxattr(path, "security.capability") is not None
    except OSError:
        return False


def make(path, size):
    with open(path, "wb") as f:
        f.write(b"o" * size)


def case(path, directory, bricks, how, who, mode):
    make(path, SIZE)
    make(path + ".from", SIZE)
    os.chown(path, 1000, 1000)
    os.chmod(path, mode)
    where = places(path, directory, bricks)
    if mode == 0o777:
        for place in where:
            os.setxattr(place, "security.capability", CAPABILITY)

    def run():
        HOW[how](path)
        return ""
    told = as_user(WHO[who], run) or "well"
    seen = os.stat(path).st_mode & 0o7777
    left = sorted({has_capability(p) for p in where})
    modes = sorted({os.stat(p).st_mode & 0o7777 for p in where})
    if modes != [seen]:
        told += ", but there: " + " ".join(f"{m:o}" for m in modes)
    capability = {(True,): ", capability", (False,): "", (False, True): ", capability in part"}[tuple(left)]
    print(f"{how}, {who}, {mode:04o}: {told}, {seen:04o}{capability}")
    os.unlink(path)
    os.unlink(path + ".from")


def table(directory, *bricks):
    os.mkdir(directory)
    os.chmod(directory, 0o777)
    for how in HOW:
        for who in WHO:
            for mode in MODES:
                case(os.path.join(directory, "file"), directory, bricks, how, who, mode)


def hold(path, uid):
    os.setgroups([])
    os.setresgid(int(uid), int(uid), int(uid))
    os.setresuid(int(uid), int(uid), int(uid))
    fd = os.open(path, os.O_WRONLY)
    os.write(fd, b"first\n")
    print("open", flush=True)
    for line in sys.stdin:
        os.write(fd, line.encode())
        print(f"{os.fstat(fd).st_mode & 0o7777:04o}", flush=True)
    os.close(fd)


def writes(path, uid, count):
    os.setgroups([])
    os.setresgid(int(uid), int(uid), int(uid))
    os.setresuid(int(uid), int(uid), int(uid))
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    for _ in range(int(count)):
        os.write(fd, b"w" * 4096)
    os.close(fd)


if __name__ == "__main__":
    {"table": table, "hold": hold, "writes": writes}[sys.argv[1]](*sys.argv[2:])
