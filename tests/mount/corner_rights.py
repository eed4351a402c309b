#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Cases of posix_corners.py: the rights of owner, group, supplementary group and others."""
import itertools
import os
import stat

from corner import (ALICE, BOB, CAROL, FAR, GUESTS, STAFF, TYPES, about, case, inside, make, open_close, path_calls, put, result, say, user)

# All objects belong to ALICE and STAFF here. For each class of users: the position of its bits in a mode, and a member of the
# class.
CLASSES = {
    "owner": (6, (ALICE, ALICE, ())),
    "group": (3, (BOB, STAFF, ())),
    "member": (3, (BOB, BOB, (GUESTS, STAFF))),
    "other": (0, (CAROL, CAROL, (GUESTS,))),
}


def mode_of(shift, bits, rest):
    """The class has these bits, the other two have `rest`."""
    return sum((bits if place == shift else rest) << place for place in (6, 3, 0))


def own(path, mode, uid=ALICE, gid=STAFF):
    os.lchown(path, uid, gid)
    if not os.path.islink(path):
        os.chmod(path, mode)


# Calls that change names in a folder, prepared by root and done by a user. D: the folder, E: a folder in which every user may
# do everything.
NAME_CALLS = {
    "create": (None, lambda d, e, n: open_close(d + n, os.O_WRONLY | os.O_CREAT)),
    "create-excl": (None, lambda d, e, n: open_close(d + n, os.O_WRONLY | os.O_CREAT | os.O_EXCL)),
    "mkdir": (None, lambda d, e, n: os.mkdir(d + n)),
    "mkfifo": (None, lambda d, e, n: os.mkfifo(d + n)),
    "mknod-char": (None, lambda d, e, n: os.mknod(d + n, stat.S_IFCHR | 0o666, os.makedev(1, 3))),
    "mknod-regular": (None, lambda d, e, n: os.mknod(d + n, stat.S_IFREG | 0o666)),
    "symlink": (None, lambda d, e, n: os.symlink("x", d + n)),
    "bind": (None, lambda d, e, n: make(d + n, "socket")),
    "unlink": ("regular", lambda d, e, n: os.unlink(d + n)),
    "unlink-fifo": ("fifo", lambda d, e, n: os.unlink(d + n)),
    "unlink-symlink": ("symlink", lambda d, e, n: os.unlink(d + n)),
    "rmdir": ("dir", lambda d, e, n: os.rmdir(d + n)),
    "move": ("regular", lambda d, e, n: os.rename(d + n, d + n + "2")),
    "move-dir": ("dir", lambda d, e, n: os.rename(d + n, d + n + "2")),
    "move-out": ("regular", lambda d, e, n: os.rename(d + n, e + n)),
    "move-dir-out": ("dir", lambda d, e, n: os.rename(d + n, e + n)),
    "move-in": (None, lambda d, e, n: os.rename(e + n, d + n)),
    "replace": ("regular", lambda d, e, n: os.rename(e + n, d + n)),
    "link-in": (None, lambda d, e, n: os.link(e + n, d + n)),
    "link-out": ("regular", lambda d, e, n: os.link(d + n, e + n)),
    "link-within": ("regular", lambda d, e, n: os.link(d + n, d + n + "2")),
    "stat": ("regular", lambda d, e, n: os.stat(d + n) and None),
    "stat-of-none": (None, lambda d, e, n: os.stat(d + n) and None),
    "open": ("regular", lambda d, e, n: open_close(d + n, os.O_RDWR)),
    "truncate": ("regular", lambda d, e, n: os.truncate(d + n, 3)),
    "chmod": ("regular", lambda d, e, n: os.chmod(d + n, 0o640)),
    "chown": ("regular", lambda d, e, n: os.chown(d + n, FAR, FAR)),
    "utimens": ("regular", lambda d, e, n: os.utime(d + n)),
    "readlink": ("symlink", lambda d, e, n: os.readlink(d + n)),
    "setxattr": ("regular", lambda d, e, n: os.setxattr(d + n, "user.a", b"1")),
    "rmdir-of-full": ("full", lambda d, e, n: os.rmdir(d + n)),
    "rmdir-of-file": ("regular", lambda d, e, n: os.rmdir(d + n)),
    "unlink-of-dir": ("dir", lambda d, e, n: os.unlink(d + n)),
    "mkdir-of-old": ("dir", lambda d, e, n: os.mkdir(d + n)),
    "create-of-old": ("regular", lambda d, e, n: open_close(d + n, os.O_WRONLY | os.O_CREAT | os.O_EXCL)),
    "link-over-old": ("regular", lambda d, e, n: os.link(e + n, d + n)),
}


def make_own(path, kind):
    make(path, "dir" if kind == "full" else kind, 0o777)
    os.lchown(path, ALICE, STAFF)
    if kind == "full":
        make(path + "/in-it")


@case
def names_by_class(top):
    """Every change of names in a folder of each mode, by owner, group, member and others."""
    os.mkdir(top + "/e")
    os.chmod(top + "/e", 0o777)
    for bits, (who, (shift, ids)), rest in itertools.product(range(8), CLASSES.items(), (0, 7)):
        mode = mode_of(shift, bits, rest)
        folder = "%s/%s-%o" % (top, who, mode)
        os.mkdir(folder)
        for name, (kind, _) in NAME_CALLS.items():
            if kind:
                make_own("%s/%s-" % (folder, name), kind)
            if name in ("move-in", "replace", "link-in", "link-over-old"):
                make_own("%s/e/%s-%s-%o" % (top, name, who, mode), "regular")
        own(folder, mode)
        with user(*ids):
            for name, (_, call) in NAME_CALLS.items():
                # The name outside has to be unique, the name inside has to be the prepared name.
                def run():
                    if name in ("move-in", "replace", "link-in", "link-over-old"):
                        function = os.rename if name in ("move-in", "replace") else os.link
                        return function("%s/e/%s-%s-%o" % (top, name, who, mode), "%s/%s-" % (folder, name))
                    if name in ("move-out", "move-dir-out", "link-out"):
                        function = os.link if name == "link-out" else os.rename
                        return function("%s/%s-" % (folder, name), "%s/e/%s-%s-%o" % (top, name, who, mode))
                    return call(folder, top + "/e", "/%s-" % name)
                say("%s in a folder %04o by its %s" % (name, mode, who), result(run))
        say("names in a folder %04o after its %s" % (mode, who), " ".join(sorted(os.listdir(folder))))


@case
def a_way_without_search(top):
    """A folder above the working folder, without search permission for the user: calls by path, by the working folder and by descriptor."""
    os.makedirs(top + "/far/mid/near")
    for folder in ("far", "far/mid", "far/mid/near"):
        own("%s/%s" % (top, folder), 0o777)
    for bits, (who, (shift, ids)) in itertools.product((0, 1, 4, 5, 6, 7), CLASSES.items()):
        mode = mode_of(shift, bits, 7)
        os.chmod(top + "/far", mode)
        for name, call in path_calls(top + "/far/mid").items():
            if name == "chdir":
                continue
            make(top + "/far/mid/near/x")
            own(top + "/far/mid/near/x", 0o666)
            os.chmod(top + "/far/mid", 0o777)
            with user(*ids):
                said = result(call, top + "/far/mid/near/x")
            say("%s below a folder %04o by its %s" % (name, mode, who), said.replace(top, ""))
            for left in os.listdir(top + "/far/mid/near"):
                path = top + "/far/mid/near/" + left
                os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
            for left in os.listdir(top + "/far/mid"):
                path = top + "/far/mid/" + left
                if left != "near":
                    os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
        fd = os.open(top + "/far/mid/near", os.O_RDONLY)
        with inside(top + "/far/mid/near"), user(*ids):
            say("inside, below a folder %04o, by its %s" % (mode, who), result(os.mkdir, "d"), result(open_close, "f", os.O_CREAT | os.O_RDWR),
                result(lambda: sorted(os.listdir("."))), result(lambda: os.stat("../near") and None), result(lambda: os.stat("../../mid") and None))
            say("by descriptor, below a folder %04o, by its %s" % (mode, who), result(os.mkdir, "e", dir_fd=fd), result(os.rename, "f", "g", src_dir_fd=fd, dst_dir_fd=fd),
                result(os.unlink, "g", dir_fd=fd), result(os.rmdir, "d", dir_fd=fd), result(os.rmdir, "e", dir_fd=fd), sorted(os.listdir(fd)))
        os.close(fd)
        for left in os.listdir(top + "/far/mid/near"):
            path = top + "/far/mid/near/" + left
            os.rmdir(path) if os.path.isdir(path) else os.unlink(path)


@case
def folders_moved_by_users(top):
    """A move of a folder to another parent changes the folder's `..`: a user without write permission on the folder cannot move it."""
    os.chmod(top, 0o777)
    for mode, owner, where, full in itertools.product((0o000, 0o100, 0o200, 0o300, 0o555, 0o755, 0o777), (ALICE, BOB), ("here", "there", "over"), (False, True)):
        base = "%s/%o-%d-%s-%d" % (top, mode, owner, where, full)
        for folder in (base, base + "/from", base + "/to", base + "/from/d"):
            os.mkdir(folder, 0o777)
        if full:
            make(base + "/from/d/x")
        if where == "over":
            os.mkdir(base + "/to/d", 0o777)
            os.chown(base + "/to/d", ALICE, ALICE)
        own(base + "/from/d", mode, owner, owner)
        target = base + ("/from/n" if where == "here" else "/to/d")
        with user(ALICE):
            said = result(os.rename, base + "/from/d", target)
        say("move a %sfolder %04o of %d %s" % ("full " if full else "", mode, owner, where), said, sorted(os.listdir(base + "/from")), sorted(os.listdir(base + "/to")))


@case
def sticky_both_ways(top):
    """A sticky source, a sticky target, or both; the replaced object belongs to the user, to another user, or to root."""
    os.chmod(top, 0o777)
    kinds = (("regular", "regular"), ("dir", "dir"), ("symlink", "regular"), ("fifo", "symlink"))
    for (kind, old), mine, theirs, source, target in itertools.product(kinds, (0, ALICE, BOB), (None, 0, ALICE, BOB), (0o777, 0o1777), (0o777, 0o1777)):
        base = "%s/%s-%s-%d-%s-%o-%o" % (top, kind, old, mine, theirs, source, target)
        os.mkdir(base, 0o777)
        for name, mode in (("from", source), ("to", target)):
            os.mkdir("%s/%s" % (base, name))
            own("%s/%s" % (base, name), mode, CAROL, STAFF)
        make(base + "/from/x", kind, 0o777)
        os.lchown(base + "/from/x", mine, STAFF)
        if theirs is not None:
            make(base + "/to/x", old, 0o777)
            os.lchown(base + "/to/x", theirs, STAFF)
        with user(ALICE, ALICE, (STAFF,)):
            said = result(os.rename, base + "/from/x", base + "/to/x")
        say("rename a %s of %d from %o to %o over a %s of %s" % (kind, mine, source, target, old, theirs), said, sorted(os.listdir(base + "/from")),
            about(base + "/to/x"))


@case
def sticky_by_root_and_owner(top):
    """The folder's owner and root may, a member of its group may not."""
    os.chmod(top, 0o777)
    for (who, ids), kind, act in itertools.product((("root", (0, 0, ())), ("owner", (CAROL, CAROL, ())), ("member", (ALICE, STAFF, ())), ("other", (ALICE, ALICE, ()))),
                                                   TYPES, ("remove", "move", "chmod", "link")):
        folder = "%s/%s-%s-%s" % (top, who, kind, act)
        os.mkdir(folder)
        make(folder + "/x", kind, 0o666)
        os.lchown(folder + "/x", BOB, STAFF)
        own(folder, 0o1777, CAROL, STAFF)
        acts = {"remove": lambda: (os.rmdir if kind == "dir" else os.unlink)(folder + "/x"), "move": lambda: os.rename(folder + "/x", folder + "/y"),
                "chmod": lambda: os.chmod(folder + "/x", 0o600), "link": lambda: os.link(folder + "/x", folder + "/y", follow_symlinks=False)}
        if act == "chmod" and kind == "symlink":
            continue
        with user(*ids):
            said = result(acts[act])
        say("%s a %s of another in a sticky folder by %s" % (act, kind, who), said, sorted(os.listdir(folder)))


@case
def attributes_by_class(top):
    """chmod, chown, utimens, truncate, xattrs of each type by everybody, with every bit set: modes give no right to attributes."""
    os.chmod(top, 0o777)
    for kind, (who, (_, ids)), mode in itertools.product(TYPES, CLASSES.items(), (0o000, 0o777)):
        for name, call in (("chmod", lambda p: os.chmod(p, 0o1751)), ("chown to oneself", lambda p: os.lchown(p, ids[0], ids[1])), ("chown to nobody", lambda p: os.lchown(p, FAR, FAR)),
                           ("chgrp to the same", lambda p: os.lchown(p, FAR, STAFF)), ("chgrp to a stranger", lambda p: os.lchown(p, FAR, 21200)),
                           ("chgrp to one's supplementary group", lambda p: os.lchown(p, FAR, GUESTS)), ("give away", lambda p: os.lchown(p, CAROL, FAR)),
                           ("utimens now", lambda p: os.utime(p, follow_symlinks=False)), ("utimens", lambda p: os.utime(p, (1, 2), follow_symlinks=False)),
                           ("truncate", lambda p: os.truncate(p, 9)), ("setxattr", lambda p: os.setxattr(p, "user.a", b"1")),
                           ("getxattr", lambda p: os.getxattr(p, "user.a")), ("readlink", os.readlink), ("access", lambda p: os.access(p, os.R_OK | os.W_OK, effective_ids=True))):
            path = "%s/%s-%s-%o" % (top, kind, who, mode)
            if kind == "symlink" and name in ("chmod", "truncate", "setxattr", "getxattr", "access"):
                continue
            make(path, kind, mode)
            own(path, mode)
            with user(*ids):
                said = result(call, path)
            say("%s of a %s %04o by its %s" % (name, kind, mode, who), said, about(path))
            os.rmdir(path) if kind == "dir" else os.unlink(path)


@case
def rights_stay_with_descriptors(top):
    """An open file stays open after any change of the mode, the owner and the name."""
    os.chmod(top, 0o777)
    for way, flags in (("r", os.O_RDONLY), ("w", os.O_WRONLY), ("rw", os.O_RDWR)):
        for change in ("chmod", "chown", "unlink", "rename", "parent"):
            folder = "%s/%s-%s" % (top, way, change)
            path = folder + "/x"
            os.mkdir(folder, 0o777)
            put(path, b"0123456789")
            own(path, 0o666)
            with user(BOB):
                fd = os.open(path, flags)
            {"chmod": lambda: os.chmod(path, 0), "chown": lambda: os.chown(path, CAROL, CAROL), "unlink": lambda: os.unlink(path),
             "rename": lambda: os.rename(path, path + "2"), "parent": lambda: os.chmod(folder, 0)}[change]()
            with user(BOB):
                say("open for %s, then %s" % (way, change), result(os.pread, fd, 3, 0), result(os.pwrite, fd, b"ab", 4), result(os.ftruncate, fd, 7),
                    result(os.posix_fallocate, fd, 0, 8), result(os.fsync, fd), os.fstat(fd).st_size, result(os.fchmod, fd, 0o600),
                    result(os.fchown, fd, BOB, BOB), result(os.utime, fd), result(os.setxattr, fd, "user.a", b"1"), result(open_close, "/proc/self/fd/%d" % fd, flags))
            os.close(fd)


@case
def groups_by_the_dozen(top):
    """A right by the first, a middle or the last of many supplementary groups."""
    for count, number in itertools.product((1, 16, 17, 32, 33, 80, 83), ("first", "middle", "last", "none")):
        groups = [22000 + i for i in range(count)]
        mine = {"first": groups[0], "middle": groups[count // 2], "last": groups[-1], "none": 23000}[number]
        folder = "%s/%d-%s" % (top, count, number)
        os.mkdir(folder)
        put(folder + "/x")
        own(folder + "/x", 0o060, ALICE, mine)
        own(folder, 0o070, ALICE, mine)
        with user(BOB, BOB, groups):
            say("by the %s of %d groups" % (number, count), result(open_close, folder + "/x", os.O_RDWR), result(os.mkdir, folder + "/d"), result(os.unlink, folder + "/x"),
                result(os.rename, folder + "/d", folder + "/e"), result(lambda: sorted(os.listdir(folder))))


@case
def effective_ids(top):
    """Effective ids decide; real ids count only for access()."""
    os.chmod(top, 0o777)
    for mode in (0o600, 0o060, 0o006, 0o640):
        path = "%s/%o" % (top, mode)
        put(path)
        own(path, mode)
        for real, effective in itertools.product((0, ALICE, BOB), (ALICE, BOB)):
            os.setresgid(real, effective, 0)
            os.setresuid(real, effective, 0)
            try:
                said = [result(open_close, path, os.O_RDWR), result(os.access, path, os.R_OK | os.W_OK), result(os.chmod, path, mode),
                        result(make, "%s-%d-%d" % (path, real, effective))]
            finally:
                os.setresuid(0, 0, 0)
                os.setresgid(0, 0, 0)
            say("mode %04o by %d as %d" % (mode, real, effective), *said, about("%s-%d-%d" % (path, real, effective)))


@case
def links_by_users(top):
    """Hard links: the folder's rights count, and the kernel's rule about files of other users."""
    os.chmod(top, 0o777)
    for kind, owner, mode, target in itertools.product(("regular", "fifo", "symlink", "dir"), (ALICE, BOB, 0), (0o000, 0o444, 0o666, 0o4755), (0o777, 0o555)):
        base = "%s/%s-%d-%o-%o" % (top, kind, owner, mode, target)
        os.mkdir(base, 0o777)
        os.mkdir(base + "/to")
        make(base + "/x", kind)
        own(base + "/x", mode, owner, owner)
        own(base + "/to", target, CAROL, CAROL)
        with user(ALICE):
            said = result(os.link, base + "/x", base + "/to/x", follow_symlinks=False)
        say("link a %s %04o of %d to a folder %o" % (kind, mode, owner, target), said, about(base + "/x"), "|", about(base + "/to/x"))
