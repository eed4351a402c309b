#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""One change through a mount: says "done", or the name of the errno.

    one_change.py KIND PATH              on a file, or in a folder
    one_change.py KIND PATH PID COPY     on a file that the mount has locked and marked by a write before. The daemon PID, which
                                         has one copy, is stopped before the change, and killed when COPY, on another brick, has it
"""
import errno
import os
import signal
import sys
import threading
import time


def write_synced(path, fd):
    os.pwrite(fd, b"synced", 0)
    os.fsync(fd)


def close_late(path, fd):
    os.pwrite(fd, b"closed", 0)
    os.close(fd)


KINDS = {
    "write": lambda path, fd: os.pwrite(fd, b"later", 0),
    "fsync": write_synced,
    "close": close_late,
    "truncate": lambda path, fd: os.ftruncate(fd, 2),
    "fallocate": lambda path, fd: os.posix_fallocate(fd, 0, 8192),
    "chmod": lambda path, fd: os.chmod(path, 0o640),
    "chown": lambda path, fd: os.chown(path, 1000, 1000),
    "utime": lambda path, fd: os.utime(path, (1e9, 1e9)),
    "setxattr": lambda path, fd: os.setxattr(path, "user.later", b"later"),
    "create": lambda path, fd: os.close(os.open(path + "/later", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)),
    "mkdir": lambda path, fd: os.mkdir(path + "/later-folder"),
    "unlink": lambda path, fd: os.unlink(path + "/gone"),
    "rename": lambda path, fd: os.rename(path + "/moved", path + "/has-moved"),
}


def look(path):
    with open(path, "rb") as file:
        return file.read()


def states(pid):
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/stat" % (pid, task)) as file:
            yield file.read().rpartition(")")[2].split()[0]


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    while set(states(pid)) != {"T"}:
        time.sleep(0.01)


def kill_when_changed(pid, copy, old):
    deadline = time.monotonic() + 60
    while look(copy) == old and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)


def change(kind, path, pid, copy):
    fd = -1 if os.path.isdir(path) else os.open(path, os.O_RDWR)
    if pid:
        os.pwrite(fd, b"first", 0)
        os.fsync(fd)
        stop(pid)
        threading.Thread(target=kill_when_changed, args=(pid, copy, look(copy))).start()
    KINDS[kind](path, fd)


def main():
    pid, copy = (int(sys.argv[3]), sys.argv[4]) if len(sys.argv) > 3 else (0, None)
    try:
        change(sys.argv[1], sys.argv[2], pid, copy)
    except OSError as error:
        print(errno.errorcode[error.errno])
    else:
        print("done")


main()
