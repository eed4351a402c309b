# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Two mounts that work against each other. On stock bricks both pairs hang within seconds.

    pairs.py rename|mkdir SECONDS DIR1 DIR2      status 1: a step has not ended within a minute
"""
import errno
import os
import sys
import threading
import time

pair, seconds, tops = sys.argv[1], float(sys.argv[2]), sys.argv[3:5]
ends = time.monotonic() + seconds
done = [0, 0]
# What a step may meet when the other mount was faster, on stock clients too.
FASTER = (errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY, errno.ESTALE, errno.EIO, errno.ENOTCONN)


def step(call, *names):
    try:
        call(*names)
    except OSError as error:
        if error.errno not in FASTER:
            raise


def touch(name):
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY))


def renames(top):
    step(touch, top + "/x")
    step(os.rename, top + "/x", top + "/y")


def unlinks(top):
    step(os.unlink, top + "/y")


def makes(top):
    step(os.mkdir, top + "/d")
    step(os.mkdir, top + "/d/x")
    step(os.rmdir, top + "/d/x")


def removes(top):
    step(os.rmdir, top + "/d")


def work(number, function):
    while time.monotonic() < ends:
        function(tops[number])
        done[number] += 1


functions = {"rename": (renames, unlinks), "mkdir": (makes, removes)}[pair]
threads = [threading.Thread(target=work, args=(i, functions[i]), daemon=True) for i in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(max(0, ends - time.monotonic()) + 60)
hung = any(thread.is_alive() for thread in threads)
print("# %s and %s: %d and %d times%s" % (functions[0].__name__, functions[1].__name__, *done, ", then it hung" if hung else ""),
      flush=True)
os._exit(1 if hung or not all(done) else 0)  # without waiting for a thread that hangs
