#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Sends the calls of glusterd to a brick's -S socket (management 4).

    ops = BrickOps("/run/gluster/X.socket")
    ops.call(4, "", {"cmd": 258, "brick-name": "/b"})    # Reply: accept, op_ret, op_errno, output, op_errstr
    ops.send(12, "/vols/x.vol"); ops.send(1, "/b")       # several under way; ops.receive() -> (xid, Reply)

brick_op.py SOCKET PROCEDURE [NAME [KEY=VALUE ...]]: prints `accept=A op_ret=R errno=E errstr=TEXT`, and the output's pairs as `KEY=VALUE`.
"""
import collections
import itertools
import socket
import struct
import sys

PROGRAM, VERSION = 4867634, 2
Reply = collections.namedtuple("Reply", "accept op_ret op_errno output op_errstr")


def opaque(data):
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


def text_dict(pairs):
    body = struct.pack(">I", len(pairs))
    for key, value in pairs.items():
        key, value = key.encode(), str(value).encode() + b"\0"
        body += struct.pack(">II", len(key), len(value)) + key + b"\0" + value
    return body


def read_dict(data):
    if not data:
        return {}
    pairs, at = {}, 4
    for _ in range(struct.unpack_from(">I", data)[0]):
        key_len, value_len = struct.unpack_from(">II", data, at)
        at += 8
        key = data[at:at + key_len].decode()
        at += key_len + 1
        pairs[key] = data[at:at + value_len].rstrip(b"\0").decode()
        at += value_len
    assert at == len(data), "the dictionary does not fill its place"
    return pairs


def read_opaque(data, at):
    size = struct.unpack_from(">I", data, at)[0]
    at += 4
    return data[at:at + size], at + size + (-size % 4)


class BrickOps:
    """One connection. Replies may come in any order."""

    def __init__(self, path, seconds=240):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(seconds)
        self.sock.connect(path)
        self.xids = itertools.count(1)

    def send_bytes(self, body, procedure, program=PROGRAM, version=VERSION):
        xid = next(self.xids)
        call = struct.pack(">10I", xid, 0, 2, program, version, procedure, 0, 0, 0, 0) + body
        self.sock.sendall(struct.pack(">I", 0x80000000 | len(call)) + call)
        return xid

    def send(self, procedure, name="", pairs=None, op=None):
        pairs = b"" if pairs is None else text_dict(pairs)
        op = procedure if op is None else op
        return self.send_bytes(opaque(name.encode()) + struct.pack(">i", op) + opaque(pairs) + opaque(b""), procedure)

    def take(self, count):
        data = b""
        while len(data) < count:
            piece = self.sock.recv(count - len(data))
            if not piece:
                raise EOFError("the connection was closed")
            data += piece
        return data

    def receive(self):
        mark = struct.unpack(">I", self.take(4))[0]
        data = self.take(mark & 0x7fffffff)
        xid, kind, denied, _, verf, accept = struct.unpack_from(">6I", data)
        assert kind == 1 and denied == 0 and verf == 0, "no accepted reply"
        if accept:
            return xid, Reply(accept, None, None, None, None)
        op_ret, op_errno = struct.unpack_from(">ii", data, 24)
        output, at = read_opaque(data, 32)
        errstr, at = read_opaque(data, at)
        assert at == len(data), "the reply does not end where its record does"
        return xid, Reply(0, op_ret, op_errno, read_dict(output), errstr.rstrip(b"\0").decode())

    def call(self, *args, **kwargs):
        xid = self.send(*args, **kwargs)
        got, reply = self.receive()
        assert got == xid, "another call's reply"
        return reply


def main():
    path, procedure, *rest = sys.argv[1:]
    pairs = dict(word.split("=", 1) for word in rest[1:])
    reply = BrickOps(path).call(int(procedure), rest[0] if rest else "", pairs or None)
    print("accept=%d op_ret=%s errno=%s errstr=%s" % (reply.accept, reply.op_ret, reply.op_errno, reply.op_errstr))
    for key, value in sorted((reply.output or {}).items()):
        print("%s=%s" % (key, value))


if __name__ == "__main__":
    main()
