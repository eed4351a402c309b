#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""scale_work.py: the rows of tests/bench/scale.

    scale_work.py processes DIR N FILES     N processes share out FILES files, each process in a folder of its own
    scale_work.py folder DIR N              one process, N files in one folder
    scale_work.py report JSON OUT...        the table; OUT, named SUBJECT, has the lines of a subject
    scale_work.py peers JSON OUT...         the same with the columns of tests/bench/peers

processes and folder print a JSON line for each step: row, microseconds of wall time a file.
"""
import json
import multiprocessing
import os
import statistics
import sys
import time

SUBJECTS = ("stock", "kiln", "inside", "through")
PEERS = ("stock", "kiln", "inside", "moosefs", "ceph", "through")
DATA = b"k" * 4096


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
        f.write("3")


def say(row, start, files):
    print(json.dumps({"row": row, "us": (time.monotonic() - start) / files * 1e6}), flush=True)


def create(path):
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))


def write(path):
    fd = os.open(path, os.O_WRONLY)
    os.write(fd, DATA)
    os.close(fd)


def stat(path):
    if os.stat(path).st_size != len(DATA):
        raise OSError(f"{path} does not have the size that was written")


STEPS = (("create", create), ("write 4 KiB", write), ("stat", stat), ("remove", os.unlink))


def worker(folder, files, barrier):
    paths = [f"{folder}/f{i}" for i in range(files)]
    for _, step in STEPS:
        barrier.wait()
        for path in paths:
            step(path)
        barrier.wait()


def processes(directory, count, files):
    barrier = multiprocessing.Barrier(count + 1)
    each = files // count
    workers = []
    for i in range(count):
        folder = f"{directory}/p{i}"
        os.mkdir(folder)
        workers.append(multiprocessing.Process(target=worker, args=(folder, each, barrier)))
        workers[-1].start()
    for name, _ in STEPS:
        barrier.wait()
        start = time.monotonic()
        barrier.wait()
        say(f"{name}, processes: {count}", start, each * count)
    for i, one in enumerate(workers):
        one.join()
        if one.exitcode:
            sys.exit(f"scale_work: a process ended with {one.exitcode}")
        os.rmdir(f"{directory}/p{i}")


def folder(directory, count):
    path = f"{directory}/folder"
    os.mkdir(path)
    start = time.monotonic()
    for i in range(count):
        create(f"{path}/f{i}")
    say(f"create, folder of {count}", start, count)
    drop_caches()
    start = time.monotonic()
    names = os.listdir(path)
    say(f"list, cold, folder of {count}", start, count)
    if len(names) != count:
        sys.exit(f"scale_work: {len(names)} of {count} names are listed")
    drop_caches()
    start = time.monotonic()
    for name in names:
        os.stat(f"{path}/{name}")
    say(f"stat, cold, folder of {count}", start, count)
    start = time.monotonic()
    for name in names:
        os.unlink(f"{path}/{name}")
    say(f"remove, folder of {count}", start, count)
    os.rmdir(path)


def report(path, subjects, ratios, *outs):
    runs = {}
    for out in outs:
        with open(out, encoding="utf-8") as f:
            for line in f:
                one = json.loads(line)
                runs.setdefault(one["row"], {}).setdefault(os.path.basename(out), []).append(one["us"])
    print(f"{'':36}" + "".join(f"{s:>9}" for s in subjects) + "".join(f"{a + '/' + b:>15}" for a, b in ratios))
    table = []
    for row, found in runs.items():
        us = {s: statistics.median(found[s]) for s in found}
        table.append({"row": row, "us": us, "runs": found})
        cells = "".join(f"{us[s]:9.1f}" if s in us else f"{'-':>9}" for s in subjects)
        for a, b in ratios:
            cells += f"{us[a] / us[b]:15.2f}" if us.get(a) and us.get(b) else f"{'-':>15}"
        print(f"{row:36}{cells}")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(table, f)
        f.write("\n")


def scale_report(path, *outs):
    report(path, SUBJECTS, (("stock", "kiln"), ("stock", "inside"), ("kiln", "through")), *outs)


def peers_report(path, *outs):
    report(path, PEERS, (("stock", "kiln"), ("moosefs", "kiln"), ("ceph", "kiln"), ("moosefs", "inside")), *outs)


if __name__ == "__main__":
    {"processes": lambda d, n, f: processes(d, int(n), int(f)), "folder": lambda d, n: folder(d, int(n)),
     "report": scale_report, "peers": peers_report}[sys.argv[1]](*sys.argv[2:])
