#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Attacks of a hostile peer or client. Each attack is a function of one of the attack_*.py files;
tests/wire/attacks.sh runs each attack against a new daemon, in a separate root file system. Never run an
attack by hand against a daemon elsewhere.

    attack.py PORT BRICK OTHER-BRICK NAME...
    attack.py --list            NAME|OPTION OF THE SERVER LAYER|LIMIT OF DESCRIPTORS|DEVICES|MODULE

KILN_TEST_PID is the daemon's pid. KILN_ATTACK_SIZE=full is for the long tests: attacks of the full size.
KILN_SANITIZER is address or thread when the daemon is built with that sanitizer, which needs more memory and
time. Prints a TAP line without a plan for each attack.
"""
import os
import signal
import sys
import time

from kilnwire import FOP_ROWS, FOPS, ROOT, Peer, d_gfid, encode_fop

ATTACKS = {}
IS_FULL = os.environ.get("KILN_ATTACK_SIZE") == "full"
SANITIZER = os.environ.get("KILN_SANITIZER", "")
SLOW = {"": 1, "address": 3, "thread": 10}[SANITIZER]


class ARGS:
    port, brick, other = 0, "", ""


def attack(function):
    ATTACKS[function.__name__] = function
    return function


def needs(options="", nofile=0, devices=False):
    """The daemon's settings for the attack, which attacks.sh applies: an option of protocol/server, a limit
    of descriptors; whether device nodes can be opened."""
    def note(function):
        function.needs = (options, nofile, devices)
        return function
    return note


def sized(small, full):
    return full if IS_FULL else small


def fresh(source=None, timeout=120):
    return Peer("127.0.0.1", ARGS.port, timeout, source)


def member(brick=None, uid=0, pid=None, source=None, timeout=120):
    peer = fresh(source, timeout)
    op_ret, op_errno, _ = peer.login(brick or ARGS.brick)
    assert op_ret == 0, "login: errno %d" % op_errno
    peer.uid = peer.gid = uid
    if pid is not None:
        peer.pid = pid
    return peer


def gfid():
    return os.urandom(16)


def make(peer, fop, name, parent=ROOT, wanted=None, **fields):
    """A new object; its gfid."""
    wanted = wanted or gfid()
    fields.setdefault("mode", {"MKDIR": 0o40755, "CREATE": 0o100644, "MKNOD": 0o100644}.get(fop, 0))
    if fop == "CREATE":
        fields.setdefault("flags", os.O_RDWR | os.O_CREAT)
    reply = peer.fop(fop, pargfid=parent, name=name, xdata={"gfid-req": d_gfid(wanted)}, **fields)
    assert reply.op_ret == 0, "%s %s: errno %d" % (fop, name, reply.op_errno)
    return wanted


def created(peer, name, parent=ROOT):
    """A new file: its gfid and an open fd."""
    wanted = gfid()
    reply = peer.fop("CREATE", pargfid=parent, name=name, mode=0o100644, flags=os.O_RDWR | os.O_CREAT,
                     xdata={"gfid-req": d_gfid(wanted)})
    assert reply.op_ret == 0, "CREATE %s: errno %d" % (name, reply.op_errno)
    return wanted, reply.fd


def post(peer, fop, **fields):
    """Sends and does not wait."""
    return peer.send(FOPS, 400, FOP_ROWS[fop][0], encode_fop(fop, **fields))


def record(peer, fop, **fields):
    """The bytes of a call with the record mark, to be sent together with other calls."""
    body = (peer.head(FOPS, 400, FOP_ROWS[fop][0]) + peer.credential() + bytes(8) + encode_fop(fop, **fields))
    return (len(body) | 0x80000000).to_bytes(4, "big") + body


def answers(peer, count):
    """That many raw answers, by xid."""
    return {answer.xid: answer for answer in (peer.receive() for _ in range(count))}


def daemon_status(key):
    with open("/proc/%s/status" % os.environ["KILN_TEST_PID"]) as status:
        return next(int(line.split()[1]) for line in status if line.startswith(key + ":"))


def resident_mb():
    return daemon_status("VmRSS") / 1024


def descriptors():
    return len(os.listdir("/proc/%s/fd" % os.environ["KILN_TEST_PID"]))


def cpu_seconds():
    with open("/proc/%s/stat" % os.environ["KILN_TEST_PID"]) as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited %d s for: %s" % (seconds, what)
        time.sleep(0.02)


def serves(brick=None, seconds=10, source=None):
    """Logs in and sends a LOOKUP on a new connection. Returns the duration."""
    begin = time.monotonic()
    with member(brick, source=source, timeout=seconds) as peer:
        reply = peer.fop("LOOKUP", gfid=ROOT)
        assert reply.op_ret == 0, "LOOKUP of the root: errno %d" % reply.op_errno
    return time.monotonic() - begin


class Witness:
    """A process that logs in to the other brick and looks up the root, over and over, and keeps its longest
    waits.

        with Witness() as witness:
            ...
        witness.answered_in(lookup=0.1, login=1)
    """

    def __init__(self, brick=None, source="127.0.0.9"):
        self.brick, self.source = brick or ARGS.other, source
        self.count, self.lookup, self.login, self.error = 0, 0.0, 0.0, ""

    def __enter__(self):
        self.reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self.run(writer)
        os.close(writer)
        os.read(self.reader, 1)
        return self

    def run(self, writer):
        is_over = []
        signal.signal(signal.SIGUSR1, lambda *_: is_over.append(True))
        os.write(writer, b".")
        count, lookup, login, error = 0, 0.0, 0.0, ""
        try:
            while not is_over:
                begin = time.monotonic()
                with member(self.brick, source=self.source, timeout=60) as peer:
                    login = max(login, time.monotonic() - begin)
                    for _ in range(20):
                        begin = time.monotonic()
                        assert peer.fop("LOOKUP", gfid=ROOT).op_ret == 0
                        lookup = max(lookup, time.monotonic() - begin)
                        count += 1
                        time.sleep(0.005)
                        if is_over:
                            break
        except BaseException as problem: # the other process tells it
            error = "%s: %s" % (type(problem).__name__, problem)
        os.write(writer, repr((count, lookup, login, error)).encode())
        os._exit(0)

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGUSR1)
        self.count, self.lookup, self.login, self.error = eval(os.read(self.reader, 65536).decode())
        os.close(self.reader)
        os.waitpid(self.pid, 0)

    def answered_in(self, lookup, login):
        print("# the other brick: %d LOOKUPs, worst %.0f ms, worst login %.0f ms" % (self.count, self.lookup * 1e3, self.login * 1e3))
        assert not self.error, "a client of the other brick: " + self.error
        assert self.count, "no LOOKUP of the other brick was answered"
        assert self.lookup < lookup * SLOW, "the other brick's LOOKUP took %.3f s" % self.lookup
        assert self.login < login * SLOW, "a login to the other brick took %.3f s" % self.login


def main():
    import attack_load # noqa: F401  they register themselves
    import attack_paths # noqa: F401
    import attack_trust # noqa: F401
    if sys.argv[1:2] == ["--list"]:
        for name, function in ATTACKS.items():
            options, nofile, devices = getattr(function, "needs", ("", 0, False))
            print("%s|%s|%s|%s|%s" % (name, options, nofile or "", "yes" if devices else "", function.__module__))
        return
    ARGS.port, ARGS.brick, ARGS.other = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    failed = 0
    for name in sys.argv[4:]:
        problem = None
        begin = time.monotonic()
        try:
            ATTACKS[name]()
        except Exception as error: # whatever went wrong is this attack's success
            problem = "%s: %s" % (type(error).__name__, error)
        print(("ok - " if problem is None else "not ok - ") + name.replace("_", " "))
        print("# %.1f s" % (time.monotonic() - begin))
        if problem:
            failed += 1
            print("# " + problem[:800].replace("\n", "\n# "))
        sys.stdout.flush()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    sys.modules["attack"] = sys.modules["__main__"] # the attacks' own import finds this one
    main()
