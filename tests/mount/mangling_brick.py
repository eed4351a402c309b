#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""mangling_brick.py PORT BRICK-PORT DIR [SEED]: stands between a client and a real brick. DIR/mode says what becomes of the replies to file
operations: a word that Pair.mangle() knows, and a share in percent. DIR/did counts what was done. Logins and pings pass."""
import collections
import os
import random
import socket
import struct
import sys
import threading
import time

PORT, TARGET, DIR = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
SEED = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 30)
FOPS = 1298437
READ = 12
HEAD = 24  # of an accepted reply: xid, reply, accepted, verifier (2), success
DID = collections.Counter()
RNG = random.Random(SEED)


def mode():
    try:
        with open(DIR + "/mode") as f:
            word, share = f.read().split()
        return word if RNG.randrange(100) < int(share) else "pass"
    except (FileNotFoundError, ValueError):
        return "pass"


def record(body):
    return struct.pack(">I", 0x80000000 | len(body)) + body


def read_exactly(sock, n):
    parts = []
    while n:
        part = sock.recv(min(n, 1 << 20))
        if not part:
            raise ConnectionError
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


def read_record(sock):
    body = b""
    while True:
        (mark,) = struct.unpack(">I", read_exactly(sock, 4))
        body += read_exactly(sock, mark & 0x7fffffff)
        if mark & 0x80000000:
            return body


def flipped(body, first):
    body = bytearray(body)
    for _ in range(RNG.randrange(1, 9)):
        if len(body) > first:
            body[RNG.randrange(first, len(body))] ^= 1 << RNG.randrange(8)
    return bytes(body)


def extreme(body):
    """One word of it is a number that is hard to live with."""
    at = RNG.randrange(HEAD, len(body) - 3) & ~3 if len(body) > HEAD + 4 else HEAD
    word = RNG.choice((0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffc, 65536, RNG.getrandbits(32)))
    return body[:at] + struct.pack(">I", word) + body[at + 4:]


class Pair:
    """One connection of the client's, and one to the brick for it."""

    def __init__(self, client):
        self.client = client
        self.brick = socket.create_connection(("127.0.0.1", TARGET))
        self.asked = {}    # xid: procedure, of file operations
        self.bodies = {}   # procedure: a reply's body
        self.lock = threading.Lock()

    def send(self, data):
        with self.lock:
            self.client.sendall(data)

    def later(self, data, seconds):
        time.sleep(seconds)
        try:
            self.send(data)
        except OSError:
            pass

    def calls(self):
        while True:
            body = read_record(self.client)
            if len(body) >= 24 and struct.unpack(">I", body[12:16])[0] == FOPS:
                self.asked[body[:4]] = struct.unpack(">I", body[20:24])[0]
            self.brick.sendall(record(body))

    def mangle(self, how, body, procedure):
        if how == "garbage":
            self.send(record(body[:HEAD] + RNG.randbytes(RNG.randrange(0, 400))))
        elif how == "noise":
            self.send(RNG.randbytes(RNG.randrange(1, 400)))
        elif how == "flip":
            self.send(record(flipped(body, HEAD if procedure != READ else 0)))
        elif how == "extreme":
            self.send(record(extreme(body)))
        elif how == "short":
            self.send(record(body[:RNG.randrange(len(body))]))
        elif how == "long":
            self.send(record(body + RNG.randbytes(RNG.choice((4, 64, 70000)))))
        elif how == "other":
            others = [p for p in self.bodies if p != procedure]
            self.send(record(body[:HEAD] + (self.bodies[RNG.choice(others)] if others else b"")))
        elif how == "twice":
            self.send(record(body) * 2)
        elif how == "late":
            threading.Thread(target=self.later, args=(record(body), RNG.choice((0.5, 3, 9))), daemon=True).start()
        elif how == "half":
            whole = record(body)
            self.send(whole[:RNG.randrange(1, len(whole))])
            raise ConnectionError
        elif how == "huge":
            self.send(struct.pack(">I", 0xffffffff) + body)
        elif how == "fault":
            self.send(record(body[:4] + struct.pack(">5I", 1, RNG.choice((0, 1, 7)), 0, 0, RNG.choice((1, 2, 3, 4, 5, 99)))))
        elif how != "never":
            raise ValueError(how)

    def replies(self):
        while True:
            body = read_record(self.brick)
            procedure = self.asked.pop(body[:4], None)
            how = "pass" if procedure is None else mode()
            DID[how] += procedure is not None
            if how == "pass":
                self.send(record(body))
            else:
                self.mangle(how, body, procedure)
            if procedure is not None:
                self.bodies[procedure] = body[HEAD:]

    def run(self, fn):
        try:
            fn()
        except (OSError, ConnectionError):
            pass
        for sock in (self.client, self.brick):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def tell():
    while True:
        with open(DIR + "/did.new", "w") as f:
            f.write(" ".join("%s=%d" % pair for pair in sorted(DID.items())))
        os.rename(DIR + "/did.new", DIR + "/did")
        time.sleep(0.2)


def main():
    print("seed %d" % SEED, flush=True)
    threading.Thread(target=tell, daemon=True).start()
    listener = socket.create_server(("127.0.0.1", PORT))
    while True:
        client, _ = listener.accept()
        try:
            pair = Pair(client)
        except OSError:
            client.close()
            continue
        for fn in (pair.calls, pair.replies):
            threading.Thread(target=pair.run, args=(fn,), daemon=True).start()


main()
