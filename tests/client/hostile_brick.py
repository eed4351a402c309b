#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""A brick that lies: a proxy between a mount and a good brick, which changes the brick's answers.

    hostile_brick.py BRICK-PORT OUT [--seed N] [--one-in N] [--by DIR]

Writes the port of the proxy into the file OUT. One answer in N (10) of the fops is changed: words of the answer (numbers, lengths, gfids,
modes), names, or the result. Or the answer of another call is sent instead, or the answer is sent twice, late, cut short or not at all, or a
callback of any kind and with any contents is sent before the answer. Of the answers to logins one in 8 N is changed. After SIGUSR1 no answer
is changed, and connections begin anew, so that earlier lies no longer count. After SIGUSR2 the proxy lies again. SIGTERM ends the proxy,
which prints the number of changes of each kind.

--by DIR: the file DIR/mode says in which way answers of fops are changed (KINDS), and how many of a hundred. Without the file no answer is
changed. DIR/did counts the changes. Logins pass.
"""
import argparse
import collections
import os
import random
import signal
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "wire"))
from kilnwire import FOP_ROWS, FOPS, ROOT, opaque, u32, u64 # noqa: E402

CALLBACKS, CHILD_UP, CHILD_DOWN = 52743234, 6, 7
WORDS = (0, 1, 2, 3, 4, 5, 7, 8, 16, 255, 256, 4096, 65535, 65536, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, 0o40755, 0o100644,
         0o120777, 0o101000, 0o41777)
ERRNOS = (0, 134, 511, 512, 600, 999, 1000, 24996, 0x7fffffff, 0x80000000, 0xfffffffb, 0xffffffff)
HEAD = 24 # of an accepted answer: xid, type, accepted, verifier (2), status
IATT = 148
NAMES = (b"..", b".", b"a/b", b"/", b"../../etc", b"\0x", b"", b"x" * 255, b"y" * 256, b"z" * 1024, b"w" * 70000, b"in\0side", b"\n\x1b[2J", b"\xff\xfe", b".glusterfs", b"f1", b"d1")


class Bytes(bytes):
    """Sent as they are, without a mark."""


class Later(bytes):
    """A record that is sent when others have been."""


END = None # the connection ends here


def marked(record):
    return u32(len(record) | 0x80000000) + record


class Brick:
    def __init__(self, args):
        self.one_in, self.rng, self.by = args.one_in, random.Random(args.seed), args.by
        self.is_lying = True
        self.lock = threading.Lock()
        self.gfids = [ROOT]
        self.past = collections.defaultdict(list) # by procedure, bodies of good answers
        self.count, self.done = 0, collections.Counter()
        self.clients = set()

    # -- ways to lie: each takes a record and the procedure, and returns a list of records

    def words(self, record, procedure):
        out = bytearray(record)
        for _ in range(self.rng.choice((1, 1, 2, 4))):
            at = self.rng.randrange(HEAD, len(out) // 4 * 4, 4) if len(out) >= HEAD + 4 else 0
            if at:
                out[at:at + 4] = u32(self.rng.choice(WORDS) if self.rng.random() < 0.8 else self.rng.getrandbits(32))
        return [bytes(out)]

    def another_gfid(self, record, procedure):
        places = [at for at in range(HEAD, len(record) - 15, 4) if record[at:at + 16] in self.gfids]
        if not places:
            return self.words(record, procedure)
        at = self.rng.choice(places)
        gfid = self.rng.choice(self.gfids + [bytes(16), self.rng.randbytes(16)])
        return [record[:at] + gfid + record[at + 16:]]

    def another_mode(self, record, procedure):
        """The last word of an iatt; those of files and folders begin with 0o10 or 0o4."""
        places = [at for at in range(HEAD, len(record) - 3, 4) if record[at:at + 2] == b"\0\0" and record[at + 2] >> 4 in (4, 8, 10)]
        if not places:
            return self.words(record, procedure)
        at = self.rng.choice(places)
        return [record[:at] + u32(self.rng.choice(WORDS[-5:] + (0o20666, 0o10666, 0, 0o140777))) + record[at + 4:]]

    def result(self, record, procedure):
        op_ret = self.rng.choice((-1, -1, 0, 1, 2, 100, 0x7fffffff, -0x80000000))
        return [record[:HEAD] + struct.pack(">iI", op_ret, self.rng.choice((0, 1, 2, 5, 11, 13, 17, 28, 39, 61, 70, 75, 107, 116, 9999,
                                                                              0xffffffff))) + record[HEAD + 8:]]

    def errno(self, record, procedure):
        """A failure with a number that is no errno, some of which the kernel takes from no file system."""
        return [record[:HEAD] + struct.pack(">iI", -1, self.rng.choice(ERRNOS)) + record[HEAD + 8:]]

    def found(self, record, procedure):
        """A LOOKUP of a missing name, or of a name that no brick can have, is answered with an object that
        was found before."""
        good = [body for body in self.past[procedure] if struct.unpack_from(">i", body)[0] >= 0]
        is_lookup = procedure == FOP_ROWS["LOOKUP"][0] and struct.unpack_from(">i", record, HEAD)[0] < 0
        return [record[:HEAD] + self.rng.choice(good)] if is_lookup and good else [record]

    def old(self, record, procedure):
        return [record[:HEAD] + self.rng.choice(self.past[procedure] or [record[HEAD:]])]

    def twice(self, record, procedure):
        return [record, record]

    def late(self, record, procedure):
        time.sleep(self.rng.random() * 0.3)
        return [record]

    def never(self, record, procedure):
        return [] if self.rng.random() < 0.2 else [record]

    def other_call(self, record, procedure):
        return [u32(self.rng.choice((0, 1, 0xffffffff, self.rng.getrandbits(32)))) + record[4:], record]

    def cut(self, record, procedure):
        return [record[:self.rng.randrange(len(record))]] if self.rng.random() < 0.2 else [record]

    def longer(self, record, procedure):
        return [record + self.rng.randbytes(4 * self.rng.randrange(1, 50))]

    def rpc_error(self, record, procedure):
        return [record[:20] + u32(self.rng.choice((1, 2, 3, 4, 5, 99))) + (record[HEAD:] if self.rng.random() < 0.5 else b"")]

    def names(self, record, procedure):
        """Entries of a folder, as any brick may invent them."""
        if procedure not in (FOP_ROWS["READDIR"][0], FOP_ROWS["READDIRP"][0]):
            return self.words(record, procedure)
        count, body = self.rng.choice((1, 3, 50)), b""
        for n in range(count):
            name = self.rng.choice(NAMES)
            body += (u32(1) + u64(self.rng.getrandbits(64)) + u64(self.rng.choice((n + 1, 0, 1 << 63, self.rng.getrandbits(64)))) +
                     u32(self.rng.choice((len(name), 0, 1 << 20))) + u32(self.rng.choice((0, 4, 8, 10, 99))) + opaque(name + b"\0" * (n % 2)))
            if procedure == FOP_ROWS["READDIRP"][0]:
                body += self.iatt() + u32(0) + u32(-1) + u32(0)
        # op_ret, op_errno, no xdata, the list
        return [record[:HEAD] + struct.pack(">iI", self.rng.choice((count, 1, 9999)), 0) + u32(0) + u32(-1) + u32(0) + body + u32(0)]

    def iatt(self):
        return (self.rng.choice(self.gfids + [bytes(16), self.rng.randbytes(16)]) + self.rng.randbytes(IATT - 20) +
                u32(self.rng.choice(WORDS[-5:] + (0, 0o20666))))

    def callback(self, record, procedure):
        domain = self.rng.choice((b"v-replicate-0", b"v-replicate-1", b"", b"x" * 1000))
        gfid = self.rng.choice(self.gfids)
        flock = u32(self.rng.choice(WORDS)) + u32(0) + u64(self.rng.getrandbits(64)) + u64(0) + u32(1) + opaque(self.rng.randbytes(8))
        body = self.rng.choice((gfid + flock + u32(4711) + opaque(domain) + u32(0) + u32(-1) + u32(0),
                                gfid + self.rng.randbytes(self.rng.randrange(300)), self.rng.randbytes(self.rng.randrange(64)), b""))
        number = self.rng.randrange(14)
        calls = [self.callback_head(number) + body, record]
        # A brick that is said to be down is not asked again until it is said to be up.
        return calls + [self.callback_head(CHILD_UP)] if number == CHILD_DOWN else calls

    def callback_head(self, number):
        return u32(self.rng.getrandbits(32)) + u32(0) + u32(2) + u32(CALLBACKS) + u32(1) + u32(number) + bytes(16)

    def flip(self, record, procedure):
        out, first = bytearray(record), 0 if procedure == FOP_ROWS["READ"][0] else HEAD
        for _ in range(self.rng.randrange(1, 9)):
            if len(out) > first:
                out[self.rng.randrange(first, len(out))] ^= 1 << self.rng.randrange(8)
        return [bytes(out)]

    def garbage(self, record, procedure):
        return [record[:HEAD] + self.rng.randbytes(self.rng.randrange(400))]

    def other_body(self, record, procedure):
        others = [p for p in self.past if p != procedure and self.past[p]]
        return [record[:HEAD] + (self.rng.choice(self.past[self.rng.choice(others)]) if others else b"")]

    def very_late(self, record, procedure):
        return [Later(record)]

    def lost(self, record, procedure):
        return []

    def short(self, record, procedure):
        return [record[:self.rng.randrange(len(record))]]

    def long(self, record, procedure):
        return [record + self.rng.randbytes(self.rng.choice((4, 64, 70000)))]

    # -- after these the connection is of no use

    def half(self, record, procedure):
        whole = marked(record)
        return [Bytes(whole[:self.rng.randrange(1, len(whole))]), END]

    def noise(self, record, procedure):
        return [Bytes(self.rng.randbytes(self.rng.randrange(1, 400)))]

    def huge(self, record, procedure):
        return [Bytes(u32(0xffffffff) + record)]

    def fault(self, record, procedure):
        words = (1, self.rng.choice((0, 1, 7)), 0, 0, self.rng.choice((1, 2, 3, 4, 5, 99)))
        return [record[:4] + b"".join(map(u32, words))]

    KINDS = {"twice": twice, "late": very_late, "never": lost, "short": short, "half": half, "garbage": garbage, "noise": noise, "flip": flip,
             "extreme": words, "long": long, "other": other_body, "huge": huge, "fault": fault,
             "errno": errno, "found": found, "names": names}
    WAYS = (words, words, words, another_gfid, another_gfid, another_mode, result, result, old, old, twice, late, never, other_call, cut,
            longer, rpc_error, errno, found, found, names, names, names, callback, callback, flip, garbage, other_body)

    def by_mode(self):
        """The kind that DIR/mode says, or None."""
        try:
            with open(self.by + "/mode") as mode:
                kind, share = mode.read().split()
            return kind if self.rng.randrange(100) < int(share) else None
        except (FileNotFoundError, ValueError):
            return None

    def answers_by_mode(self, record, program, procedure):
        kind = self.by_mode() if program == FOPS and len(record) >= HEAD else None
        self.done[kind or "pass"] += program == FOPS
        out = self.KINDS[kind](self, record, procedure) if kind else [record]
        if program == FOPS:
            self.learn(record, procedure)
        return out

    def answers(self, record, program, procedure):
        with self.lock:
            self.count += 1
            if self.by:
                return self.answers_by_mode(record, program, procedure)
            rate = self.one_in if program == FOPS else 8 * self.one_in
            if not self.is_lying or len(record) < HEAD or self.rng.randrange(rate):
                if program == FOPS:
                    self.learn(record, procedure)
                return [record]
            way = self.rng.choice(self.WAYS)
            self.done[way.__name__] += 1
            return way(self, record, procedure)

    def learn(self, record, procedure):
        past = self.past[procedure]
        past.append(record[HEAD:])
        del past[:-8]

    def learn_call(self, record):
        for at in range(40, min(len(record) - 15, 140), 4):
            gfid = record[at:at + 16]
            if gfid[6] >> 4 == 4 and gfid not in self.gfids: # made by chance
                self.gfids = (self.gfids + [gfid])[-64:]


def exactly(sock, n):
    data = bytearray()
    while len(data) < n:
        part = sock.recv(n - len(data))
        if not part:
            raise ConnectionError
        data += part
    return bytes(data)


def a_record(sock):
    whole = b""
    while True:
        mark = struct.unpack(">I", exactly(sock, 4))[0]
        whole += exactly(sock, mark & 0x7fffffff)
        if mark & 0x80000000:
            return whole


def shut(sock):
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def calls(brick, client, server, waiting):
    try:
        while True:
            record = a_record(client)
            xid, _, _, program, _, procedure = struct.unpack_from(">6I", record)
            waiting[xid] = program, procedure
            with brick.lock:
                brick.learn_call(record)
            server.sendall(marked(record))
    except (OSError, struct.error):
        pass
    shut(client)
    shut(server)


def later(brick, sending, client, record):
    time.sleep(brick.rng.choice((0.5, 3, 9)))
    try:
        with sending:
            client.sendall(marked(record))
    except OSError:
        pass


def send(brick, sending, client, out):
    if out is END:
        raise ConnectionError
    if isinstance(out, Later):
        threading.Thread(target=later, args=(brick, sending, client, bytes(out)), daemon=True).start()
        return
    with sending:
        client.sendall(out if isinstance(out, Bytes) else marked(out))


def connection(brick, client, port):
    waiting, sending = {}, threading.Lock()
    try:
        server = socket.create_connection(("127.0.0.1", port))
    except OSError:
        client.close()
        return
    thread = threading.Thread(target=calls, args=(brick, client, server, waiting), daemon=True)
    thread.start()
    brick.clients.add(client)
    try:
        while True:
            record = a_record(server)
            xid, kind = struct.unpack_from(">2I", record)
            for out in brick.answers(record, *waiting.pop(xid, (0, 0))) if kind == 1 else [record]:
                send(brick, sending, client, out)
    except (OSError, struct.error):
        pass
    shut(client)
    shut(server)
    thread.join()
    brick.clients.discard(client)
    client.close()
    server.close()


def tell(brick):
    while True:
        with open(brick.by + "/did.new", "w") as out:
            out.write(" ".join("%s=%d" % pair for pair in sorted(brick.done.items())))
        os.rename(brick.by + "/did.new", brick.by + "/did")
        time.sleep(0.2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 24))
    parser.add_argument("--one-in", type=int, default=10)
    parser.add_argument("--by")
    args = parser.parse_args()
    brick = Brick(args)

    if brick.by:
        threading.Thread(target=tell, args=(brick,), daemon=True).start()

    def lie(number, _):
        brick.is_lying = number == signal.SIGUSR2
        for client in list(brick.clients):
            shut(client)

    def end(*_):
        print("# seed %d: %d answers, %d changed: %s" % (args.seed, brick.count, sum(brick.done.values()),
                                                         ", ".join("%s %d" % one for one in sorted(brick.done.items()))), flush=True)
        os._exit(0)

    signal.signal(signal.SIGUSR1, lie)
    signal.signal(signal.SIGUSR2, lie)
    signal.signal(signal.SIGTERM, end)
    listener = socket.create_server(("127.0.0.1", 0))
    with open(args.out + ".new", "w") as out:
        out.write(str(listener.getsockname()[1]))
    os.rename(args.out + ".new", args.out)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=connection, args=(brick, client, args.port), daemon=True).start()


if __name__ == "__main__":
    main()
