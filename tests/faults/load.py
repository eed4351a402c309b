#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Steady work on a mount, with a memory of what should be there.

    load.py run DIR PROGRESS STOP STATE    works until the file STOP exists; writes a dot to PROGRESS now and then and,
                                           at the end, what must be in DIR to STATE
    load.py verify DIR STATE               compares DIR with STATE
"""
import hashlib
import json
import os
import random
import sys


def checksum(data):
    return hashlib.sha256(data).hexdigest()


def run(place, progress, stop, state):
    dice = random.Random(11)
    files, folders = {}, ["."]
    number = 0
    held = open(os.path.join(place, "held-open"), "w+b", buffering=0)
    held_data = b""
    while not os.path.exists(stop):
        number += 1
        action = dice.random()
        if action < 0.05:
            name = "%s/d%d" % (dice.choice(folders), number)
            os.mkdir(os.path.join(place, name))
            folders.append(name)
        elif action < 0.45 or len(files) < 20:
            name = "%s/f%d" % (dice.choice(folders), number)
            files[name] = dice.randbytes(dice.randrange(20000))
            with open(os.path.join(place, name), "xb") as file:
                file.write(files[name])
        else:
            name = dice.choice(list(files))
            path = os.path.join(place, name)
            if action < 0.6:
                more = dice.randbytes(3000)
                with open(path, "ab") as file:
                    file.write(more)
                files[name] += more
            elif action < 0.7:
                os.truncate(path, len(files[name]) // 2)
                files[name] = files[name][:len(files[name]) // 2]
            elif action < 0.85:
                to = "%s/r%d" % (dice.choice(folders), number)
                os.rename(path, os.path.join(place, to))
                files[to] = files.pop(name)
            elif action < 0.9:
                os.chmod(path, dice.choice((0o600, 0o640, 0o444)))
                os.setxattr(path, "user.load", b"%d" % number)
            else:
                os.unlink(path)
                del files[name]
        if number % 10 == 0:
            part = b"%08d" % number
            held.write(part)
            held_data += part
            with open(progress, "a") as file:
                file.write(".")
    held.close()
    files["./held-open"] = held_data
    with open(state, "w") as file:
        json.dump({"files": {name: checksum(data) for name, data in files.items()}, "folders": folders}, file)


def verify(place, state):
    with open(state) as file:
        want = json.load(file)
    found, folders = {}, []
    for folder, _, names in os.walk(place):
        short = os.path.relpath(folder, place)
        folders.append("." if short == "." else "./" + short)
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                found[os.path.normpath("%s/%s" % (short, name))] = checksum(file.read())
    files = {os.path.normpath(name): value for name, value in want["files"].items()}
    for name in sorted(set(files) | set(found)):
        if files.get(name) != found.get(name):
            print("%s: %s" % (name, "missing" if name not in found else "unexpected" if name not in files else "differs"))
    assert {os.path.normpath(f) for f in want["folders"]} == {os.path.normpath(f) for f in folders}
    return files == found


if sys.argv[1] == "run":
    run(*sys.argv[2:])
else:
    sys.exit(0 if verify(*sys.argv[2:]) else 1)
