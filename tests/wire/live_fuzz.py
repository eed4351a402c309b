#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Random sequences of all fops with plausible and hostile arguments, from several connections at once, to two bricks of one daemon. Only
inside of tests/lib/own-root.sh; tests/wire/hostile-client-random-calls-leave-bricks-intact-long.t starts it.

    live_fuzz.py PORT BRICK OTHER-BRICK --minutes N [--seed S] [--processes N] [--only FOPS] [--names DIR]
    live_fuzz.py PORT BRICK OTHER-BRICK --look

Each process has a separate connection, sends a few calls ahead, decodes each answer, and now and then closes
the connection without warning. All processes work with the same few names and gfids, so that processes remove
each other's objects and reuse gfids for objects of other types. A witness logs in to the other brick and
looks up the root. Status 1: a process has found a fault, which is printed with the seed. In DIR each process
records its calls that make, look up, move or remove names: the record shows the calls that led to a wrong
handle. FOPS are the names of the fops to send, with commas (default: all).

--look afterwards, when the janitor has emptied the landfill: looks up all names, and compares their handles.
"""
import argparse
import os
import random
import re
import select
import struct
import sys
import time
import traceback
import uuid

from kilnwire import (ANONYMOUS, DUMP, FOP_ROWS, FOPS, ROOT, SUCCESS, Answer, Closed, Peer, Raw, Reply, d_bytes, d_gfid, d_int, d_str, encode_fop, opaque,
                      text, u32, u64)

NAMES = ["a", "b", "c", "d", "e", "f", "g", "h", "long" * 60, "n\n[forged]", "ä"]
BAD_NAMES = ["..", ".", "", "x" * 255, "x" * 256, "a/b", ".glusterfs", "/", "*", "\x01\x7f"]
GFIDS = [bytes([0xf0, n]) + bytes(13) + bytes([n]) for n in range(24)] # of all processes
SPECIAL = [bytes(15) + bytes([n]) for n in range(9)]
NUMBERS = [0, 1, 2, 3, 7, 8, 100, 4095, 4096, 4097, 65536, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]
OFFSETS = [0, 1, 511, 4096, 65536, 1 << 20, 1 << 31, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
TARGETS = ["/", "/victim", "/victim/file", "../..", "../../../../..", "a", "b/c", "/proc/self/root", "/dev/zero", "x" * 4000, "",
           "../../f0/00/f0000000-0000-0000-0000-000000000000/..", "../../00/00/00000000-0000-0000-0000-000000000001/.."]
MODES = [0o100644, 0o100000, 0o104755, 0o40755, 0o41777, 0o120777, 0o20666, 0o60666, 0o10666, 0o140666, 0, 0o777, 0xffffffff]
# The sizes of these calls are not random, because copying or zeroing whole gigabytes takes time and shows
# nothing.
SMALL_SIZES = {"FALLOCATE", "ZEROFILL", "DISCARD", "TRUNCATE", "FTRUNCATE", "COPY_FILE_RANGE"}
PATIENCE = 60
OF_NAMES = {"LOOKUP", "MKNOD", "MKDIR", "UNLINK", "RMDIR", "SYMLINK", "RENAME", "LINK", "CREATE", "ICREATE", "NAMELINK", "PUT"}
NAMING = ("gfid", "pargfid", "name", "pargfid2", "name2", "flags", "linkname", "mode")


def known_keys():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../libglusterfs/data/dict-keys.def")
    with open(path) as lines:
        keys = re.findall(r'^KEY\(\w+, "([^"]+)"', lines.read(), re.M)
    assert len(keys) > 50, "no keys in " + path
    return keys + ["user.a", "user.b", "trusted.x", "trusted.afr.dirty", "trusted.afr.v-client-0", "trusted.glusterfs.dht", "security.capability", "user.*",
                   "trusted.gfid2path.0123456789abcdef", "trusted.*", "system.posix_acl_access", "glusterfs.file.f", "trusted.SGI_ACL_FILE", "x" * 300]


KEYS = known_keys()


class Wrong(Exception):
    pass


class Names:
    """The record of calls that concern names: a line for each call, written at the answer or at the
    connection's end; a caller's bytes in hex or quoted."""

    def __init__(self, path):
        self.out = open(path, "w") if path else None
        self.open = {} # by xid: the time and the call

    def sent(self, xid, brick, fop, values, xdata):
        if not self.out or fop not in OF_NAMES:
            return
        wanted = (xdata or {}).get("gfid-req", (0, b""))[1]
        words = [k + "=" + (v.hex() if isinstance(v, bytes) else ascii(v)[:300]) for k, v in values.items() if k in NAMING]
        self.open[xid] = (time.time(), "%s %s %s wants=%s" % (os.path.basename(brick), fop, " ".join(words), wanted.hex()))

    def answered(self, xid, how):
        when, what = self.open.pop(xid, (0, None))
        if what:
            self.out.write("%.6f %.6f %s: %s\n" % (when, time.time(), what, how))

    def left(self):
        for xid in list(self.open):
            self.answered(xid, "no answer")

    def end(self):
        if self.out:
            self.left()
            self.out.close()


class Attacker:
    AHEAD = 12

    def __init__(self, rng, port, bricks, fops, names):
        self.rng, self.port, self.bricks, self.fops, self.names = rng, port, bricks, fops, names
        self.calls, self.answers, self.errors, self.logins = 0, 0, 0, 0
        self.by_fop = {}
        self.peer = None

    # -- a connection

    def connect(self):
        rng = self.rng
        self.peer = Peer("127.0.0.1", self.port, PATIENCE)
        self.waiting, self.fds, self.blocked_since = {}, [], time.monotonic()
        self.brick = rng.choice(self.bricks)
        op_ret, op_errno, _ = self.peer.login(self.brick, uid=rng.choice([None, None, None, "fuzz-%d" % rng.randrange(4)]))
        if op_ret < 0:
            raise Wrong("login: errno %d" % op_errno)
        self.logins += 1

    def leave(self):
        self.peer.close()
        self.forget()

    def forget(self):
        self.names.left()
        self.peer = None

    # -- arguments

    def gfid(self):
        r = self.rng.random()
        if r < 0.25:
            return ROOT
        if r < 0.92:
            return self.rng.choice(GFIDS)
        return self.rng.choice(SPECIAL) if r < 0.97 else self.rng.randbytes(16)

    def fd(self):
        r = self.rng.random()
        if r < 0.7 and self.fds:
            return self.rng.choice(self.fds)
        return self.rng.choice([ANONYMOUS, ANONYMOUS, 0, 1, 2, 3, -1, -3, 1 << 20, 1 << 63])

    def name(self):
        return self.rng.choice(NAMES) if self.rng.random() < 0.93 else self.rng.choice(BAD_NAMES)

    def bytes(self):
        return self.rng.randbytes(self.rng.choice([0, 1, 4, 8, 12, 16, 24, 36, 100, 4096]))

    def flock(self):
        owner = self.rng.choice([b"", b"o", b"owner", b"p" * 8, b"q" * 1024])
        return Raw(u32(self.rng.choice([0, 1, 2, 3, 9])) + u32(self.rng.choice([0, 0, 0, 1, 2])) + u64(self.rng.choice(OFFSETS[:6] + [0, 0, 10])) +
                   u64(self.rng.choice([0, 1, 10, 100, 1 << 40, (1 << 64) - 1])) + u32(7) + opaque(owner))

    def value(self):
        pick = self.rng.randrange(9)
        return (d_int(self.rng.choice(OFFSETS)), d_str(self.rng.choice(["1", "0", "x", "a:b", "/"])), d_bytes(self.bytes()), d_gfid(self.gfid()),
                (8, self.rng.randbytes(148)), (9, self.rng.randbytes(36)), d_bytes(u32(1) * 3), (4, bytes(8)),
                (3, u64(self.rng.choice(NUMBERS))))[pick]

    def dict(self, fop):
        pairs = {}
        if fop in ("CREATE", "MKNOD", "MKDIR", "SYMLINK", "ICREATE", "PUT") and self.rng.random() < 0.95:
            pairs["gfid-req"] = d_gfid(self.gfid())
        if fop == "LOOKUP" and self.rng.random() < 0.1:
            pairs["gfid-req"] = d_gfid(self.gfid())
        for _ in range(self.rng.choice([0, 0, 0, 1, 2, 5])):
            pairs[self.rng.choice(KEYS)] = self.value()
        return pairs or None

    def field(self, fop, name, kind):
        rng = self.rng
        if name in ("gfid", "gfid2", "pargfid", "pargfid2"):
            return self.gfid()
        if name in ("fd", "fd2"):
            return self.fd()
        if kind == "text":
            if name == "linkname":
                return rng.choice(TARGETS)
            if name == "volume":
                return rng.choice(["d", "v-replicate-0", "dht.file", "", "x\n[forged]"])
            return rng.choice(KEYS) if "XATTR" in fop else self.name()
        if name == "dict":
            return {rng.choice(KEYS): self.value() for _ in range(rng.choice([0, 1, 1, 2, 4]))} or None
        if name == "flock":
            return self.flock()
        if name == "locks":
            return Raw((u32(1) + self.flock() + text("fuzz-1") + u32(0)) * rng.randrange(3) + u32(0))
        if name in ("stbuf", "lease"):
            return rng.randbytes(148 if name == "stbuf" else 28) if rng.random() < 0.3 else bytes(148 if name == "stbuf" else 28)
        if name in ("offset", "offset2"):
            return rng.choice(OFFSETS[:6]) if fop in SMALL_SIZES or rng.random() < 0.8 else rng.choice(OFFSETS)
        if name == "size":
            return rng.choice(NUMBERS[:12] if fop in SMALL_SIZES or rng.random() < 0.95 else NUMBERS)
        if name in ("cmd", "type"):
            return rng.choice([0, 1, 1, 2, 2, 3, 6, 9])
        if name == "mode":
            return rng.choice(MODES)
        if name == "dev":
            return rng.choice([0, os.makedev(1, 3), os.makedev(1, 5), os.makedev(254, 0), os.makedev(8, 0), 1 << 40])
        if name == "flags":
            return rng.choice([0, 1, 2, os.O_CREAT | os.O_RDWR, os.O_RDWR, os.O_RDWR | os.O_TRUNC, os.O_APPEND | os.O_WRONLY, os.O_DIRECT, os.O_DIRECTORY,
                               os.O_CREAT | os.O_EXCL | os.O_RDWR, 0xffffffff])
        if name == "valid":
            return rng.choice([1, 2, 4, 6, 8, 16, 32, 64, 0x7f, 0xffffffff])
        return rng.choice(NUMBERS[:6] if rng.random() < 0.8 else NUMBERS)

    # -- a call and its answer

    def call(self):
        rng = self.rng
        fop = rng.choice(self.fops)
        values = {}
        for field in FOP_ROWS[fop][1].split():
            name, _, kind = field.partition(":")
            values[name] = self.field(fop, name, kind)
        if fop == "LOOKUP":
            if rng.random() < 0.4:
                values.pop("pargfid"), values.pop("name") # by the gfid alone
            else:
                values.pop("gfid")
        payload = self.bytes() * rng.choice([1, 1, 16]) if fop in ("WRITE", "PUT") else b""
        if payload and rng.random() < 0.9:
            values["size"] = len(payload)
        peer = self.peer
        peer.uid = peer.gid = rng.choice([0, 0, 0, 0, 1000, 0xffffffff])
        peer.pid = rng.choice([4711, 4711, 4711, -1, -3, -6, 0])
        peer.owner = rng.choice([b"", b"owner", b"o" * 8])
        xdata = self.dict(fop)
        args = encode_fop(fop, payload=payload, xdata=xdata, **values)
        if rng.random() < 0.02:
            at = rng.randrange(len(args) or 1)
            args = args[:at] + rng.randbytes(rng.randrange(8)) + args[at + rng.randrange(8):]
        xid = peer.send(FOPS, 400, FOP_ROWS[fop][0], args)
        self.waiting[xid] = fop
        self.names.sent(xid, self.brick, fop, values, xdata)
        self.calls += 1
        self.by_fop[fop] = self.by_fop.get(fop, 0) + 1

    def answer(self):
        record = self.peer.receive_record()
        if struct.unpack(">I", record[4:8])[0] == 0:
            return # a callback: somebody waits for a lock of ours
        answer = Answer(record)
        fop = self.waiting.pop(answer.xid, None)
        if fop is None:
            raise Wrong("an answer to no call: xid %d" % answer.xid)
        self.answers += 1
        if fop == "ping" or answer.denied or answer.status != SUCCESS:
            self.names.answered(answer.xid, "refused")
            return
        reply = Reply(fop, answer.body)
        self.names.answered(answer.xid, "%d %d %s" % (reply.op_ret, reply.op_errno, getattr(reply, "stat", {}).get("gfid", b"").hex()))
        self.errors += reply.op_ret < 0
        if reply.op_ret < 0 and not 0 < reply.op_errno < 4096 and fop != "MKDIR":
            raise Wrong("%s failed with errno %d" % (fop, reply.op_errno))
        if reply.op_ret >= 0 and fop in ("OPEN", "OPENDIR", "CREATE"):
            self.fds.append(reply.fd)
        if len(self.fds) > 40:
            del self.fds[0]

    # A call that waits for no lock is answered soon, so a PING behind the calls must be.
    def see_whether_it_lives(self):
        xid = self.peer.send(DUMP, 1, 2)
        self.waiting[xid] = "ping"
        deadline = time.monotonic() + PATIENCE
        while xid in self.waiting:
            if not select.select([self.peer.sock], [], [], max(0, deadline - time.monotonic()))[0]:
                raise Wrong("no answer to a PING for %d s; waiting: %s" % (PATIENCE, sorted(set(self.waiting.values()))))
            self.answer()

    def step(self):
        if not self.peer:
            self.connect()
        r = self.rng.random()
        if r < 0.0008:
            return self.leave()
        if r < 0.001:
            self.peer.send_raw(self.rng.randbytes(self.rng.randrange(1, 2000)))
            return self.leave()
        if len(self.waiting) < self.AHEAD:
            self.call()
        while self.waiting and select.select([self.peer.sock], [], [], 0)[0]:
            self.answer()
        if len(self.waiting) >= self.AHEAD and not select.select([self.peer.sock], [], [], 0.3)[0]:
            self.see_whether_it_lives()
            if len(self.waiting) >= self.AHEAD: # all wait for locks
                self.leave()
        return None

    def run(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                self.step()
            except (Closed, ConnectionError):
                self.forget() # after garbage, or after a record that was cut short


def attack(number, args, end):
    names = Names(args.names and os.path.join(args.names, "names-%d" % number))
    attacker = Attacker(random.Random(args.seed * 1000 + number), args.port, [args.brick, args.brick, args.other],
                        args.only or list(FOP_ROWS), names)
    status = 0
    try:
        attacker.run(end - time.monotonic())
    except Exception as error: # a finding: told by the process that met it
        print("# process %d of seed %d at %s: %s: %s" % (number, args.seed, time.strftime("%H:%M:%S"), type(error).__name__, str(error)[:500]))
        print("# in %s; waiting: %s" % (" < ".join(f.name for f in reversed(traceback.extract_tb(error.__traceback__))),
                                        sorted(getattr(attacker, "waiting", {}).values())))
        status = 1
    print("# process %d: %d calls (%d fops), %d answers, %d of them errors, %d logins" % (
        number, attacker.calls, len(attacker.by_fop), attacker.answers, attacker.errors, attacker.logins))
    sys.stdout.flush()
    names.end()
    os._exit(status)


def witness(args, end):
    worst, count = 0.0, 0
    while time.monotonic() < end:
        with Peer("127.0.0.1", args.port, PATIENCE, "127.0.0.9") as peer:
            op_ret, op_errno, _ = peer.login(args.other)
            assert op_ret == 0, "the witness's login: errno %d" % op_errno
            for _ in range(50):
                begin = time.monotonic()
                reply = peer.fop("LOOKUP", gfid=ROOT)
                assert reply.op_ret == 0 and reply.stat["gfid"] == ROOT, reply
                worst = max(worst, time.monotonic() - begin)
                count += 1
                time.sleep(0.02)
    return count, worst


def handle_path(brick, gfid):
    text = str(uuid.UUID(bytes=gfid))
    return os.path.join(brick, ".glusterfs", text[:2], text[2:4], text)


def handle_is_right(brick, path, gfid):
    """A handle leads to the object, or the gfid is a file's by now: then no folder of this gfid has one."""
    handle = handle_path(brick, gfid)
    info = os.lstat(path)
    if not os.path.lexists(handle):
        return False
    if not os.path.isdir(path) or os.path.islink(path):
        return os.lstat(handle).st_ino == info.st_ino
    if os.lstat(handle).st_nlink > 1 or not os.path.islink(handle):
        return os.getxattr(handle, "trusted.gfid", follow_symlinks=False) == gfid
    return os.path.exists(handle) and os.stat(handle).st_ino == info.st_ino


def leads_to_folder(brick, path, gfid):
    """A folder whose gfid another object has by now cannot be walked by gfids."""
    return os.path.isdir(path) and not os.path.islink(path) and os.path.samestat(os.stat(handle_path(brick, gfid)), os.stat(path))


def is_of_trash(path):
    """The trash makes folders without a gfid. A folder gets a gfid when a client looks up the folder."""
    return os.path.isdir(path) and not os.path.islink(path) and "trusted.gfid" not in os.listxattr(path)


def look_at_all(args, brick):
    """Looks up every name by the whole path from the root: afterwards the handle of each object is right even
    if other objects have had its gfid."""
    bad = 0
    with Peer("127.0.0.1", args.port, PATIENCE) as peer:
        assert peer.login(brick)[0] == 0
        ways = [[]] # of folders: names and gfids
        while ways:
            way = ways.pop()
            folder = os.path.join(brick, *[name for name, _ in way])
            for name in os.listdir(folder):
                path = os.path.join(folder, name)
                if path == os.path.join(brick, ".glusterfs") or (way and is_of_trash(path)):
                    continue
                gfid = os.getxattr(path, "trusted.gfid", follow_symlinks=False)
                parent = ROOT
                for at, of in way + [(name, gfid)]:
                    reply = peer.fop("LOOKUP", pargfid=parent, name=os.fsencode(at))
                    parent = of
                if not handle_is_right(brick, path, gfid):
                    print("# %s, %s: %r; its handle is not right" % (ascii(path), gfid.hex(), reply))
                    bad += 1
                elif leads_to_folder(brick, path, gfid):
                    ways.append(way + [(name, gfid)])
    return bad


def fuzz(args):
    if args.seed is None:
        args.seed = int.from_bytes(os.urandom(3), "big")
    print("# seed %d" % args.seed)
    sys.stdout.flush()
    end = time.monotonic() + args.minutes * 60
    children = []
    for number in range(args.processes):
        pid = os.fork()
        if pid == 0:
            attack(number, args, end)
        children.append(pid)
    failed = 0
    try:
        print("# the witness: %d LOOKUPs of the other brick, worst %.2f s" % witness(args, end))
    except (AssertionError, Closed, OSError) as error:
        print("# the witness: %s: %s" % (type(error).__name__, error))
        failed = 1
    for pid in children:
        failed |= os.waitpid(pid, 0)[1] != 0
    for brick in (args.brick, args.other):
        begin = time.monotonic()
        with Peer("127.0.0.1", args.port, PATIENCE) as peer:
            assert peer.login(brick)[0] == 0
            assert peer.fop("LOOKUP", gfid=ROOT).op_ret == 0
            print("# %s answers in %.2f s afterwards" % (os.path.basename(brick), time.monotonic() - begin))
    return int(failed)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("brick")
    parser.add_argument("other")
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--only", default=None, type=lambda text: text.split(","))
    parser.add_argument("--names", default=None)
    parser.add_argument("--look", action="store_true")
    args = parser.parse_args()
    if args.look:
        return int(look_at_all(args, args.brick) + look_at_all(args, args.other) > 0)
    unknown = set(args.only or []) - set(FOP_ROWS)
    if unknown:
        parser.error("no fop is called %s" % ", ".join(sorted(unknown)))
    return fuzz(args)


sys.exit(main())
