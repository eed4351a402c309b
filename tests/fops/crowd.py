#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Many processes in one directory, seen through several mounts.

    crowd.py PROCESSES ROUNDS [--strict] DIR...     process N works through DIR number N modulo their count
"""
import errno
import os
import sys
import traceback


def own_names(me, place, rounds):
    for i in range(rounds):
        one = os.path.join(place, "p%d-%d" % (me, i))
        two = one + "-renamed"
        text = ("%d %d" % (me, i)).encode()
        fd = os.open(one, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        os.write(fd, text)
        os.close(fd)
        os.rename(one, two)
        fd = os.open(two, os.O_RDONLY)
        assert os.read(fd, 100) == text
        os.close(fd)
        try:
            os.stat(one)
        except FileNotFoundError:
            pass
        else:
            raise AssertionError("%s is there after its rename" % one)
        if i % 2:
            os.unlink(two)


def contested(place, rounds):
    won = []
    for i in range(rounds):
        name = os.path.join(place, "contest-%d" % i)
        try:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
            won.append("f%d" % i)
        except FileExistsError:
            pass
        try:
            os.mkdir(name + "-dir")
            won.append("d%d" % i)
        except FileExistsError:
            pass
    return won


def removals(place, rounds):
    # The second client finds no name (ENOENT), or loses the directory between lookup and lock (ESTALE).
    gone = (errno.ENOENT, errno.ESTALE)
    won = []
    for i in range(rounds):
        name = os.path.join(place, "contest-%d" % i)
        try:
            os.unlink(name)
            won.append("f%d" % i)
        except OSError as error:
            if error.errno not in gone:
                raise
        try:
            os.rmdir(name + "-dir")
            won.append("d%d" % i)
        except OSError as error:
            if error.errno not in gone:
                raise
    return won


def phase(count, places, work):
    """Runs work(number, place) in count processes; gives the lists of words they return, or stops."""
    pipes = []
    for me in range(count):
        reader, writer = os.pipe()
        if os.fork() == 0:
            status = 0
            try:
                words = work(me, places[me % len(places)]) or []
                os.write(writer, " ".join(words).encode())
            except BaseException:
                os.write(writer, traceback.format_exc().encode()[-3000:])
                status = 1
            os._exit(status)
        os.close(writer)
        pipes.append(reader)
    said = []
    for reader in pipes:
        with os.fdopen(reader, "rb") as file:
            said.append(file.read().decode())
    bad = 0
    for _ in range(count):
        bad += os.wait()[1] != 0
    if bad:
        for text in said:
            if "Traceback" in text:
                print(text)
                break
    return bad, [text.split() for text in said]


def main():
    count, rounds, places = int(sys.argv[1]), int(sys.argv[2]), [a for a in sys.argv[3:] if a[0] != "-"]
    failed = 0

    def say(good, text):
        nonlocal failed
        failed += not good
        print(("ok - " if good else "not ok - ") + text)
        sys.stdout.flush()

    bad, _ = phase(count, places, lambda me, place: own_names(me, place, rounds))
    say(bad == 0, "%d processes create, rename, read and delete separate names" % count)
    left = {"p%d-%d-renamed" % (me, i) for me in range(count) for i in range(0, rounds, 2)}
    for place in places:
        found = os.listdir(place)
        say(sorted(found) == sorted(left), "the listing has exactly the expected names (%d)" % len(found))
    bad, _ = phase(count, places, lambda me, place: [
        os.unlink(os.path.join(place, "p%d-%d-renamed" % (me, i))) and "" for i in range(0, rounds, 2)] and None)
    say(bad == 0, "all listed names can be deleted")
    wanted = sorted(["f%d" % i for i in range(rounds)] + ["d%d" % i for i in range(rounds)])
    bad, won = phase(count, places, lambda me, place: contested(place, rounds))
    say(bad == 0 and sorted(sum(won, [])) == wanted, "each contested name is created by exactly one process")
    bad, won = phase(count, places, lambda me, place: removals(place, rounds))
    removed = sum(won, [])
    if "--strict" in sys.argv:
        say(bad == 0 and sorted(removed) == wanted, "each contested name is removed by exactly one process")
    else:
        # Of two clients that remove one name of a replicated or distributed volume at the same time, both may be told
        # that they did it: the layers above the brick take "gone" for "removed".
        say(bad == 0 and set(removed) == set(wanted), "each contested name is removed by at least one process")
        print("%d removals more than names" % (len(removed) - len(wanted)))
    sys.exit(1 if failed else 0)


main()
