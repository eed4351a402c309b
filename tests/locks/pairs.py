# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Two mounts that work against each other. On stock bricks both pairs hang within seconds.

    pairs.py rename|mkdir SECONDS DIR1 DIR2

Each mount has a separate process. Status 1: a process has been in a step for PATIENCE seconds, or met an
error that the other process's work does not explain; the program prints the step or error. A process that
hangs in a mount cannot be killed, so this program does not wait for it, and the process keeps nothing of this
program open.
"""
import errno
import mmap
import os
import struct
import sys
import time
import traceback

PATIENCE = 120
pair, seconds, tops = sys.argv[1], float(sys.argv[2]), sys.argv[3:5]
# Errors of a step when the other mount was faster, on stock clients too.
FASTER = (errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY, errno.ESTALE, errno.EIO, errno.ENOTCONN)


def touch(name):
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY))


# The steps that each mount repeats.
PAIRS = {
    "rename": (("renames x to y", ((touch, "/x"), (os.rename, "/x", "/y"))), ("unlinks y", ((os.unlink, "/y"),))),
    "mkdir": (("makes d/x", ((os.mkdir, "/d"), (os.mkdir, "/d/x"), (os.rmdir, "/d/x"))), ("removes d", ((os.rmdir, "/d"),))),
}


class Progress:
    """The progress of a mount's process, in shared memory: rounds, present step, whether the process has
    ended."""

    FORM = struct.Struct("qqq")

    def __init__(self):
        self.memory = mmap.mmap(-1, self.FORM.size)

    def say(self, *values):
        self.memory[:] = self.FORM.pack(*values)

    def look(self):
        return self.FORM.unpack(self.memory[:])


def work(steps, top, progress, ends):
    rounds = 0
    while not rounds or time.monotonic() < ends:  # a busy machine may start this process late
        for number, (call, *names) in enumerate(steps):
            progress.say(rounds, number, 0)
            try:
                call(*(top + name for name in names))
            except OSError as error:
                if error.errno not in FASTER:
                    raise
        rounds += 1
    progress.say(rounds, 0, 1)


def start(steps, top, progress, ends):
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        null = os.open("/dev/null", os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        status = 0
        try:
            work(steps, top, progress, ends)
        except BaseException: # told by the other process
            os.write(writer, traceback.format_exc().encode()[-2000:])
            status = 1
        os._exit(status)
    os.close(writer)
    os.set_blocking(reader, False)
    return reader


def said(reader):
    try:
        return os.read(reader, 4096).decode()
    except BlockingIOError:
        return ""


works = PAIRS[pair]
ends = time.monotonic() + seconds
progresses = [Progress(), Progress()]
readers = [start(steps, top, progress, ends) for (_, steps), top, progress in zip(works, tops, progresses)]
seen, since, failed = [None, None], [time.monotonic()] * 2, False
while not failed and not all(progress.look()[2] for progress in progresses):
    time.sleep(0.05)
    for number, ((name, steps), progress) in enumerate(zip(works, progresses)):
        now, text = progress.look(), said(readers[number])
        if now != seen[number]:
            seen[number], since[number] = now, time.monotonic()
        if text:
            failed = True
            print("# the mount that %s: %s" % (name, text))
        elif not now[2] and time.monotonic() - since[number] > PATIENCE:
            failed = True
            call, *names = steps[now[1]]
            print("# HUNG: %s against %s: %s(%s) has not ended for %d s" % (
                works[0][0], works[1][0], call.__name__, ", ".join(names), PATIENCE))
rounds = [progress.look()[0] for progress in progresses]
print("# %s and %s: %d and %d times" % (works[0][0], works[1][0], *rounds), flush=True)
os._exit(1 if failed or not all(rounds) else 0)
