#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Cases of posix_corners.py: data far out, holes, programs that run, names of any bytes, lists, calls relative to a folder."""
import ctypes
import fcntl
import hashlib
import itertools
import os
import resource
import signal
import stat
import subprocess

from corner import (ALICE, BOB, TYPES, about, case, inside, make, name_of, open_close, put, result, say, user)

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
KEEP, PUNCH, ZERO = 1, 2, 16
GIB = 1 << 30


def fallocate(fd, mode, offset, length):
    if LIBC.fallocate(fd, mode, offset, length):
        raise OSError(ctypes.get_errno(), "fallocate")


def renameat2(source, target, flags):
    if LIBC.renameat2(-100, source.encode(), -100, target.encode(), flags):
        raise OSError(ctypes.get_errno(), "renameat2")


def size_and_sum(fd, spans):
    return os.fstat(fd).st_size, hashlib.sha1(b"|".join(os.pread(fd, length, offset) for offset, length in spans)).hexdigest()[:12]


@case
def far_out(top):
    """Writes, reads and truncations around 2, 4 and 8 GiB, 1 TiB and the end of all files."""
    for where in (2 * GIB, 4 * GIB, 8 * GIB, 1 << 40, 1 << 43):
        path = "%s/%d" % (top, where)
        fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
        spans = [(where - 10, 30), (0, 10), (where + 100, 10), (where - 4100, 20)]
        for name, call in (
                ("write across", lambda: os.pwrite(fd, b"0123456789abcdef", where - 7)), ("write at", lambda: os.pwrite(fd, b"AT", where)), ("write before", lambda: os.pwrite(fd, b"b", where - 4090)),
                ("seek and write", lambda: os.lseek(fd, where + 5, os.SEEK_SET) and os.write(fd, b"seek")), ("append", lambda: append(path, b"end")),
                ("truncate to", lambda: os.truncate(path, where)), ("truncate to one more", lambda: os.ftruncate(fd, where + 1)), ("truncate to one less", lambda: os.ftruncate(fd, where - 1)),
                ("allocate across", lambda: os.posix_fallocate(fd, where - 5, 4096)), ("punch across", lambda: fallocate(fd, PUNCH | KEEP, where - 3, 6)),
                ("write many", lambda: os.pwrite(fd, b"m" * 300000, where - 150000)), ("copy within", lambda: os.copy_file_range(fd, fd, 20, where - 10, where + 100)),
                ("read of the end", lambda: os.pread(fd, 100, where + 149990)), ("read behind the end", lambda: os.pread(fd, 10, where + 10 ** 6)), ("lock", lambda: fcntl.lockf(fd, fcntl.LOCK_EX, 10, where))):
            say("%s %d" % (name, where), result(call), *size_and_sum(fd, spans))
        say("few blocks in a file of %d" % where, os.fstat(fd).st_blocks < 4000)
        with open(path, "rb") as other:
            other.seek(where - 10)
            say("read by another descriptor at %d" % where, other.read(20))
        os.close(fd)
        os.unlink(path)
    path = top + "/end"
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
    last = (1 << 63) - 1
    for offset in (last, last - 1, last - 4096, last - 4097):
        say("write at %d" % offset, result(os.pwrite, fd, b"x", offset), os.fstat(fd).st_size)
        say("truncate to %d" % offset, result(os.ftruncate, fd, offset), os.fstat(fd).st_size)
        os.ftruncate(fd, 0)
    for offset, length in ((last, 1), (last - 10, 11), (0, last), (-1, 1), (0, 0), (0, -1)):
        say("allocate %d %d" % (offset, length), result(os.posix_fallocate, fd, offset, length) in ("EFBIG", "ENOSPC") or result(os.posix_fallocate, fd, offset, length))
    os.close(fd)


def append(path, data):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        return os.write(fd, data)
    finally:
        os.close(fd)


@case
def limits(top):
    """RLIMIT_FSIZE: EFBIG, after a write of the bytes that fit."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    path = top + "/f"
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10000, old[1]))
    try:
        for name, call in (("write", lambda: os.pwrite(fd, b"x" * 9000, 0)), ("write across", lambda: os.pwrite(fd, b"y" * 2000, 9500)), ("write beyond", lambda: os.pwrite(fd, b"z", 10000)),
                           ("write far beyond", lambda: os.pwrite(fd, b"z", 1 << 33)), ("ftruncate", lambda: os.ftruncate(fd, 10001)), ("truncate", lambda: os.truncate(path, 20000)),
                           ("ftruncate within", lambda: os.ftruncate(fd, 10000)), ("fallocate", lambda: os.posix_fallocate(fd, 0, 20000)), ("append", lambda: append(path, b"x"))):
            say("%s with a limit of 10000" % name, result(call), os.fstat(fd).st_size)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
        os.close(fd)


@case
def holes(top):
    """The ranges of zeros, the allocated ranges, and the beginnings of data."""
    path = top + "/f"
    for mode, offset, length in itertools.product((0, KEEP, PUNCH | KEEP, PUNCH, ZERO, ZERO | KEEP, 1 << 10), (0, 1, 4096, 50000, 100000, 200000), (0, 1, 4096, 65536)):
        put(path, bytes(range(1, 251)) * 400)
        fd = os.open(path, os.O_RDWR)
        said = result(fallocate, fd, mode, offset, length)
        say("fallocate %d %d %d" % (mode, offset, length), said, os.fstat(fd).st_size, hashlib.sha1(os.pread(fd, 400000, 0)).hexdigest()[:12])
        os.close(fd)
    for kind in TYPES:
        if kind in ("regular", "symlink", "block", "char", "socket"):
            continue
        make(top + "/" + kind, kind)
        fd = os.open(top + "/" + kind, os.O_RDONLY | os.O_NONBLOCK)
        say("fallocate of a %s" % kind, result(os.posix_fallocate, fd, 0, 10), result(os.ftruncate, fd, 0), result(os.lseek, fd, 0, os.SEEK_SET), result(os.fsync, fd))
        os.close(fd)
    put(path, b"")
    fd = os.open(path, os.O_RDWR)
    os.ftruncate(fd, 10 << 20)
    os.pwrite(fd, b"d" * 65536, 1 << 20)
    os.pwrite(fd, b"d" * 65536, 5 << 20)
    os.fsync(fd)
    for offset in (0, 1 << 20, (1 << 20) + 100, 2 << 20, 5 << 20, 6 << 20, (10 << 20) - 1, 10 << 20, 11 << 20, -1):
        data, hole = result(os.lseek, fd, offset, os.SEEK_DATA), result(os.lseek, fd, offset, os.SEEK_HOLE)
        say("data and hole from %d" % offset, data, hole)
    for size in (10, 4095, 4096, 4097, 1 << 20):
        put(path, b"x" * size)
        os.truncate(path, size // 2)
        os.truncate(path, size * 2)
        with open(path, "rb") as file:
            text = file.read()
        say("shrunk and grown from %d" % size, len(text), text.count(b"x"), text.count(b"\0"))
    os.close(fd)


@case
def programs(top):
    """ETXTBSY, and the permitted changes of a running program."""
    with open("/bin/cat", "rb") as file:
        code = file.read()
    os.chmod(top, 0o777)
    for name in ("open-w", "open-rw", "open-trunc", "truncate", "open-r", "unlink", "rename", "replace", "chmod", "chown", "link", "setxattr", "utimens", "append"):
        path = "%s/%s" % (top, name)
        put(path, code)
        os.chmod(path, 0o755)
        put(path + ".new", code)
        child = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        child.stdin.write(b"up\n")
        child.stdin.flush()
        child.stdout.readline() # it runs
        call = {"open-w": lambda: open_close(path, os.O_WRONLY), "open-rw": lambda: open_close(path, os.O_RDWR), "open-trunc": lambda: open_close(path, os.O_WRONLY | os.O_TRUNC),
                "truncate": lambda: os.truncate(path, 10), "open-r": lambda: open_close(path, os.O_RDONLY), "unlink": lambda: os.unlink(path), "rename": lambda: os.rename(path, path + "2"),
                "replace": lambda: os.rename(path + ".new", path), "chmod": lambda: os.chmod(path, 0), "chown": lambda: os.chown(path, ALICE, BOB), "link": lambda: os.link(path, path + "2"),
                "setxattr": lambda: os.setxattr(path, "user.a", b"1"), "utimens": lambda: os.utime(path, (1, 2)), "append": lambda: append(path, b"x")}[name]
        said = result(call)
        out = child.communicate(b"down\n")[0]
        say("%s of a program that runs" % name, said, out, child.returncode, about(path))
    path = top + "/written"
    put(path, code)
    os.chmod(path, 0o755)
    fd = os.open(path, os.O_WRONLY)
    say("run what is open for writing", run_it(path))
    os.close(fd)
    say("run what was", run_it(path))
    for mode, (uid, gid, groups) in itertools.product((0o755, 0o644, 0o111, 0o100, 0o010, 0o001, 0o444, 0o000, 0o677), ((0, 0, ()), (ALICE, ALICE, ()), (BOB, BOB, ()), (BOB, BOB, (ALICE,)))):
        os.chown(path, ALICE, ALICE)
        os.chmod(path, mode)
        say("run a program %04o by %d+%s" % (mode, uid, list(groups)), run_it(path, uid, gid, groups))
    put(top + "/script", b"#!/bin/cat\nthe text\n")
    for mode in (0o755, 0o111, 0o555):
        os.chmod(top + "/script", mode)
        say("run a script %04o" % mode, run_it(top + "/script", ALICE, ALICE))
    for kind in ("dir", "fifo", "regular"):
        make(top + "/no-" + kind, kind, 0o755)
        say("run a %s" % kind, run_it(top + "/no-" + kind))


def run_it(path, uid=0, gid=0, groups=()):
    try:
        done = subprocess.run([path], stdin=subprocess.DEVNULL, capture_output=True, user=uid, group=gid, extra_groups=groups, timeout=60)
    except OSError as error:
        return name_of(error)
    return "status %d %r" % (done.returncode, done.stdout)


@case
def names_of_any_bytes(top):
    """Every name that is none of `.`, `..` and has no slash: made, listed, found, moved, removed."""
    names = [b"\n", b" ", b"\t", b"\\", b"'", b'"', b"*", b"?", b"-", b"-rf", b"~", b"#x#", b"%s%n", b"...", b". ", b" .", b"..x", b".x.abcdef", b".x.", b"x~", b".nfs1", b"\x01", b"\x7f", b"\x80", b"\xff",
             b"\xff\xfe", "\u00e4\u20ac\U0001f600".encode(), "a\u0308".encode(), "\u00e4".encode(), b"\xc3", b"CON", b"a:b", b"user.x", b"trusted.gfid", b"gfid", b"n" * 254 + b"\n",
             "\u20ac".encode() * 85, b"indices", b"glusterfs", b".glusterfsx", b".trash", b".landfill", b"\r\n", b"$(x)", b"`x`", b"|", b"&", b"<", b">", b"a\x1b[0m"]
    folder = top.encode() + b"/d"
    for kind in ("regular", "dir", "symlink", "fifo"):
        os.mkdir(folder)
        for name in names:
            path = folder + b"/" + name
            said = [result(lambda: open_close(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY) if kind == "regular" else os.mkdir(path) if kind == "dir" else
                           os.symlink(name, path) if kind == "symlink" else os.mkfifo(path))]
            said += [result(lambda: os.lstat(path) and None), name in os.listdir(folder)]
            if kind == "symlink":
                said.append(os.readlink(path) == name)
            said += [result(os.rename, path, folder + b"/m"), result(os.rename, folder + b"/m", path)]
            if kind != "dir":
                said += [result(os.link, path, folder + b"/l", follow_symlinks=False), result(os.unlink, folder + b"/l")]
            say("a %s named %r" % (kind, name), *said)
        say("all names of %ss" % kind, sorted(os.listdir(folder)) == sorted(names))
        for name in names:
            say("remove the %s named %r" % (kind, name), result(os.rmdir if kind == "dir" else os.unlink, folder + b"/" + name))
        os.rmdir(folder)


@case
def relative_to_a_folder(top):
    """The calls of the *at family: by a folder's descriptor, a file's, one that is closed, one of a folder that is gone or was moved."""
    os.mkdir(top + "/d")
    put(top + "/f")
    for base in ("folder", "file", "closed", "gone", "moved", "path"):
        os.mkdir(top + "/" + base)
        fd = os.open(top + "/f" if base == "file" else "%s/%s" % (top, base), (os.O_PATH if base == "path" else os.O_RDONLY))
        if base == "closed":
            os.close(fd)
        elif base == "gone":
            os.rmdir(top + "/gone")
        elif base == "moved":
            os.rename(top + "/moved", top + "/d/elsewhere")
        for name, call in (
                ("openat", lambda: os.close(os.open("x", os.O_CREAT | os.O_RDWR, dir_fd=fd))), ("openat to read", lambda: os.close(os.open("x", os.O_RDONLY, dir_fd=fd))), ("fstatat", lambda: os.stat("x", dir_fd=fd) and None),
                ("faccessat", lambda: os.access("x", os.R_OK, dir_fd=fd)), ("fchmodat", lambda: os.chmod("x", 0o600, dir_fd=fd)), ("fchownat", lambda: os.chown("x", ALICE, BOB, dir_fd=fd)),
                ("utimensat", lambda: os.utime("x", (1, 2), dir_fd=fd)), ("linkat", lambda: os.link("x", "y", src_dir_fd=fd, dst_dir_fd=fd)), ("renameat", lambda: os.rename("y", "z", src_dir_fd=fd, dst_dir_fd=fd)),
                ("symlinkat", lambda: os.symlink("x", "s", dir_fd=fd)), ("readlinkat", lambda: os.readlink("s", dir_fd=fd)), ("mkdirat", lambda: os.mkdir("dd", dir_fd=fd)), ("mkfifoat", lambda: os.mkfifo("p", dir_fd=fd)),
                ("mknodat", lambda: os.mknod("c", stat.S_IFCHR | 0o600, os.makedev(5, 6), dir_fd=fd)), ("fstatat of a folder", lambda: os.stat("dd/../dd/.", dir_fd=fd) and None),
                ("fstatat upwards", lambda: os.stat("..", dir_fd=fd) and None), ("unlinkat of all", lambda: [os.unlink(n, dir_fd=fd) for n in ("x", "z", "s", "p", "c")] and None), ("unlinkat of a folder", lambda: os.rmdir("dd", dir_fd=fd)),
                ("unlinkat of a folder as a file", lambda: os.unlink("dd", dir_fd=fd)), ("absolute", lambda: os.stat(top + "/f", dir_fd=fd) and None)):
            say("%s by a descriptor: %s" % (name, base), result(call))
        if base != "closed":
            os.close(fd)


@case
def lists(top):
    """Listings: kinds, each name once, also while names are made and removed."""
    for kind in TYPES:
        make(top + "/" + kind, kind)
    with os.scandir(top) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            say("listed: %s" % entry.name, entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False), entry.is_symlink(), entry.inode() == os.lstat(entry.path).st_ino)
    for count in (0, 1, 2, 100, 1000):
        folder = "%s/n%d" % (top, count)
        os.mkdir(folder)
        for i in range(count):
            make("%s/%s%d" % (folder, "x" * (i % 150), i))
        say("a folder of %d" % count, len(os.listdir(folder)), len(set(os.listdir(folder))))
        removed = 0
        with os.scandir(folder) as entries: # an object that exists from the beginning and is not removed is listed once
            for entry in entries:
                os.unlink(entry.path)
                removed += 1
        say("removed while listing %d" % count, removed, result(os.rmdir, folder))
    folder = top + "/grows"
    os.mkdir(folder)
    for i in range(300):
        make("%s/old%d" % (folder, i))
    seen = []
    with os.scandir(folder) as entries:
        for number, entry in enumerate(entries):
            seen.append(entry.name)
            if number < 300:
                make("%s/new%d" % (folder, number))
    say("listed while it grows", sum(name.startswith("old") for name in seen), len(seen) == len(set(seen)))
    fd = os.open(folder, os.O_RDONLY)
    say("twice by one descriptor", sorted(os.listdir(fd)) == sorted(os.listdir(fd)), len(os.listdir(fd)))
    os.close(fd)


@case
def special_files(top):
    """Devices of all numbers, fifos that carry bytes, sockets that answer."""
    for kind, major, minor in itertools.product(("block", "char"), (0, 1, 255, 256, 4095), (0, 3, 255, 256, 65536, (1 << 20) - 1)):
        path = "%s/%s-%d-%d" % (top, kind, major, minor)
        form = stat.S_IFBLK if kind == "block" else stat.S_IFCHR
        say("a %s device %d:%d" % (kind, major, minor), result(os.mknod, path, form | 0o640, os.makedev(major, minor)), about(path))
    for form in (0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFSOCK, stat.S_IFIFO, 0o030000):
        for uid in (0, ALICE):
            path = "%s/form-%o-%d" % (top, form, uid)
            os.chmod(top, 0o777)
            with user(uid):
                said = result(os.mknod, path, form | 0o6751, 0)
            say("mknod of form %o by %d" % (form, uid), said, about(path))
    os.mkfifo(top + "/p")
    say("open a fifo to write that nobody reads", result(open_close, top + "/p", os.O_WRONLY | os.O_NONBLOCK))
    one = os.open(top + "/p", os.O_RDONLY | os.O_NONBLOCK)
    two = os.open(top + "/p", os.O_WRONLY | os.O_NONBLOCK)
    say("a fifo", os.write(two, b"through"), os.read(one, 100), about(top + "/p"))
    os.rename(top + "/p", top + "/q")
    os.unlink(top + "/q")
    say("a fifo without a name", os.write(two, b"still"), os.read(one, 100))
    os.close(one)
    os.close(two)


@case
def rename_without_replacing(top):
    with inside(top):
        for kind, target in itertools.product(TYPES, TYPES + ("none",)):
            make("a", kind)
            if target != "none":
                make("b", target)
            said = result(renameat2, "a", "b", 1) # RENAME_NOREPLACE
            say("rename a %s to a %s and replace nothing" % (kind, target), said if target != "none" else said in ("ok", "EINVAL"))
            for name in ("a", "b"):
                if os.path.lexists(name):
                    os.rmdir(name) if os.path.isdir(name) and not os.path.islink(name) else os.unlink(name)


@case
def many_links(top):
    """The most names of one file in two folders that a brick allows without options, and their removal in turn."""
    os.mkdir(top + "/a")
    os.mkdir(top + "/b")
    put(top + "/a/0")
    for i in range(1, 100):
        os.link(top + "/a/0", "%s/%s/%d" % (top, "ab"[i % 2], i))
    say("a hundred names", about(top + "/b/99"), os.stat(top + "/a/0").st_ino == os.stat(top + "/b/51").st_ino)
    os.rename(top + "/a/2", top + "/b/1") # names of one file: nothing happens
    say("renamed over its own name", os.path.lexists(top + "/a/2"), about(top + "/b/1"))
    put(top + "/c", b"other")
    os.rename(top + "/c", top + "/b/1")
    say("one replaced", about(top + "/b/1"), about(top + "/a/0"))
    for i in range(2, 100):
        os.unlink("%s/%s/%d" % (top, "ab"[i % 2], i))
    say("one left", about(top + "/a/0"), sorted(os.listdir(top + "/a")), sorted(os.listdir(top + "/b")))


@case
def symlinks_by_users(top):
    """A symlink's owner and mode give nothing; the way through it needs search where it leads."""
    os.chmod(top, 0o777)
    os.mkdir(top + "/secret")
    put(top + "/secret/x")
    os.mkdir(top + "/public")
    put(top + "/public/x")
    for target, owner, (name, call) in itertools.product(("secret", "public"), (0, ALICE, BOB), (
            ("stat", lambda p: os.stat(p + "/x") and None), ("lstat", lambda p: os.lstat(p) and None), ("readlink", os.readlink), ("open", lambda p: open_close(p + "/x", os.O_RDONLY)),
            ("list", lambda p: sorted(os.listdir(p))), ("create", lambda p: make(p + "/new")), ("chmod", lambda p: os.chmod(p, 0o777)), ("lchown", lambda p: os.lchown(p, ALICE, ALICE)), ("unlink", os.unlink))):
        path = "%s/%s-%d-%s" % (top, target, owner, name)
        os.symlink(target, path)
        os.lchown(path, owner, owner)
        os.chmod(top + "/secret", 0o700)
        os.chmod(top + "/public", 0o755)
        with user(ALICE):
            said = result(call, path)
        say("%s by a symlink of %d to a %s folder" % (name, owner, target), said.replace(top, ""))
