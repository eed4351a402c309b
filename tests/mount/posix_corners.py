#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""The results of a file system in the corners of POSIX: some thousand calls, a line each, without a verdict.

    posix_corners.py DIR [--only SUBSTRING]       as root; DIR is empty and leads there with mode 755

The same calls on the bricks' own file system print the expected results: the two outputs are compared. A line is `CASE: RESULT`, where RESULT
is `ok`, an errno's name, or the requested value. A case has a folder of its own. Calls of users run under effective ids."""
import itertools
import os
import sys
import time

import corner_data
import corner_rights
import corner_times
from corner import (ALICE, BOB, CAROL, CASES, FAR, GUESTS, LONG, STAFF, TOO_LONG, TYPES, about, case, each_call, inside, make, moved, open_close,
                    path_calls, put, result, say, times, user)

@case
def missing(top):
    for name, call in each_call(top):
        say("%s of what is not there" % name, result(call, top + "/none-" + name), about(top + "/none-" + name))


@case
def missing_component(top):
    for name, call in each_call(top):
        say("%s below what is not there" % name, result(call, top + "/none/x"))


@case
def component_is_no_folder(top):
    for kind in TYPES[:-1]:
        if kind != "dir":
            make(top + "/" + kind, kind)
            for name, call in each_call(top):
                say("%s below a %s" % (name, kind), result(call, "%s/%s/x" % (top, kind)))


@case
def slash_after_the_name(top):
    for kind in TYPES:
        for name, call in each_call(top):
            path = "%s/%s-%s" % (top, kind, name)
            make(path, kind)
            say("%s of a %s and a slash" % (name, kind), result(call, path + "/"), about(path))
    for name, call in each_call(top):
        path = "%s/new-%s" % (top, name)
        say("%s of a new name and a slash" % name, result(call, path + "/"), about(path))


@case
def dots(top):
    os.mkdir(top + "/d")
    for name, call in each_call(top):
        for path in ("d/.", "d/..", "d/../d", "."):
            if name in ("rename-from",) or name == "rmdir" and path == "d/../d":
                continue
            say("%s of %s" % (name, path), result(call, "%s/d/%s" % (top, path) if path == "." else "%s/%s" % (top, path)).replace(top, ""))
            if not os.path.isdir(top + "/d"):
                os.mkdir(top + "/d")


@case
def each_type(top):
    for kind in TYPES:
        for name, call in each_call(top):
            path = "%s/%s-%s" % (top, kind, name)
            make(path, kind)
            say("%s of a %s" % (name, kind), result(call, path), about(path))


@case
def a_name_of_255(top):
    for name, call in each_call(top):
        folder = "%s/%s" % (top, name)
        os.mkdir(folder)
        make(folder + "/" + LONG)
        say("%s of an old name of 255" % name, result(call, folder + "/" + LONG))
        say("%s of a new name of 255" % name, result(call, folder + "/" + LONG.replace("n", "m")))
        say("%s of a name of 256" % name, result(call, folder + "/" + TOO_LONG))
        say("%s below a name of 256" % name, result(call, folder + "/" + TOO_LONG + "/x"))


@case
def long_paths(top):
    with inside(top):
        path = ""
        while len(path) < 3800:
            path += "d" * 200 + "/"
            os.mkdir(path)
        deep = path
        for length in (4093, 4094, 4095, 4096, 4097):
            name = "x" * (length - len(deep))
            for call in ("stat", "create-excl", "unlink", "mkdir", "rmdir", "symlink", "unlink"):
                say("%s of a path of %d" % (call, length), result(path_calls(top)[call], deep + name))


@case
def loops(top):
    os.symlink("b", top + "/a")
    os.symlink("a", top + "/b")
    os.symlink("self", top + "/self")
    for name, call in each_call(top):
        say("%s below a loop" % name, result(call, top + "/a/x"))
        say("%s below itself" % name, result(call, top + "/self/x"))
        if name not in ("unlink", "rename-to", "rename-dir-to", "rename-from"):
            say("%s of a loop" % name, result(call, top + "/a"))
    os.mkdir(top + "/end")
    last = "end"
    for i in range(42):
        os.symlink(last, "%s/l%d" % (top, i))
        last = "l%d" % i
    for i in (30, 38, 39, 40, 41):
        say("stat by %d symlinks" % (i + 1), result(lambda: os.stat("%s/l%d" % (top, i)) and None))


@case
def symlink_targets(top):
    for length in (0, 1, 254, 255, 256, 1023, 2000, 4094, 4095, 4096):
        path = "%s/s%d" % (top, length)
        say("symlink to %d bytes" % length, result(os.symlink, "t" * length, path))
        if os.path.lexists(path):
            say("readlink of %d bytes" % length, len(os.readlink(path)), about(path))


@case
def search_denied(top):
    """The folder's mode by class of user: the calls that need x, and the calls that need w."""
    for mode in (0o000, 0o400, 0o200, 0o100, 0o600, 0o500, 0o300, 0o700):
        for name, call in each_call(top):
            folder = "%s/%o-%s" % (top, mode, name)
            os.mkdir(folder)
            for file in ("x", "y"):
                make(folder + "/" + file)
                os.chown(folder + "/" + file, ALICE, ALICE)
            os.chown(folder, ALICE, ALICE)
            os.chmod(folder, mode)
            os.chmod(top, 0o777)
            with user(ALICE):
                say("%s of an old name in a folder of mode %o" % (name, mode), result(call, folder + "/x"))
                say("%s of a new name in a folder of mode %o" % (name, mode), result(call, folder + "/new"))
                say("%s of a folder of mode %o" % (name, mode), result(call, folder))


@case
def empty_folders_by_mode(top):
    """A user can remove or replace a folder without permission to read the folder."""
    os.chmod(top, 0o777)
    for mode in (0o000, 0o100, 0o300, 0o700):
        for owner in (ALICE, BOB):
            for act in ("rmdir", "move", "replace", "replace-by-own"):
                folder = "%s/%o-%d-%s" % (top, mode, owner, act)
                os.mkdir(folder, 0o777)
                for name in ("x", "own"):
                    os.mkdir(folder + "/" + name)
                    os.chown(folder + "/" + name, owner if name == "x" else ALICE, owner)
                os.chmod(folder + "/x", mode)
                with user(ALICE):
                    said = result({"rmdir": lambda: os.rmdir(folder + "/x"), "move": lambda: os.rename(folder + "/x", folder + "/y"),
                                   "replace": lambda: os.rename(folder + "/x", folder + "/own"),
                                   "replace-by-own": lambda: os.rename(folder + "/own", folder + "/x")}[act])
                say("%s of an empty folder of mode %o of %d" % (act, mode, owner), said, sorted(os.listdir(folder)))


@case
def open_by_mode(top):
    """Owner, group, other and supplementary group against each mode and way to open."""
    os.chmod(top, 0o777)
    for mode in range(8):
        for shift, (uid, gid, groups) in ((6, (ALICE, ALICE, ())), (3, (BOB, STAFF, ())), (3, (BOB, BOB, (STAFF,))), (0, (BOB, BOB, ()))):
            path = "%s/f%o" % (top, mode << shift)
            if not os.path.exists(path):
                put(path)
                os.chown(path, ALICE, STAFF)
                os.chmod(path, mode << shift)
            with user(uid, gid, groups):
                for way, flags in (("r", os.O_RDONLY), ("w", os.O_WRONLY), ("rw", os.O_RDWR), ("rt", os.O_RDONLY | os.O_TRUNC),
                                   ("wt", os.O_WRONLY | os.O_TRUNC), ("rc", os.O_RDONLY | os.O_CREAT)):
                    say("open %s of mode %04o by %d:%d+%s" % (way, mode << shift, uid, gid, list(groups)), result(open_close, path, flags))
                for letter, way in (("r", os.R_OK), ("w", os.W_OK), ("x", os.X_OK)):
                    say("access %s of mode %04o by %d:%d+%s" % (letter, mode << shift, uid, gid, list(groups)),
                        result(os.access, path, way, effective_ids=True))
                say("truncate of mode %04o by %d:%d+%s" % (mode << shift, uid, gid, list(groups)), result(os.truncate, path, 2))
                say("utimens now of mode %04o by %d:%d+%s" % (mode << shift, uid, gid, list(groups)), result(os.utime, path))
                say("utimens of mode %04o by %d:%d+%s" % (mode << shift, uid, gid, list(groups)), result(os.utime, path, (1, 2)))
                say("chmod of mode %04o by %d:%d+%s" % (mode << shift, uid, gid, list(groups)), result(os.chmod, path, mode << shift))
                say("setxattr of mode %04o by %d:%d+%s" % (mode << shift, uid, gid, list(groups)), result(os.setxattr, path, "user.a", b"1"))
                say("getxattr of mode %04o by %d:%d+%s" % (mode << shift, uid, gid, list(groups)), result(os.getxattr, path, "user.a"))
                say("exec of mode %04o by %d:%d+%s" % (mode << shift, uid, gid, list(groups)), os.access(path, os.X_OK, effective_ids=True))


@case
def open_flags(top):
    for kind in TYPES:
        path = "%s/%s" % (top, kind)
        make(path, kind)
        if kind in ("block", "char"):
            continue # it would be a device's own answer
        for flags in itertools.product((os.O_RDONLY, os.O_WRONLY, os.O_RDWR), (0, os.O_CREAT, os.O_CREAT | os.O_EXCL),
                                       (0, os.O_TRUNC), (0, os.O_DIRECTORY), (0, os.O_NOFOLLOW), (0, os.O_APPEND)):
            said = result(open_close, path, sum(flags) | os.O_NONBLOCK)
            say("open of a %s with %o" % (kind, sum(flags)), said, about(path))
            if kind == "symlink" and os.path.exists(top + "/nowhere"):
                os.unlink(top + "/nowhere")
    for mode in (0, 0o444, 0o666, 0o777, 0o1777, 0o2755, 0o4755, 0o6711, 0o7777):
        for mask in (0, 0o022, 0o077, 0o777):
            before = os.umask(mask)
            try:
                for kind in ("regular", "dir", "fifo", "char"):
                    make("%s/m%o-%o-%s" % (top, mode, mask, kind), kind, mode)
                    say("%s made with mode %o and umask %o" % (kind, mode, mask), about("%s/m%o-%o-%s" % (top, mode, mask, kind)))
            finally:
                os.umask(before)
    path = top + "/readonly-create"
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o000)
    say("write to what was made with mode 0", result(os.write, fd, b"abc"), result(os.pread, fd, 3, 0))
    os.close(fd)
    for mode in (0o000, 0o200, 0o444):
        os.chmod(top, 0o777)
        with user(ALICE):
            fd = os.open("%s/own-%o" % (top, mode), os.O_CREAT | os.O_RDWR, mode)
            say("a user writes to what it made with mode %o" % mode, result(os.write, fd, b"abc"), result(os.pread, fd, 3, 0),
                result(os.ftruncate, fd, 1), result(os.fchmod, fd, mode | 0o100), result(os.fsync, fd))
            os.close(fd)
            say("and opens it again", result(open_close, "%s/own-%o" % (top, mode), os.O_RDWR))


@case
def descriptors(top):
    path = top + "/f"
    put(path, b"0123456789")
    for name, flags in (("r", os.O_RDONLY), ("w", os.O_WRONLY), ("path", os.O_PATH)):
        fd = os.open(path, flags)
        for call, function in (("read", lambda: os.read(fd, 1) and None), ("write", lambda: os.write(fd, b"x")), ("ftruncate", lambda: os.ftruncate(fd, 5)),
                               ("fchmod", lambda: os.fchmod(fd, 0o644)), ("fchown", lambda: os.fchown(fd, 0, 0)), ("fsync", lambda: os.fsync(fd)),
                               ("fstat", lambda: os.fstat(fd) and None), ("fallocate", lambda: os.posix_fallocate(fd, 0, 20)),
                               ("futimens", lambda: os.utime(fd, (1, 2))), ("lseek", lambda: os.lseek(fd, 0, os.SEEK_END) and None),
                               ("fsetxattr", lambda: os.setxattr(fd, "user.x", b"1"))):
            say("%s of a descriptor for %s" % (call, name), result(function), about(path))
        os.close(fd)
    fd = os.open(path, os.O_RDWR)
    for offset, whence in itertools.product((-1, 0, 5, 100, 1 << 40), (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END)):
        os.lseek(fd, 3, os.SEEK_SET)
        say("lseek %d from %d" % (offset, whence), result(os.lseek, fd, offset, whence))
    for length in (-1, 0, 1, 4096, 1 << 31, 1 << 32, 1 << 40):
        say("ftruncate to %d" % length, result(os.ftruncate, fd, length), about(path))
        say("truncate to %d" % length, result(os.truncate, path, length), about(path))
    for offset, length in itertools.product((-1, 0, 4095, 1 << 33), (-1, 0, 1, 8192)):
        say("posix_fallocate %d %d" % (offset, length), result(os.posix_fallocate, fd, offset, length), about(path))
        os.ftruncate(fd, 10)
    say("read of a folder", result(lambda: os.read(os.open(top, os.O_RDONLY), 10)))
    say("fsync of a folder", result(lambda: os.fsync(os.open(top, os.O_RDONLY))))
    say("ftruncate of a folder", result(lambda: os.ftruncate(os.open(top, os.O_RDONLY), 1)))
    os.unlink(path)
    for call, function in (("fchmod", lambda: os.fchmod(fd, 0o600)), ("fchown", lambda: os.fchown(fd, ALICE, BOB)), ("write", lambda: os.pwrite(fd, b"abc", 0)),
                           ("ftruncate", lambda: os.ftruncate(fd, 7)), ("futimens", lambda: os.utime(fd, (1, 2))), ("fsync", lambda: os.fsync(fd)),
                           ("fsetxattr", lambda: os.setxattr(fd, "user.x", b"1")), ("fgetxattr", lambda: os.getxattr(fd, "user.x")),
                           ("flistxattr", lambda: sorted(n for n in os.listxattr(fd) if n.startswith("user"))),
                           ("fremovexattr", lambda: os.removexattr(fd, "user.x")), ("read", lambda: os.pread(fd, 10, 0))):
        info = os.fstat(fd)
        say("%s of what was unlinked" % call, result(function), oct(info.st_mode), info.st_uid, info.st_gid, info.st_size, info.st_nlink)
    info = os.fstat(fd)
    say("in the end", oct(info.st_mode), info.st_uid, info.st_gid, info.st_size, info.st_nlink)
    say("open by /proc of what was unlinked", result(open_close, "/proc/self/fd/%d" % fd, os.O_RDWR))
    os.close(fd)


@case
def rename_types(top):
    for source, target in itertools.product(TYPES, TYPES + ("none", "full-dir")):
        folder = "%s/%s-%s" % (top, source, target)
        os.mkdir(folder)
        make(folder + "/a", source)
        if target == "full-dir":
            os.mkdir(folder + "/b")
            make(folder + "/b/x")
        elif target != "none":
            make(folder + "/b", target)
        say("rename a %s to a %s" % (source, target), result(os.rename, folder + "/a", folder + "/b"), "|", about(folder + "/a"), "|",
            about(folder + "/b"), "|", sorted(os.listdir(folder)))


@case
def rename_shapes(top):
    with inside(top):
        os.makedirs("a/b/c")
        put("f")
        os.link("f", "g")
        for source, target in (("a", "a/b"), ("a", "a/x"), ("a", "a/b/c/x"), ("a/b", "a"), ("a/b/c", "a"), ("a/b/c", "a/b"), ("a", "a"), ("a/.", "x"),
                               ("a/..", "x"), (".", "x"), ("..", "x"), ("x", "."), ("a", "."), ("a", "a/."), ("f", "g"), ("f", "f"), ("f", "./f"), ("f", ""), ("", "f"),
                               ("f", "a/"), ("f", "new/"), ("a", "new/"), ("new", "a/")):
            say("rename %s to %s" % (source, target), result(os.rename, source, target), sorted(os.listdir(".")), about("f"), about("g"))
        os.makedirs("p/q")
        os.makedirs("r")
        say("rename into another folder", moved(lambda: os.rename("p/q", "r/q"), "p", "r"), result(lambda: os.stat("r/q/..").st_ino == os.stat("r").st_ino))
        say("back", moved(lambda: os.rename("r/q", "p/z"), "r", "p"), result(lambda: os.stat("p/z/..").st_ino == os.stat("p").st_ino))


@case
def sticky(top):
    """The users that may remove a name from a sticky folder, by owner of the folder and owner of the file."""
    for folder_owner, file_owner, who, kind in itertools.product((0, ALICE, BOB), (0, ALICE, BOB), (ALICE,), ("regular", "dir", "symlink", "fifo")):
        for mode in (0o777, 0o1777):
            for act in ("remove", "move", "over", "move-dir"):
                folder = "%s/%d-%d-%s-%o-%s" % (top, folder_owner, file_owner, kind, mode, act)
                os.mkdir(folder)
                make(folder + "/x", kind)
                if act == "over":
                    make(folder + "/own", kind)
                    os.lchown(folder + "/own", who, who)
                if act == "move-dir":
                    os.mkdir(folder + "/to")
                    os.chown(folder + "/to", who, who)
                os.lchown(folder + "/x", file_owner, file_owner)
                os.chown(folder, folder_owner, folder_owner)
                os.chmod(folder, mode)
                acts = {"remove": lambda: (os.rmdir if kind == "dir" else os.unlink)(folder + "/x"),
                        "move": lambda: os.rename(folder + "/x", folder + "/y"),
                        "over": lambda: os.rename(folder + "/own", folder + "/x"),
                        "move-dir": lambda: os.rename(folder + "/x", folder + "/to/x")}
                with user(who):
                    said = result(acts[act])
                say("%s a %s of %d in a folder %o of %d" % (act, kind, file_owner, mode, folder_owner), said, sorted(os.listdir(folder)))


@case
def chmod_rules(top):
    os.chmod(top, 0o777)
    for kind in ("regular", "dir", "fifo", "socket"):
        for mode in (0, 0o111, 0o644, 0o777, 0o1644, 0o2644, 0o4644, 0o2755, 0o4755, 0o6755, 0o7777):
            for uid, gid, groups in ((0, 0, ()), (ALICE, ALICE, ()), (ALICE, ALICE, (STAFF,)), (ALICE, STAFF, ()), (BOB, STAFF, ())):
                path = "%s/%s-%o-%d-%d-%d" % (top, kind, mode, uid, gid, len(groups))
                make(path, kind)
                os.chown(path, ALICE, STAFF)
                with user(uid, gid, groups):
                    said = moved(lambda: os.chmod(path, mode), path)
                say("chmod %o of a %s by %d:%d+%s" % (mode, kind, uid, gid, list(groups)), said, about(path))


@case
def chown_rules(top):
    os.chmod(top, 0o777)
    for kind in ("regular", "dir", "symlink"):
        for mode in (0o644, 0o755, 0o2644, 0o2755, 0o4755, 0o6755, 0o6777, 0o7711, 0o6600):
            if kind == "symlink" and mode != 0o644:
                continue
            for uid, groups in ((0, ()), (ALICE, (STAFF,)), (BOB, (STAFF,))):
                for owner, group in ((FAR, FAR), (ALICE, FAR), (BOB, FAR), (0, FAR), (FAR, STAFF), (FAR, GUESTS), (ALICE, STAFF), (BOB, STAFF), (FAR, ALICE), (FAR, 0)):
                    path = "%s/%s-%o-%d-%d-%d" % (top, kind, mode, uid, owner, group)
                    make(path, kind)
                    os.lchown(path, ALICE, ALICE)
                    if kind != "symlink":
                        os.chmod(path, mode)
                    with user(uid, uid, groups):
                        said = moved(lambda: os.lchown(path, owner, group), path)
                    say("chown %d:%d of a %s of %o by %d+%s" % (owner, group, kind, mode, uid, list(groups)), said, about(path))


@case
def bits_that_go(top):
    """Writing and truncating by others takes the set-id bits away."""
    os.chmod(top, 0o777)
    for mode in (0o4777, 0o2777, 0o6777, 0o2767, 0o6766, 0o1777, 0o7777):
        for uid, groups in ((0, ()), (ALICE, (STAFF,)), (BOB, ()), (BOB, (STAFF,))):
            for act in ("write", "truncate", "ftruncate", "open-trunc", "fallocate", "empty-write", "append", "mmap", "setxattr", "utimens", "copy"):
                path = "%s/%o-%d-%d-%s" % (top, mode, uid, len(groups), act)
                put(path)
                os.chown(path, ALICE, STAFF)
                os.chmod(path, mode)

                def run():
                    if act == "truncate":
                        return os.truncate(path, 1)
                    if act == "open-trunc":
                        return open_close(path, os.O_WRONLY | os.O_TRUNC)
                    if act == "setxattr":
                        return os.setxattr(path, "user.a", b"1")
                    if act == "utimens":
                        return os.utime(path)
                    fd = os.open(path, os.O_RDWR | (os.O_APPEND if act == "append" else 0))
                    try:
                        if act == "ftruncate":
                            return os.ftruncate(fd, 1)
                        if act == "fallocate":
                            return os.posix_fallocate(fd, 0, 100)
                        if act == "copy":
                            source = os.open("/proc/version", os.O_RDONLY)
                            try:
                                return os.sendfile(fd, source, 0, 10) and None
                            finally:
                                os.close(source)
                        if act == "mmap":
                            import mmap
                            with mmap.mmap(fd, 4) as memory:
                                memory[0:1] = b"x"
                                memory.flush()
                            return None
                        return os.write(fd, b"" if act == "empty-write" else b"x")
                    finally:
                        os.close(fd)
                with user(uid, uid, groups):
                    said = result(run)
                say("%s of mode %o by %d+%s" % (act, mode, uid, list(groups)), said, about(path))


@case
def utimens_rules(top):
    os.chmod(top, 0o777)
    wanted = ((0, 0), (1, 1), (-1, -1), (2 ** 31 - 1, 2 ** 31), (2 ** 32 - 1, 2 ** 32), (2 ** 33 + 5, 7))
    for kind in TYPES:
        for a, m in wanted:
            for nano in (0, 1, 999999999):
                path = "%s/%s" % (top, kind)
                if not os.path.lexists(path):
                    make(path, kind)
                said = result(lambda: os.utime(path, ns=(a * 10 ** 9 + nano, m * 10 ** 9 + nano), follow_symlinks=False))
                say("utimens %d %d .%d of a %s" % (a, m, nano, kind), said, *times(path)[:2])
    for mode, (uid, gid) in itertools.product((0o000, 0o444, 0o666, 0o222), ((0, 0), (ALICE, ALICE), (BOB, BOB))):
        for what, ns in (("now", None), ("both", (10 ** 9, 2 * 10 ** 9))):
            path = "%s/%o-%d-%s" % (top, mode, uid, what)
            put(path)
            os.chown(path, ALICE, ALICE)
            os.chmod(path, mode)
            with user(uid, gid):
                said = moved(lambda: os.utime(path, **({} if ns is None else {"ns": ns})), path)
            say("utimens %s of mode %o by %d" % (what, mode, uid), said)


@case
def times_of_parents(top):
    """The times that change on the object and on its folder, after success and after failure."""
    with inside(top):
        os.mkdir("d")
        os.mkdir("e")
        for kind in TYPES:
            say("make a %s" % kind, moved(lambda: make("d/" + kind, kind), "d"))
        for kind in TYPES:
            if kind != "dir":
                say("link a %s" % kind, moved(lambda: os.link("d/" + kind, "e/l-" + kind, follow_symlinks=False), "d", "e", "d/" + kind))
        for kind in TYPES:
            say("make a %s that is there" % kind, moved(lambda: make("d/" + kind, kind), "d", "d/" + kind))
            say("rename a %s" % kind, moved(lambda: os.rename("d/" + kind, "d/r-" + kind), "d"))
            say("rename a %s to another folder" % kind, moved(lambda: os.rename("d/r-" + kind, "e/" + kind), "d", "e"))
        for kind in TYPES:
            if kind != "dir":
                say("unlink a %s that has another name" % kind, moved(lambda: os.unlink("e/" + kind), "e", "e/l-" + kind))
        make("e/dir/x")
        say("rmdir of what is not empty", moved(lambda: os.rmdir("e/dir"), "e", "e/dir"))
        say("unlink of a folder", moved(lambda: os.unlink("e/dir"), "e", "e/dir"))
        say("chmod to the same", moved(lambda: os.chmod("e/dir", 0o755), "e/dir"))
        put("f")
        for name, call in (("write", lambda: put("f")), ("truncate to another size", lambda: os.truncate("f", 1)), ("truncate to the same size", lambda: os.truncate("f", 1)),
                           ("chmod", lambda: os.chmod("f", 0o600)), ("chown", lambda: os.chown("f", 1, 1)), ("setxattr", lambda: os.setxattr("f", "user.a", b"1")),
                           ("removexattr", lambda: os.removexattr("f", "user.a")), ("read", lambda: open("f").read() and None), ("utimens", lambda: os.utime("f", (1, 1))),
                           ("open for writing", lambda: open_close("f", os.O_WRONLY)), ("open for reading and creating", lambda: open_close("f", os.O_RDONLY | os.O_CREAT))):
            say("%s moves" % name, moved(call, "f", "."))


@case
def groups_of_new(top):
    """Owner, group and bits of a user's new objects in folders with and without set-gid."""
    for mode, (uid, gid, groups) in itertools.product((0o777, 0o2777, 0o1777, 0o3777), ((0, 0, ()), (ALICE, ALICE, ()), (ALICE, GUESTS, (STAFF,)), (BOB, BOB, (STAFF,)))):
        folder = "%s/%o-%d-%d" % (top, mode, uid, gid)
        os.mkdir(folder)
        os.chown(folder, CAROL, STAFF)
        os.chmod(folder, mode)
        for kind in ("regular", "dir", "fifo", "symlink", "socket"):
            for bits in (0o644, 0o2755, 0o6755, 0o2644):
                path = "%s/%s-%o" % (folder, kind, bits)
                with user(uid, gid, groups):
                    said = result(make, path, kind, bits)
                say("%s of %o in a folder %o by %d:%d+%s" % (kind, bits, mode, uid, gid, list(groups)), said, about(path))


@case
def mknod_by_users(top):
    os.chmod(top, 0o777)
    for kind in TYPES:
        with user(ALICE):
            say("a user makes a %s" % kind, result(make, "%s/%s" % (top, kind), kind), about("%s/%s" % (top, kind)))


@case
def link_rules(top):
    with inside(top):
        for kind in TYPES:
            make(kind, kind)
            say("link a %s" % kind, result(lambda: os.link(kind, kind + "-2", follow_symlinks=False)), about(kind), about(kind + "-2"))
        for first, second in itertools.product(TYPES, TYPES):
            say("link a %s over a %s" % (first, second), result(lambda: os.link(first, second, follow_symlinks=False)))
        os.symlink("regular", "to-regular")
        os.symlink("dir", "to-dir")
        for name in ("to-regular", "to-dir"):
            say("link %s" % name, result(lambda: os.link(name, name + "-2", follow_symlinks=False)), about(name + "-2"))
            fd = os.open(name, os.O_PATH)
            say("link by descriptor of %s" % name, result(lambda: os.link("/proc/self/fd/%d" % fd, name + "-3", follow_symlinks=True)), about(name + "-3"))
            os.close(fd)
        for i in range(90):
            os.link("regular", "many%d" % i)
        say("with 90 more", about("regular"))
        for i in range(0, 90, 2):
            os.unlink("many%d" % i)
        say("with 45 more", about("regular"), about("many1"))
        os.mkdir("other")
        os.chown("other", ALICE, ALICE)
        os.chown("regular", BOB, BOB)
        with user(ALICE):
            say("a user links another's file", result(os.link, "regular", "other/l") in ("ok", "EPERM"))


@case
def folders(top):
    with inside(top):
        os.mkdir("d")
        for path in ("d", "d/", "d/.", "d/..", ".", "..", "", "/"):
            say("mkdir %r" % path, result(os.mkdir, path))
            if path not in ("d", "d/"):
                say("rmdir %r" % path, result(os.rmdir, path))
        for kind in TYPES:
            os.mkdir("full-" + kind)
            make("full-%s/x" % kind, kind)
            say("rmdir of a folder with a %s" % kind, result(os.rmdir, "full-" + kind))
        os.mkdir("gone")
        fd = os.open("gone", os.O_RDONLY)
        os.chdir("gone")
        os.rmdir(top + "/gone")
        say("in a folder that is gone: list", result(os.listdir, "."))
        say("make", result(os.mkdir, "x"), result(open_close, "x", os.O_CREAT | os.O_WRONLY), result(os.symlink, "a", "x"), result(os.mkfifo, "x"))
        say("stat", result(lambda: os.stat(".") and None), result(lambda: os.stat("x") and None), result(lambda: os.fstat(fd) and None))
        say("link and rename into it", result(os.rename, top + "/d", "x"), result(os.getcwd))
        os.close(fd)
        os.chdir(top)
        links = os.stat(".").st_nlink
        say("all names", sorted(os.listdir(".")))


@case
def xattr_rules(top):
    os.chmod(top, 0o777)
    for kind in TYPES:
        path = "%s/%s" % (top, kind)
        make(path, kind)
        for name in ("user.a", "trusted.a", "security.a", "nonsense", "other.a", "user.", "user." + "n" * 250, "user." + "n" * 251):
            for uid in (0, ALICE):
                with user(uid):
                    said = [result(os.setxattr, path, name, b"1", follow_symlinks=False), result(os.getxattr, path, name, follow_symlinks=False),
                            result(os.removexattr, path, name, follow_symlinks=False)]
                say("xattr %s of a %s by %d" % (name[:12] + str(len(name)), kind, uid), *said)
    path = top + "/values"
    put(path)
    for size in (0, 1, 100, 4000):
        say("xattr of %d bytes" % size, result(os.setxattr, path, "user.v", b"v" * size), result(lambda: len(os.getxattr(path, "user.v"))))
    say("more than 64 KiB", result(os.setxattr, path, "user.v", b"v" * 65537))
    for flags in (0, os.XATTR_CREATE, os.XATTR_REPLACE, os.XATTR_CREATE | os.XATTR_REPLACE):
        for there in (False, True):
            if there:
                os.setxattr(path, "user.f", b"1")
            elif "user.f" in os.listxattr(path):
                os.removexattr(path, "user.f")
            say("setxattr with %d when it is %sthere" % (flags, "" if there else "not "), result(os.setxattr, path, "user.f", b"2", flags),
                result(os.getxattr, path, "user.f"))
    os.mkdir(top + "/sticky")
    os.chmod(top + "/sticky", 0o1777)
    with user(ALICE):
        say("a user's xattr on another's sticky folder", result(os.setxattr, top + "/sticky", "user.a", b"1"))


def main():
    top = os.path.abspath(sys.argv[1])
    only = sys.argv[3] if sys.argv[2:3] == ["--only"] else ""
    os.umask(0)
    for number, function in enumerate(CASES):
        if only not in function.__name__:
            continue
        folder = "%s/case%d" % (top, number)
        os.mkdir(folder, 0o755)
        started = time.monotonic()
        try:
            function(folder)
        except OSError as error:
            say("%s: gave up" % function.__name__, error)
        finally:
            os.chdir("/")
        sys.stdout.flush()
        print("%s: %.1f s" % (function.__name__, time.monotonic() - started), file=sys.stderr)


main()
