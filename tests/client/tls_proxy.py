#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""tls_proxy.py PORT BRICK_PORT MODE_FILE: passes connections to a brick on, as the file says when a connection begins.

  up N, down N   end both connections after N bytes from the client, or from the brick
  bytes          pass single bytes on, each in a packet of its own
  pass           pass all on
"""
import socket
import sys
import threading

port, brick_port, mode_file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


def end(*ends):
    for each in ends:
        try:
            each.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def pump(source, target, left, is_bytewise):
    try:
        while left is None or left > 0:
            data = source.recv(65536 if left is None else min(left, 65536))
            if not data:
                break
            for at in range(0, len(data), 1 if is_bytewise else len(data)):
                target.sendall(data[at:at + 1] if is_bytewise else data)
            if left is not None:
                left -= len(data)
    except OSError:
        pass
    end(source, target)


listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", port))
listener.listen(64)
while True:
    client, _ = listener.accept()
    mode = open(mode_file).read().split()
    brick = socket.create_connection(("127.0.0.1", brick_port))
    for each in client, brick:
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    limit = int(mode[1]) if len(mode) > 1 else None
    for source, target, way in (client, brick, "up"), (brick, client, "down"):
        threading.Thread(target=pump, args=(source, target, limit if mode[0] == way else None, mode[0] == "bytes"),
                         daemon=True).start()
