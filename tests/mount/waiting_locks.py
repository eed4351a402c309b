#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""waiting_locks.py MOUNT1 MOUNT2 WORD: locks of one mount that wait for those of the other. Prints TAP lines."""
import errno
import fcntl
import os
import signal
import struct
import sys
import time

ONE, TWO, WORD = sys.argv[1:4]
FAILED = []


def check(holds, what):
    print("%s - %s: %s" % ("ok" if holds else "not ok", WORD, what), flush=True)
    if not holds:
        FAILED.append(what)


class Interrupted(Exception):
    pass


def on_alarm(number, frame):
    raise Interrupted()


def take(fd, kind, flags):
    if kind == "fcntl":
        fcntl.lockf(fd, flags)
    else:
        fcntl.flock(fd, flags)


def is_free(path, kind):
    """As seen by another process, which holds no lock."""
    pid = os.fork()
    if pid == 0:
        fd = os.open(path, os.O_RDWR)
        try:
            take(fd, kind, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os._exit(0)
        except OSError as error:
            os._exit(1 if error.errno in (errno.EAGAIN, errno.EACCES) else 2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def eventually(question):
    for i in range(2400):
        if question():
            return True
        time.sleep(0.05)
    return False


def waiter(path, kind):
    """A process that waits for the lock, and ends with status 0 when the lock is granted."""
    pid = os.fork()
    if pid == 0:
        fd = os.open(path, os.O_RDWR)
        take(fd, kind, fcntl.LOCK_EX)
        os._exit(0)
    return pid


def tour(kind):
    name = "/lock-" + kind
    fd = os.open(ONE + name, os.O_RDWR | os.O_CREAT, 0o644)
    take(fd, kind, fcntl.LOCK_EX)
    check(not is_free(TWO + name, kind), kind + ": a held lock is refused to the other mount")
    if kind == "fcntl":
        other = os.open(TWO + name, os.O_RDWR)
        held = fcntl.fcntl(other, fcntl.F_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
        check(struct.unpack("hhqqi4x", held)[0] == fcntl.F_WRLCK, "fcntl: F_GETLK of the other mount reports the held lock")
        os.close(other)
    signal.signal(signal.SIGALRM, on_alarm)
    other = os.open(TWO + name, os.O_RDWR)
    signal.setitimer(signal.ITIMER_REAL, 1)
    try:
        take(other, kind, fcntl.LOCK_EX)
        check(False, kind + ": a signal ends the wait")
    except Interrupted:
        check(True, kind + ": a signal ends the wait")
    pid = waiter(TWO + name, kind)
    time.sleep(0.5)
    check(os.waitpid(pid, os.WNOHANG)[0] == 0, kind + ": another process still waits for the lock")
    take(fd, kind, fcntl.LOCK_UN)
    check(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, kind + ": the waiting process gets the lock after the release")
    check(eventually(lambda: is_free(ONE + name, kind)), kind + ": the interrupted process does not hold the lock")
    os.close(other)
    take(fd, kind, fcntl.LOCK_EX)
    os.close(fd)
    check(eventually(lambda: is_free(TWO + name, kind)), kind + ": close() releases the lock")


for each in ("fcntl", "flock"):
    tour(each)
sys.exit(1 if FAILED else 0)
