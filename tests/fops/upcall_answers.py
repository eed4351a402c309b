# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Prints the callbacks of a brick about the changes of other clients, byte by byte and a line each, for
upcall-invalidations-match-stock.t.

    upcall_answers.py HOST PORT BRICK

Client a looks, client b changes, and the program prints the callbacks that client a has received. A brick sends
callbacks before the answer to the change, so all callbacks have arrived when a ping on a's connection is answered.
"""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "wire"))
from kilnwire import ROOT, Peer, Reader, d_bytes, d_gfid, d_int, d_str, u32, u64  # noqa: E402

HOST, PORT, BRICK = sys.argv[1], int(sys.argv[2]), sys.argv[3]
SETATTR_MODE, SETATTR_UID, SETATTR_ATIME, SETATTR_MTIME = 1, 2, 0x10, 0x20


def peer(**more):
    p = Peer(HOST, PORT)
    assert p.login(BRICK, **more)[0] == 0
    return p


def gfid(n):
    return bytes.fromhex("b1b2b3b4b5b6b7b8") + n.to_bytes(8, "big")


def short(g):
    return {ROOT: "root", bytes(16): "-"}.get(g, g.hex().lstrip("0")[-4:])


def old_iatt(r):
    raw = r.take(100)
    g, (ino, dev, mode, nlink, uid, gid, rdev, size) = raw[:16], struct.unpack(">QQIIIIQQ", raw[16:64])
    if raw == bytes(100):
        return "-"
    return "%s mode %o nlink %d uid %d size %s%s" % (short(g), mode, nlink, uid, size if mode & 0o100000 else "any",
                                                     "" if ino and dev else " no ino")


def callback(record):
    r = Reader(record)
    assert (r.u32(), r.u32(), r.u32()) != (0, 1, 2)
    program, version, procedure = r.u32(), r.u32(), r.u32()
    assert (program, version) == (52743234, 1) and r.take(16) == bytes(16)
    if procedure != 5:
        return "procedure %d" % procedure
    text = r.opaque().decode()
    event, flags, expire = r.u32(), r.u32(), r.u32()
    stat, parent, old_parent, xdata = old_iatt(r), old_iatt(r), old_iatt(r), r.opaque()
    assert r.at == len(record)
    return "%s event %d flags 0x%x expire %d [%s] [%s] [%s] %s" % (
        short(bytes.fromhex(text.replace("-", ""))), event, flags, expire, stat, parent, old_parent, xdata.hex())


def told(*peers):
    for p in peers:
        p.ping()
        for record in p.callbacks:
            line = callback(record)
            # A callback about a forgotten inode comes some time after the answer, and the brick chooses the inodes to
            # forget.
            if "flags 0x100 " not in line:
                print("    %s: %s" % (p.name, line))
        p.callbacks.clear()


def change(what, p, fop, **values):
    r = p.fop(fop, **values)
    print("%s: %d %s" % (what, r.op_ret, r.op_errno if r.op_ret < 0 else ""))
    told(a, b, c)
    return r


def look(p, g, name=None, parent=None):
    r = p.fop("LOOKUP", gfid=g) if name is None else p.fop("LOOKUP", gfid=g, pargfid=parent, name=name)
    return r.op_ret


def stbuf(mode=0, uid=0, atime=0, mtime=0):
    # flags ino dev rdev size blocks attributes mask | 4 times | 4 nsec nlink uid gid blksize mode
    return bytes(16) + struct.pack(">8Q4q9I", *[0] * 8, atime, mtime, 0, 0, *[0] * 4, 0, uid, 0, 0, mode)


a, b, c = peer(), peer(), peer()
a.name, b.name, c.name = "a", "b", "c"
FILE, DIR, DIR2 = gfid(1), gfid(2), gfid(3)
assert a.fop("IPC", op=2, xdata={"user.*": d_str(""), "trusted.watched": d_str(""),
                                 "security.capability": d_str("")}).op_ret == 0

look(a, ROOT)
look(b, ROOT)
fd = change("create", b, "CREATE", name="f", flags=0o102, mode=0o644, xdata={"gfid-req": d_gfid(FILE)}).fd
look(a, ROOT)
change("mkdir", b, "MKDIR", name="d", mode=0o755, xdata={"gfid-req": d_gfid(DIR)})
change("mkdir again", b, "MKDIR", name="d2", mode=0o755, xdata={"gfid-req": d_gfid(DIR2)})
change("mknod", b, "MKNOD", name="n", mode=0o100644, xdata={"gfid-req": d_gfid(gfid(4))})
change("symlink", b, "SYMLINK", name="s", linkname="f", xdata={"gfid-req": d_gfid(gfid(5))})
change("mkdir of a name that is there", b, "MKDIR", name="d", mode=0o755, xdata={"gfid-req": d_gfid(gfid(6))})

print("-- of a file that nobody else has seen")
change("write", b, "WRITE", gfid=FILE, fd=fd, payload=b"data")

print("-- that another has looked up")
look(a, FILE)
change("write", b, "WRITE", gfid=FILE, fd=fd, payload=b"data")
change("write once more", b, "WRITE", gfid=FILE, fd=fd, payload=b"data")
change("truncate", b, "TRUNCATE", gfid=FILE, offset=100)
change("ftruncate", b, "FTRUNCATE", gfid=FILE, fd=fd, offset=10)
change("fallocate", b, "FALLOCATE", gfid=FILE, fd=fd, offset=0, size=50)
change("discard", b, "DISCARD", gfid=FILE, fd=fd, offset=0, size=50)
change("zerofill", b, "ZEROFILL", gfid=FILE, fd=fd, offset=0, size=50)
change("setattr mode", b, "SETATTR", gfid=FILE, stbuf=stbuf(0o640), valid=SETATTR_MODE)
change("setattr the same mode", b, "SETATTR", gfid=FILE, stbuf=stbuf(0o640), valid=SETATTR_MODE)
change("setattr uid", b, "SETATTR", gfid=FILE, stbuf=stbuf(uid=7), valid=SETATTR_UID)
change("setattr times", b, "SETATTR", gfid=FILE, stbuf=stbuf(mtime=1000), valid=SETATTR_MTIME)
change("setattr atime", b, "SETATTR", gfid=FILE, stbuf=stbuf(atime=1000), valid=SETATTR_ATIME)
change("fsetattr mode", b, "FSETATTR", gfid=FILE, fd=fd, stbuf=stbuf(0o600), valid=SETATTR_MODE)
change("fsetattr uid", b, "FSETATTR", gfid=FILE, fd=fd, stbuf=stbuf(uid=0), valid=SETATTR_UID)
change("setxattr of a watched pattern", b, "SETXATTR", gfid=FILE, dict={"user.x": d_bytes(b"1")})
change("setxattr of a watched name", b, "SETXATTR", gfid=FILE, dict={"trusted.watched": d_bytes(b"1")})
change("setxattr of two", b, "SETXATTR", gfid=FILE, dict={"user.x": d_bytes(b"1"), "trusted.other": d_bytes(b"1")})
change("setxattr of another name", b, "SETXATTR", gfid=FILE, dict={"trusted.other": d_bytes(b"1")})
change("fsetxattr", b, "FSETXATTR", gfid=FILE, fd=fd, dict={"user.y": d_bytes(b"1")})
change("removexattr", b, "REMOVEXATTR", gfid=FILE, name="user.x")
change("removexattr of another name", b, "REMOVEXATTR", gfid=FILE, name="trusted.other")
change("fremovexattr", b, "FREMOVEXATTR", gfid=FILE, fd=fd, name="user.y")
change("xattrop", b, "XATTROP", gfid=FILE, flags=0, dict={"trusted.afr.x": d_bytes(bytes(12))})
change("xattrop of a watched name", b, "XATTROP", gfid=FILE, flags=0, dict={"user.count": d_bytes(bytes(11) + b"\1")})
change("fxattrop of a watched name", b, "FXATTROP", gfid=FILE, fd=fd, flags=0, dict={"user.count": d_bytes(bytes(11) + b"\1")})
change("fsync", b, "FSYNC", gfid=FILE, fd=fd)
change("flush", b, "FLUSH", gfid=FILE, fd=fd)
change("inodelk", b, "FSTAT", gfid=FILE, fd=fd)
change("access", b, "ACCESS", gfid=FILE, mask=0)
change("lookup", b, "LOOKUP", gfid=FILE)
change("read", b, "READ", gfid=FILE, fd=fd, size=10)
change("getxattr", b, "GETXATTR", gfid=FILE, name="user.x", namelen=1)
change("open", b, "OPEN", gfid=FILE, flags=2)
change("open with truncation", b, "OPEN", gfid=FILE, flags=0o1002)

print("-- by itself")
change("write", a, "WRITE", gfid=FILE, fd=-2, payload=b"data")

print("-- names")
look(a, FILE)
look(a, ROOT)
look(a, DIR)
change("link", b, "LINK", gfid=FILE, pargfid2=DIR, name2="l")
look(a, FILE)
change("rename", b, "RENAME", pargfid=DIR, name="l", pargfid2=ROOT, name2="l2")
look(a, FILE)
change("rename in a directory", b, "RENAME", pargfid=ROOT, name="l2", pargfid2=ROOT, name2="l3")
look(a, gfid(4))
change("rename over another", b, "RENAME", pargfid=ROOT, name="l3", pargfid2=ROOT, name2="n")
look(a, FILE)
change("unlink", b, "UNLINK", pargfid=ROOT, name="n")
change("unlink of the last name", b, "UNLINK", pargfid=ROOT, name="f")
change("unlink of no name", b, "UNLINK", pargfid=ROOT, name="f")
look(a, DIR2)
change("rename of a directory", b, "RENAME", pargfid=ROOT, name="d2", pargfid2=DIR, name2="d3")
change("rmdir", b, "RMDIR", pargfid=DIR, name="d3")
change("rmdir of one that nobody has seen", b, "RMDIR", pargfid=ROOT, name="d")

print("-- how one is seen to have it")
for n, (fop, values) in enumerate((
        ("STAT", {}), ("GETXATTR", {"name": "", "namelen": 0}), ("OPEN", {"flags": 2}), ("READ", {"fd": -2, "size": 1}),
        ("ACCESS", {}), ("FSTAT", {}), ("FGETXATTR", {"name": "", "namelen": 0}), ("FLUSH", {}), ("FSYNC", {}),
        ("WRITE", {"payload": b"1"}), ("TRUNCATE", {"offset": 5}), ("XATTROP", {"dict": {"trusted.afr.x": d_bytes(bytes(12))}}),
        ("SETXATTR", {"dict": {"trusted.o": d_bytes(b"1")}}), ("SEEK", {"what": 1}), ("RCHECKSUM", {"size": 1}),
        ("REMOVEXATTR", {"name": "trusted.o2"}), ("SETATTR", {"stbuf": stbuf(0o600), "valid": SETATTR_MODE}),
        ("SETXATTR", {"dict": {"user.o": d_bytes(b"1")}}), ("REMOVEXATTR", {"name": "user.o"}),
        ("XATTROP", {"dict": {"user.afr": d_bytes(bytes(12))}}), ("DISCARD", {"size": 1}), ("ZEROFILL", {"size": 1}), ("FALLOCATE", {"size": 1}), ("STATFS", {}),
        ("INODELK", {"cmd": 1, "type": 0, "volume": "d"}), ("LK", {"cmd": 1, "type": 0}), ("GETACTIVELK", {}), ("FTRUNCATE", {}),
        ("SETATTR", {"stbuf": stbuf(0o600), "valid": SETATTR_MODE, "as": -6}), ("STAT", {"as": -6}))):
    g = gfid(100 + n)
    fd = b.fop("CREATE", name="h%d" % n, flags=0o102, mode=0o644, xdata={"gfid-req": d_gfid(g)}).fd
    told(a, b, c)
    if fop in ("REMOVEXATTR",):
        b.fop("SETXATTR", gfid=g, dict={values["name"]: d_bytes(b"1")})
    pid, a.pid = a.pid, values.pop("as", a.pid)
    r = a.fop(fop, gfid=g, **values)
    a.pid = pid
    change("write after %s (%d)" % (fop, min(r.op_ret, 0)), b, "WRITE", gfid=g, fd=fd, payload=b"x")
c.fop("LOOKUP", gfid=ROOT)
told(a, b, c)
r = c.fop("READDIRP", gfid=ROOT, fd=c.fop("OPENDIR", gfid=ROOT).fd, size=65536)
change("write after READDIRP", b, "WRITE", gfid=gfid(101), fd=-2, payload=b"x")
told(a, b, c)
d = peer()
d.name = "d"
d.fop("LOOKUP", gfid=gfid(100), pargfid=ROOT, name="h0")
change("unlink after LOOKUP by name", b, "UNLINK", pargfid=ROOT, name="h1")
told(d)
change("unlink of what it looked up", b, "UNLINK", pargfid=ROOT, name="h0")
told(d)
d.fop("READDIR", gfid=ROOT, fd=d.fop("OPENDIR", gfid=ROOT).fd, size=65536)
change("unlink after READDIR", b, "UNLINK", pargfid=ROOT, name="h2")
told(d)

print("-- directories")
for n, (fop, values) in enumerate((
        ("OPENDIR", {}), ("READDIR", {"size": 4096}), ("READDIRP", {"size": 4096}), ("MKDIR", {"name": "x", "xdata": {"gfid-req": d_gfid(gfid(500))}}),
        ("CREATE", {"name": "x", "flags": 0o102, "mode": 0o644, "xdata": {"gfid-req": d_gfid(gfid(501))}}),
        ("UNLINK", {"name": "gone"}), ("RENAME", {"name": "gone2", "name2": "gone3"}), ("LINK", {"gfid": gfid(103), "name2": "gone4"}),
        ("LOOKUP", {"name": "here"}), ("FSYNCDIR", {}), ("ENTRYLK", {"cmd": 2, "type": 0, "volume": "d"}), ("RMDIR", {"name": "dir"}),
        ("SYMLINK", {"name": "x", "linkname": "g", "xdata": {"gfid-req": d_gfid(gfid(502))}}))):
    g = gfid(300 + n)
    b.fop("MKDIR", name="D%d" % n, mode=0o755, xdata={"gfid-req": d_gfid(g)})
    for m, name in enumerate(("gone", "gone2", "here")):
        b.fop("MKNOD", pargfid=g, name=name, mode=0o100644, xdata={"gfid-req": d_gfid(gfid(3000 + n * 10 + m))})
    b.fop("MKDIR", pargfid=g, name="dir", mode=0o755, xdata={"gfid-req": d_gfid(gfid(3005 + n * 10))})
    told(a, b, c)
    d = peer()
    d.name = "d"
    if fop.startswith("READDIR") or fop == "FSYNCDIR":
        values["fd"] = d.fop("OPENDIR", gfid=g).fd
        b.fop("CREATE", pargfid=g, name="before", flags=0o102, mode=0o644, xdata={"gfid-req": d_gfid(gfid(600))})
        told(d)
        b.fop("UNLINK", pargfid=g, name="before")
    r = d.fop(fop, **dict({"gfid": g, "pargfid": g, "pargfid2": g}, **values))
    change("create in it after %s (%d)" % (fop, r.op_ret), b, "CREATE", pargfid=g, name="new", flags=0o102, mode=0o644,
           xdata={"gfid-req": d_gfid(gfid(400 + n))})
    told(d)
    change("write to what it showed", b, "WRITE", gfid=gfid(3002 + n * 10), fd=-2, payload=b"x")
    told(d)
    change("rename", b, "RENAME", pargfid=g, name="here", pargfid2=g, name2="there")
    told(d)
    d.close()

print("-- many")
g = gfid(200)
fd = b.fop("CREATE", name="m", flags=0o102, mode=0o644, xdata={"gfid-req": d_gfid(g)}).fd
told(a, b, c)
for p in (a, c):
    look(p, g)
change("write", b, "WRITE", gfid=g, fd=fd, payload=b"x")
c.close()
d.close()
c = peer()
c.name = "c"
change("write after one has gone", b, "WRITE", gfid=g, fd=fd, payload=b"x")
same = peer(uid="one-uid")
twin = peer(uid="one-uid")
same.name, twin.name = "same", "twin"
look(same, g)
change("write", b, "WRITE", gfid=g, fd=fd, payload=b"x")
told(same, twin)
change("write by a twin", twin, "WRITE", gfid=g, fd=-2, payload=b"x")
told(same, twin)
