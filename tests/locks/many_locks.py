# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""8,000 inodelks of an inode are granted, 8,000 wait: one more lock and unlock is quick, and another brick does not notice.

    many_locks.py HOST PORT BRICK OTHER-BRICK
"""
import os
import statistics
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "wire"))
from kilnwire import FOPS, FOP_ROWS, ROOT, Reply, encode_fop  # noqa: E402
from lock_peer import NOW, READ, UNLOCK, WAIT, WRITE, inodelk, inodelk_args, login, make_file, unlock  # noqa: E402

LOCKS, CROWD, ROUNDS, SECONDS = 8000, 16, 50, 20
PART = LOCKS // CROWD
argv, other = sys.argv, sys.argv[:3] + sys.argv[4:]


def send(peer, owner, *more, **values):
    peer.owner = owner.to_bytes(8, "big")
    peer.send(FOPS, 400, FOP_ROWS["INODELK"][0], encode_fop("INODELK", **inodelk_args(*more, **values)))


def answers(peer, count):
    for _ in range(count):
        reply = Reply("INODELK", peer.receive().body)
        assert reply.op_ret == 0, reply


def ask_to_wait(number):
    """Some of those that wait, over a connection of their own."""
    peer = login(argv, 600)
    for n in range(number * PART, (number + 1) * PART):
        send(peer, n, gfid, WRITE, n * 10, 10, cmd=WAIT)
    return peer


def lock_and_unlock(number):
    peer, took = login(argv, SECONDS), []
    for n in range(ROUNDS):
        at = 10 * LOCKS + number * 100
        assert inodelk(peer, gfid, WRITE, at, 10, cmd=NOW).op_ret == 0
        began = time.monotonic()
        assert unlock(peer, gfid, at, 10).op_ret == 0
        took.append(time.monotonic() - began)
    unlocks.extend(took)


def look_at_the_other():
    peer = login(other, SECONDS)
    while not ends:
        began = time.monotonic()
        assert peer.fop("LOOKUP", gfid=ROOT).op_ret == 0
        lookups.append(time.monotonic() - began)
        time.sleep(0.01)


unlocks, lookups, failures, ends = [], [], [], False


def run(function, *args):
    def guarded():
        try:
            function(*args)
        except Exception as error:  # noqa: BLE001: told at the end
            failures.append("%s: %r" % (function.__name__, error))
    thread = threading.Thread(target=guarded)
    thread.start()
    return thread


holder = login(argv, 600)
gfid = make_file(holder, "f")
for part in range(CROWD):
    for n in range(part * PART, (part + 1) * PART):
        send(holder, n, gfid, READ, n * 10, 10)
    answers(holder, PART)
waiting = [ask_to_wait(n) for n in range(CROWD)]
witness = run(look_at_the_other)
crowd = [run(lock_and_unlock, n) for n in range(8)]
for thread in crowd:
    thread.join()
for part in range(CROWD):
    for n in range(part * PART, (part + 1) * PART):
        send(holder, n, gfid, UNLOCK, n * 10, 10)
    answers(holder, PART)
for peer in waiting:
    answers(peer, PART)
ends = True
witness.join()
print("# unlock among them: median %.1f ms, worst %.1f ms; LOOKUP on the other brick: median %.1f ms, worst %.1f ms" % tuple(
    1000 * v for v in (statistics.median(unlocks or [0]), max(unlocks or [0]), statistics.median(lookups), max(lookups))))
for failure in failures:
    print("#", failure)
sys.exit(bool(failures) or not lookups or max(lookups) > 5)
