#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Writes good inputs for a fuzz target of tests/wire into a folder: make-corpus.py TARGET DIR"""
import json
import os
import struct
import sys

from kilnwire import FOP_ROWS, Raw, d_bytes, d_gfid, d_int, d_str, encode_fop, old_dict, opaque, text, typed_dict, u32, u64

CALLS, REPLIES, CREDS, HEADS, PROGRAMS, SEQUENCES = 0, 64, 128, 134, 136, 146
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


def codec(folder):
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
    write(folder, "recall", PROGRAMS + 8, text("bc4be300-fa72-4ed0-96ef-1756453fde64") + u32(1) + bytes(16) + options)
    write(folder, "old-dict", PROGRAMS + 9, DICT)
    write(folder, "inodelk", PROGRAMS + 6, bytes(16) + FLOCK + u32(7) + text("domain") + options)
    steps = [(name, encode_fop(name, volume="domain", dict=XDATA, flock=Raw(FLOCK))) for name in ("CREATE", "FINODELK", "FXATTROP", "RELEASE")]
    write(folder, "sequence", SEQUENCES, u32(len(steps)) + b"".join(
        u32(FOP_ROWS[name][0]) + u32(at == 3) + u32(at and 1) + u32(at and 1) + opaque(cred if at == 1 else b"") + opaque(args)
        for at, (name, args) in enumerate(steps)))
    write(folder, "sequence-results", SEQUENCES + 1, bytes([1]) + u32(2) + opaque(bytes(16)) + opaque(b""))
    write(folder, "entrylk", PROGRAMS + 7, bytes(16) + u32(1) + u32(7) + text("name") + text("domain") + options)



VOLFILE = """# a brick
volume b-posix
    type storage/posix
    option directory /b
    option bool off
    option int 12
    option size 64KB
    option time 2h
    option octal 0755
    option share 5%
    option text "a \\"quoted\\" word"
    option enum three
end-volume
volume a-server
    type protocol/server
    option auth.addr./b.allow 127.0.0.1,10.0.0.0/8,!10.9.*,*.example.org,fe80::/10
    option auth.addr./b.reject 1.2.3.4,::1
    option auth.login./b.allow user
    option auth.login.user.password secret
    subvolumes b-posix
end-volume
"""
OPTIONS = ("bool yes", "bool maybe", "int -3", "int 0x10", "int 5000", "int 99999999999999999999", "size 12", "size 1.5GB", "size 3TB", "size x",
           "time 30", "time 30s", "time 5min", "time 2hr", "time 1d", "time 9w", "octal 7777", "octal 9", "share 12%", "share 4GB", "share 200",
           "text", "enum one", "enum four", "fixed off", "fixed on", "ignored x", "auth.x y", "unknown z",
           "uuid bc4be300-fa72-4ed0-96ef-1756453fde64", "uuid 00000000-0000-0000-0000-000000000000", "uuid x")
RULES = ("auth.addr./b.allow *", "auth.addr./b.allow 10.1.2.3", "auth.addr./b.allow 10.1.0.0/16,!10.1.2.0/24", "auth.addr./b.allow host1,host22",
         "auth.addr./b.reject 10.*", "auth.addr./b.allow /(*),/sub(10.1.2.3|10.1.2.4)", "auth.addr./b.reject /sub(*)", "auth.addr./b.allow fe80::1",
         "auth.addr./b.allow ::ffff:127.0.0.1", "auth.addr./b.allow fe80::/10,::/0", "auth.login./b.allow user,other",
         "auth.login.user.password secret", "auth.login./b.allow user\nauth.login.user.password secret", "auth.addr./b.allow !host1,!*",
         "auth.addr./b.allow 10.1.2.3/33,x/y,/", "auth.addr./b.reject /(,/sub(10.1.2.3", "auth.login./b.allow user\nauth.login.user.password wrong")
ACLS = ("u::rw-,g::r--,o::---", "user::rwx\nuser:1000:r-x\ngroup::r-x\ngroup:20:-w-\nmask::rwx\nother::r--", "u:root:rwx", "g:root:--x,m::rwx",
        "u:4294967295:rwx", "d:u::rwx", "u::rwxrwx", "o::,,", "u:no-such-user:r--", " u::r--, g::r--")
NUMBERS = ("on", "off", "enable", "1", "-1", "0777", "0x7f", "18446744073709551616", "64KB", "1.5MB", "2GB", "3TB", "4PB", "30s", "2min", "1h", "1d",
           "bc4be300-fa72-4ed0-96ef-1756453fde64", "BC4BE300-FA72-4ED0-96EF-1756453FDE6g")


def plain(folder, name, body):
    with open(os.path.join(folder, name), "wb") as out:
        out.write(body)


def text_inputs(folder):
    volfiles = [VOLFILE, VOLFILE.replace("\n    ", "\n"), "volume a type b end-volume", VOLFILE.replace("end-volume", "", 1), "volume a\ntype `x`",
                VOLFILE + VOLFILE, "volume a\ntype t\nsubvolumes b\nend-volume", "volume \"a b\" type t option k \"v\" end-volume # x", "#", "",
                "volume a type t option k", "volume a type t option k v subvolumes end-volume", "volume a kind t", "volume a type t x end-volume",
                "volume a type t option k \"v", "volume a\\b", "volume a\"b\"", "volume a type t end-volume volume c type t subvolumes a subvolumes a end-volume",
                "volume a type t end-volume volume c type t subvolumes a option k v subvolumes a end-volume"]
    for kind, group in enumerate((volfiles, OPTIONS, RULES, ACLS, NUMBERS)):
        for number, one in enumerate(group):
            plain(folder, "%d-%d" % (kind, number), bytes([kind]) + one.encode())
    plain(folder, "options-all", b"\1" + "\n".join(OPTIONS[:1] + OPTIONS[2:4]).encode())
    plain(folder, "rules-all", b"\2" + "\n".join(RULES).encode())


def disk_inputs(folder):
    def acl(*entries):
        return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in entries)
    full = acl((1, 6, 0), (2, 7, 10), (2, 4, 11), (4, 4, 0), (8, 2, 20), (8, 5, 21), (16, 6, 0), (32, 1, 0))
    small = acl((1, 6, 0xffffffff), (4, 4, 0xffffffff), (32, 1, 0xffffffff))
    for how in (0, 1, 5, 10, 11, 12, 20, 21, 60, 63, 255):
        plain(folder, "acl-%d" % how, bytes([1, how]) + full)
        plain(folder, "acl-small-%d" % how, bytes([1, how]) + small)
        plain(folder, "text-%d" % how, bytes([2, how]) + full)
    plain(folder, "acl-none", bytes([1, 0]) + acl())
    plain(folder, "acl-order", bytes([1, 0]) + acl((32, 1, 0), (1, 6, 0), (4, 4, 0)))
    plain(folder, "acl-double", bytes([1, 0]) + acl((1, 1, 0), (1, 6, 0), (4, 4, 0), (32, 0, 0)))
    plain(folder, "acl-no-mask", bytes([1, 0]) + acl((1, 6, 0), (2, 4, 7), (4, 4, 0), (32, 1, 0)))
    plain(folder, "mdata", bytes([0, 0, 1]) + bytes(8) + struct.pack(">6Q", 1700000000, 1, 2, 3, 4, 5))
    plain(folder, "mdata-version", bytes([0, 0, 2]) + bytes(56))
    gfid = "bc4be300-fa72-4ed0-96ef-1756453fde64"
    for number, link in enumerate(("../../bc/4b/%s/name" % gfid, "../../00/4b/%s/name" % gfid, "../../bc/4b/%s/a/b" % gfid,
                                   "../../bc/4b/%s/" % gfid, "/etc/passwd", "../../bc/4b/%s/%s" % (gfid, "n" * 255), "../../BC/4B/%s/x" % gfid.upper())):
        plain(folder, "handle-%d" % number, bytes([3, 0]) + link.encode())
    for op in range(8):
        for size in (0, 4, 8, 12, 16, 24, 7):
            plain(folder, "op-%d-%d" % (op, size), bytes([4, op]) + b"\x7f\xff\xff\xff\0\0\0\1\xff\xff\xff\xff\x80\0\0\0\0\0\0\1\0\0\0\2"[:size])
    names = ("trusted.gfid trusted.glusterfs.volume-id trusted.gfid2path.0123456789abcdef trusted.glusterfs.mdata set-ctime-mdata trusted.bit-rot.version "
             "security.selinux trusted.glusterfs.x.xtime trusted.glusterfs.quota.size system.posix_acl_access system.posix_acl_default glusterfs.posix.acl "
             "glusterfs.posix.default_acl trusted.SGI_ACL_FILE trusted.afr.v-client-0 trusted.glusterfs.dht user.x trusted.pgfid.x glusterfs.x "
             "trusted.glusterfs.pathinfo trusted.ec.size trusted.glusterfs.quota.limit-set security.capability trusted.io-stats-dump none").split()
    for name in names:
        plain(folder, "name-" + name, bytes([5, 0]) + name.encode())


def session_inputs(folder):
    def call(program, version, procedure, flavor=4, body=b"", cred=bytes(28) + bytes(4) + bytes(4)):
        return bytes([4, program | version << 2, flavor, procedure, len(cred) // 4]) + cred + bytes([-(-len(body) // 4)]) + body + bytes(-len(body) % 4)
    login, wait = bytes([0, 0]), bytes([3])
    for number in range(15):
        for value in range(14):
            plain(folder, "login-%d-%d" % (number, value), bytes([0, 1, number, value]) + wait + bytes([6, 27, 1, 2]) + bytes(8))
    plain(folder, "login-name", bytes([0, 2, 4, 8, 5, 9]) + wait)
    plain(folder, "login-wrong-name", bytes([0, 2, 4, 8, 5, 1]) + wait)
    plain(folder, "login-bytes", bytes([0, 1, 0x80, 0, 3]) + b"/bricks/b1\0\0" + wait)
    plain(folder, "twice", login + wait + bytes([0, 1, 1, 0]) + wait + login)
    for number, one in enumerate((call(1, 1, 1), call(1, 1, 2, body=u32(1) + text("/w") + u32(0)), call(1, 1, 3), call(1, 1, 4, body=text("uid") + u32(1)),
                                  call(2, 2, 1, body=bytes(8)), call(2, 2, 2), call(3, 0, 1), call(0, 3, 27), call(1, 1, 9), call(0, 0, 27, 1),
                                  call(1, 1, 1, 0, old_dict({"remote-subvolume": "/bricks/b1"})))):
        plain(folder, "call-%d" % number, one + wait + login + wait + one)
    for name, (procedure, _, _) in FOP_ROWS.items():
        args = encode_fop(name, xdata={"gfid-req": d_gfid(bytes(16))}, name="dir", locks=Raw(u32(0)), flock=Raw(FLOCK))[16:]
        for number in (1, 3):
            plain(folder, "fop-%s-%d" % (name, number), login + wait + bytes([6, procedure, number, min(-(-len(args) // 4), 250)]) + args[:1000] + wait)


def record_inputs(folder):
    for size in range(9):
        for fragments in (0, 1, 9, 59):
            for step in (0, 16, 32, 48):
                plain(folder, "record-%d-%d-%d" % (size, fragments, step), bytes([1, 0, 0, 2 | fragments << 2 & 0xfc, step, size, 0, 3, 3, 0, 0, 0, 5]))
                plain(folder, "burst-%d-%d-%d" % (size, fragments, step), bytes([1, 0, 0, 3, fragments, step * 5, 2, 0, size, 3, 7, 255]))
    plain(folder, "before", bytes([2, 0, 1, 6, 0, 2, 2, 0, 5, 2, 0, 6]))
    for mark in (0x3fffffff, 0xbfffffff, 0x80000000, 0, 0x80004001, 0x4001, 0x80000004):
        plain(folder, "mark-%x" % mark, bytes([0, 0, 7]) + u32(mark) + b"abcd")
        plain(folder, "mark-later-%x" % mark, bytes([1, 0, 0, 0, 3, 7]) + u32(mark) + b"abcd")
    plain(folder, "zero-fragments", (bytes([0, 0, 255]) + bytes(256)) * 20)
    plain(folder, "closing", bytes([1, 0, 0, 2, ord("C"), 40]))
    plain(folder, "closing-large", bytes([1, 0, 0, 3, ord("C"), 6, 2, 0, 9]))
    plain(folder, "fragments-before", (bytes([0, 0, 99]) + bytes(100)) * 4 + bytes([3, 9, 1]))
    plain(folder, "many", bytes([1, 0, 0]) + bytes([2, 0, 1]) * 200)


def client_inputs(folder):
    """The first byte: 0 layouts, 1 counts, 2 cookies, 3 ports, 4 a packet of a shared mount, 5 fragments, 6 counters."""
    def layout(*ranges):
        return bytes([0, len(ranges) - 1]) + b"".join(bytes([2, 16]) + u32(7) + u32(kind) + u32(start) + u32(stop)
                                                      for kind, start, stop in ranges)
    half, end = 0x7fffffff, 0xffffffff
    for number, ranges in enumerate((((0, 0, end),), ((0, 0, half), (0, half + 1, end)), ((0, half + 1, end), (0, 0, half)), ((0, 0, end), (0, 0, 0)),
                                     ((0, 0, half), (0, half, end)), ((1, 5, half), (0, half + 9, end)), ((9, 0, end),), ((0, end, 0),),
                                     tuple((0, n << 28, (n + 1 << 28) - 1) for n in range(16)))):
        plain(folder, "layout-%d" % number, layout(*ranges))
        hashes = u32(5) * 2 + u32(half) + u32(end)
        for weights in (bytes([0, 1]), bytes([1]) + u32(end), bytes([1]) + u32(0)):
            plain(folder, "assign-%d-%s" % (number, weights.hex()), layout(*ranges) + hashes + weights * len(ranges) + u32(1) + bytes([0]) + u32(7))
    plain(folder, "layout-failed", bytes([0, 3, 0, 4, 1, 2, 3, 1, 2, 3, 8]))
    plain(folder, "layout-mixed", bytes([0, 5]) + bytes([1, 1, 0, 2, 16]) + bytes(16) + bytes([1, 1]) + u32(9) * 4 + bytes([1]) + u32(1) +
          bytes([1]) + u32(end) + bytes([0, 3, 0, 2, 0, 1, 0, 0]) + u32(3) + bytes([2]) + u32(1))
    counts = bytes([12]) + u32(1) + u32(0) * 2
    for count in (2, 3, 4):
        for how in (0, 1, 9, 25, 1 | 64, 9 | 64, 13 | 64, 27 | 64, 121, 127):
            body = b"".join(bytes([how if n else 1 | 8]) + (u32(n) if how & 16 and n else b"") + (counts if how & 32 and n else b"") +
                            (counts * count if how & 64 and n else b"") for n in range(count))
            for arbiter in (0, 1):
                plain(folder, "counts-%d-%d-%d" % (count, how, arbiter), bytes([1, count - 2, arbiter]) + body + bytes([2, 116]))
    for cookie in (0, 1, 1 << 31, 1 << 63, (1 << 64) - 1, (1 << 64) - 2):
        for bricks in (1, 2, 3, 64, 1024):
            plain(folder, "cookie-%x-%d" % (cookie, bricks), bytes([2]) + u32(bricks - 1) + u32(1) + u64(cookie))
    for which, body in enumerate((u32(0) * 2 + u32(1) + u32(49152), text("/bricks/b1") + u32(49152) + u32(7), u32(0) + u32(5))):
        plain(folder, "ports-%d" % which, bytes([3, which, len(body)]) + body)
        plain(folder, "ports-short-%d" % which, bytes([3, which, len(body)]) + body[:-3])
    words = ["mountpoint=/mnt", "server=a", "server=b", "server-port=24007", "volume=/v", "subdir=/s", "source=a:/v", "acl=on", "read-only=on",
             "attribute-timeout=1", "entry-timeout=1", "negative-timeout=0", "direct-io-mode=enable", "xlator-option=*.a=b", "kernel-option=nosuid"]
    whole = b"".join(word.encode() + b"\0" for word in words)
    for name, packet in (("whole", whole), ("volfile", b"mountpoint=/mnt\0volfile=/v\0"), ("no-end", whole[:-1]), ("unknown", b"x=y\0" + whole),
                         ("no-equals", b"mountpoint\0"), ("half", b"mountpoint=/mnt\0server=a\0"), ("empty", b""), ("many", b"server=a\0" * 200),
                         ("options", b"xlator-option=*.a=b\0" * 300), ("kernel", b"kernel-option=x\0" * 100)):
        plain(folder, "packet-" + name, bytes([4, 1]) + packet)
    plain(folder, "packet-elsewhere", bytes([4, 0]) + whole)
    for data in (2, 3, 4, 8, 16):
        for first in (0, 1, 3):
            plain(folder, "fragments-%d-%d" % (data, first), bytes([5, data - 2, 1, first, first]) + bytes((i * 7 + data) % 256 for i in range(700)))
    for how in range(4):
        for length in (0, 7, 8, 15, 16, 24):
            plain(folder, "counter-%d-%d" % (how, length), bytes([6, how, length]) + b"\xff" * length)


def front_inputs(folder):
    """The first byte: 0 a state file, 1 an option and its value, 2 a path, 3 a state folder."""
    gfid = "bc4be300-fa72-4ed0-96ef-1756453fde64"

    def brick(number, **more):
        return {"host": "", "path": "/b%d" % number, "made": True, "id": number, **more}

    def volume(count=1, **more):
        return {"format": 2, "name": "v", "id": gfid, "status": "started", "replica": 1, "arbiter": 0, "username": gfid, "password": gfid,
                "bricks": [brick(n) for n in range(count)], "next_brick": count, "coming": [], "options": {}, **more}

    def compact(what):
        return json.dumps(what, separators=(",", ":")).encode()
    first_format = {key: value for key, value in volume(2, format=1, replica=2).items() if key not in ("next_brick", "coming")}
    volumes = [volume(), first_format, volume(2, replica=2, options={"cluster.self-heal-daemon": "off", "features.acl": "on"}),
               volume(3, replica=3, arbiter=1), volume(4, replica=2, status="stopped", options={"user.a": "b", "network.ping-timeout": "10"}),
               volume(coming=[brick(7), brick(8, host="h")], next_brick=9), volume(options={"features.quota": "on", "auth.reject": "10.*"}),
               volume(2, arbiter=1), volume(replica=0), volume(3, replica=2), volume(0), volume(format=3), volume(format="x"), volume(name="-"),
               volume(name=7), volume(id="x"), volume(status="x"), volume(status=1), volume(bricks=7), volume(bricks=[7]), volume(options=[]),
               volume(options={"a": 1}), volume(coming=None), volume(next_brick=-1), volume(bricks=[brick(0), brick(0)]),
               volume(bricks=[brick(0, host="a b")]), volume(bricks=[brick(0, path="x")]), volume(bricks=[brick(0, id="x")]), volume(username="x"),
               volume(options={"features.shard": "on", "performance.write-behind": "off", "transport.address-family": "inet"}), [], 7]
    for number, one in enumerate(volumes):
        plain(folder, "state-%d" % number, b"\0" + compact(one))
    for number, text_ in enumerate((b"", b"{", b'{"a":1,"a":2}', compact(volume())[:-9], b"[" * 900)):
        plain(folder, "text-%d" % number, b"\0" + text_)
    for key, value in (("transport.address-family", "inet6"), ("transport.address-family", "inet"), ("features.read-only", "on"), ("user.x", "y"),
                       ("features.worm", "on"), ("ping-timeout", "5"), ("netwrk.ping-timeout", "5"), ("network.ping-timeout", "5"), ("user.", "x"),
                       ("network.ping-timeout", "x"), ("user." + "k" * 255, "v"), ("auth.allow", "10.0.0.0/8"), ("auth.allow", "a`b"), ("write-behind", "")):
        plain(folder, "option-%s-%s" % (key[:20], value[:5].replace("/", "")), b"\1" + key.encode() + b"\0" + value.encode())
    for number, path in enumerate(("/b", "/b/", "b", "/", "/a//b", "/a/../b", "/a b", "/" + "a/" * 520, "/" + "n" * 256)):
        plain(folder, "path-%d" % number, b"\2" + path.encode())

    def state_folder(how, *objects):
        return bytes([3, how]) + b"\1".join(bytes([kind]) + name.encode() + b"\0" + body for kind, name, body in objects)
    file, folder_, link, fifo, top = 6, 0, 2, 4, 1
    good = [(file, "v.json", compact(volume())), (file, "w.json", compact(volume(2, name="w", replica=2)))]
    folders = [(1,), (0,), (2,), (4,), (1 | 4, *good), (1, good[0]), (1 | 8, good[0]), (16,), (0, good[0]), (1, (file, "v.json", b"{")),
               (1, (file, "x.json", good[0][2])), (1, (file, "v", b"")), (1, (file, ".json", b"")), (1, (link, "v.json", b"")), (1, (fifo, "v.json", b"")),
               (1, (folder_, "v.json", b"")), (1, (file, ".new-v.json", b"{"), good[0]), (1, (folder_, ".new-v.json", b"")),
               (1, (top | file, ".new-kiln-state", b"")), (0, (top | file, ".new-kiln-state", b"")), (0, (top | file, "x", b"")),
               (0, (top | file, "kiln-state", b'{"format": 2}')), (0, (top | file, "kiln-state", b"x")), (0, (top | folder_, "kiln-state", b"")),
               (0, (top | link, "kiln-state", b"")), (0, (top | fifo, "kiln-state", b"")), (1, (top | folder_, "lock", b"")), (1, (top | link, "lock", b"")),
               (3, (top | link, "volumes", b"")), (3, (top | file, "volumes", b"")), (1, (top | link, "heal", b"")), (2, (top | folder_, "lost+found", b"")),
               (1, good[0], (file, "v" * 120 + ".json", compact(volume(name="v" * 120))))]
    for number, one in enumerate(folders):
        plain(folder, "folder-%d" % number, state_folder(*one))
        for more in range(12): # so that other calls fail
            plain(folder, "folder-%d-%d" % (number, more), state_folder(*one, (top | file, "lost+found", bytes([48 + more]) * (more % 3 + 1))))


def main():
    target, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    {"codec": codec, "text": text_inputs, "disk": disk_inputs, "session": session_inputs, "record": record_inputs, "client": client_inputs,
     "front": front_inputs}[target](folder)


main()
