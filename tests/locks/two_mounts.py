#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Record locks of two mounts of one volume.

    two_mounts.py MOUNT1 MOUNT2

Each holder is a separate process that gets commands through a pipe, so that the end of the process releases the locks.
"""
import errno
import fcntl
import os
import select
import signal
import struct
import sys
import time

READ, WRITE, UNLOCK = fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK
FLOCK = "hhqqi4x"
failed = 0


def say(good, text):
    global failed
    failed += not good
    print(("ok - " if good else "not ok - ") + text)
    sys.stdout.flush()


class Holder:
    """A process with the file open. do() runs a command and returns the result; start() does not wait for the
    result."""

    def __init__(self, path):
        self.path = path
        commands, self.commands = os.pipe()
        self.results, results = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.commands)
            os.close(self.results)
            self.serve(path, os.fdopen(commands), results)
            os._exit(0)
        os.close(commands)
        os.close(results)

    @staticmethod
    def serve(path, commands, results):
        fd = os.open(path, os.O_RDWR)
        for line in commands:
            verb, *numbers = line.split()
            numbers = [int(n) for n in numbers]
            try:
                if verb == "reopen":
                    os.close(fd)
                    fd = os.open(path, os.O_RDWR)
                    answer = "ok"
                elif verb == "get":
                    kind, start, length = numbers
                    found = fcntl.fcntl(fd, fcntl.F_GETLK, struct.pack(FLOCK, kind, 0, start, length, 0))
                    answer = "%d %d %d" % (struct.unpack(FLOCK, found)[0], *struct.unpack(FLOCK, found)[2:4])
                else:
                    kind, start, length = numbers
                    command = fcntl.F_SETLKW if verb == "wait" else fcntl.F_SETLK
                    fcntl.fcntl(fd, command, struct.pack(FLOCK, kind, 0, start, length, 0))
                    answer = "ok"
            except OSError as error:
                answer = errno.errorcode[error.errno]
            os.write(results, (answer + "\n").encode())

    def start(self, *words):
        os.write(self.commands, (" ".join(str(w) for w in words) + "\n").encode())

    def result(self, seconds=120):
        """The answer, or None when there is none within that time."""
        if not select.select([self.results], [], [], seconds)[0]:
            return None
        return os.read(self.results, 1000).decode().strip()

    def do(self, *words):
        self.start(*words)
        return self.result()

    def is_in_a_lock_call(self):
        with open("/proc/%d/syscall" % self.pid) as file:
            return file.read().split()[0] == "72"

    def blocks_on(self, *words):
        self.start(*words)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not self.is_in_a_lock_call():
            time.sleep(0.01)
        # The process waits in the call. Only a look over some time can show that the wait lasts.
        return self.result(0.5) is None

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def eventually(function, seconds=120):
    deadline = time.monotonic() + seconds
    while not function():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def main():
    one, two = (os.path.join(place, "lock-file") for place in sys.argv[1:3])
    with open(one, "wb") as file:
        file.write(bytes(1000))
    say(eventually(lambda: os.path.exists(two)), "the second mount sees a file that the first mount has made")
    a, b, c = Holder(one), Holder(two), Holder(two)

    say(a.do("set", WRITE, 0, 100) == "ok", "the first mount locks a range for writing")
    say(b.do("set", WRITE, 50, 10) == "EAGAIN", "the second mount is refused a write lock on a part of the range")
    say(b.do("set", READ, 99, 1) == "EAGAIN", "the second mount is refused a read lock on a part of the range")
    say(b.do("set", WRITE, 100, 100) == "ok", "the second mount locks the neighbouring range")
    say(b.do("get", WRITE, 0, 10) == "%d 0 100" % WRITE, "F_GETLK on the second mount shows the first mount's lock")
    say(a.do("get", READ, 150, 10) == "%d 100 100" % WRITE, "F_GETLK on the first mount shows the second mount's lock")
    say(a.do("get", WRITE, 500, 10).split()[0] == str(UNLOCK), "F_GETLK shows that a range is free")

    say(a.do("set", UNLOCK, 40, 20) == "ok" and b.do("set", WRITE, 40, 20) == "ok",
        "the second mount locks a hole that the first mount has unlocked")
    say(b.do("set", WRITE, 39, 1) == "EAGAIN" and b.do("set", WRITE, 60, 1) == "EAGAIN", "the second mount is refused the ranges beside the hole")
    say(a.do("set", UNLOCK, 0, 0) == "ok" and b.do("set", UNLOCK, 0, 0) == "ok", "both mounts unlock all ranges")

    say(a.do("set", READ, 0, 0) == "ok" and b.do("set", READ, 0, 0) == "ok", "both mounts read-lock the whole file")
    say(a.do("set", WRITE, 0, 1) == "EAGAIN", "a read lock of the other mount prevents a write lock")
    say(b.do("set", UNLOCK, 0, 0) == "ok" and a.do("set", WRITE, 0, 0) == "ok", "the only reader turns its read lock into a write lock")
    say(a.do("set", READ, 0, 0) == "ok" and b.do("set", READ, 5, 5) == "ok", "the writer turns its write lock back into a read lock")
    a.do("set", UNLOCK, 0, 0)
    b.do("set", UNLOCK, 0, 0)

    a.do("set", WRITE, 0, 100)
    say(b.blocks_on("wait", WRITE, 0, 10), "F_SETLKW waits for a lock that another mount holds")
    say(c.blocks_on("wait", WRITE, 50, 10), "a second process waits for a lock that another mount holds")
    a.do("set", UNLOCK, 0, 20)
    say(b.result() == "ok", "the unlock of a range wakes the process that waits for the range")
    say(c.result(0.5) is None, "the unlock of a range does not wake the other process")
    a.do("set", UNLOCK, 0, 0)
    say(c.result() == "ok", "the other process is woken when its range is free")
    b.do("set", UNLOCK, 0, 0)
    c.do("set", UNLOCK, 0, 0)

    a.do("set", WRITE, 0, 0)
    say(b.blocks_on("wait", READ, 0, 0) and c.blocks_on("wait", READ, 0, 0), "two readers wait for a writer")
    a.do("set", UNLOCK, 0, 0)
    say(b.result() == "ok" and c.result() == "ok", "both readers get their locks when the writer unlocks")
    b.do("set", UNLOCK, 0, 0)
    c.do("set", UNLOCK, 0, 0)

    a.do("set", WRITE, 0, 0)
    say(b.blocks_on("wait", WRITE, 0, 0), "a process waits for another process's lock")
    a.do("reopen")
    say(b.result() == "ok", "the waiting process gets the lock when the holder closes the file")
    say(a.do("set", WRITE, 0, 0) == "EAGAIN", "the process that has waited holds the lock")
    b.kill()
    say(eventually(lambda: a.do("set", WRITE, 0, 0) == "ok"), "the lock of a killed process is free")
    d = Holder(two)
    say(d.blocks_on("wait", WRITE, 0, 0), "a process waits for the lock of a holder that will be killed")
    a.kill()
    say(d.result() == "ok", "a waiting process gets the lock of a killed holder")

    a = Holder(one)
    say(a.blocks_on("wait", WRITE, 0, 0), "a process that will be killed waits for a lock")
    a.kill()
    d.do("set", UNLOCK, 0, 0)
    say(eventually(lambda: c.do("set", WRITE, 0, 0) == "ok"), "a process that is killed while waiting gets no lock")
    for holder in (c, d):
        holder.kill()
    sys.exit(1 if failed else 0)


main()
