#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Calls on files of a dispersed volume, for comparing the refusals of two clients.

    quorum_work.py prepare DIR    makes DIR and its files
    quorum_work.py changes DIR    makes each change once; prints a line with the change and "ok" or the name of the error
    quorum_work.py looks DIR      the same for calls that change nothing
"""
import ctypes
import errno
import fcntl
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
files = ("append", "chmod", "cut", "empty", "fallocate", "link", "punch", "rename", "same", "truncate", "unlink", "write", "xattr")


def with_fd(path, flags, work):
    fd = os.open(path, flags)
    try:
        return work(fd)
    finally:
        os.close(fd)  # reports the error of a write that the mount has answered early


def fallocate(fd, mode, offset, length):
    if libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)):
        raise OSError(ctypes.get_errno(), "fallocate")


def lock(fd):
    fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.lockf(fd, fcntl.LOCK_UN)


def prepare(root):
    os.mkdir(root)
    for name in files:
        with open(os.path.join(root, name), "wb") as f:
            f.write(os.urandom(9000))
    os.setxattr(os.path.join(root, "xattr"), "user.old", b"value")
    os.mkdir(os.path.join(root, "rmdir"))
    os.symlink("same", os.path.join(root, "readlink"))


def changes(at):
    return {
        "write": lambda: with_fd(at("write"), os.O_RDWR, lambda fd: os.write(fd, b"y" * 5000)),
        "append": lambda: with_fd(at("append"), os.O_WRONLY | os.O_APPEND, lambda fd: os.write(fd, b"y" * 10)),
        "truncate": lambda: os.truncate(at("truncate"), 100),
        "ftruncate": lambda: with_fd(at("cut"), os.O_RDWR, lambda fd: os.ftruncate(fd, 100)),
        "O_TRUNC": lambda: with_fd(at("empty"), os.O_WRONLY | os.O_TRUNC, lambda fd: None),
        "fallocate": lambda: with_fd(at("fallocate"), os.O_RDWR, lambda fd: fallocate(fd, 0, 0, 20000)),
        "punch": lambda: with_fd(at("punch"), os.O_RDWR, lambda fd: fallocate(fd, 3, 100, 5000)),
        "chmod": lambda: os.chmod(at("chmod"), 0o600),
        "chown": lambda: os.chown(at("chmod"), 1, 1),
        "utime": lambda: os.utime(at("chmod"), (1, 1)),
        "chmod of a folder": lambda: os.chmod(at("rmdir"), 0o700),
        "setxattr": lambda: os.setxattr(at("xattr"), "user.new", b"value"),
        "removexattr": lambda: os.removexattr(at("xattr"), "user.old"),
        "create": lambda: with_fd(at("created"), os.O_CREAT | os.O_EXCL | os.O_RDWR, lambda fd: None),
        "mknod": lambda: os.mkfifo(at("fifo")),
        "mkdir": lambda: os.mkdir(at("folder")),
        "symlink": lambda: os.symlink("a", at("symlink")),
        "link": lambda: os.link(at("link"), at("second name")),
        "rename": lambda: os.rename(at("rename"), at("renamed")),
        "unlink": lambda: os.unlink(at("unlink")),
        "rmdir": lambda: os.rmdir(at("rmdir")),
    }


def looks(at):
    return {
        "stat": lambda: os.stat(at("same")),
        "list": lambda: os.listdir(at("")),
        "read": lambda: with_fd(at("same"), os.O_RDONLY, lambda fd: os.read(fd, 10000)),
        "open for writing": lambda: with_fd(at("same"), os.O_RDWR, lambda fd: None),
        "fsync": lambda: with_fd(at("same"), os.O_RDWR, os.fsync),
        "lock": lambda: with_fd(at("same"), os.O_RDWR, lock),
        "readlink": lambda: os.readlink(at("readlink")),
        "getxattr": lambda: os.getxattr(at("xattr"), "user.old"),
        "statfs": lambda: os.statvfs(at("")),
    }


def main(command, root):
    if command == "prepare":
        prepare(root)
        return
    calls = {"changes": changes, "looks": looks}[command](lambda name: os.path.join(root, name))
    for name, call in calls.items():
        try:
            call()
            print(name, "ok")
        except OSError as e:
            print(name, errno.errorcode[e.errno])


main(*sys.argv[1:])
