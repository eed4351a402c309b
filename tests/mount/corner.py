#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Building blocks of the cases of posix_corners.py."""
import contextlib
import errno
import itertools
import os
import socket
import stat
import time

ALICE, BOB, CAROL = 21001, 21002, 21003 # users, and groups of the same numbers
STAFF, GUESTS = 21100, 21101
TYPES = ("regular", "dir", "fifo", "block", "char", "socket", "symlink")
LONG, TOO_LONG = "n" * 255, "n" * 256
CASES = []
SPARES = itertools.count()
FAR = -1


def case(function):
    CASES.append(function)
    return function


@contextlib.contextmanager
def user(uid, gid=None, groups=()):
    os.setgroups(list(groups))
    os.setegid(uid if gid is None else gid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups([])


def name_of(error):
    return errno.errorcode.get(error.errno, str(error.errno))


def result(function, *args, **kwargs):
    """Returns `ok` if the call returned None, else the returned value as text, or the name of the errno."""
    try:
        value = function(*args, **kwargs)
    except OSError as error:
        return name_of(error)
    return "ok" if value is None else str(value)


def say(name, *values):
    print("%s: %s" % (name, " ".join(str(value) for value in values)))


def open_close(path, flags, mode=0o644):
    os.close(os.open(path, flags, mode))


def make(path, kind="regular", mode=0o644):
    if kind == "regular":
        open_close(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, mode)
    elif kind == "dir":
        os.mkdir(path, mode)
    elif kind == "symlink":
        os.symlink("nowhere", path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as sock, inside(os.path.dirname(path) or "."):
            sock.bind(os.path.basename(path))
    else:
        form = {"fifo": stat.S_IFIFO, "block": stat.S_IFBLK, "char": stat.S_IFCHR}[kind]
        os.mknod(path, form | mode, os.makedev(1, 2) if kind != "fifo" else 0)


@contextlib.contextmanager
def inside(folder):
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def put(path, data=b"text"):
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
    os.write(fd, data)
    os.close(fd)


def about(path, follow=False):
    """Kind, mode, owner, links: nothing that a file system may choose (the size or links of a folder, an inode number)."""
    try:
        info = os.stat(path) if follow else os.lstat(path)
    except OSError as error:
        return name_of(error)
    links = "-" if stat.S_ISDIR(info.st_mode) else info.st_nlink
    size = info.st_size if stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode) else "-"
    device = info.st_rdev if info.st_mode & 0o170000 in (stat.S_IFBLK, stat.S_IFCHR) else 0
    return "%o %d:%d links %s size %s dev %d" % (info.st_mode, info.st_uid, info.st_gid, links, size, device)


def times(path):
    info = os.lstat(path)
    return info.st_atime_ns, info.st_mtime_ns, info.st_ctime_ns


def moved(call, *paths):
    """The call's result, and for each path which of mtime and ctime it has moved."""
    before = [times(path) for path in paths]
    time.sleep(0.012) # a tick of the kernel's coarse clock
    said = [result(call)]
    for path, old in zip(paths, before):
        try:
            new = times(path)
            said.append("".join(letter for letter, a, b in zip("amc", old, new) if letter != "a" and b > a) or "-")
        except OSError as error:
            said.append(name_of(error))
    return " ".join(said)


def path_calls(top):
    """Every call that takes a path, with a valid target; each case chooses the path."""
    def spare():
        return "%s/spare%d" % (top, next(SPARES))

    def fresh(kind="regular"):
        path = spare()
        make(path, kind)
        return path
    return {
        "stat": lambda path: os.stat(path) and None,
        "lstat": lambda path: os.lstat(path) and None,
        "access": lambda path: os.access(path, os.F_OK),
        "open": lambda path: open_close(path, os.O_RDONLY | os.O_NONBLOCK),
        "create": lambda path: open_close(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK),
        "create-excl": lambda path: open_close(path, os.O_RDWR | os.O_CREAT | os.O_EXCL),
        "nofollow": lambda path: open_close(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK),
        "directory": lambda path: open_close(path, os.O_RDONLY | os.O_DIRECTORY),
        "mkdir": lambda path: os.mkdir(path, 0o755),
        "mkfifo": lambda path: os.mkfifo(path, 0o644),
        "mknod": lambda path: os.mknod(path, stat.S_IFCHR | 0o644, os.makedev(1, 3)),
        "rmdir": os.rmdir,
        "unlink": os.unlink,
        "symlink": lambda path: os.symlink("test", path),
        "readlink": os.readlink,
        "link-to": lambda path: os.link(fresh(), path),
        "link-from": lambda path: os.link(path, spare(), follow_symlinks=False),
        "rename-to": lambda path: os.rename(fresh(), path),
        "rename-dir-to": lambda path: os.rename(fresh("dir"), path),
        "rename-from": lambda path: os.rename(path, spare()),
        "chmod": lambda path: os.chmod(path, 0o600),
        "chown": lambda path: os.chown(path, ALICE, ALICE),
        "lchown": lambda path: os.lchown(path, ALICE, ALICE),
        "truncate": lambda path: os.truncate(path, 123),
        "utimens": lambda path: os.utime(path, (1, 2)),
        "lutimens": lambda path: os.utime(path, (1, 2), follow_symlinks=False),
        "listdir": lambda path: sorted(os.listdir(path)),
        "statfs": lambda path: os.statvfs(path) and None,
        "setxattr": lambda path: os.setxattr(path, "user.a", b"1"),
        "getxattr": lambda path: os.getxattr(path, "user.a"),
        "listxattr": lambda path: sorted(n for n in os.listxattr(path) if n != "security.selinux"),
        "removexattr": lambda path: os.removexattr(path, "user.a"),
        "chdir": lambda path: inside(path).__enter__(),
    }


def each_call(top):
    for name, call in path_calls(top).items():
        yield name, call
        os.chdir("/")
