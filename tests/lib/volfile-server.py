#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Answers GETSPEC with a file, so that programs which insist on a volfile server (fio's gfapi engine) can be used.

    volfile-server.py ADDRESS PORT VOLFILE

Just what a stock client asks on that connection: program 14398633 version 2 procedure 2; the rest is PROG_UNAVAIL.
"""
import socket
import struct
import sys
import threading

HANDSHAKE, VERSION, GETSPEC = 14398633, 2, 2


def read_exactly(connection, count):
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def read_record(connection):
    record = b""
    while True:
        header, = struct.unpack(">I", read_exactly(connection, 4))
        record += read_exactly(connection, header & 0x7fffffff)
        if header & 0x80000000:
            return record


def padded(data):
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


def serve(connection, spec):
    try:
        while True:
            xid, kind, _, program, version, procedure = struct.unpack(">6I", read_record(connection)[:24])
            if kind != 0:
                continue
            accepted = 0 if (program, version, procedure) == (HANDSHAKE, VERSION, GETSPEC) else 1
            reply = struct.pack(">6I", xid, 1, 0, 0, 0, accepted)
            if accepted == 0:
                reply += struct.pack(">ii", len(spec), 0) + padded(spec) + padded(b"")
            connection.sendall(struct.pack(">I", 0x80000000 | len(reply)) + reply)
    except (EOFError, OSError, struct.error):
        connection.close()


def main():
    address, port, volfile = sys.argv[1:]
    with open(volfile, "rb") as file:
        spec = file.read()
    listener = socket.create_server((address, int(port)), backlog=16)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, spec), daemon=True).start()


main()
