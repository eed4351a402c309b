#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""switch_work.py MOUNT OTHER DIR: uses objects that were opened before the volume's layers changed: locks, files without a name, a
half-read listing, a removed folder, a file that is written. OTHER is the mount point of another client, which tries to get the locks.
DIR/round has the number of changes so far; DIR/stop ends the program. Prints TAP lines."""
import errno
import fcntl
import os
import sys
import time

MOUNT, OTHER, DIR = sys.argv[1:4]
NAMES = ["name-of-an-entry-in-a-long-list-%05d" % i for i in range(1500)]
FAILED = []


def check(holds, what):
    print("%s - %s" % ("ok" if holds else "not ok", what), flush=True)
    if not holds:
        FAILED.append(what)


def stopped():
    return os.path.exists(DIR + "/stop")


def rounds():
    try:
        return int(open(DIR + "/round").read() or 0)
    except FileNotFoundError:
        return 0


def take(kind, fd, how):
    if kind == "fcntl":
        fcntl.lockf(fd, how, 100, 50)
    else:
        fcntl.flock(fd, how)


def try_locks():
    """As another client: 0 if neither lock was ever to be had, else which."""
    got = 0
    fds = [(1, "fcntl", os.open(OTHER + "/fcntl", os.O_RDWR)), (2, "flock", os.open(OTHER + "/flock", os.O_RDWR))]
    while not stopped():
        for bit, kind, fd in fds:
            try:
                take(kind, fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                got |= bit
                take(kind, fd, fcntl.LOCK_UN)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    print("# %s: %s" % (kind, error), flush=True)
                    got |= 4
        time.sleep(0.005)
    os._exit(got)


def wait_for_lock():
    """As another process of the same mount: waits until the lock is let go."""
    fd = os.open(MOUNT + "/flock", os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os._exit(0)


def child(fn):
    pid = os.fork()
    if pid == 0:
        try:
            fn()
        except BaseException as error:
            print("# %s: %s" % (fn.__name__, error), flush=True)
        os._exit(99)
    return pid


def status(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Unlinked:
    """A file that has lost its name, written and read through the descriptor it was made with."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o640)
        self.count = 0
        os.unlink(path)

    def use(self):
        os.pwrite(self.fd, b"%08d" % self.count, 8 * self.count)
        self.count += 1
        assert os.pread(self.fd, 8, 0) == b"00000000"
        assert os.pread(self.fd, 8, 8 * (self.count - 1)) == b"%08d" % (self.count - 1)
        assert os.fstat(self.fd).st_size == 8 * self.count, os.fstat(self.fd)
        os.fsync(self.fd)


def prepare():
    os.mkdir(MOUNT + "/list")
    for name in NAMES:
        open("%s/list/%s" % (MOUNT, name), "x").close()
    for name in ("fcntl", "flock"):
        open(MOUNT + "/" + name, "x").close()


def work():
    locked = [(kind, os.open(MOUNT + "/" + kind, os.O_RDWR)) for kind in ("fcntl", "flock")]
    for kind, fd in locked:
        take(kind, fd, fcntl.LOCK_EX)
    contender, waiter = child(try_locks), child(wait_for_lock)
    unlinked = [Unlinked("%s/gone%d" % (MOUNT, i)) for i in range(4)]
    os.mkdir(MOUNT + "/removed")
    removed = os.open(MOUNT + "/removed", os.O_RDONLY)
    os.rmdir(MOUNT + "/removed")
    writer = open(MOUNT + "/written", "w")
    listing, seen, begun = os.scandir(MOUNT + "/list"), [], rounds()
    seen.append(next(listing).name)
    turns = 0
    open(DIR + "/ready", "x").close()
    while not stopped():
        for each in unlinked:
            each.use()
        assert os.fstat(removed).st_ino
        writer.write("%d\n" % turns)
        writer.flush()
        while len(seen) < len(NAMES) * min(rounds() - begun, 9) // 10:
            seen.append(next(listing).name)
        turns += 1
        open(DIR + "/turns", "w").write(str(turns))
    seen += [e.name for e in listing]
    check(sorted(seen) == NAMES, "a listing that began before the switch lists each name once")
    writer.close()
    check(open(MOUNT + "/written").read() == "".join("%d\n" % i for i in range(turns)), "the file has all lines that were written")
    check(status(contender) == 0, "no other process got a held lock")
    check(os.waitpid(waiter, os.WNOHANG)[0] == 0, "the waiting process still waits for the lock")
    other = [(kind, os.open(OTHER + "/" + kind, os.O_RDWR)) for kind in ("fcntl", "flock")]
    for kind, fd in locked:
        take(kind, fd, fcntl.LOCK_UN)
    check(status(waiter) == 0, "the waiting process gets the lock after the release")
    for kind, fd in other:
        take(kind, fd, fcntl.LOCK_EX)
    check(True, "the other mount gets both locks after the release")
    for each in unlinked:
        os.close(each.fd)
    print("# %d turns" % turns)


prepare()
try:
    work()
except Exception as error:
    check(False, "no call fails: %r" % error)
    open(DIR + "/turns", "w").write("-1")
else:
    check(True, "no call fails")
sys.exit(1 if FAILED else 0)
