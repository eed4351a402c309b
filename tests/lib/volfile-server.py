#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Answers GETSPEC with a file, for programs that insist on a volfile server (fio's gfapi engine).

    volfile-server.py ADDRESS PORT VOLFILE

Serves the single call of a stock client on that connection, program 14398633 version 2 procedure 2; the rest is PROG_UNAVAIL. The
server reads the file for each answer (ENOENT while the file is missing), and SIGHUP tells all clients of a change of the file.
"""
import errno
import signal
import socket
import struct
import sys
import threading

HANDSHAKE, VERSION, GETSPEC = 14398633, 2, 2
CALLBACK, CALLBACK_VERSION, FETCHSPEC = 52743234, 1, 1
CONNECTIONS = set()


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


def record(body):
    return struct.pack(">I", 0x80000000 | len(body)) + body


def answer(path):
    try:
        with open(path, "rb") as file:
            spec = file.read()
    except FileNotFoundError:
        return struct.pack(">ii", -1, errno.ENOENT) + padded(b"") + padded(b"")
    return struct.pack(">ii", len(spec), 0) + padded(spec) + padded(b"")


def tell_all(*_):
    call = struct.pack(">6I4I", 1, 0, 2, CALLBACK, CALLBACK_VERSION, FETCHSPEC, 0, 0, 0, 0)
    for connection in list(CONNECTIONS):
        try:
            connection.sendall(record(call))
        except OSError:
            CONNECTIONS.discard(connection)


def serve(connection, path):
    CONNECTIONS.add(connection)
    try:
        while True:
            xid, kind, _, program, version, procedure = struct.unpack(">6I", read_record(connection)[:24])
            if kind != 0:
                continue
            accepted = 0 if (program, version, procedure) == (HANDSHAKE, VERSION, GETSPEC) else 1
            reply = struct.pack(">6I", xid, 1, 0, 0, 0, accepted)
            if accepted == 0:
                reply += answer(path)
            connection.sendall(record(reply))
    except (EOFError, OSError, struct.error):
        CONNECTIONS.discard(connection)
        connection.close()


def main():
    address, port, volfile = sys.argv[1:]
    signal.signal(signal.SIGHUP, tell_all)
    listener = socket.create_server((address, int(port)), backlog=16)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, volfile), daemon=True).start()


main()
