#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Writes good messages for tests/wire/fuzz-codec.c into a folder: make-corpus.py DIR"""
import os
import sys

from kilnwire import FOP_ROWS, Raw, d_bytes, d_gfid, d_int, d_str, encode_fop, old_dict, opaque, text, typed_dict, u32, u64

CALLS, REPLIES, CREDS, HEADS, PROGRAMS = 0, 64, 128, 134, 136
XDATA = {"gfid-req": d_gfid(bytes(16)), "user.a": d_bytes(b"value"), "link-count": d_str("1"), "glusterfs.content": d_int(65536),
         "virt-gf-prestat": (8, bytes(148)), "set-ctime-mdata": (9, bytes(36)), "user.d": (4, bytes(8)), "user.o": (1, opaque(b"x"))}
FLOCK = u32(1) + u32(0) + u64(0) + u64(10) + u32(7) + opaque(b"owner123")
LOCKS = (u32(1) + FLOCK + text("client-uid") + u32(0)) * 2 + u32(0)
DICT = typed_dict(XDATA)
ENTRY = u32(1) + u64(1) + u64(2) + u32(4) + u32(8) + text("name")
SAMPLES = {"iatt": bytes(148), "u64": u64(1), "opaque": opaque(b"target"), "dict": DICT, "statvfs": bytes(88), "flock": FLOCK,
           "rchecksum": u32(1) + u32(2) + opaque(bytes(32)), "lease": bytes(28), "locks": LOCKS, "entries": ENTRY * 3 + u32(0),
           "entries_iatt": (ENTRY + bytes(148) + DICT) * 3 + u32(0)}


def write(folder, name, kind, body, cut=0):
    with open(os.path.join(folder, name), "wb") as out:
        out.write(bytes([kind, cut]) + body)


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name, (number, _, reply) in FOP_ROWS.items():
        payload = b"payload" if name in ("WRITE", "PUT") else b""
        args = encode_fop(name, payload=payload, xdata=XDATA, name="name", name2="name2", linkname="link", volume="domain",
                          dict=XDATA, locks=Raw(LOCKS), flock=Raw(FLOCK))
        for cut in (0, 3, 9):
            write(folder, "call-%s-%d" % (name, cut), CALLS + number, args, cut)
        if name == "READ":
            body = u32(7) + u32(2) + bytes(148) + u32(7) + DICT + b"payload"
        else:
            body = u32(0) + u32(0) + DICT + b"".join(SAMPLES[f.partition(":")[2]] for f in reply.split())
        write(folder, "reply-" + name, REPLIES + number, body)
    cred = bytes(28) + u32(2) + u32(5) + u32(6) + opaque(b"owner123")
    write(folder, "cred-v3", CREDS + 4, cred)
    write(folder, "cred-v2", CREDS + 3, cred[16:])
    write(folder, "cred-v1", CREDS + 2, bytes(88))
    write(folder, "cred-unix", CREDS + 1, u32(0) + text("host") + u32(1) + u32(2) + u32(1) + u32(3))
    write(folder, "head-call", HEADS, u32(1) + u32(0) + u32(2) + u32(1) + u32(1) + u32(1) + u32(390040) + opaque(cred) + bytes(8))
    write(folder, "head-reply", HEADS + 1, u32(1) + u32(1) + bytes(16))
    options = opaque(old_dict({"ERROR": "Success", "child_up": "1"}))
    write(folder, "common", PROGRAMS, u32(0) + u32(0) + options)
    write(folder, "getspec-call", PROGRAMS + 1, u32(1) + text("/w") + options)
    write(folder, "getspec-reply", PROGRAMS + 2, u32(3) + u32(0) + text("abc") + options)
    write(folder, "set-lk-ver", PROGRAMS + 3, text("uid") + u32(1))
    write(folder, "dump", PROGRAMS + 4, bytes(16) + (u32(1) + text("GF-DUMP") + u64(123451501) + u64(1)) * 2 + u32(0))
    write(folder, "invalidation", PROGRAMS + 5,
          text("bc4be300-fa72-4ed0-96ef-1756453fde64") + u32(1) + u32(24) + u32(60) + bytes(300) + options)
    write(folder, "inodelk", PROGRAMS + 6, bytes(16) + FLOCK + u32(7) + text("domain") + options)
    write(folder, "entrylk", PROGRAMS + 7, bytes(16) + u32(1) + u32(7) + text("name") + text("domain") + options)


main()
