# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Attempts to pass as another user, by ids, pids, names of xattrs and foreign gfids; and attempts to forge
lines of logs and dumps."""
import errno
import glob
import os
import signal
import stat

from attack import ARGS, attack, created, fresh, gfid, make, member, needs, serves, wait_until
from kilnwire import FOP_ROWS, FOPS, ROOT, d_bytes, d_gfid, encode_fop, u32

NOBODY_ID = 0xffffffff


def path_of(*names):
    return os.path.join(ARGS.brick, *names)


def root_owned_set_id():
    found = []
    for folder, folders, files in os.walk(ARGS.brick):
        if ".glusterfs" in folders:
            folders.remove(".glusterfs")
        for name in files:
            info = os.lstat(os.path.join(folder, name))
            if info.st_mode & 0o6000 and (info.st_uid == 0 or info.st_gid == 0):
                found.append("%s %d:%d %o" % (name, info.st_uid, info.st_gid, info.st_mode))
    return found


@attack
@needs(options="root-squash on")
def ids_that_chown_does_not_change():
    """chown(2) leaves an owner of 0xffffffff as it is: the file that the daemon has made stays root's."""
    os.chmod(ARGS.brick, 0o777)
    ids = [(NOBODY_ID, NOBODY_ID), (NOBODY_ID, 1000), (1000, NOBODY_ID), (0, 0)]
    for number, (uid, group) in enumerate(ids):
        with member() as peer:
            peer.uid, peer.gid = uid, group
            for fop, fields in (("CREATE", {"mode": 0o104755, "flags": os.O_CREAT | os.O_RDWR}), ("MKNOD", {"mode": 0o106755}),
                                ("MKDIR", {"mode": 0o46755}), ("SYMLINK", {"linkname": "x"})):
                name = "%s%d" % (fop, number)
                # An error of the RPC level is as good as an error of the fop.
                peer.call(FOPS, 400, FOP_ROWS[fop][0], encode_fop(fop, name=name, xdata={"gfid-req": d_gfid(gfid())}, **fields))
                path = path_of(name)
                if os.path.lexists(path):
                    info = os.lstat(path)
                    assert info.st_uid and info.st_gid, "%s by %#x:%#x belongs to %d:%d" % (fop, uid, group, info.st_uid, info.st_gid)
    with member(uid=1000) as peer:
        g, fd = created(peer, "mine")
        for uid, group in ids[:3]:
            peer.fop("SETATTR", gfid=g, valid=6, stbuf=iatt(uid=uid, gid=group))
            assert os.lstat(path_of("mine")).st_uid == 1000, "chown to %#x" % uid
            peer.fop("FSETATTR", gfid=g, fd=fd, valid=6, stbuf=iatt(uid=uid, gid=group))
            assert os.lstat(path_of("mine")).st_uid == 1000, "fchown to %#x" % uid
    assert not root_owned_set_id(), root_owned_set_id()
    serves()


def iatt(mode=0, uid=0, gid=0):
    """148 bytes, of which a SETATTR looks at these."""
    return bytes(16 + 64 + 32 + 16) + u32(0) + u32(uid) + u32(gid) + u32(0) + u32(mode)


@attack
@needs(options="root-squash on")
def a_negative_pid_is_no_password():
    """Pids below 0 mean the volume's own processes, when a peer has shown that it is one."""
    with open(path_of("roots"), "w") as out:
        out.write("for root alone\n")
    os.chmod(path_of("roots"), 0o600)
    os.mkdir(path_of("shut"), 0o700)
    with member(uid=12345) as peer:
        g, shut = (peer.fop("LOOKUP", name=name, xdata={"gfid-req": d_gfid(gfid())}).stat["gfid"] for name in ("roots", "shut"))
        assert peer.fop("OPEN", gfid=g, flags=os.O_RDONLY).op_ret < 0, "a file of root is open to all"
    for pid in (-1, -2, -3, -4, -5, -6, -7, -8, -100, -(1 << 31)):
        with member(uid=12345, pid=pid) as peer:
            what = {"OPEN": peer.fop("OPEN", gfid=g, flags=os.O_RDONLY), "OPEN to write": peer.fop("OPEN", gfid=g, flags=os.O_WRONLY),
                    "TRUNCATE": peer.fop("TRUNCATE", gfid=g), "SETATTR": peer.fop("SETATTR", gfid=g, valid=1, stbuf=iatt(0o777)),
                    "UNLINK": peer.fop("UNLINK", name="roots"), "SETXATTR": peer.fop("SETXATTR", gfid=g, dict={"user.x": d_bytes(b"y")}),
                    "OPENDIR": peer.fop("OPENDIR", gfid=shut)}
            for fop, fields in (("CREATE", {"flags": os.O_CREAT | os.O_RDWR, "mode": 0o100644}), ("MKDIR", {"mode": 0o40755})):
                what[fop] = peer.fop(fop, pargfid=shut, name="x", xdata={"gfid-req": d_gfid(gfid())}, **fields)
            for fop, reply in what.items():
                assert reply.op_ret < 0, "%s with pid %d as uid 12345 of what only root may use" % (fop, pid)
    assert os.path.getsize(path_of("roots")) == 15
    serves()


@attack
@needs(options="root-squash on")
def only_root_sets_xattrs_of_the_system():
    os.chmod(ARGS.brick, 0o777)
    # A mount sets the first three for its users: on new objects, and as counters.
    names = ("trusted.glusterfs.dht", "trusted.afr.v-client-0", "trusted.glusterfs.mdata", "trusted.x", "security.capability",
             "trusted.gfid2path.x", "trusted.overlay.opaque", "trusted.gfid", "trusted.glusterfs.volume-id")
    with member(uid=12345) as peer:
        g, fd = created(peer, "mine")
        before = {name: os.getxattr(path_of("mine"), name) for name in os.listxattr(path_of("mine"))}
        for name in names:
            for pid in (4711, -1, -6):
                peer.pid = pid
                peer.fop("SETXATTR", gfid=g, dict={name: d_bytes(b"\1\0\0\2" + bytes(16))})
                peer.fop("FSETXATTR", gfid=g, fd=fd, dict={name: d_bytes(b"\1\0\0\2" + bytes(16))})
                for fop in ("XATTROP", "FXATTROP") if name not in names[:3] else ():
                    peer.fop(fop, gfid=g, fd=fd, dict={name: d_bytes(u32(1) * 3)})
                peer.fop("REMOVEXATTR", gfid=g, name=name)
        after = {name: os.getxattr(path_of("mine"), name) for name in os.listxattr(path_of("mine"))}
        before.pop("trusted.glusterfs.mdata", 0), after.pop("trusted.glusterfs.mdata", 0) # times: of every change
        assert before == after, "before %r, after %r" % (before, after)
        for number, name in enumerate(names[3:]):
            peer.pid = 4711
            peer.fop("CREATE", name="with%d" % number, flags=os.O_CREAT | os.O_RDWR, mode=0o100644,
                     xdata={"gfid-req": d_gfid(gfid()), name: d_bytes(b"\1\0\0\2" + bytes(16))})
            path = path_of("with%d" % number)
            if os.path.exists(path):
                value = dict((n, os.getxattr(path, n)) for n in os.listxattr(path)).get(name, b"")
                assert value != b"\1\0\0\2" + bytes(16), "%s was set by a create" % name
    serves()


@attack
def a_folders_gfid_is_given_to_another_folder():
    """uid 1000 makes a folder with the gfid of root's: root's next file must not lie in it."""
    with member() as root, member(uid=1000) as peer:
        secret = make(root, "MKDIR", "secret", mode=0o40700)
        make(root, "MKDIR", "all", mode=0o40777)
        os.chmod(path_of("all"), 0o777)
        mine = make(peer, "MKDIR", "mine", root.fop("LOOKUP", name="all").stat["gfid"])
        for pid in (4711, -1, -3, -6):
            peer.pid = pid
            reply = peer.fop("MKDIR", pargfid=mine, name="trap", mode=0o40777, xdata={"gfid-req": d_gfid(secret)})
            root.fop("CREATE", pargfid=secret, name="new%d" % pid, flags=os.O_CREAT | os.O_RDWR, mode=0o100600,
                     xdata={"gfid-req": d_gfid(gfid())})
            assert not os.path.exists(path_of("all/mine/trap/new%d" % pid)), "root's file lies in another's folder (pid %d)" % pid
            assert os.path.exists(path_of("secret/new%d" % pid)), "root's file is not where it belongs (pid %d)" % pid
            assert pid < 0 or (reply.op_ret, reply.op_errno) == (-1, errno.EEXIST), "MKDIR: %r" % reply
        for fop, fields in (("MKNOD", {"mode": 0o100777}), ("SYMLINK", {"linkname": "/"}),
                            ("CREATE", {"mode": 0o100777, "flags": os.O_CREAT | os.O_RDWR})):
            peer.fop(fop, pargfid=mine, name="other-" + fop, xdata={"gfid-req": d_gfid(secret)}, **fields)
            reply = root.fop("LOOKUP", name="secret")
            assert reply.op_ret == 0 and reply.stat["gfid"] == secret and stat.S_ISDIR(reply.stat["mode"]), reply
            g = gfid()
            assert root.fop("CREATE", pargfid=secret, name="after-" + fop, flags=os.O_CREAT | os.O_RDWR, mode=0o100600,
                            xdata={"gfid-req": d_gfid(g)}).op_ret == 0
            assert os.path.exists(path_of("secret", "after-" + fop))
    serves()


@attack
def a_folder_is_not_made_inside_of_itself():
    """By its own gfid, which even root may give to another folder: no handle below would lead anywhere, for good."""
    with member() as peer:
        outer = make(peer, "MKDIR", "outer")
        inner = make(peer, "MKDIR", "inner", outer)
        for parent in (outer, inner):
            for pid in (4711, -3):
                peer.pid = pid
                reply = peer.fop("MKDIR", pargfid=parent, name="again", mode=0o40755, xdata={"gfid-req": d_gfid(outer)})
                assert reply.op_ret < 0, "a folder was made below itself"
        for g, path in ((outer, "outer"), (inner, "outer/inner")):
            text = "%s-%s-%s-%s-%s" % (g.hex()[:8], g.hex()[8:12], g.hex()[12:16], g.hex()[16:20], g.hex()[20:])
            handle = path_of(".glusterfs", text[:2], text[2:4], text)
            assert os.path.samefile(handle, path_of(path)), "the handle of %s leads elsewhere" % path
    serves()


FORGED = "[2030-01-01 00:00:00.000000 +0000] C [forged.c:1:forged] 0-kilnd: the disk is on fire"


@attack
def lines_of_the_log_and_of_a_statedump_cannot_be_made_up():
    """Names with line ends, in all that is logged or dumped."""
    evil = "x\n%s\r\n\x1b[2J\n[forged]\nkey=1\n" % FORGED
    with member() as peer:
        folder = make(peer, "MKDIR", evil[:250])
        peer.fop("MKDIR", name="second" + evil[:200], mode=0o40755, xdata={"gfid-req": d_gfid(folder)})
        peer.fop("RENAME", name=evil[:250], name2=evil[:240])
        g, fd = created(peer, "file\n[forged]\n")
        flock = u32(1) + u32(0) + b"\0" * 8 + b"\0" * 7 + b"\x0a" + u32(7) + u32(8) + b"own\n[x]\n"
        peer.fop("INODELK", gfid=g, cmd=1, type=1, flock=flock, volume=evil)
        peer.fop("ENTRYLK", gfid=ROOT, cmd=2, type=1, namelen=len(evil), name=evil, volume=evil)
        peer.fop("SETXATTR", gfid=g, dict={"user." + evil[:200]: d_bytes(b"1"), "trusted.gfid\n" + FORGED: d_bytes(b"1")})
        peer.fop("GETXATTR", gfid=g, namelen=9, name="glusterfs.\n" + FORGED)
        with fresh() as other:
            other.login("/no\n" + FORGED)
            other.login(ARGS.brick, uid="uid\n" + FORGED, **{"client-version": "1\n" + FORGED, "subdir-mount": "/no\n" + FORGED,
                                                             "username": "u\n" + FORGED, "process-name": "p\n" + FORGED})
        second = fresh()
        second.login(ARGS.brick, uid="uid\n[forged]\n" + FORGED)
        pid = int(os.environ["KILN_TEST_PID"])
        os.kill(pid, signal.SIGUSR1)
        pattern = os.path.join(os.environ["KILN_TEST_DIR"], "*.%d.dump.*" % pid)
        wait_until(lambda: glob.glob(pattern), 60, "a statedump")
        for path in glob.glob(pattern) + glob.glob(os.path.join(os.environ["KILN_TEST_DIR"], "log", "*.log")):
            with open(path, "rb") as lines:
                for line in lines.read().split(b"\n"):
                    assert not line.startswith((FORGED[:20].encode(), b"[forged]", b"key=1", b"[x]")), "%s: %r" % (path, line)
                    bad = [c for c in line if (c < 32 and c != 9) or c == 127]
                    assert not bad, "%s holds bytes %r: %r" % (os.path.basename(path), bytes(bad), line[:200])
        second.close()
    serves()


@attack
@needs(options="auth.addr.BRICK.reject LONG-LIST")
def a_long_reject_list_rejects():
    """The list ends with 127.0.0.1 behind more than 64 KiB of others. The daemon may refuse to start with it, too; attacks.sh knows."""
    with fresh() as peer:
        op_ret, op_errno, _ = peer.login(ARGS.brick)
        assert op_ret == -1 and op_errno == errno.EACCES, "login: %d, errno %d" % (op_ret, op_errno)


@attack
@needs(options="auth.addr.BRICK.reject /sub(127.0.0.1)")
def a_sub_folder_is_rejected_under_all_its_names():
    with member() as peer:
        below = make(peer, "MKDIR", "sub")
        make(peer, "MKDIR", "deeper", below)
        make(peer, "MKDIR", "other")
    for name in ("/sub", "//sub", "/sub/", "/./sub", "/deeper/../sub", "sub"):
        with fresh() as peer:
            op_ret, _, _ = peer.login(ARGS.brick, **{"subdir-mount": name})
            assert op_ret == -1, "login to %s" % name
    with fresh() as peer:
        op_ret, op_errno, _ = peer.login(ARGS.brick, **{"subdir-mount": "/other"})
        assert op_ret == 0, "login to a folder that is not in the list: errno %d" % op_errno
