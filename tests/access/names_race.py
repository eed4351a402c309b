# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Two users race for names in a folder that both may write and that has the sticky bit, each on a mount of his own.

usage: names_race.py ALICES-FOLDER BOBS-FOLDER COUNT
Prints a line for each race: its name, how often BOB lost in time, and how often BOB got an object of ALICE.
"""
import mmap
import os
import struct
import sys

ALICE, BOB = 21001, 21002


class Meeting:
    """Two processes that begin each round at the same moment."""

    def __init__(self):
        self.page = mmap.mmap(-1, 4096)

    def wait(self, me, round_number):
        struct.pack_into("q", self.page, 8 * me, round_number)
        while struct.unpack_from("q", self.page, 8 * (1 - me))[0] < round_number:
            os.sched_yield()


def become(uid):
    os.setegid(uid)
    os.seteuid(uid)


def as_user(uid, call, *args):
    """The result, or the errno as a negative number."""
    os.seteuid(0)
    become(uid)
    try:
        return call(*args)
    except OSError as e:
        return -e.errno


def alice_makes(path):
    fd = as_user(ALICE, os.open, path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    if fd >= 0:
        os.write(fd, b"secret")
        os.close(fd)
    return fd >= 0


def bob_opens(path):
    """True: he has Alice's file."""
    fd = as_user(BOB, os.open, path, os.O_CREAT | os.O_RDWR | os.O_TRUNC, 0o644)
    if fd < 0:
        return False
    owner = os.fstat(fd).st_uid
    os.close(fd)
    return owner == ALICE


def make(path):
    os.close(as_user(BOB, os.open, path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


class Create:
    @staticmethod
    def alice(there, name):
        return alice_makes(f"{there}/{name}")

    @staticmethod
    def prepare(here, name):
        pass

    @staticmethod
    def bob(here, name):
        return bob_opens(f"{here}/{name}")

    @staticmethod
    def is_stolen(there, name, alices, bobs):
        return bobs


class Rename(Create):
    prepare = staticmethod(lambda here, name: make(f"{here}/{name}.bob"))

    @staticmethod
    def bob(here, name):
        return as_user(BOB, os.rename, f"{here}/{name}.bob", f"{here}/{name}") is None

    @staticmethod
    def is_stolen(there, name, alices, bobs):
        return alices and bobs


class Unlink(Create):
    """Bob's other process moves his file away, and Alice takes the name."""
    prepare = staticmethod(lambda here, name: make(f"{here}/{name}"))

    @staticmethod
    def alice(there, name):
        as_user(BOB, os.rename, f"{there}/{name}", f"{there}/{name}.moved")
        return alice_makes(f"{there}/{name}")

    @staticmethod
    def bob(here, name):
        return as_user(BOB, os.unlink, f"{here}/{name}") is None

    @staticmethod
    def is_stolen(there, name, alices, bobs):
        os.seteuid(0)
        return alices and not os.path.exists(f"{there}/{name}")


def race(kind, there, here, count):
    meeting = Meeting()
    result = mmap.mmap(-1, count + 1)
    child = os.fork()
    if child == 0:
        for i in range(count):
            name = f"{kind.__name__}-{i}"
            meeting.wait(1, 2 * i + 1)
            result[i] = kind.alice(there, name)
            meeting.wait(1, 2 * i + 2)
        os._exit(0)
    late = stolen = 0
    for i in range(count):
        name = f"{kind.__name__}-{i}"
        kind.prepare(here, name)
        meeting.wait(0, 2 * i + 1)
        bobs = kind.bob(here, name)
        meeting.wait(0, 2 * i + 2)
        alices = bool(result[i])
        late += alices
        stolen += bool(kind.is_stolen(there, name, alices, bobs))
    os.seteuid(0)
    _, status = os.waitpid(child, 0)
    print(f"{kind.__name__.lower()} alices={late} stolen={stolen} status={status}", flush=True)


for kind in Create, Rename, Unlink:
    race(kind, sys.argv[1], sys.argv[2], int(sys.argv[3]))
