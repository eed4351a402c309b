# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""The witness that tests/bench/frozen starts: calls to a brick in succession, the duration of each call, and
the verdict."""
import collections
import os
import statistics
import sys
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "wire"))
from attack import created  # noqa: E402
from kilnwire import ROOT, Peer  # noqa: E402

P99_MAX, PING_MAX_MS = 1.1, 1000


def took(function):
    begin = time.monotonic()
    function()
    return (time.monotonic() - begin) * 1000


def witness(host, port, brick, seconds, state):
    with Peer(host, int(port), 60) as peer:
        assert peer.login(brick)[0] == 0
        gfid, fd = created(peer, "witness-%s" % uuid.uuid4())

        def look_up():
            assert peer.fop("LOOKUP", gfid=ROOT).op_ret == 0

        def write():
            assert peer.fop("WRITE", payload=b"x" * 4096, gfid=gfid, fd=fd, offset=0, size=4096).op_ret == 4096

        calls = {"lookup": look_up, "write": write, "ping": peer.ping}
        times = collections.defaultdict(list)
        end = time.monotonic() + float(seconds)
        while time.monotonic() < end:
            for what, call in calls.items():
                times[what].append(took(call))
            time.sleep(0.001)
        for what, all_of in times.items():
            all_of.sort()
            print(what, state, "%.3f %.3f %.3f %d" % (all_of[len(all_of) // 2], all_of[int(len(all_of) * 0.99)], all_of[-1], len(all_of)))


def verdict(path):
    rows = collections.defaultdict(list)
    with open(path) as figures:
        for line in figures:
            what, state, *values = line.split()
            rows[what, state].append([float(v) for v in values])
    middle = {key: [statistics.median(column) for column in zip(*of)] for key, of in rows.items()}
    is_ok = max(row[2] for row in rows["ping", "frozen"]) < PING_MAX_MS
    for what in ("lookup", "write", "ping"):
        well, frozen = middle[what, "healthy"], middle[what, "frozen"]
        ratio = frozen[1] / well[1]
        is_ok &= what == "ping" or ratio <= P99_MAX
        print("%-7s healthy p50 %6.3f p99 %6.3f ms   frozen p50 %6.3f p99 %6.3f, worst %7.3f ms   p99 %.2f" % (
            what, well[0], well[1], frozen[0], frozen[1], max(row[2] for row in rows[what, "frozen"]), ratio))
    print("a status %.0f ms healthy, %.0f frozen" % (middle["status", "healthy"][0], middle["status", "frozen"][0]))
    print("OK" if is_ok else "BELOW")
    return 0 if is_ok else 1


if sys.argv[1] == "--verdict":
    sys.exit(verdict(sys.argv[2]))
witness(*sys.argv[1:])
