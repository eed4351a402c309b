#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Writers of the script of random faults, and the check of their logs.

    faults_work.py write MOUNT NAME LOG STOP   makes, overwrites, renames and removes files named after NAME in MOUNT until the file
                                               STOP exists; logs each try and each acknowledged call
    faults_work.py check MOUNT LOG...          compares the files with the logs, and prints each loss; the last line has the counts

A line of the log: "try" or "ok", the kind of the call, the file, a number. A call without "ok" may have happened or not, also
later. The check allows for that: an overwritten file has the last acknowledged number, or one that was tried later.
"""
import collections
import os
import random
import sys
import time

SLOTS = 16  # overwritten files of a writer
BLOCK = 8192


def block_of(name, number):
    line = f"{name} {number:012d}\n".encode()
    return (line * (BLOCK // len(line) + 1))[:BLOCK]


class Writer:
    def __init__(self, mount, name, log, stop):
        self.dir, self.name, self.stop = mount, name, stop
        self.log = open(log, "a", buffering=1, encoding="ascii")
        self.random = random.Random(name)
        self.number = 0
        self.made = []

    def path(self, file):
        return f"{self.dir}/shared/{file}"

    def call(self, kind, file, act):
        self.number += 1
        self.log.write(f"try {kind} {file} {self.number}\n")
        try:
            act(self.number)
        except OSError:
            time.sleep(0.2)
            return False
        self.log.write(f"ok {kind} {file} {self.number}\n")
        return True

    def put(self, file, flags):
        def act(number):
            fd = os.open(self.path(file), os.O_RDWR | flags, 0o644)
            try:
                if os.pwrite(fd, block_of(file, number), 0) != BLOCK:
                    raise OSError("short write")
                os.fsync(fd)
            finally:
                os.close(fd)
        return act

    def step(self):
        kind = self.random.random()
        if kind < 0.5:
            file = f"{self.name}-slot{self.random.randrange(SLOTS)}"
            self.call("over", file, self.put(file, os.O_CREAT))
        elif kind < 0.75 or not self.made:
            file = f"{self.name}-new{self.number}"
            if self.call("new", file, self.put(file, os.O_CREAT | os.O_EXCL)):
                self.made.append(file)
        elif kind < 0.88:
            file = self.made.pop(self.random.randrange(len(self.made)))
            self.call("remove", file, lambda _: os.unlink(self.path(file)))
        else:
            file = self.made.pop(self.random.randrange(len(self.made)))
            self.call("rename", file, lambda _: os.rename(self.path(file), self.path(f"{file}-moved")))
        time.sleep(0.02)

    def run(self):
        while not os.path.exists(self.stop):
            self.step()


def read_log(path, over, files):
    """over: {file: [last acknowledged number, numbers tried]}; files: {file: [number, calls after it with their outcome]}."""
    tried = None
    with open(path, encoding="ascii") as log:
        for line in log:
            what, kind, file, number = line.split()
            number = int(number)
            if what == "try":
                tried = (kind, file, number)
                if kind == "over":
                    over[file][1].add(number)
                else:
                    files[file].append([kind, number, False])
            else:
                assert tried == (kind, file, number), line
                if kind == "over":
                    over[file][0] = number
                else:
                    files[file][-1][2] = True


def content_of(path, file):
    """The number in the file; None: no file; a text: a fault."""
    try:
        with open(path, "rb") as f:
            data = f.read()
    except FileNotFoundError:
        return None
    except OSError as e:
        return f"cannot be read: {e}"
    try:
        number = int(data.split(b"\n", 1)[0].split()[1])
    except (IndexError, ValueError):
        return f"{len(data)} bytes without a number"
    return number if data == block_of(file, number) else f"{len(data)} bytes that no writer has written"


def check_over(dir, file, last, tried):
    got = content_of(f"{dir}/{file}", file)
    if last == 0 and (got is None or isinstance(got, str)):
        return None  # no write was acknowledged; the file may be new and empty
    if isinstance(got, int) and got >= last and got in tried:
        return None
    return f"overwritten file has {got}, write {last} was acknowledged"


def check_file(dir, file, calls):
    was_made, number = calls[0][2], calls[0][1]
    here, moved = (content_of(f"{dir}/{name}", file) for name in (file, f"{file}-moved"))
    if not was_made:
        return None
    later = calls[1] if len(calls) > 1 else None
    if later is None:
        return None if here == number and moved is None else f"was made by {number}, has {here}"
    kind, _, was_done = later
    if kind == "remove":
        if here not in (None, number):
            return f"was made by {number}, has {here}"
        return "was removed, and is back" if was_done and here is not None else None
    if was_done:
        return None if here is None and moved == number else f"was renamed: the old name has {here}, the new one {moved}"
    return None if number in (here, moved) else f"was perhaps renamed: the old name has {here}, the new one {moved}"


def check(mount, logs):
    over, files = collections.defaultdict(lambda: [0, set()]), collections.defaultdict(list)
    for log in logs:
        read_log(log, over, files)
    faults = {}
    for file, (last, tried) in over.items():
        faults[file] = check_over(f"{mount}/shared", file, last, tried)
    for file, calls in files.items():
        faults[file] = check_file(f"{mount}/shared", file, calls)
    for file, fault in sorted(faults.items()):
        if fault:
            print(f"{file}: {fault}")
    known = set(over) | set(files) | {f"{file}-moved" for file in files}
    strangers = sorted(set(os.listdir(f"{mount}/shared")) - known)
    for name in strangers:
        print(f"{name}: no writer has made this file")
    acknowledged = sum(last > 0 for last, _ in over.values()) + sum(c[2] for calls in files.values() for c in calls)
    writes = sum(len(tried) for _, tried in over.values())
    print(f"{len(over)} overwritten files with {writes} writes, {len(files)} others, {acknowledged} acknowledged calls")
    return 1 if strangers or any(faults.values()) else 0


if __name__ == "__main__":
    if sys.argv[1] == "write":
        Writer(*sys.argv[2:6]).run()
    else:
        sys.exit(check(sys.argv[2], sys.argv[3:]))
