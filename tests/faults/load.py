#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Steady work on a mount, with a record of the expected contents.

    load.py run DIR PROGRESS STOP STATE    works until the file STOP exists or a call fails; writes a dot to PROGRESS now
                                           and then and, at the end, the expected contents of DIR to STATE. Status 1 and a
                                           traceback when a call failed.
    load.py verify DIR STATE [SKIP]        compares DIR, but for the folder SKIP in it, with STATE

A call that failed may have been executed or not: STATE then has the possible outcomes for the names of that call. All other
changes were acknowledged and have to be present.
"""
import hashlib
import json
import os
import random
import sys
import traceback

FOLDER = "folder"  # in the place of a checksum: a folder's name says all
HELD = "./held-open"  # a file that is open all the time
PAGE = 4096


def checksum(data):
    return hashlib.sha256(data).hexdigest()


class Load:
    """The acknowledged names, and the possible outcomes of the call under way: each a set of names, as in `files`, where
    None is a name that is not there."""

    def __init__(self, place):
        self.place = place
        self.dice = random.Random(11)
        self.files, self.folders = {}, ["."]
        self.number = 0
        self.outcomes = []
        self.files[HELD] = b""
        self.held = open(self.path(HELD), "w+b", buffering=0)

    def path(self, name):
        return os.path.join(self.place, name)

    def mkdir(self):
        name = "%s/d%d" % (self.dice.choice(self.folders), self.number)
        self.outcomes = [{name: None}, {name: FOLDER}]
        os.mkdir(self.path(name))
        self.folders.append(name)

    def create(self):
        name = "%s/f%d" % (self.dice.choice(self.folders), self.number)
        self.outcomes = [{name: None}, {name: checksum(b"")}]
        with open(self.path(name), "xb", buffering=0) as file:
            self.files[name] = b""
            self.write(file, name, self.dice.randbytes(self.dice.randrange(20000)))

    def append(self, name):
        with open(self.path(name), "ab", buffering=0) as file:
            self.write(file, name, self.dice.randbytes(3000))

    def write(self, file, name, data):
        """Appends to the file. A successful write counts even if close() fails. The kernel may send the data in several
        parts, cut at page ends. A part that fails ends the write, and write() returns the number of bytes before that
        part."""
        before, whole = len(self.files[name]), self.files[name] + data
        cuts = [before, *range(before // PAGE * PAGE + PAGE, len(whole), PAGE), len(whole)]
        self.outcomes = [{name: checksum(whole[:cut])} for cut in cuts]
        done = file.write(data)
        self.files[name] = whole[:before + done]
        self.outcomes = [{name: checksum(whole[:cut])} for cut in cuts if cut >= before + done]
        if done != len(data):
            raise OSError("%s: a short write, %d of %d at %d" % (name, done, len(data), before))
        self.outcomes = []

    def changes(self, name, data):
        self.outcomes = [{name: checksum(self.files[name])}, {name: checksum(data)}]

    def truncate(self, name):
        half = self.files[name][:len(self.files[name]) // 2]
        self.changes(name, half)
        os.truncate(self.path(name), len(half))
        self.files[name] = half

    def rename(self, name):
        to = "%s/r%d" % (self.dice.choice(self.folders), self.number)
        has = checksum(self.files[name])
        # Both names: a rename to another subvolume of distribute is a link and an unlink.
        self.outcomes = [{name: has, to: None}, {name: None, to: has}, {name: has, to: has}]
        os.rename(self.path(name), self.path(to))
        self.files[to] = self.files.pop(name)

    def set_attributes(self, name):
        os.chmod(self.path(name), self.dice.choice((0o600, 0o640, 0o444)))
        os.setxattr(self.path(name), "user.load", b"%d" % self.number)

    def unlink(self, name):
        self.outcomes = [{name: checksum(self.files[name])}, {name: None}]
        os.unlink(self.path(name))
        del self.files[name]

    def step(self):
        self.number += 1
        action = self.dice.random()
        if action < 0.05:
            self.mkdir()
        elif action < 0.45 or len(self.files) < 20:
            self.create()
        else:
            # A file is renamed once at most, and then not deleted. Else a replica that comes back while this runs can get a
            # file under two names that both have to go, and the stock self-heal daemon leaves one of them: it moves each
            # aside to the same name, and to rename(2) a link of the same file is done already.
            once = action >= 0.7 and not 0.85 <= action < 0.9
            name = self.dice.choice([name for name in self.files if os.path.basename(name)[0] in ("f" if once else "fr")])
            for limit, work in ((0.6, self.append), (0.7, self.truncate), (0.85, self.rename), (0.9, self.set_attributes),
                                (1, self.unlink)):
                if action < limit:
                    work(name)
                    break
        self.outcomes = []
        if self.number % 10 == 0:
            self.write(self.held, HELD, b"%08d" % self.number)

    def state(self):
        entries = {name: checksum(data) for name, data in self.files.items()}
        entries.update((name, FOLDER) for name in self.folders)
        return {"entries": entries, "outcomes": self.outcomes}


def run(place, progress, stop, state):
    load = Load(place)
    status = 0
    try:
        while not os.path.exists(stop):
            load.step()
            if load.number % 10 == 0:
                with open(progress, "a") as file:
                    file.write(".")
        load.held.close()
    except OSError:
        traceback.print_exc()
        status = 1
    with open(state, "w") as file:
        json.dump(load.state(), file)
    return status


def read_tree(place, skip):
    def unreadable(error):
        raise error

    found = {}
    for folder, folders, names in os.walk(place, onerror=unreadable):
        short = os.path.relpath(folder, place)
        if short == "." and skip in folders:
            folders.remove(skip)
        found[short] = FOLDER
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                found[os.path.normpath(os.path.join(short, name))] = checksum(file.read())
    return found


def normal(entries):
    return {os.path.normpath(name): value for name, value in entries.items()}


def verify(place, state, skip=None):
    with open(state) as file:
        want = json.load(file)
    entries, outcomes = normal(want["entries"]), [normal(outcome) for outcome in want["outcomes"]]
    unsure = {name for outcome in outcomes for name in outcome}
    found = read_tree(place, skip)
    good = True
    for name in sorted((set(entries) | set(found)) - unsure):
        if entries.get(name) != found.get(name):
            print("%s: %s" % (name, "missing" if name not in found else "unexpected" if name not in entries else "differs"))
            good = False
    is_now = {name: found.get(name) for name in unsure}
    if outcomes and is_now not in outcomes:
        print("the call that failed left %s, none of %s" % (is_now, outcomes))
        good = False
    print("%d entries" % len(found))
    return good


if sys.argv[1] == "run":
    sys.exit(run(*sys.argv[2:]))
else:
    sys.exit(0 if verify(*sys.argv[2:]) else 1)
