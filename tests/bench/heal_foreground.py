#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""heal_foreground.py run FOLDER OUTPUT: reads, writes and creates 4 KiB files in FOLDER in turns, until OUTPUT.end exists,
and adds to OUTPUT a line "time kind microseconds" for each call. Fails in the end if calls have failed.
heal_foreground.py show OUTPUT START HEAL END: prints p50 and p99 from START to HEAL, without a heal or rebalance, and from HEAL to END."""
import contextlib
import os
import random
import sys
import time

FILES = 64
PAUSE = 0.002  # a foreground that leaves the processor to the heal at times, as a client does


def read(folder, turn):
    fd = os.open(f"{folder}/{random.randrange(FILES)}", os.O_RDONLY)
    assert len(os.pread(fd, 4096, 0)) == 4096
    os.close(fd)


def write(folder, turn):
    fd = os.open(f"{folder}/{random.randrange(FILES)}", os.O_WRONLY)
    assert os.pwrite(fd, os.urandom(4096), 0) == 4096
    os.close(fd)


def create(folder, turn):
    fd = os.open(f"{folder}/new-{turn}", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    assert os.pwrite(fd, bytes(4096), 0) == 4096
    os.close(fd)


def run(folder, output):
    for i in range(FILES):
        with open(f"{folder}/{i}", "wb") as file:
            file.write(os.urandom(4096))
    turn = 0
    errors = []
    with open(output, "w", encoding="ascii", buffering=1) as lines:
        while not os.path.exists(f"{output}.end"):
            for call in (read, write, create):
                started = time.time()
                try:
                    call(folder, turn)
                    lines.write(f"{started:.6f} {call.__name__} {(time.time() - started) * 1e6:.0f}\n")
                except OSError as error:
                    errors.append(f"{call.__name__}: {error}")
                time.sleep(PAUSE)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{folder}/new-{turn}")
            turn += 1
    if errors:
        sys.exit(f"{len(errors)} calls failed, the first: {errors[0]}")


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def show(output, start, heal, end):
    with open(output, encoding="ascii") as file:
        calls = [(float(at), kind, int(us)) for at, kind, us in map(str.split, file)]
    for kind in ("read", "write", "create", "all"):
        rest, busy = ([us for at, name, us in calls if low <= at < high and kind in (name, "all")]
                      for low, high in ((start, heal), (heal, end)))
        if not rest or not busy:
            sys.exit(f"no {kind} in one of the two times")
        ratio = percentile(busy, 0.99) / percentile(rest, 0.99)
        print(f"       foreground {kind:6}  p50 / p99 in us: at rest {percentile(rest, 0.5):6} / {percentile(rest, 0.99):7}"
              f"   busy {percentile(busy, 0.5):6} / {percentile(busy, 0.99):7}   p99 x {ratio:.2f}   {len(busy)} calls")


if sys.argv[1] == "run":
    run(*sys.argv[2:])
else:
    show(sys.argv[2], *map(float, sys.argv[3:]))
