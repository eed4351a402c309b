#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""getspec.py HOST PORT KEY [FILE]: asks for a volfile as a client does, and prints op_ret and op_errno. With FILE the client tells the
op-versions that it knows, and FILE gets the volfile."""
import socket
import struct
import sys

HANDSHAKE, VERSION, GETSPEC = 14398633, 2, 2


def text(s):
    b = s.encode()
    return struct.pack(">I", len(b)) + b + b"\0" * (-len(b) % 4)


def receive(s, n):
    data = b""
    while len(data) < n:
        piece = s.recv(n - len(data))
        if not piece:
            sys.exit("the connection has ended")
        data += piece
    return data


def op_versions():
    pairs = b""
    for name, value in ((b"min-op-version", b"1"), (b"max-op-version", b"100000")):
        pairs += struct.pack(">2I", len(name), len(value) + 1) + name + b"\0" + value + b"\0"
    pairs = struct.pack(">I", 2) + pairs
    return struct.pack(">I", len(pairs)) + pairs + b"\0" * (-len(pairs) % 4)


host, port, key, *file = sys.argv[1:]
call = struct.pack(">6I", 1, 0, 2, HANDSHAKE, VERSION, GETSPEC) + struct.pack(">4I", 0, 0, 0, 0)
call += struct.pack(">I", 0) + text(key) + (op_versions() if file else struct.pack(">I", 0))
with socket.create_connection((host, int(port)), 20) as s:
    s.sendall(struct.pack(">I", 0x80000000 | len(call)) + call)
    size = struct.unpack(">I", receive(s, 4))[0] & 0x7FFFFFFF
    reply = receive(s, size)
op_ret, op_errno = struct.unpack(">ii", reply[24:32])
if file and op_ret >= 0:
    length, = struct.unpack(">I", reply[32:36])
    with open(file[0], "wb") as out:
        out.write(reply[36:36 + length].rstrip(b"\0"))
print(op_ret, op_errno)
