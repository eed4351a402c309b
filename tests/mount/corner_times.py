#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Cases of posix_corners.py: which times move, and that nothing moves when a call fails."""
import ctypes
import itertools
import os
import stat

from corner_data import KEEP, PUNCH, ZERO, fallocate
from corner import (ALICE, BOB, STAFF, TOO_LONG, TYPES, about, case, each_call, inside, make, moved, open_close, put, result, say, times, user)

LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH = -100, 0x100, 0x1000
NOW, OMIT = (1 << 30) - 1, (1 << 30) - 2


class Timespec(ctypes.Structure):
    _fields_ = [("sec", ctypes.c_long), ("nsec", ctypes.c_long)]


def utimensat(path, access, change, flags=AT_SYMLINK_NOFOLLOW, fd=AT_FDCWD):
    both = (Timespec * 2)(Timespec(*access), Timespec(*change))
    if LIBC.utimensat(fd, None if path is None else path.encode(), both, flags):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@case
def each_call_moves(top):
    """Each call on each type of object that is there: times of it and of its folder."""
    for kind in TYPES:
        for name, call in each_call(top):
            if name in ("open", "create", "directory", "listdir") or kind in ("block", "char") and name in ("truncate",):
                continue # the time of access is nobody's business here; a device would be opened
            folder = "%s/%s-%s" % (top, kind, name)
            os.mkdir(folder)
            make(folder + "/x", kind)
            say("%s of a %s moves" % (name, kind), moved(lambda: call(folder + "/x"), folder, folder + "/x").replace(top, ""))


@case
def what_fails_moves_nothing(top):
    """Each call by a user who may not."""
    for kind in TYPES:
        for name, call in each_call(top):
            if name in ("stat", "lstat", "access", "readlink", "statfs", "getxattr", "listxattr", "chdir", "open", "nofollow", "directory", "listdir"):
                continue
            folder = "%s/%s-%s" % (top, kind, name)
            os.mkdir(folder)
            make(folder + "/x", kind)
            os.lchown(folder + "/x", BOB, BOB)

            def run(name="/x"):
                with user(ALICE):
                    return call(folder + name)
            os.chmod(top, 0o777)
            say("%s of a %s by who may not moves" % (name, kind), moved(run, folder, folder + "/x"), about(folder + "/x"))
            if kind == "regular":
                say("%s of a new name by who may not moves" % name, moved(lambda: run("/new"), folder), sorted(os.listdir(folder)))


@case
def other_failures_move_nothing(top):
    with inside(top):
        for name in ("d", "d/full", "d/full/x", "d/empty", "e"):
            os.mkdir(name)
        put("d/f")
        put("d/g")
        os.symlink("loop", "d/loop")
        failures = {
            "mkdir over a file": lambda: os.mkdir("d/f"), "mkdir over a folder": lambda: os.mkdir("d/empty"), "rmdir of a full one": lambda: os.rmdir("d/full"),
            "rmdir of a file": lambda: os.rmdir("d/f"), "unlink of a folder": lambda: os.unlink("d/empty"), "create over a file": lambda: open_close("d/f", os.O_CREAT | os.O_EXCL | os.O_WRONLY),
            "create of a folder": lambda: open_close("d/empty", os.O_CREAT | os.O_WRONLY), "symlink over a file": lambda: os.symlink("x", "d/f"), "mkfifo over a file": lambda: os.mkfifo("d/f"),
            "mknod over a file": lambda: os.mknod("d/f", stat.S_IFCHR, os.makedev(1, 3)), "link over a file": lambda: os.link("d/f", "d/g"), "link of a folder": lambda: os.link("d/empty", "d/new"),
            "link of what is not there": lambda: os.link("d/none", "d/new"), "rename of what is not there": lambda: os.rename("d/none", "d/f"),
            "rename a file over a folder": lambda: os.rename("d/f", "d/empty"), "rename a folder over a file": lambda: os.rename("d/empty", "d/f"),
            "rename a folder over a full one": lambda: os.rename("d/empty", "d/full"), "rename into itself": lambda: os.rename("d/full", "d/full/x/y"),
            "rename to itself": lambda: os.rename("d/f", "d/f"), "rename to too long a name": lambda: os.rename("d/f", "d/" + TOO_LONG), "mkdir of too long a name": lambda: os.mkdir("d/" + TOO_LONG),
            "truncate of a folder": lambda: os.truncate("d/empty", 1), "truncate to less than nothing": lambda: os.truncate("d/f", -1), "open of a loop": lambda: open_close("d/loop", os.O_RDONLY),
            "create at a loop": lambda: open_close("d/loop", os.O_RDWR | os.O_CREAT), "open a folder to write": lambda: open_close("d/empty", os.O_RDWR),
            "open a file as a folder": lambda: open_close("d/f", os.O_RDONLY | os.O_DIRECTORY), "setxattr replacing none": lambda: os.setxattr("d/f", "user.n", b"", os.XATTR_REPLACE),
            "removexattr of none": lambda: os.removexattr("d/f", "user.n"), "setxattr of nonsense": lambda: os.setxattr("d/f", "nonsense", b""),
            "utimens that are none": lambda: utimensat("d/f", (1, 10 ** 9), (1, 1)), "below a file": lambda: os.mkdir("d/f/x"), "below nothing": lambda: os.mkdir("d/none/x"),
        }
        for name, call in failures.items():
            say("%s moves" % name, moved(call, "d", "d/f", "d/g", "d/empty", "d/full"))


@case
def rename_moves(top):
    """The two folders, the moved object, and the replaced object."""
    for source, target, elsewhere in itertools.product(TYPES, TYPES + ("none",), (False, True)):
        base = "%s/%s-%s-%d" % (top, source, target, elsewhere)
        with_target = target != "none"
        if with_target and (source == "dir") != (target == "dir") or target in ("block", "char") or source == "block":
            continue
        os.mkdir(base)
        os.mkdir(base + "/a")
        os.mkdir(base + "/b")
        make(base + "/a/x", source)
        to = base + ("/b" if elsewhere else "/a") + "/y"
        watched = [base + "/a", base + "/b"]
        if with_target:
            make(to, target)
            if target != "dir":
                os.link(to, base + "/kept", follow_symlinks=False)
                watched.append(base + "/kept")
        kept = times(base + "/a/x")[1]
        say("rename a %s to %s%s moves" % (source, "another folder's " if elsewhere else "a ", target), moved(lambda: os.rename(base + "/a/x", to), *watched),
            "mtime kept" if times(to)[1] == kept else "mtime moved")


@case
def data_moves(top):
    """Reads, writes, truncations, allocations: mtime and ctime, by descriptor and by path."""
    path = top + "/f"
    for size, name in itertools.product((0, 10), ("write", "write nothing", "pwrite beyond", "append", "ftruncate up", "ftruncate to the size", "ftruncate down", "fallocate up", "fallocate inside", "punch", "zero inside", "zero up", "allocate and keep", "copy",
                                                  "read", "lseek", "fsync", "fchmod", "fchown", "fsetxattr", "open-trunc", "open-creat", "truncate up", "truncate down",
                                                  "link", "unlink of another name", "rename", "write of O_RDONLY", "ftruncate of O_RDONLY")):
        put(path, b"0123456789"[:size])
        fd = os.open(path, os.O_RDWR | (os.O_APPEND if name == "append" else 0)) if "RDONLY" not in name else os.open(path, os.O_RDONLY)
        if name == "unlink of another name":
            os.link(path, path + "2")
        call = {
            "write": lambda: os.write(fd, b"x"), "write nothing": lambda: os.write(fd, b""), "pwrite beyond": lambda: os.pwrite(fd, b"x", 5000), "append": lambda: os.write(fd, b"x"),
            "ftruncate up": lambda: os.ftruncate(fd, 20), "ftruncate down": lambda: os.ftruncate(fd, 0),
            "fallocate up": lambda: os.posix_fallocate(fd, 0, 50), "fallocate inside": lambda: os.posix_fallocate(fd, 0, 1), "read": lambda: os.pread(fd, 5, 0) and None,
            "punch": lambda: fallocate(fd, PUNCH | KEEP, 2, 3), "zero inside": lambda: fallocate(fd, ZERO | KEEP, 2, 3), "zero up": lambda: fallocate(fd, ZERO, 2, 30),
            "allocate and keep": lambda: fallocate(fd, KEEP, 0, 9000), "copy": lambda: os.copy_file_range(fd, fd, 3, 0, 15),
            "lseek": lambda: os.lseek(fd, 3, os.SEEK_SET), "fsync": lambda: os.fsync(fd), "fchmod": lambda: os.fchmod(fd, 0o600), "fchown": lambda: os.fchown(fd, ALICE, BOB),
            "fsetxattr": lambda: os.setxattr(fd, "user.a", b"1"), "open-trunc": lambda: open_close(path, os.O_WRONLY | os.O_TRUNC), "open-creat": lambda: open_close(path, os.O_WRONLY | os.O_CREAT),
            "truncate up": lambda: os.truncate(path, 20), "truncate down": lambda: os.truncate(path, 0),
            "link": lambda: os.link(path, path + "2"), "unlink of another name": lambda: os.unlink(path + "2"), "rename": lambda: (os.rename(path, path + "2"), os.rename(path + "2", path)) and None,
            "write of O_RDONLY": lambda: os.write(fd, b"x"), "ftruncate of O_RDONLY": lambda: os.ftruncate(fd, 1), "ftruncate to the size": lambda: os.ftruncate(fd, size),
        }[name]

        def run():
            answer = call()
            if name.startswith(("write", "append", "pwrite")):
                os.fsync(fd)
            return answer
        if name != "ftruncate to the size" and not (size == 0 and name in ("ftruncate down", "truncate down", "open-trunc", "zero inside")): # may move or not
            say("%s of %d bytes moves" % (name, size), moved(run, path, top), os.fstat(fd).st_size, os.stat(path).st_size)
        os.close(fd)
        for left in os.listdir(top):
            os.unlink(top + "/" + left)


@case
def utimensat_now_and_omit(top):
    """Each of the two times set, now, or left alone: by owner, writer, reader."""
    os.chmod(top, 0o777)
    ways = {"set": (1000, 5), "now": (0, NOW), "omit": (0, OMIT)}
    for kind, (first, access), (second, change), (who, ids) in itertools.product(("regular", "dir", "symlink", "fifo"), ways.items(), ways.items(),
                                                                               (("owner", (ALICE, ALICE, ())), ("writer", (BOB, STAFF, ())), ("other", (BOB, BOB, ())))):
        path = "%s/%s-%s-%s-%s" % (top, kind, first, second, who)
        make(path, kind)
        os.utime(path, (500, 600), follow_symlinks=False)
        os.lchown(path, ALICE, STAFF)
        if kind != "symlink":
            os.chmod(path, 0o660)
        with user(*ids):
            said = moved(lambda: utimensat(path, access, change), path)
        new = times(path)
        shown = ["now" if value > 10 ** 18 else value for value in new[:2]]
        say("utimens %s %s of a %s by its %s" % (first, second, kind, who), said.split()[0], *shown)
    path = top + "/f"
    put(path)
    fd = os.open(path, os.O_RDONLY)
    for access, change in itertools.product(((1, 0), (1, -1), (1, 10 ** 9), (-5, 7), (0, NOW)), ((2, 0), (2, 10 ** 9), (0, OMIT))):
        os.utime(path, (500, 600))
        said = [result(utimensat, path, access, change), times(path)[1], result(utimensat, None, access, change, 0, fd), result(utimensat, "f", access, change, 0, fd),
                result(utimensat, path, access, change, 0x8000)]
        say("utimens %s %s" % (access, change), *said)
    os.close(fd)


@case
def times_as_they_are_given(top):
    """Fractions of seconds, far years and those before 1970 stay as they were set, also after a change of something else."""
    for kind in ("regular", "dir", "symlink"):
        path = "%s/%s" % (top, kind)
        make(path, kind)
        for second, nano in itertools.product((0, 1, -1, -1000, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 33), (0, 1, 123456789, 999999999)):
            value = second * 10 ** 9 + nano
            said = result(os.utime, path, ns=(value, value), follow_symlinks=False)
            os.lchown(path, ALICE, BOB)
            say("times %d.%09d of a %s" % (second, nano, kind), said, *times(path)[:2])
