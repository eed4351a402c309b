# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""The clock of tests/bench/fairness, which starts it: floods in a process of their own, a witness of another brick in two threads."""
import argparse
import multiprocessing
import os
import resource
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "wire"))
import floods  # noqa: E402
from kilnwire import ROOT, Peer  # noqa: E402

LOOKUP_MS, LOGIN_MS = 100, 1000
TIMEOUT = 60


def flood_process(name, args, is_on, is_over):
    floods.ARGS = args
    try:
        kept = floods.FLOODS[name]() if name else []
        is_on.set()
        is_over.wait()
        floods.close(kept)
    except Exception as error:  # closed or refused: that is an answer, too
        print("# %s ended: %s: %s" % (name, type(error).__name__, error))
        is_on.set()


class Witness:
    def __init__(self, args, new_users):
        self.new_users = new_users
        self.args, self.is_over = args, threading.Event()
        self.lookups, self.logins, self.problems, self.peak = [], [], [], 0
        self.threads = [threading.Thread(target=self.guarded, args=(f,)) for f in (self.look_up, self.log_in, self.watch)]

    def guarded(self, function):
        try:
            function()
        except Exception as error:
            self.problems.append("%s: %s: %s" % (function.__name__, type(error).__name__, error))

    def member(self):
        peer = Peer(self.args.host, self.args.port, TIMEOUT)
        op_ret, op_errno, _ = peer.login(self.args.other)
        assert op_ret == 0, "login: errno %d" % op_errno
        return peer

    def look_up(self):
        with self.member() as peer:
            while not self.is_over.wait(0.002):
                if self.new_users:
                    peer.uid = 100000 + len(self.lookups)
                begin = time.monotonic()
                assert peer.fop("LOOKUP", gfid=ROOT).op_ret == 0
                self.lookups.append((time.monotonic() - begin) * 1000)

    def log_in(self):
        while not self.is_over.wait(0.1):
            begin = time.monotonic()
            self.member().close()
            self.logins.append((time.monotonic() - begin) * 1000)

    def watch(self):
        while not self.is_over.wait(0.05):
            self.peak = max(self.peak, floods.resident())

    def row(self, name):
        times = sorted(self.lookups) or [float("inf")]
        logins = self.logins or [float("inf")]
        is_ok = times[-1] < LOOKUP_MS and max(logins) < LOGIN_MS and not self.problems
        print("%-20s %6d lookups  p99 %7.1f ms  worst %7.1f ms  login worst %7.1f ms  resident %5d MiB  %s" % (
            name or "nothing", len(self.lookups), times[int(len(times) * 0.99)], times[-1], max(logins), self.peak,
            "OK" if is_ok else "BELOW"))
        for problem in self.problems:
            print("#   " + problem)
        sys.stdout.flush()
        return is_ok


def measure(name, args):
    """The witness is there before the flood comes, and while it comes."""
    context = multiprocessing.get_context("fork")
    is_on, is_over = context.Event(), context.Event()
    process = context.Process(target=flood_process, args=(name, args, is_on, is_over))
    process.start()
    witness = Witness(args, name == "unknown_users")
    for thread in witness.threads:
        thread.start()
    is_on.wait(args.seconds * 10)
    time.sleep(args.seconds)
    witness.is_over.set()
    for thread in witness.threads:
        thread.join()
    is_over.set()
    process.join(30)
    if process.is_alive():
        process.kill()
        process.join()
    return witness.row(name)


def main():
    parser = argparse.ArgumentParser()
    for name in ("host", "port", "brick", "other"):
        parser.add_argument(name)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("floods", nargs="*")
    args = parser.parse_intermixed_args()
    unknown = set(args.floods) - set(floods.FLOODS)
    if unknown:
        parser.error("no flood %s; there are %s" % (", ".join(unknown), ", ".join(floods.FLOODS)))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    rows = [measure(name, args) for name in [None] + (args.floods or list(floods.FLOODS))]
    sys.exit(0 if all(rows) else 1)


main()
