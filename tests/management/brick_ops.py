#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""brick_ops.py answered SOCKET BRICK | together SOCKET BRICK VOLFILE PID: tests the answers of a brick's -S socket; prints lines of TAP for `include`.

answered: every call gets an answer, also unknown and mangled calls. together: TERMINATE and ATTACH of one brick that
overlap, as `volume stop; volume start` and a stop during a start cause them. BRICKD=stock leaves out calls that stock does not answer, or
answers with an empty body (management 4.4).
"""
import os
import random
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from brick_op import BrickOps, PROGRAM, VERSION, opaque, text_dict  # noqa: E402

STOCK = os.environ.get("BRICKD") == "stock"
TERMINATE, XLATOR_INFO, STATUS, BARRIER, ATTACH = 1, 2, 4, 10, 12
PROG_UNAVAIL, PROG_MISMATCH, PROC_UNAVAIL, GARBAGE = 1, 2, 3, 4


def ok(is_right, what, got=None):
    print("%s - %s" % ("ok" if is_right else "not ok", what))
    if not is_right:
        print("# got: %r" % (got,))


# -- each call is answered ----------------------------------------------------------------------------------------------

def refused(reply, word=""):
    return reply.accept == 0 and reply.op_ret == -1 and reply.op_errstr and word in reply.op_errstr


def raw(path, body, procedure, program=PROGRAM, version=VERSION):
    ops = BrickOps(path)
    ops.send_bytes(body, procedure, program, version)
    return ops.receive()[1]


def answered(path, brick):
    call = BrickOps(path).call
    for procedure in (5, 99, 0x7fffffff):
        reply = call(procedure)
        ok(reply.accept == PROC_UNAVAIL, "the unknown procedure %d is PROC_UNAVAIL" % procedure, reply)
    head = opaque(b"") + struct.pack(">i", STATUS) + opaque(b"") + opaque(b"")
    reply = raw(path, head, STATUS, program=PROGRAM + 1)
    ok(reply.accept == PROG_UNAVAIL, "an unknown program is PROG_UNAVAIL", reply)
    reply = raw(path, head, STATUS, version=VERSION + 1)
    ok(reply.accept == PROG_MISMATCH, "an unknown version is PROG_MISMATCH", reply)
    for procedure in (TERMINATE, XLATOR_INFO, STATUS, BARRIER, ATTACH):
        for what, body in (("nothing", b""), ("a cut name", struct.pack(">I", 100) + b"/b"), ("a name of 2 GiB", struct.pack(">I", 1 << 31))):
            reply = raw(path, body, procedure)
            ok(reply.accept == GARBAGE, "procedure %d with %s is GARBAGE_ARGS" % (procedure, what), reply)

    reply = call(STATUS, "", {"cmd": 258, "brick-name": brick, "volname": "v"})
    ok(reply.op_ret == 0 and "clientcount" in reply.output, "STATUS of the brick's clients succeeds", reply)
    reply = call(STATUS, "", {"cmd": 1 << 20, "brick-name": brick, "volname": "v"})
    ok(refused(reply, "Unknown status op"), "STATUS of an unknown flavour is refused", reply)
    reply = call(TERMINATE, "/nowhere")
    ok(reply.op_ret == 0, "TERMINATE of an unknown brick answers 0", reply)
    reply = call(XLATOR_INFO, "/nowhere", {"op": 3, "info-op": 1, "peek": 1, "volname": "v"})
    ok(refused(reply, "xlator /nowhere is not loaded"), "XLATOR_INFO of an unknown brick is refused", reply)
    for procedure in (3, 11, 15):
        reply = call(procedure, "/nowhere", {"count": 0})
        ok(reply.accept == 0 and reply.op_ret == 0 and not reply.output, "procedure %d answers without output" % procedure, reply)
    reply = call(ATTACH, "/nowhere.vol")
    ok(reply.accept == 0 and reply.op_ret == -1, "ATTACH of a missing volfile is refused", reply)
    if not STOCK:
        answered_by_kilnd(path, brick)
    several_at_once(path, brick)


def answered_by_kilnd(path, brick):
    call = BrickOps(path).call
    reply = call(STATUS, "", {"cmd": 258, "brick-name": "/nowhere", "volname": "v"})
    ok(refused(reply), "STATUS of an unknown brick is refused with a reason", reply)
    reply = call(STATUS, "")
    ok(refused(reply), "STATUS without a brick is refused", reply)
    reply = call(BARRIER, "/nowhere", {"barrier": "enable"})
    ok(refused(reply), "BARRIER of an unknown brick is refused", reply)
    reply = call(BARRIER, brick, {"barrier": "perhaps"})
    ok(refused(reply), "BARRIER neither on nor off is refused", reply)
    reply = call(BARRIER, brick)
    ok(refused(reply), "BARRIER without a word is refused", reply)
    reply = call(XLATOR_INFO, brick, {"op": 77})
    ok(refused(reply), "XLATOR_INFO that is neither profile nor top is refused", reply)
    reply = call(XLATOR_INFO, brick, {"op": 4, "top-op": 77})
    ok(refused(reply), "XLATOR_INFO for a top of an unknown kind is refused", reply)
    for procedure in (6, 7, 8, 9, 13, 14):
        reply = call(procedure, brick, {"cmd": 1})
        ok(refused(reply), "procedure %d of other processes is refused" % procedure, reply)
    for volfile in ("", "/", "/proc/self/mem", "/dev/zero", "/etc/passwd", "relative.vol", "/x\nvolume"):
        reply = call(ATTACH, volfile)
        ok(refused(reply), "ATTACH of %r is refused" % volfile, reply)
    mangled(path, brick)


def mangled(path, brick):
    """Dicts that are cut, count wrong, or are no dicts: answered, one way or the other."""
    random.seed(1)
    good = text_dict({"cmd": 258, "brick-name": brick, "op": 3, "info-op": 1, "barrier": "disable", "volname": "v"})
    unanswered = []
    for i in range(300):
        bad = bytearray(good)
        for _ in range(random.randint(1, 4)):
            bad[random.randrange(len(bad))] = random.randrange(256)
        bad = bad[:random.choice((len(bad), random.randrange(len(bad))))]
        procedure = random.choice((XLATOR_INFO, STATUS, BARRIER))
        try:
            raw(path, opaque(brick.encode()) + struct.pack(">i", procedure) + opaque(bytes(bad)) + opaque(b""), procedure)
        except (OSError, EOFError, AssertionError) as error:
            unanswered.append((procedure, bytes(bad), error))
    ok(not unanswered, "300 mangled dictionaries are answered", unanswered[:3])


def several_at_once(path, brick):
    ops = BrickOps(path)
    sent = [ops.send(STATUS, "", {"cmd": 256 + (1, 2, 8)[i % 3], "brick-name": brick, "volname": "v"}) for i in range(30)]
    got = dict(ops.receive() for _ in sent)
    ok(sorted(got) == sorted(sent) and all(r.op_ret == 0 for r in got.values()), "30 overlapping calls of one connection are answered", got)


# -- attach and detach of one brick that overlap --------------------------------------------------------------------------

def open_roots(pid, brick):
    links = 0
    for number in os.listdir("/proc/%s/fd" % pid):
        try:
            links += os.readlink("/proc/%s/fd/%s" % (pid, number)) == brick
        except FileNotFoundError:
            pass
    return links


def is_served(path, brick):
    reply = BrickOps(path).call(STATUS, "", {"cmd": 258, "brick-name": brick, "volname": "v"})
    return reply.op_ret == 0


def get(what, wanted, seconds=120):
    """Asks until the answer is as wanted, which it is in the end."""
    deadline = time.monotonic() + seconds
    while what() != wanted and time.monotonic() < deadline:
        time.sleep(0.02)
    return what() == wanted


def together(path, brick, volfile, pid):
    for volfiles in (1, 3):
        ops = BrickOps(path)
        xids = [ops.send(ATTACH, volfile) for _ in range(volfiles)]
        got = [ops.receive()[1].op_ret for _ in xids]
        ok(got == [0] * volfiles and open_roots(pid, brick) == 1, "ATTACH of an attached brick, %d at once, answers 0 and leaves one brick" % volfiles, got)
    bad = []
    ops, other = BrickOps(path), BrickOps(path)
    for i in range(40):
        got = [ops.call(TERMINATE, brick).op_ret, (other if i % 2 else ops).call(ATTACH, volfile).op_ret]
        if got != [0, 0] or open_roots(pid, brick) != 1 or not is_served(path, brick):
            bad.append((i, got, open_roots(pid, brick)))
    ok(not bad, "ATTACH right after the answer to TERMINATE, 40 times, leaves the brick attached", bad)
    bad = []
    for i in range(40):
        # Concurrent calls may be executed in any order; the call after them decides the result.
        first, second = ((TERMINATE, brick), (ATTACH, volfile))[::1 if i % 2 else -1]
        xids = ops.send(*first), other.send(*second)
        got = [ops.receive()[1].op_ret, other.receive()[1].op_ret]
        is_there = i % 4 < 2
        last = ops.call(*(ATTACH, volfile) if is_there else (TERMINATE, brick)).op_ret
        wanted = (int(is_there), is_there)
        if got != [0, 0] or last or not get(lambda: (open_roots(pid, brick), is_served(path, brick)), wanted):
            bad.append((i, xids, got, last, open_roots(pid, brick)))
    ok(not bad, "TERMINATE and ATTACH together, 40 times: the call after them decides, and no orphan is left", bad)
    reply = BrickOps(path).call(TERMINATE, brick)
    ok(reply.op_ret == 0, "TERMINATE of a detached brick answers 0", reply)
    reply = BrickOps(path).call(ATTACH, volfile)
    ok(reply.op_ret == 0 and is_served(path, brick), "ATTACH after all calls attaches the brick", reply)


{"answered": answered, "together": together}[sys.argv[1]](*sys.argv[2:])
