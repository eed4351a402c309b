#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""The part of tests/replicate/torture that looks at files: one process, so that a round starts no interpreter.

Reads a command a line and answers with lines, the last of which is `.`:
    write MNT STATE WRITERS SEED          starts the writers
    end STATE                             ends the writers and waits; a line for each writer that a living mount refused a call
    heal LIMIT MNT|-|notes BRICK...       waits until no heal is pending, with repeated lookups of each name of MNT (notes: and no brick has a
                                          note about a dead client); prints the pending heals after LIMIT seconds in which their number has
                                          not fallen
    before STATE SIZE BRICK...            remembers the renames that a dead mount has left half done in sets of SIZE bricks. From then on, a line
                                          about such a name begins with `stock: `
    compare SIZE KIND BRICK...            differences between the bricks of each set of SIZE; KIND: `replicas`, `arbiter`, or the number
                                          of redundant bricks of a dispersed set
    verify MNT STATE                      differences between the mount and the acknowledged changes of the writers
    calls STATE                           how many calls were acknowledged
"""
import contextlib
import os
import re
import sys
import time
import traceback

import torture_bricks
import torture_work

HANG = 120  # seconds
children = []
half_renamed = []  # names


def write(mnt, state, count, seed):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(state + ".stop")
    children.extend(torture_work.writers_start(mnt, state, int(count), seed))
    return []


def end(state):
    with open(state + ".stop", "w", encoding="ascii"):
        pass
    lines, limit = [], time.monotonic() + HANG
    while children:
        child, status = os.waitpid(children[0], os.WNOHANG)
        if child:
            children.pop(0)
        elif time.monotonic() > limit:
            lines.append("hang: a writer does not end: %s" % children.pop(0))
        else:
            time.sleep(0.005)
    for name in sorted(os.listdir(state)):
        if name.endswith(".error"):
            with open(os.path.join(state, name), encoding="utf-8") as file:
                lines.append("refused: " + file.read().replace("\n", " "))
            os.unlink(os.path.join(state, name))
    return lines


def heal(limit, mnt, *bricks):
    ends, least = 0, None
    while True:
        if mnt not in ("-", "notes"):
            torture_work.look_at_all(mnt)
        try:
            found = torture_bricks.pending(bricks, indices_are_walked=mnt in ("-", "notes")) + (torture_bricks.notes(bricks) if mnt == "notes" else [])
        except FileNotFoundError as error:
            found = ["pending: a heal has just removed %s" % error.filename]
        if least is None or len(found) < least:
            least, ends = len(found), time.monotonic() + float(limit)
        if not found or time.monotonic() > ends:
            return tell(found)
        time.sleep(0.1)


def before(state, size, *bricks):
    half_renamed[:] = torture_bricks.half_renamed(bricks, int(size), torture_work.renames_in_flight(state))
    return []


def tell(lines):
    def is_of_half(line):
        words = [] if line.startswith(("times:", "linkto:", "leftover:")) else re.split("[ :,()]+", line)
        return any(word == path or word.startswith(path + "/") for path in half_renamed for word in words)
    return ["stock: " + line if is_of_half(line) else line for line in lines]


def compare(size, kind, *bricks):
    found = torture_bricks.compare(bricks, int(size), kind)
    if found:
        time.sleep(1.5)  # a mount keeps locks for a second, and records versions when they end
        found = torture_bricks.compare(bricks, int(size), kind)
    return tell(found)


def verify(mnt, state):
    return tell(torture_work.verify(mnt, state))


def calls(state):
    count = 0
    for name in os.listdir(state):
        if name.startswith("w") and name.endswith(".log"):
            with open(os.path.join(state, name), encoding="ascii") as file:
                count += sum(line.endswith(" done\n") for line in file)
    return [str(count)]


COMMANDS = {command.__name__: command for command in (write, end, heal, before, compare, verify, calls)}


def main():
    for line in sys.stdin:
        name, *args = line.split()
        try:
            answer = COMMANDS[name](*args)
        except Exception:
            answer = ["broken: %s: %s" % (line.strip(), traceback.format_exc().replace("\n", " "))]
        print("\n".join(answer + ["."]), flush=True)


main()
