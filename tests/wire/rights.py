# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Attempts of an ordinary user to get root's rights by ids, pids, names of xattrs and gfids of its client. Prints TAP lines without a plan.

usage: rights.py HOST PORT BRICK SQUASHED_BRICK USER PASSWORD

Both bricks know USER; root-squash is on for the second. In each, everybody may make files in the root.
"""
import errno
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kilnwire import *  # noqa: E402,F403

host, port, plain_brick, squashed_brick, username, password = sys.argv[1:]
PIDS = (-1, -2, -3, -4, -5, -6, -7, -13)
failed = 0
counter = iter(range(1, 1 << 20))


def ok(is_so, what):
    global failed
    failed += not is_so
    print("%s - %s" % ("ok" if is_so else "not ok", what))


def member(brick, uid=1234, pid=77, **login):
    peer = Peer(host, int(port))
    result = peer.login(brick, **login)
    assert result[:2] == (0, 0), result
    peer.uid = peer.gid = uid
    peer.pid = pid
    return peer


def is_refused(reply, *errors):
    return reply.op_ret < 0 and reply.op_errno in errors


def roots_file(brick, name):
    """Made on the disk, for under root-squash no client is root; looked up, so that it has a gfid."""
    gfid = bytes.fromhex("77770000111122223333%012x" % next(counter))
    with open(os.path.join(brick, name), "w") as f:
        f.write("root's secret")
    os.chmod(os.path.join(brick, name), 0o600)
    os.utime(os.path.join(brick, name), (1, 1))
    peer = member(brick)
    for _ in range(40):  # a name without gfid may be in the making for a second
        r = peer.fop("LOOKUP", pargfid=ROOT, name=name, xdata={"gfid-req": d_gfid(gfid)})
        if r.op_ret == 0:
            return r.stat["gfid"]
        import time
        time.sleep(0.1)
    raise ValueError("%s cannot be looked up: %d" % (name, r.op_errno))


def make(peer, name, mode=0o644, xdata=None):
    gfid = bytes.fromhex("77770000111122223333%012x" % next(counter))
    r = peer.fop("MKNOD", pargfid=ROOT, name=name, mode=0o100000 | mode, xdata={"gfid-req": d_gfid(gfid), **(xdata or {})})
    return r, gfid


for brick, kind in ((plain_brick, "plain"), (squashed_brick, "squashed")):
    secret = roots_file(brick, "secret")
    # -- ids that are nobody's
    for uid, gid, groups in ((0xffffffff, 5, []), (5, 0xffffffff, []), (5, 5, [0xffffffff])):
        peer = member(brick)
        peer.uid, peer.gid, peer.groups = uid, gid, groups
        answer = peer.call(FOPS, 400, FOP_ROWS["LOOKUP"][0], encode_fop("LOOKUP", b"", None, gfid=ROOT))
        ok(answer.status != SUCCESS, "%s: a call of uid %x gid %x groups %s is refused" % (kind, uid, gid, groups))
    # -- pids
    for pid in PIDS:
        peer = member(brick, pid=pid)
        ok(is_refused(peer.fop("OPEN", gfid=secret, flags=0), errno.EACCES), "%s: pid %d does not open root's file" % (kind, pid))
        ok(is_refused(peer.fop("GETXATTR", gfid=secret, namelen=1, name="user.a"), errno.EACCES),
           "%s: pid %d does not read the xattrs of root's file" % (kind, pid))
    peer = member(brick, uid=0, pid=-4)
    is_root = peer.fop("OPEN", gfid=secret, flags=0).op_ret == 0
    ok(is_root == (kind == "plain"), "%s: root with pid -4 %s the file" % (kind, "opens" if kind == "plain" else "does not open"))
    peer = member(brick, uid=0, pid=-6, username=username, password=password)
    ok(peer.fop("OPEN", gfid=secret, flags=0).op_ret == 0, "%s: root with the password and pid -6 opens the file" % kind)
    peer = member(brick, pid=-6, username=username, password=password)
    ok(peer.fop("OPEN", gfid=secret, flags=0).op_ret == 0, "%s: a user with the password and pid -6 opens the file" % kind)
    # -- xattrs
    user = member(brick)
    r, mine = make(user, "mine", 0o666)
    ok(r.op_ret == 0, "%s: a user makes a file" % kind)
    for pid in (77, -1, -6):
        user.pid = pid
        for name in ("trusted.overlay.opaque", "trusted.SGI_ACL_FILE", "trusted.glusterfs.dht", "security.capability"):
            r = user.fop("SETXATTR", gfid=mine, dict={name: d_bytes(b"1")})
            ok(is_refused(r, errno.EPERM), "%s: pid %d may not set %s" % (kind, pid, name))
        for name in ("trusted.overlay.opaque", "trusted.glusterfs.dht"):
            r = user.fop("REMOVEXATTR", gfid=mine, name=name)
            ok(is_refused(r, errno.EPERM), "%s: pid %d may not remove %s" % (kind, pid, name))
        r = user.fop("REMOVEXATTR", gfid=mine, name="", xdata={"trusted.overlay.opaque": d_bytes(b"")})
        ok(is_refused(r, errno.EPERM), "%s: pid %d may not remove several xattrs" % (kind, pid))
        for name in ("security.capability", "user.a", "system.posix_acl_access", "trusted.SGI_ACL_FILE"):
            r = user.fop("XATTROP", gfid=secret, flags=4, dict={name: d_bytes(b"1")})
            ok(is_refused(r, errno.EPERM), "%s: pid %d may not count up %s" % (kind, pid, name))
        r, _ = make(user, "cap", xdata={"security.capability": d_bytes(b"1")})
        ok(is_refused(r, errno.EPERM), "%s: pid %d may not make a file with capabilities" % (kind, pid))
        r = user.fop("SETXATTR", gfid=mine, dict={"user.a": d_bytes(b"1")}, xdata={"sync_backend_xattrs": d_int(1)})
        ok(is_refused(r, errno.EPERM), "%s: pid %d may not set the whole set of xattrs" % (kind, pid))
    # -- locks of others
    holder = member(brick, uid=4321)
    def inodelk(owner):
        """Tried, for writing."""
        return {"gfid": mine, "volume": "domain", "cmd": 1, "type": 1, "flock": Raw(u32(1) + u32(0) + u64(0) * 2 + u32(77) + opaque(owner))}
    ok(holder.fop("INODELK", **inodelk(b"holder12")).op_ret == 0, "%s: another user locks the file" % kind)
    for pid in (77, -1, -6):
        user.pid = pid
        for lock_kind in ("inode", "entry", "posix"):
            r = user.fop("GETXATTR", gfid=mine, namelen=1, name="glusterfs.clrlk.t%s.kall" % lock_kind)
            ok(is_refused(r, errno.EPERM), "%s: pid %d may not clear %s locks" % (kind, pid, lock_kind))
    ok(is_refused(user.fop("INODELK", **inodelk(b"another1")), errno.EAGAIN), "%s: the file is still locked" % kind)
    root = member(brick, uid=0, pid=77)
    r = root.fop("GETXATTR", gfid=mine, namelen=1, name="glusterfs.clrlk.tinode.kall")
    ok((r.op_ret == 0) == (kind == "plain"), "%s: root %s the locks" % (kind, "clears" if kind == "plain" else "may not clear"))
    root = member(brick, uid=0, pid=77, username=username, password=password)
    ok((root.fop("GETXATTR", gfid=mine, namelen=1, name="glusterfs.clrlk.tinode.kall").op_ret == 0) == (kind == "plain"),
       "%s: root with the password has the same right" % kind)
    root.pid = -6
    ok(root.fop("GETXATTR", gfid=mine, namelen=1, name="glusterfs.clrlk.tinode.kall").op_ret == 0,
       "%s: internal work with the password clears the locks" % kind)
    user.pid = 77
    r, _ = make(user, "ec", xdata={"trusted.ec.config": d_bytes(struct.pack(">Q", 1))})
    ok(r.op_ret == 0, "%s: a user makes a file with disperse's xattr" % kind)
    ok(user.fop("XATTROP", gfid=mine, flags=0, dict={"trusted.afr.dirty": d_bytes(bytes(12))}).op_ret == 0,
       "%s: a user sets replicate's counters" % kind)
    ok(user.fop("SETXATTR", gfid=mine, dict={"user.a": d_bytes(b"1")}).op_ret == 0, "%s: a user sets an xattr of the user's file" % kind)
    # -- owners
    root = member(brick, uid=0, pid=-6, username=username, password=password)
    for valid in (2, 4):
        r = root.fop("SETATTR", gfid=mine, valid=valid, stbuf=b"\xff" * 148)
        ok(is_refused(r, errno.EINVAL), "%s: no file gets the owner %x by valid %d" % (kind, 0xffffffff, valid))
sys.exit(failed != 0)
