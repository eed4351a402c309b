# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Asks a brick a fixed list of questions about contents, xattrs and directories and prints each answer on a
line, without data that differs from run to run (times, inode numbers of the disk). Two bricks with the same
behaviour print the same lines.

Lines that begin with `~` are answers in which Kiln differs on purpose; ON_PURPOSE says why.

usage: answers.py HOST PORT BRICK
"""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "wire"))
from kilnwire import *  # noqa: E402,F403

O_WRONLY, O_RDWR, O_APPEND = 1, 2, 0o2000
ON_PURPOSE = {
    "anonymous write, counted": "stock keeps an anonymous fd open and counts it",
    "truncate a symlink": "stock follows it to a name on the brick's machine; here EINVAL",
    "bad acl": "the kernel's choice of EINVAL or EOPNOTSUPP, depending on who looks at it first",
    "acl text, bad": "EINVAL, not EPERM",
    "bad mdata": "EINVAL; stock stores something it has made up",
    "get glusterfs.posix.default_acl": "a file has none: ENODATA, not EACCES",
    "get get-size": "is answered; stock does not know it here",
    "get with size": "likewise",
    "remove trusted.glusterfs.mdata": "cannot be seen, so not removed either; stock says it has done so",
    "remove glusterfs.posix.acl": "can be set and read, so it can be removed",
    "remove none": "EINVAL, not ERANGE of the empty name",
    "odd length": "EINVAL: not a whole number of numbers",
    "readdir of a file": "ENOTDIR, not EINVAL",
    "unlinked: stat": "found by its gfid as long as an fd is open; stock says ENOENT",
    "unlinked: open": "likewise: /proc/self/fd/N can be opened",
    "unlinked: getxattr": "likewise",
    "stat of what is gone": "ESTALE at once; stock still knows the inode for a while (ENOENT)",
}
host, port, brick = sys.argv[1], int(sys.argv[2]), sys.argv[3]
peer = Peer(host, port)
peer.login(brick)


def gfid_of(n):
    return bytes.fromhex("81111111222233334444%012x" % n)


def shown(value):
    if isinstance(value, (bytes, bytearray)):
        value = value.replace(brick.encode(), b"BRICK")
        return value.hex() if len(value) <= 160 and not value.isascii() else repr(bytes(value[:300]))
    return str(value)


def show_dict(d):
    if d is None:
        return "-"
    hidden = {"virt-gf-prestat", "virt-gf-poststat", "dht-get-iatt-in-xattr"}
    return "{%s}" % ", ".join("%s=%s" % (k, "..." if k in hidden else shown(v)) for k, v in sorted(d.items()))


def ask(label, fop, *fields, **args):
    r = peer.fop(fop, **args)
    text = ["~ " + label if label in ON_PURPOSE else label, fop, "ret", r.op_ret]
    if fop in ("GETXATTR", "FGETXATTR", "XATTROP", "FXATTROP") and r.op_ret >= 0 and label not in ("list", "list of a symlink"):
        text[-1] = "ok"  # clients make 0 of every length
    if r.op_ret < 0:
        text += ["errno", r.op_errno]
    elif fop in ("READ", "READDIR", "READDIRP"):
        text += ["end" if r.op_errno == 2 else "more"]
    for field in fields:
        value = getattr(r, field, None)
        if isinstance(value, dict) and "mode" in value:
            value = "size=%d mode=%o nlink=%d blocks=%d flags=%x rdev=%x" % tuple(
                value[k] for k in ("size", "mode", "nlink", "blocks", "flags", "rdev"))
        elif isinstance(value, dict) or value is None:
            value = show_dict(value)
        text += [field, shown(value)]
    print(*text)
    return r


def make(name, n, mode=0o644):
    return ask("make", "MKNOD", "stat", pargfid=ROOT, name=name, mode=0o100000 | mode, xdata={"gfid-req": d_gfid(gfid_of(n))})


def opened(n, flags=O_RDWR):
    return ask("open", "OPEN", gfid=gfid_of(n), flags=flags).fd


def setx(label, n, pairs, **more):
    return ask(label, "SETXATTR", "xdata", gfid=gfid_of(n), dict=pairs, **more)


def getx(label, n, name="", **more):
    return ask(label, "GETXATTR", "dict", "xdata", gfid=gfid_of(n), namelen=1 if name else 0, name=name, **more)


make("f", 1)
fd = opened(1)
# -- contents
ask("write", "WRITE", "pre", "post", gfid=gfid_of(1), fd=fd, payload=b"hello world")
ask("read", "READ", "stat", "payload", gfid=gfid_of(1), fd=fd, size=5)
ask("read to the end", "READ", "payload", gfid=gfid_of(1), fd=fd, offset=6, size=5)
ask("read over the end", "READ", "payload", gfid=gfid_of(1), fd=fd, offset=6, size=500)
ask("read behind the end", "READ", "payload", gfid=gfid_of(1), fd=fd, offset=600, size=500)
ask("read nothing", "READ", gfid=gfid_of(1), fd=fd, size=0)
ask("read at a huge offset", "READ", gfid=gfid_of(1), fd=fd, size=10, offset=1 << 63)
ask("read an unknown fd", "READ", gfid=gfid_of(1), fd=1234, size=10)
ask("write nothing", "WRITE", "pre", "post", gfid=gfid_of(1), fd=fd, payload=b"")
ask("write append", "WRITE", "post", "xdata", gfid=gfid_of(1), fd=fd, offset=11, payload=b"!",
    xdata={"glusterfs.write-is-append": d_int(0), "glusterfs.open-active-fd-count": d_int(0), "glusterfs.open-fd-count": d_int(0)})
ask("write no append", "WRITE", "post", "xdata", gfid=gfid_of(1), fd=fd, offset=3, payload=b"!",
    xdata={"glusterfs.write-is-append": d_int(0)})
for flags in (0, O_WRONLY, O_RDWR | O_APPEND):
    other = opened(1, flags)
    ask("read flags %o" % flags, "READ", gfid=gfid_of(1), fd=other, size=5)
    ask("write flags %o" % flags, "WRITE", "post", "xdata", gfid=gfid_of(1), fd=other, payload=b"abc",
        xdata={"glusterfs.write-is-append": d_int(0)})
    ask("release", "RELEASE", gfid=gfid_of(1), fd=other)
ask("anonymous write, counted", "WRITE", "post", "xdata", gfid=gfid_of(1), payload=b"A", xdata={"glusterfs.open-fd-count": d_int(0)})
ask("anonymous read", "READ", "payload", gfid=gfid_of(1), size=50)
ask("anonymous fstat", "FSTAT", "stat", gfid=gfid_of(1))
ask("anonymous, unknown", "READ", gfid=gfid_of(99), size=50)
ask("fstat", "FSTAT", "stat", "xdata", gfid=gfid_of(1), fd=fd, xdata={"glusterfs.open-fd-count": d_int(0), "trusted.gfid2path.*": d_int(0)})
ask("truncate", "TRUNCATE", "pre", "post", gfid=gfid_of(1), offset=4)
ask("truncate the root", "TRUNCATE", gfid=ROOT, offset=4)
ask("ftruncate", "FTRUNCATE", "pre", "post", gfid=gfid_of(1), fd=fd, offset=10000)
ask("ftruncate too far", "FTRUNCATE", gfid=gfid_of(1), fd=fd, offset=1 << 63)
ask("fallocate", "FALLOCATE", "pre", "post", gfid=gfid_of(1), fd=fd, offset=0, size=20000)
ask("fallocate keep", "FALLOCATE", "post", gfid=gfid_of(1), fd=fd, flags=1, offset=0, size=90000)
ask("fallocate nothing", "FALLOCATE", gfid=gfid_of(1), fd=fd, offset=0, size=0)
ask("discard", "DISCARD", "post", gfid=gfid_of(1), fd=fd, offset=4096, size=8192)
ask("zerofill", "ZEROFILL", "post", gfid=gfid_of(1), fd=fd, offset=0, size=30000)
ask("seek data", "SEEK", "offset", gfid=gfid_of(1), fd=fd, offset=0, what=0)
ask("seek hole", "SEEK", "offset", gfid=gfid_of(1), fd=fd, offset=0, what=1)
ask("seek behind", "SEEK", gfid=gfid_of(1), fd=fd, offset=1 << 40, what=0)
ask("seek what", "SEEK", gfid=gfid_of(1), fd=fd, offset=0, what=7)
ask("fsync", "FSYNC", "pre", "post", gfid=gfid_of(1), fd=fd)
ask("fsync data", "FSYNC", "post", gfid=gfid_of(1), fd=fd, flags=1)
ask("flush", "FLUSH", gfid=gfid_of(1), fd=fd)
ask("rewrite", "WRITE", gfid=gfid_of(1), fd=fd, payload=b"abcdefgh" * 100)
ask("checksum", "RCHECKSUM", "sums", "xdata", gfid=gfid_of(1), fd=fd, size=800)
ask("checksum over the end", "RCHECKSUM", "sums", "xdata", gfid=gfid_of(1), fd=fd, offset=29000, size=4096,
    xdata={"check-zero-filled": d_int(1)})
ask("checksum behind the end", "RCHECKSUM", "sums", "xdata", gfid=gfid_of(1), fd=fd, offset=1 << 30, size=4096,
    xdata={"check-zero-filled": d_int(1)})
make("g", 2)
fd2 = opened(2)
ask("copy", "COPY_FILE_RANGE", "stat", "pre", "post", gfid=gfid_of(1), gfid2=gfid_of(2), fd=fd, fd2=fd2, offset=8, offset2=3, size=100)
ask("copied", "READ", "payload", gfid=gfid_of(2), fd=fd2, size=30)
# -- kinds of objects
ask("mkdir", "MKDIR", "stat", pargfid=ROOT, name="d", mode=0o755, xdata={"gfid-req": d_gfid(gfid_of(3))})
ask("symlink", "SYMLINK", pargfid=ROOT, name="l", linkname="target/x", xdata={"gfid-req": d_gfid(gfid_of(4))})
ask("fifo", "MKNOD", pargfid=ROOT, name="p", mode=0o010644, xdata={"gfid-req": d_gfid(gfid_of(5))})
ask("device", "MKNOD", "stat", pargfid=ROOT, name="c", mode=0o020644, dev=0x103, xdata={"gfid-req": d_gfid(gfid_of(6))})
ask("readlink", "READLINK", "stat", "path", gfid=gfid_of(4), size=4096)
ask("readlink, short", "READLINK", "path", gfid=gfid_of(4), size=3)
ask("readlink of a file", "READLINK", gfid=gfid_of(1), size=100)
ask("open a symlink", "OPEN", gfid=gfid_of(4))
ask("open a device", "OPEN", gfid=gfid_of(6))
ask("open a directory", "OPEN", gfid=gfid_of(3))
ask("open a directory rw", "OPEN", gfid=gfid_of(3), flags=2)
ask("opendir of a file", "OPENDIR", gfid=gfid_of(1))
ask("truncate a symlink", "TRUNCATE", gfid=gfid_of(4), offset=0)
# -- xattrs
setx("set", 1, {"user.a": d_bytes(b"one")})
setx("create again", 1, {"user.a": d_bytes(b"two")}, flags=1)
setx("replace missing", 1, {"user.none": d_bytes(b"two")}, flags=2)
setx("two", 1, {"user.b": d_bytes(b"2"), "trusted.c": d_bytes(b"3")})
setx("empty value", 1, {"user.empty": d_bytes(b"")})
setx("integer", 1, {"user.int": d_int(42)})
setx("string", 1, {"user.str": d_str("text")})
setx("no namespace", 1, {"foo.bar": d_bytes(b"1")})
setx("pathinfo", 1, {"trusted.glusterfs.pathinfo": d_bytes(b"1")})
setx("gfid2path", 1, {"trusted.gfid2path.1234": d_bytes(b"1")})
setx("gfid", 1, {"trusted.gfid": d_bytes(bytes(16))})
setx("volume-id", 1, {"trusted.glusterfs.volume-id": d_bytes(bytes(16))})
setx("bit-rot", 1, {"trusted.bit-rot.version": d_bytes(b"1")})
setx("bad acl", 1, {"system.posix_acl_access": d_bytes(b"nonsense")})
setx("acl text", 1, {"glusterfs.posix.acl": d_str("u::rw-,u:1234:r--,g::r--,m::r--,o::r--")})
setx("acl text, bad", 1, {"glusterfs.posix.acl": d_str("what")})
setx("acl text of a directory", 3, {"glusterfs.posix.default_acl": d_str("u::rwx,g::r-x,o::r-x")})
setx("user on a symlink", 4, {"user.a": d_bytes(b"1")})
setx("trusted on a symlink", 4, {"trusted.a": d_bytes(b"1")})
setx("internal", 1, {"glusterfs.internal-ctx.x": d_bytes(b"1")})
setx("force-replace", 1, {"force-replace": d_str("yes")})
setx("georep", 1, {"trusted.glusterfs.abc.xtime": d_bytes(b"12345678")})
setx("quota", 1, {"trusted.glusterfs.quota.limit-set": d_bytes(b"12345678")})
setx("afr", 1, {"trusted.afr.dirty": d_bytes(bytes(12))})
for name in ("user.a", "user.empty", "user.int", "user.str", "user.none", "foo.bar", "trusted.gfid", "trusted.glusterfs.volume-id",
             "trusted.gfid2path.1234", "trusted.glusterfs.abc.xtime", "trusted.glusterfs.mdata",
             "system.posix_acl_access", "system.posix_acl_default", "glusterfs.posix.acl", "glusterfs.posix.default_acl",
             "trusted.glusterfs.node-uuid", "trusted.glusterfs.list-node-uuids", "glusterfs.gfid", "glusterfs.gfid.string",
             "glusterfs.gfidtopath", "glusterfs.gfid2path", "glusterfs.ancestry.path", "glusterfs.get_real_filename:F",
             "glusterfs.open-fd-count", "get-size", "glusterfs.nonsense", "trusted.glusterfs.quota.limit-set"):
    getx("get " + name, 1, name)
for name in ("glusterfs.posix.default_acl", "glusterfs.posix.acl", "glusterfs.gfidtopath", "glusterfs.ancestry.path", "glusterfs.gfid2path",
             "trusted.glusterfs.pathinfo", "glusterfs.get_real_filename:F"):
    getx("directory: get " + name, 3, name)
for name in ("glusterfs.get_real_filename:F", "glusterfs.get_real_filename:none", "glusterfs.gfid2path", "glusterfs.ancestry.path",
             "trusted.glusterfs.pathinfo", "glusterfs.gfidtopath"):
    ask("root: get " + name, "GETXATTR", "dict", gfid=ROOT, namelen=1, name=name)
getx("symlink: pathinfo", 4, "trusted.glusterfs.pathinfo")
getx("symlink: get", 4, "trusted.a")
getx("list", 1)
getx("list of a symlink", 4)
getx("list of a directory", 3)
peer.pid = -6
getx("list for heal", 1)
peer.pid = os.getpid()
ask("fget", "FGETXATTR", "dict", gfid=gfid_of(1), fd=fd, namelen=1, name="user.a")
ask("fget count", "FGETXATTR", "dict", gfid=gfid_of(1), fd=fd, namelen=1, name="glusterfs.open-fd-count")
ask("fset", "FSETXATTR", "xdata", gfid=gfid_of(1), fd=fd, dict={"user.f": d_bytes(b"f")})
ask("fremove", "FREMOVEXATTR", "xdata", gfid=gfid_of(1), fd=fd, name="user.f")
ask("fremove again", "FREMOVEXATTR", gfid=gfid_of(1), fd=fd, name="user.f")
getx("get with xdata", 1, "user.a", xdata={"user.b": d_int(0), "glusterfs.open-fd-count": d_int(0)})
getx("get with size", 1, "user.a", xdata={"get-size": d_int(0)})
everything = {k: d_int(0) for k in (
    "user.*", "trusted.c", "trusted.none", "list-xattr", "glusterfs.open-fd-count", "get-size", "trusted.gfid", "trusted.afr.dirty",
    "glusterfs.posix.acl", "system.posix_acl_access", "unknown-key")}
ask("lookup", "LOOKUP", "stat", "xdata", name="f", xdata=everything)
ask("stat", "STAT", "stat", "xdata", gfid=gfid_of(1), xdata=everything)
ask("stat list", "STAT", "xdata", gfid=gfid_of(1), xdata={"list-xattr": d_int(0)})
for limit in (0, 29999, 30000, 1 << 20):
    r = peer.fop("LOOKUP", name="f", xdata={"glusterfs.content": (3, u64(limit))})
    print("content", limit, len((r.xdata or {}).get("glusterfs.content", b"")))
make("empty", 7)
ask("lookup, nothing asked", "LOOKUP", "xdata", name="empty")
ask("lookup of the root, nothing asked", "LOOKUP", "xdata", gfid=ROOT)
ask("lookup by gfid, nothing asked", "LOOKUP", "xdata", gfid=gfid_of(7))
ask("lookup, nothing found", "LOOKUP", "xdata", name="empty", xdata={"user.none": d_int(0)})
ask("lookup of what is not there", "LOOKUP", "xdata", name="none", xdata={"user.none": d_int(0)})
ask("lookup in what is not there", "LOOKUP", "xdata", pargfid=gfid_of(98), name="none")
ask("content of an empty file", "LOOKUP", "xdata", name="empty", xdata={"glusterfs.content": (3, u64(100))})
ask("remove", "REMOVEXATTR", "xdata", gfid=gfid_of(1), name="user.a")
for name in ("user.a", "trusted.gfid", "trusted.gfid2path.1", "system.posix_acl_default", "foo.bar", "trusted.bit-rot.version",
             "trusted.glusterfs.mdata", "trusted.glusterfs.pathinfo", "glusterfs.posix.acl"):
    ask("remove " + name, "REMOVEXATTR", gfid=gfid_of(1), name=name)
ask("remove many", "REMOVEXATTR", gfid=gfid_of(1), name="", xdata={"user.b": d_str(""), "user.none": d_str("")})
ask("remove none", "REMOVEXATTR", gfid=gfid_of(1), name="")
setx("bad mdata", 1, {"trusted.glusterfs.mdata": d_bytes(b"short")})
# -- xattrop
one, zero = struct.pack(">3I", 1, 0, 0), bytes(12)


def xop(label, op, pairs, **more):
    ask(label, "XATTROP", "dict", "xdata", gfid=gfid_of(2), flags=op, dict={k: d_bytes(v) for k, v in pairs.items()}, **more)


xop("zero", 0, {"trusted.afr.dirty": zero})
xop("one", 0, {"trusted.afr.dirty": one, "trusted.afr.v-client-0": zero})
xop("again", 0, {"trusted.afr.dirty": one}, xdata={"dht-get-mode-in-xattr": d_int(0), "glusterfs.open-fd-count": d_int(0)})
xop("minus", 0, {"trusted.afr.dirty": struct.pack(">3i", -5, 0, -1)})
xop("shorter", 0, {"trusted.afr.dirty": struct.pack(">2I", 1, 1)})
xop("longer", 0, {"trusted.afr.dirty": struct.pack(">4I", 0, 0, 0, 7)})
xop("no namespace", 0, {"nothing": one})
xop("64", 1, {"trusted.ec.size": struct.pack(">2Q", 5, 1 << 40)})
xop("64 again", 1, {"trusted.ec.size": struct.pack(">2q", -1, 1)})
for op in (2, 3, 7, 8, 99):
    xop("op %d" % op, op, {"trusted.x": one})
    xop("op %d, zero" % op, op, {"trusted.x": zero})
xop("get and set", 4, {"trusted.y": b"first"})
xop("get and set again", 4, {"trusted.y": b"second"})
xop("with default", 5, {"trusted.z": struct.pack(">4I", 1, 0, 10, 20)})
xop("with default again", 5, {"trusted.z": struct.pack(">4I", 1, 0, 10, 20)})
xop("64 with default", 6, {"trusted.zz": struct.pack(">2Q", 1, 10)})
xop("64 with default again", 6, {"trusted.zz": struct.pack(">2Q", 1, 10)})
xop("empty", 0, {})
ask("xattrop of what is not there", "XATTROP", "dict", "xdata", gfid=gfid_of(98), dict={"trusted.x": d_bytes(one)})
ask("fxattrop", "FXATTROP", "dict", gfid=gfid_of(2), fd=fd2, flags=0, dict={"trusted.afr.dirty": d_bytes(bytes(16))})
ask("anonymous fxattrop", "FXATTROP", "dict", gfid=gfid_of(2), flags=0, dict={"trusted.afr.dirty": d_bytes(bytes(16))})
ask("xattrop of a directory", "XATTROP", "dict", gfid=gfid_of(3), flags=0, dict={"trusted.glusterfs.dht.mds": d_bytes(u32(1))})
getx("what is stored", 2)
xop("odd length", 0, {"trusted.odd": b"\0\0\0\1\0"})


# -- directories
def listing(label, fop, fd_nr, gfid=ROOT, size=65536, xdata=None):
    r = peer.fop(fop, gfid=gfid, fd=fd_nr, size=size, xdata=xdata)
    names = []
    for e in sorted(r.entries, key=lambda e: e["name"]):
        name = "%s type=%d" % (e["name"].decode(), e["type"])
        if "iatt" in e:
            # Stock's access control adds these keys to the request for its own cache.
            for key in ("system.posix_acl_access", "system.posix_acl_default"):
                (e["dict"] or {}).pop(key, None)
            name += " mode=%o gfid=%s dict=%s" % (e["iatt"]["mode"] if e["name"] != b".." else 0, e["iatt"]["gfid"].hex(), show_dict(e["dict"] or {}))
            name += " ino=%s flags=%x" % (e["ino"] == int.from_bytes(e["iatt"]["gfid"][8:], "big"), e["iatt"]["flags"])
        names.append(name)
    print(label, fop, r.op_ret, r.op_errno if r.op_ret < 0 else "end" if r.op_errno == 2 else "more", *names, sep="\n    ")


dfd = ask("opendir", "OPENDIR", gfid=ROOT).fd
listing("root", "READDIR", dfd)
listing("root", "READDIRP", dfd)
listing("root with keys", "READDIRP", dfd, xdata={"trusted.afr.dirty": d_int(0), "glusterfs.open-fd-count": d_int(0)})
listing("files only", "READDIRP", dfd, xdata={"readdir-filter-directories": d_int(1)})
listing("files only", "READDIR", dfd, xdata={"readdir-filter-directories": d_int(1)})
listing("anonymous", "READDIRP", ANONYMOUS, gfid=gfid_of(3))
for size in (0, 10, 200, 215, 430, 700):
    r = peer.fop("READDIR", gfid=ROOT, fd=dfd, size=size)
    print("budget", size, r.op_ret, r.op_errno == 2)
ask("readdir of a file", "READDIR", gfid=gfid_of(1), fd=fd, size=4096)
ask("fsyncdir", "FSYNCDIR", gfid=ROOT, fd=dfd)
ask("read a directory", "READ", gfid=ROOT, fd=dfd, size=100)
for op in (0, 1, 2, 3):
    ask("ipc %d" % op, "IPC", op=op)
ask("lease", "LEASE", gfid=gfid_of(1))
# -- unlinked while open
ask("unlink", "UNLINK", pargfid=ROOT, name="g")
ask("fstat", "FSTAT", "stat", gfid=gfid_of(2), fd=fd2)
ask("write", "WRITE", "post", gfid=gfid_of(2), fd=fd2, payload=b"xyz")
ask("anonymous read", "READ", "payload", gfid=gfid_of(2), size=3)
ask("unlinked: stat", "STAT", gfid=gfid_of(2))
ask("unlinked: open", "OPEN", gfid=gfid_of(2))
ask("unlinked: getxattr", "GETXATTR", gfid=gfid_of(2), namelen=1, name="trusted.y")
ask("fxattrop", "FXATTROP", "dict", gfid=gfid_of(2), fd=fd2, flags=4, dict={"trusted.y": d_bytes(b"third")})
ask("release", "RELEASE", gfid=gfid_of(2), fd=fd2)
ask("stat of what is gone", "STAT", gfid=gfid_of(2))
