# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""The clock of tests/bench/watched, which starts it: turns with watchers and without, then scrapes alone."""
import argparse
import http.client
import json
import os
import resource
import socket
import statistics
import subprocess
import threading
import time

MADE_S, RATIO, SCRAPE_MS, SHARE, EVERY_S, WATCHING, REST_S = 60, 0.99, 20, 0.002, 15, 0.01, 10
SCRAPES = 40
SOCKET = "/run/kiln/kilnd.socket"


class OverUnix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(SOCKET)


def get(connection, path):
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.status == 200, (path, answer.status)
    return answer.read()


def rates(connection, seconds):
    """Returns the rates of so many seconds; 0: of the time since the start."""
    return json.loads(get(connection, "/top?slow=0&ms=%d" % (seconds * 1000)))


def kilnd_cpu(pid):
    return time.clock_gettime(~pid << 3 | 2)


class Watchers:
    """Each second `kiln top --once --json`, which takes a second, and a scrape over a connection that is kept, as Prometheus does."""

    def __init__(self, kiln):
        self.kiln, self.is_over, self.failed, self.count = kiln, threading.Event(), 0, 0
        self.threads = [threading.Thread(target=f) for f in (self.top, self.scrape)]

    def each_second(self, function):
        due = time.monotonic()
        while not self.is_over.is_set():
            try:
                function()
            except Exception as error:
                print("a watcher failed: %s" % error)
                self.failed += 1
            due += 1
            self.is_over.wait(max(0, due - time.monotonic()))

    def top(self):
        def one():
            subprocess.run([self.kiln, "top", "--once", "--json"], stdout=subprocess.DEVNULL, check=True)
            self.count += 1
        self.each_second(one)

    def scrape(self):
        connection = http.client.HTTPConnection("127.0.0.1", 9421)
        self.each_second(lambda: get(connection, "/metrics"))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join()


def turn(args, top, is_watched):
    """Calls a second, as kilnd counts them between the turn's begin and end."""
    if not is_watched:
        return calls(rates(top, args.seconds))
    with Watchers(args.kiln) as watchers:
        told = rates(top, args.seconds)
    args.tops += watchers.count
    args.failed += watchers.failed
    return calls(told)


def calls(told):
    return sum(b["ops"] for b in told["bricks"])


def is_busy(top, volumes):
    """Every brick is at work."""
    bricks = rates(top, 0)["bricks"]
    return len(bricks) == 4 * volumes and all("create" in {f["fop"] for f in b["fops"]} for b in bricks)


def say(is_ok, text):
    print("%s: %s" % (text, "OK" if is_ok else "BELOW"), flush=True)
    return is_ok


def pairs_of(args, top):
    ratios, rates = [], []
    for pair in range(args.pairs):
        order = (False, True) if pair % 2 == 0 else (True, False)
        rate = {is_watched: turn(args, top, is_watched) for is_watched in order}
        ratios.append(rate[True] / rate[False])
        rates.append(rate[False])
    return ratios, statistics.median(rates)


def throughput(args, top):
    begin = kilnd_cpu(args.pid), time.monotonic()
    ratios, rate = pairs_of(args, top)
    busy = (kilnd_cpu(args.pid) - begin[0]) / (time.monotonic() - begin[1])
    print("load: %.0f calls a second without watchers, kilnd has %.2f processors" % (rate, busy))
    mean, error = statistics.mean(ratios), statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else 0
    middle = statistics.median(ratios)
    return say(middle >= RATIO and not args.failed, "throughput with watchers, median of %d pairs: %.4f of that without "
               "(%.3f - %.3f, mean %.4f +- %.4f), wanted %.2f" % (
                   len(ratios), middle, min(ratios), max(ratios), mean, error, RATIO))


def children_cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def watching(args):
    """Processor time of `kiln top`, and of kilnd for `kiln top` and the scrapes, without the processor time
    of kilnd at rest."""
    begin = kilnd_cpu(args.pid), time.monotonic()
    time.sleep(REST_S)
    rest = (kilnd_cpu(args.pid) - begin[0]) / (time.monotonic() - begin[1])
    begin = kilnd_cpu(args.pid), children_cpu(), time.monotonic()
    with Watchers(args.kiln) as watchers:
        time.sleep(REST_S)
    took = time.monotonic() - begin[2]
    kilnd, kiln = kilnd_cpu(args.pid) - begin[0] - rest * took, children_cpu() - begin[1]
    share = (kilnd + kiln) / took / os.cpu_count()
    return say(share < WATCHING and not watchers.failed,
               "a second of both takes %.1f ms of kilnd's and %.1f ms of kiln's processor time: %.2f %% of %d processors, "
               "wanted less than %.0f" % (1000 * kilnd / took, 1000 * kiln / took, 100 * share, os.cpu_count(), 100 * WATCHING))


def scrapes(args):
    connection = http.client.HTTPConnection("127.0.0.1", 9421)
    get(connection, "/metrics")
    took, cpu = [], []
    for _ in range(SCRAPES):
        begin = time.monotonic(), kilnd_cpu(args.pid)
        text = get(connection, "/metrics")
        took.append((time.monotonic() - begin[0]) * 1000)
        cpu.append((kilnd_cpu(args.pid) - begin[1]) * 1000)
        time.sleep(0.05)
    print("a scrape of %d bricks: %d lines, %.1f MB" % (4 * args.volumes, text.count(b"\n"), len(text) / 1e6))
    is_ok = say(statistics.median(took) < SCRAPE_MS, "it takes %.1f ms, median of %d (%.1f - %.1f), wanted less than %d" % (
        statistics.median(took), SCRAPES, min(took), max(took), SCRAPE_MS))
    share = statistics.median(cpu) / 1000 / EVERY_S
    return say(share < SHARE, "it takes %.1f ms of kilnd's processor time, median (%.1f - %.1f): every %d s %.3f %% of a processor, "
               "wanted less than %.1f" % (statistics.median(cpu), min(cpu), max(cpu), EVERY_S, 100 * share, 100 * SHARE)) and is_ok


parser = argparse.ArgumentParser()
parser.add_argument("--kiln")
parser.add_argument("--enough")
for name in ("--pid", "--volumes", "--made-ms", "--pairs"):
    parser.add_argument(name, type=int)
parser.add_argument("--seconds", type=float)
args = parser.parse_args()
args.tops = args.failed = 0
top = OverUnix("kilnd")
is_well = say(args.made_ms < MADE_S * 1000, "%d volumes of 2x2 made and started in %.1f s, wanted within %d" % (
    args.volumes, args.made_ms / 1000, MADE_S))
while not is_busy(top, args.volumes):
    time.sleep(0.1)
time.sleep(1)
is_well &= throughput(args, top)
with open(args.enough, "w"):
    pass
time.sleep(3)  # the workers end
is_well &= scrapes(args)
is_well &= watching(args)
raise SystemExit(not is_well)
