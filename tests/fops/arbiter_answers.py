# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Sends an arbiter brick every kind of call that touches a file's contents, and some other calls, and prints
each answer on a line. Two arbiters with the same behaviour print the same lines.

Lines that begin with `~` are answers in which Kiln differs on purpose; ON_PURPOSE says why.

usage: arbiter_answers.py HOST PORT BRICK
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "wire"))
from kilnwire import *  # noqa: E402,F403

host, port, brick = sys.argv[1], int(sys.argv[2]), sys.argv[3]
peer = Peer(host, port)
peer.login(brick)
FILE = bytes.fromhex("83111111222233334444%012x" % 1)
OTHER = bytes.fromhex("83111111222233334444%012x" % 2)
FOLDER = bytes.fromhex("83111111222233334444%012x" % 3)
OTHERS_REFUSE = "stock says it is done; the other replicas refuse it, and must not be blamed for that"
NO_ATTRIBUTES = "stock answers what a lookup once saw, which is stale after the chmod; here there are no attributes"
ON_PURPOSE = {
    "write through a reader's fd": OTHERS_REFUSE,
    "write at a huge offset": OTHERS_REFUSE,
    "write to a folder": OTHERS_REFUSE,
    "truncate a folder": OTHERS_REFUSE,
    "ftruncate too far": OTHERS_REFUSE,
    "fallocate nothing": OTHERS_REFUSE,
    "write through an anonymous fd, counted": "stock keeps an anonymous fd open and counts it",
    "write after a lookup": NO_ATTRIBUTES,
    "write after a removal": NO_ATTRIBUTES,
}
COUNTS = {"glusterfs.write-is-append": d_int(0), "glusterfs.open-active-fd-count": d_int(0), "glusterfs.open-fd-count": d_int(0)}
AFR = {"trusted.afr.v-client-0": d_bytes(bytes(11) + b"\1")}


def shown(value):
    if isinstance(value, dict) and "mode" in value:
        times = "times" if value["mtime"] else "no times"
        return "gfid=%s size=%d mode=%o nlink=%d blocks=%d %s" % (
            value["gfid"].hex(), value["size"], value["mode"], value["nlink"], value["blocks"], times)
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s=%s" % (k, v.hex() if isinstance(v, bytes) else v) for k, v in sorted(value.items()))
    return str(value)


def ask(label, fop, *fields, **args):
    r = peer.fop(fop, **args)
    text = ["~ " + label if label in ON_PURPOSE else label, fop, "ret", r.op_ret if fop not in ("XATTROP", "GETXATTR") or r.op_ret < 0 else "ok"]
    if r.op_ret < 0:
        text += ["errno", r.op_errno]
    else:
        for field in fields:
            text += [field, shown(getattr(r, field, None))]
    print(*text)
    return r


ask("make", "MKNOD", "stat", pargfid=ROOT, name="f", mode=0o100644, xdata={"gfid-req": d_gfid(FILE)})
ask("make another", "MKNOD", pargfid=ROOT, name="g", mode=0o100644, xdata={"gfid-req": d_gfid(OTHER)})
ask("make a folder", "MKDIR", pargfid=ROOT, name="d", mode=0o755, xdata={"gfid-req": d_gfid(FOLDER)})
fd = ask("open", "OPEN", gfid=FILE, flags=2).fd
fd2 = ask("open the other", "OPEN", gfid=OTHER, flags=2).fd
read_only = ask("open to read", "OPEN", gfid=FILE, flags=0).fd
ask("open and truncate", "OPEN", gfid=FILE, flags=0o1002)
ask("write", "WRITE", "pre", "post", "xdata", gfid=FILE, fd=fd, payload=b"hello")
ask("write, counted", "WRITE", "pre", "post", "xdata", gfid=FILE, fd=fd, offset=3, payload=b"hello", xdata=COUNTS)
ask("write at the start, counted", "WRITE", "xdata", gfid=FILE, fd=fd, payload=b"hello", xdata=COUNTS)
ask("write nothing", "WRITE", "pre", gfid=FILE, fd=fd, payload=b"")
ask("write through a reader's fd", "WRITE", gfid=FILE, fd=read_only, payload=b"hello")
ask("write through an anonymous fd, counted", "WRITE", "pre", "xdata", gfid=FILE, payload=b"hello", xdata=COUNTS)
ask("write through an unknown fd", "WRITE", gfid=FILE, fd=1234, payload=b"hello")
ask("write at a huge offset", "WRITE", gfid=FILE, fd=fd, offset=(1 << 63) - 2, payload=b"hello")
ask("write to a folder", "WRITE", gfid=FOLDER, payload=b"hello")
ask("truncate", "TRUNCATE", "pre", "post", "xdata", gfid=FILE, offset=4, xdata=COUNTS)
ask("truncate a folder", "TRUNCATE", gfid=FOLDER, offset=4)
ask("truncate what is not there", "TRUNCATE", gfid=bytes(15) + b"\7", offset=4)
ask("ftruncate", "FTRUNCATE", "pre", "post", "xdata", gfid=FILE, fd=fd, offset=4)
ask("ftruncate too far", "FTRUNCATE", gfid=FILE, fd=fd, offset=1 << 63)
ask("fallocate", "FALLOCATE", "pre", "post", "xdata", gfid=FILE, fd=fd, offset=0, size=20000)
ask("fallocate nothing", "FALLOCATE", gfid=FILE, fd=fd, offset=0, size=0)
ask("discard", "DISCARD", "pre", "post", "xdata", gfid=FILE, fd=fd, offset=0, size=8192)
ask("zerofill", "ZEROFILL", "pre", "post", "xdata", gfid=FILE, fd=fd, offset=0, size=30000)
ask("read", "READ", gfid=FILE, fd=fd, size=5)
ask("read through an anonymous fd", "READ", gfid=FILE, size=5)
ask("read an unknown fd", "READ", gfid=FILE, fd=1234, size=5)
ask("seek data", "SEEK", gfid=FILE, fd=fd, offset=0, what=0)
ask("seek hole", "SEEK", gfid=FILE, fd=fd, offset=0, what=1)
ask("checksum", "RCHECKSUM", gfid=FILE, fd=fd, size=800)
ask("copy", "COPY_FILE_RANGE", "pre", "post", gfid=FILE, gfid2=OTHER, fd=fd, fd2=fd2, offset=0, offset2=0, size=100)
ask("stat", "STAT", "stat", gfid=FILE)
ask("fstat", "FSTAT", "stat", gfid=FILE, fd=fd)
ask("lookup", "LOOKUP", "stat", "xdata", gfid=FILE, pargfid=ROOT, name="f", xdata={"trusted.afr.dirty": d_int(0)})
ask("content is not given", "LOOKUP", "xdata", gfid=FILE, pargfid=ROOT, name="f", xdata={"glusterfs.content": d_int(4096)})
ask("change a time", "SETATTR", "pre", "post", gfid=FILE, valid=0x1, stbuf=bytes(144) + u32(0o100600))
ask("write after a lookup", "WRITE", "pre", "post", gfid=FILE, fd=fd, payload=b"hello")
ask("count", "XATTROP", "dict", gfid=FILE, flags=0, dict=AFR)
ask("set an xattr", "SETXATTR", gfid=FILE, dict={"user.a": d_bytes(b"1")})
ask("get it", "GETXATTR", "dict", gfid=FILE, namelen=1, name="user.a")
ask("sync", "FSYNC", "pre", "post", gfid=FILE, fd=fd)
ask("flush", "FLUSH", gfid=FILE, fd=fd)
ask("rename", "RENAME", pargfid=ROOT, name="f", pargfid2=ROOT, name2="h")
ask("link", "LINK", "stat", gfid=FILE, pargfid2=ROOT, name2="i")
ask("remove", "UNLINK", pargfid=ROOT, name="h")
ask("write after a removal", "WRITE", "pre", "post", gfid=FILE, fd=fd, payload=b"hello")
for name in ("g", "i"):
    print("on disk:", name, os.stat(os.path.join(brick, name)).st_size)
