# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Questions about locks, permissions and the index, byte by byte, for locks-and-access-replies-match-stock.t: one line each.

    lock_answers.py HOST PORT BRICK

Where Kiln differs from stock on purpose the line begins with "~": the caller leaves those out.
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "wire"))
from kilnwire import FOPS, FOP_ROWS, NOBODY, ROOT, SUCCESS, Peer, Reader, Reply, d_bytes, d_gfid, d_int, d_str, \
    encode_fop, opaque, u32, u64  # noqa: E402

HOST, PORT, BRICK = sys.argv[1], int(sys.argv[2]), sys.argv[3]
RD, WR, UN = 0, 1, 2
GETLK, SETLK, SETLKW = 0, 1, 2
count = 0


def peer(**login):
    p = Peer(HOST, PORT)
    assert p.login(BRICK, **login)[0] == 0
    p.pid = 100
    return p


def gfid(n):
    return bytes.fromhex("a1a2a3a4a5a6a7a8") + n.to_bytes(8, "big")


def say(what, r, *more):
    global count
    count += 1
    err = r.op_errno if r.op_ret < 0 else ""
    mark, what = ("~", what[1:]) if what[0] == "~" else ("", what)
    print(mark + "%3d %s: %d %s %s" % (count, what, r.op_ret, err, " ".join(str(m) for m in more)))


def flock(typ, start=0, length=0, whence=0, owner=b"", pid=100):
    return u32(typ) + u32(whence) + u64(start) + u64(length) + u32(pid) + opaque(owner)


def create(p, name, n, mode=0o644):
    r = p.fop("CREATE", name=name, flags=0o102, mode=mode, xdata={"gfid-req": d_gfid(gfid(n))})
    assert r.op_ret == 0, r
    return r.fd


def mkdir(p, name, n, mode=0o755, parent=ROOT, xdata=None):
    r = p.fop("MKDIR", name=name, mode=mode, pargfid=parent, xdata=dict({"gfid-req": d_gfid(gfid(n))}, **(xdata or {})))
    return r


def ask(p, owner, fop, **values):
    p.owner = owner
    return p.fop(fop, **values)


def start(p, owner, fop, xdata=None, **values):
    """Sent; the answer comes when it comes."""
    p.owner = owner
    return p.send(FOPS, 400, FOP_ROWS[fop][0], encode_fop(fop, xdata=xdata, **values))


def answered(p):
    """Within a moment? The socket says."""
    p.sock.settimeout(1)
    try:
        p.sock.recv(1, 2)  # MSG_PEEK
        return True
    except TimeoutError:
        return False
    finally:
        p.sock.settimeout(120)


def finish(p, fop):
    answer = p.receive()
    assert answer.status == SUCCESS
    return Reply(fop, answer.body)


a, b, c = peer(), peer(), peer()
fd = create(a, "f", 1)
FILE, DIR = gfid(1), gfid(2)
assert mkdir(a, "d", 2).op_ret == 0
fd_b = b.fop("OPEN", gfid=FILE, flags=2).fd

# -- inodelk
def inodelk(p, owner, cmd, typ, start_=0, length=0, domain="dom", **more):
    return ask(p, owner, "INODELK", gfid=FILE, cmd=cmd, type=typ, flock=flock(typ, start_, length), volume=domain, **more)


say("inodelk", inodelk(a, b"A", SETLK, WR, 10, 10))
say("same owner again", inodelk(a, b"A", SETLK, WR, 10, 10))
say("same owner, overlapping", inodelk(a, b"A", SETLK, RD, 5, 10))
say("other client, same owner bytes", inodelk(b, b"A", SETLK, RD, 12, 1))
say("beside it", inodelk(b, b"A", SETLK, WR, 20, 10))
say("another domain", inodelk(b, b"A", SETLK, WR, 0, 0, "dom2"))
say("unlock of a part", inodelk(a, b"A", SETLK, UN, 10, 9))
say("unlock by another owner", inodelk(a, b"B", SETLK, UN, 10, 10))
say("unlock", inodelk(a, b"A", SETLK, UN, 10, 10))
say("still locked by the second", inodelk(b, b"A", SETLK, WR, 15, 1))
say("unlock", inodelk(a, b"A", SETLK, UN, 10, 10))
say("read lock beside a read lock", inodelk(b, b"A", SETLK, RD, 10, 5))
say("unlock", inodelk(b, b"A", SETLK, UN, 10, 5))
say("unlock", inodelk(a, b"A", SETLK, UN, 5, 10))
say("unlock once more", inodelk(a, b"A", SETLK, UN, 5, 10))
say("unlock", inodelk(b, b"A", SETLK, UN, 20, 10))
say("negative start", inodelk(a, b"A", SETLK, WR, -1, 10))
say("negative length", inodelk(a, b"A", SETLK, WR, 0, -1))
say("command 0", inodelk(a, b"A", 0, WR))
say("command 7", inodelk(a, b"A", 7, WR))
say("metadata range", inodelk(a, b"A", SETLK, WR, 2**63 - 2, 0))
say("whole file besides", inodelk(b, b"B", SETLK, WR, 0, 0))
say("metadata range, other", inodelk(b, b"B", SETLK, WR, 2**63 - 2, 0))
say("counts", b.fop("LOOKUP", gfid=FILE, xdata={"glusterfs.inodelk-count": d_int(0), "glusterfs.entrylk-count": d_int(0),
    "glusterfs.posixlk-count": d_int(0)}), *(lambda x: [k + "=%d" % x[k] for k in sorted(x) if k.startswith("glusterfs.")])(
    b.fop("LOOKUP", gfid=FILE, xdata={"glusterfs.inodelk-count": d_int(0), "glusterfs.entrylk-count": d_int(0),
    "glusterfs.posixlk-count": d_int(0)}).xdata))
for dom in ("dom", "dom:metadata", "dom2", "none"):
    r = b.fop("WRITE", gfid=FILE, fd=fd_b, payload=b"x", xdata={"glusterfs.inodelk-dom-count": d_str(dom)})
    say("in domain " + dom, r, (r.xdata or {}).get("glusterfs.inodelk-count"))
r = b.fop("WRITE", gfid=FILE, fd=fd_b, payload=b"x", xdata={
    "glusterfs.multi-dom-lk-cnt-req": d_int(1), "glusterfs.inodelk-dom-prefix:dom": d_int(0),
    "glusterfs.inodelk-dom-prefix:none": d_int(0)})
say("several domains", r, sorted((r.xdata or {}).items()))
say("unlock", inodelk(b, b"B", SETLK, UN, 0, 0))
say("unlock", inodelk(a, b"A", SETLK, UN, 2**63 - 2, 0))
say("unlock", inodelk(b, b"A", SETLK, UN, 0, 0, "dom2"))

# -- waiting, fairness, contention
say("reader", inodelk(a, b"A", SETLK, RD))
start(b, b"W", "INODELK", gfid=FILE, cmd=SETLKW, type=WR, flock=flock(WR), volume="dom")
say("a writer waits", r, answered(b))
say("a reader behind a waiting writer", inodelk(c, b"R", SETLK, RD))
say("the holder once more", inodelk(a, b"A", SETLK, RD))
say("one of its locks goes", inodelk(a, b"A", SETLK, UN), answered(b))
say("the other, too", inodelk(a, b"A", SETLK, UN))
say("the writer has it", finish(b, "INODELK"))
body = a.callbacks[0]
print("callbacks to the holder:", len(a.callbacks), body[12:24].hex(), body[40:].hex())
start(a, b"A", "INODELK", gfid=FILE, cmd=SETLKW, type=WR, flock=flock(WR), volume="dom")
say("another waits", r, answered(a))
b.close()
say("and has it when the holder's connection closes", finish(a, "INODELK"))
say("unlock", inodelk(a, b"A", SETLK, UN))
b = peer()
fd_b = b.fop("OPEN", gfid=FILE, flags=2).fd

# -- entrylk
def entrylk(p, owner, cmd, name, typ=WR):
    return ask(p, owner, "ENTRYLK", gfid=DIR, cmd=cmd, type=typ, namelen=1 if name else 0, name=name, volume="dom")


say("entrylk", entrylk(a, b"A", 2, "n", RD))
say("both of type read", entrylk(b, b"B", 2, "n", RD))
say("another name", entrylk(b, b"B", 2, "m"))
say("the whole directory", entrylk(c, b"C", 2, ""))
say("unlock of another type", entrylk(a, b"A", 1, "n", WR))
say("unlock of another name", entrylk(a, b"A", 1, "o", RD))
r = a.fop("LOOKUP", pargfid=DIR, name="n", xdata={"glusterfs.parent-entrylk": d_int(0)})
say("lookup of a missing name", r, (r.xdata or {}).get("glusterfs.parent-entrylk"))
say("unlock", entrylk(a, b"A", 1, "n", RD))
say("unlock", entrylk(b, b"B", 1, "m"))
say("the whole directory", entrylk(c, b"C", 2, ""))
start(a, b"A", "ENTRYLK", gfid=DIR, cmd=0, type=WR, namelen=1, name="n", volume="dom")
say("a name waits", r, answered(a))
say("unlock", entrylk(c, b"C", 1, ""))
say("granted", finish(a, "ENTRYLK"))
say("unlock", entrylk(a, b"A", 1, "n"))

# -- posix
def lk(p, owner, cmd, typ, start_=0, length=0, fd_=None):
    r = ask(p, owner, "LK", gfid=FILE, fd=fd if p is a else fd_b, cmd=cmd, type=typ,
            flock=flock(typ, start_, length, owner=owner))
    return r


def saylk(what, r):
    say(what, r, r.flock if r.op_ret >= 0 else "")


saylk("lk", lk(a, b"A", SETLK, WR, 0, 100))
saylk("a hole", lk(a, b"A", SETLK, UN, 40, 10))
saylk("getlk in the first part", lk(b, b"B", GETLK, WR, 10, 1))
saylk("getlk in the hole", lk(b, b"B", GETLK, WR, 40, 10))
saylk("getlk behind it", lk(b, b"B", GETLK, RD, 45, 10))
saylk("a lock in the hole", lk(b, b"B", SETLK, WR, 40, 10))
saylk("conflict", lk(b, b"B", SETLK, RD, 39, 1))
saylk("part becomes a read lock", lk(a, b"A", SETLK, RD, 20, 10))
saylk("which can be shared", lk(b, b"B", SETLK, RD, 20, 10))
saylk("getlk of a reader", lk(b, b"B", GETLK, WR, 20, 1))
saylk("backwards", lk(a, b"A", SETLK, WR, 200, -50))
saylk("getlk", lk(b, b"B", GETLK, WR, 150, 1))
saylk("getlk before it", lk(b, b"B", GETLK, WR, 149, 1))
saylk("~reservation", lk(a, b"A", 3, WR))
saylk("unlock all", lk(a, b"A", SETLK, UN, 0, 0))
saylk("flushed", lk(b, b"B", SETLK, WR, 0, 0))
say("flush", ask(b, b"B", "FLUSH", gfid=FILE, fd=fd_b))
saylk("free", lk(a, b"A", SETLK, WR, 0, 0))
start(b, b"B", "LK", gfid=FILE, fd=fd_b, cmd=SETLKW, type=WR, flock=flock(WR, owner=b"B"))
say("waits", r, answered(b))
say("release", ask(a, b"", "RELEASE", gfid=FILE, fd=fd))
saylk("has it", finish(b, "LK"))
fd = a.fop("OPEN", gfid=FILE, flags=2).fd
r = a.fop("GETACTIVELK", gfid=FILE)
say("active locks", r, [(l[0][0], l[0][2:], l[2]) for l in r.locks])  # stock's whence is arbitrary

# -- clearing
def clear(p, name, fop="GETXATTR", **more):
    p.owner = b""
    r = p.fop(fop, gfid=FILE, namelen=1, name=name, **more)
    text = (r.dict or {}).get(name, b"")
    say(name, r, b"cleared" if b"locks=" in text else text)  # stock cuts the brick's path at its first dot


clear(a, "glusterfs.clrlk.tinode.kall")
clear(a, "glusterfs.clrlk.tposix.kblocked")
clear(a, "glusterfs.clrlk.tposix.kall")
saylk("free", lk(a, b"A", SETLK, WR, 0, 0))
start(b, b"B", "LK", gfid=FILE, fd=fd_b, cmd=SETLKW, type=WR, flock=flock(WR, owner=b"B"))
answered(b)
clear(a, "glusterfs.clrlk.tposix.kblocked.0,0-0")
saylk("interrupted", finish(b, "LK"))
say("inodelk", inodelk(a, b"A", SETLK, WR, 10, 10))
clear(a, "glusterfs.clrlk.tinode.kgranted.0,10-10")
say("was cleared", inodelk(a, b"A", SETLK, UN, 10, 10))
say("entrylk", entrylk(a, b"A", 2, "n", RD))
a.owner = b""
for name in ("glusterfs.clrlk.tentry.kgranted.m", "glusterfs.clrlk.tentry.kgranted.n"):
    r = a.fop("GETXATTR", gfid=DIR, namelen=1, name=name)
    say(name, r, b"locks=" in (r.dict or {}).get(name, b""))
for bad in ("glusterfs.clrlk.tfoo.kall", "glusterfs.clrlk.tinode.kfoo"):
    clear(a, bad)
saylk("unlock all", lk(a, b"A", SETLK, UN, 0, 0))
r = a.fop("FGETXATTR", gfid=FILE, fd=fd, namelen=1, name="trusted.glusterfs.lockinfo")
say("lockinfo without locks", r, sorted(r.dict or {}))
saylk("lock", lk(a, b"A", SETLK, WR, 0, 0))
a.owner = b""
r = a.fop("FGETXATTR", gfid=FILE, fd=fd, namelen=1, name="trusted.glusterfs.lockinfo")
say("lockinfo", r, r.dict["trusted.glusterfs.lockinfo"].split(b"<POSIX(")[1].split(b"\0")[0].replace(BRICK.encode(), b"BRICK"))
start(b, b"B", "LK", gfid=FILE, fd=fd_b, cmd=SETLKW, type=WR, flock=flock(WR, owner=b"B"))
answered(b)
a.close()
saylk("has it when the holder is gone", finish(b, "LK"))
a = peer()

# -- removal
say("inodelk", inodelk(a, b"A", SETLK, WR))
start(b, b"B", "UNLINK", name="f")
say("unlink waits", r, answered(b))
say("unlock", inodelk(a, b"A", SETLK, UN))
say("unlink", finish(b, "UNLINK"))

# -- permissions
u = peer()
u.uid, u.gid = 1000, 1000
for i, mode in enumerate((0o755, 0o1777, 0o700, 0o777)):
    say("mkdir %o" % mode, mkdir(a, "p%o" % mode, 10 + i, mode))
D755, D1777, D700, D777 = (gfid(10 + i) for i in range(4))
a_file = {}
for i, d in enumerate((D755, D1777, D700, D777)):
    r = a.fop("CREATE", pargfid=d, name="root", flags=0o102, mode=0o644, xdata={"gfid-req": d_gfid(gfid(20 + i))})
    say("root's file", r, "%o" % r.stat["mode"])


def tries(what, fop, **values):
    say(what, u.fop(fop, **values))


for d, n in ((D755, 20), (D1777, 21), (D700, 22), (D777, 23)):
    tries("lookup", "LOOKUP", pargfid=d, name="root")
    tries("opendir", "OPENDIR", gfid=d)
    tries("open to read", "OPEN", gfid=gfid(n), flags=0)
    tries("open to write", "OPEN", gfid=gfid(n), flags=1)
    tries("open to execute", "OPEN", gfid=gfid(n), flags=0o40)
    tries("open and truncate", "OPEN", gfid=gfid(n), flags=0o1000)
    tries("truncate", "TRUNCATE", gfid=gfid(n), offset=0)
    for mask in range(8):
        tries("access %d" % mask, "ACCESS", gfid=gfid(n), mask=mask)
    tries("getxattr", "GETXATTR", gfid=gfid(n), namelen=1, name="user.x")
    tries("setxattr", "SETXATTR", gfid=gfid(n), dict={"user.x": d_bytes(b"1")})
    tries("removexattr", "REMOVEXATTR", gfid=gfid(n), name="user.x")
    tries("create", "CREATE", pargfid=d, name="mine", flags=0o302, mode=0o644, xdata={"gfid-req": d_gfid(gfid(40 + n))})
    tries("mkdir", "MKDIR", pargfid=d, name="dir", mode=0o755, xdata={"gfid-req": d_gfid(gfid(80 + n))})
    tries("symlink", "SYMLINK", pargfid=d, name="sym", linkname="x", xdata={"gfid-req": d_gfid(gfid(120 + n))})
    # Into a sticky folder: stock refuses a link that its own file system allows to every user.
    tries("~link" if d == D1777 else "link", "LINK", gfid=gfid(n), pargfid2=d, name2="hard")
    tries("rename", "RENAME", pargfid=d, name="root", pargfid2=d, name2="root2")
    tries("rename back", "RENAME", pargfid=d, name="root2", pargfid2=d, name2="root")
    tries("unlink", "UNLINK", pargfid=d, name="root")
    tries("unlink its own", "UNLINK", pargfid=d, name="mine")
    tries("rmdir", "RMDIR", pargfid=d, name="dir")
    tries("stat", "STAT", gfid=d)


def stbuf(mode=0, uid=0, gid=0):
    raw = bytearray(148)
    raw[132:148] = u32(uid) + u32(gid) + u32(0) + u32(mode)
    return bytes(raw)


plain = u
# On Kiln the negative pid of another user counts only from a client with the password.
helper = peer(username="helper", password="secret")
for what, u, who, pid in (("stranger", plain, 1000, 100), ("owner", plain, 1001, 100), ("heal", helper, 1000, -5)):
    u.uid, u.pid = 0, 100
    u.fop("SETATTR", gfid=D755, stbuf=stbuf(0o2755, 1001, 1002), valid=7)
    u.uid, u.gid, u.pid, u.groups = who, 1001, pid, [1003]
    for call, values in (("mode", dict(stbuf=stbuf(0o2700), valid=1)), ("uid", dict(stbuf=stbuf(uid=1000), valid=2)),
                         ("gid 1003", dict(stbuf=stbuf(gid=1003), valid=4)),
                         ("gid 1009", dict(stbuf=stbuf(gid=1009), valid=4)), ("times", dict(stbuf=stbuf(), valid=0x1b0))):
        r = u.fop("SETATTR", gfid=D755, **values)
        say("%s: setattr %s" % (what, call), r, "%o %d %d" % tuple(r.post[k] for k in ("mode", "uid", "gid")))
u = plain
u.uid, u.gid, u.pid, u.groups = 1000, 1000, 100, []


def acl(*entries):
    le = lambda v, n: v.to_bytes(n, "little")  # noqa: E731
    return le(2, 4) + b"".join(le(t, 2) + le(p, 2) + le(i, 4) for t, p, i in entries)


NOID = 0xffffffff
ACCESS = acl((1, 7, NOID), (2, 6, 1000), (4, 5, NOID), (8, 7, 1500), (16, 7, NOID), (32, 0, NOID))
r = mkdir(a, "acl", 30, 0o755)
ACL = gfid(30)
tries("acl by a stranger", "SETXATTR", gfid=ACL, dict={"system.posix_acl_access": d_bytes(ACCESS)})
say("acl", a.fop("SETXATTR", gfid=ACL, dict={"system.posix_acl_access": d_bytes(ACCESS)}))
say("default acl", a.fop("SETXATTR", gfid=ACL, dict={"system.posix_acl_default": d_bytes(ACCESS)}))
a.fop("LOOKUP", name="acl", xdata={"system.posix_acl_access": d_int(0), "system.posix_acl_default": d_int(0)})
for mask in range(8):
    tries("access %d as named user" % mask, "ACCESS", gfid=ACL, mask=mask)
u.uid, u.groups = 2000, [1500]
for mask in range(8):
    tries("access %d as member of a named group" % mask, "ACCESS", gfid=ACL, mask=mask)
u.uid, u.groups = 2000, []
for mask in range(8):
    tries("access %d as other" % mask, "ACCESS", gfid=ACL, mask=mask)
r = a.fop("CREATE", pargfid=ACL, name="f", flags=0o102, mode=0o666, umask=0o77, xdata={"gfid-req": d_gfid(gfid(31))})
say("created under a default acl", r, "%o" % r.stat["mode"])
r = mkdir(a, "d", 32, 0o755, ACL)
say("mkdir under it", r, "%o" % r.stat["mode"])
for n in (31, 32):
    for kind in ("access", "default"):
        r = a.fop("GETXATTR", gfid=gfid(n), namelen=1, name="system.posix_acl_" + kind)
        say("inherited " + kind, r, (r.dict or {}).get("system.posix_acl_" + kind, b"").hex())
r = a.fop("CREATE", name="um", flags=0o102, mode=0o666, umask=0o27, xdata={"gfid-req": d_gfid(gfid(33))})
say("umask", r, "%o" % r.stat["mode"])
r = a.fop("CREATE", name="um2", flags=0o102, mode=0o600, umask=0,
          xdata={"gfid-req": d_gfid(gfid(34)), "umask": d_int(0o27), "mode": d_int(0o666)})
say("umask in xdata", r, "%o" % r.stat["mode"])

# -- index
def virtual(name):
    return a.fop("GETXATTR", namelen=1, name=name).dict[name]


say("removexattr of no key", a.fop("REMOVEXATTR", gfid=gfid(33), name="", xdata={}))
one = d_bytes(u32(1) + u32(0) + u32(0))
minus = d_bytes(u32(0xffffffff) + u32(0) + u32(0))
for key, name in (("trusted.afr.dirty", "dirty"), ("trusted.afr.v-client-0", "index")):
    v = virtual("glusterfs.xattrop_%s_gfid" % name)
    r = a.fop("LOOKUP", gfid=v, pargfid=NOBODY, xdata={"glusterfs.index-ia-type-get-req": d_int(1)})
    say("lookup of " + name, r, "%o %x %d" % (r.stat["mode"], r.stat["flags"], r.stat["size"]), r.xdata)
    say("xattrop", a.fop("XATTROP", gfid=gfid(33), flags=0, dict={key: one}))
    r = a.fop("OPENDIR", gfid=v)
    say("opendir", r)
    vfd = r.fd
    r = a.fop("READDIR", gfid=v, fd=vfd, offset=0, size=4096, xdata={"get-gfid-type": d_int(1)})
    say("readdir", r, r.op_errno, sorted((e["name"], e["type"]) for e in r.entries if e["name"][:1] != b"."))
    say("readdirp", a.fop("READDIRP", gfid=v, fd=vfd, offset=0, size=4096))
    r = a.fop("GETXATTR", namelen=1, name="glusterfs.xattrop_%s_count" % name)
    say("count", r, r.dict)
    r = a.fop("LOOKUP", name="nothing", xdata={"link-count": d_str("glusterfs.xattrop_index_count")})
    say("link-count", r, (r.xdata or {}).get("link-count"))
    say("lookup in it", a.fop("LOOKUP", pargfid=v, name="a1a2a3a4-a5a6-a7a8-0000-000000000021"))
    say("lookup of nothing", a.fop("LOOKUP", pargfid=v, name="a1a2a3a4-a5a6-a7a8-0000-000000000099"))
    say("unlink", a.fop("UNLINK", pargfid=v, name="a1a2a3a4-a5a6-a7a8-0000-000000000021"))
    say("unlink again", a.fop("UNLINK", pargfid=v, name="a1a2a3a4-a5a6-a7a8-0000-000000000021"))
    say("stat of it", a.fop("STAT", gfid=v))
    say("xattrop", a.fop("XATTROP", gfid=gfid(33), flags=0, dict={key: minus}))
    say("releasedir", a.fop("RELEASEDIR", gfid=v, fd=vfd))
v = virtual("glusterfs.xattrop_entry_changes_gfid")
zero = {"trusted.afr.v-client-0": d_bytes(bytes(12))}
say("entry-create", a.fop("XATTROP", gfid=D777, flags=0, dict=zero, xdata={"glusterfs.xattrop-entry-create": d_str("n1")}))
r = a.fop("LOOKUP", pargfid=v, name="a1a2a3a4-a5a6-a7a8-0000-00000000000d")
say("lookup of the directory's changes", r, "%o" % r.stat["mode"])
sub = r.stat["gfid"]
vfd = a.fop("OPENDIR", gfid=sub).fd
r = a.fop("READDIR", gfid=sub, fd=vfd, offset=0, size=4096)
say("readdir", r, sorted(e["name"] for e in r.entries))
say("lookup of a change", a.fop("LOOKUP", pargfid=sub, name="n1"))
r = a.fop("RMDIR", pargfid=v, name="a1a2a3a4-a5a6-a7a8-0000-00000000000d", flags=0)
say("rmdir, though not empty", r)
say("entry-delete", a.fop("XATTROP", gfid=D777, flags=0, dict=zero, xdata={"glusterfs.xattrop-entry-delete": d_str("n1")}))
say("lookup of it", a.fop("LOOKUP", pargfid=sub, name="n1"))
say("purge", a.fop("XATTROP", gfid=D777, flags=0, dict=zero, xdata={"glusterfs.xattrop-purge-index": d_int(1)}))
say("all gone", a.fop("LOOKUP", pargfid=v, name="a1a2a3a4-a5a6-a7a8-0000-00000000000d"))
