# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Ways out of the brick: gfids whose handle leads elsewhere, types that change while calls are under way."""
import os
import random
import selectors
import stat
import struct
import time

from attack import ARGS, attack, gfid, make, member, needs, record, serves, sized
from kilnwire import ROOT, SECRET, Closed, d_gfid, d_int, u32

CONTENT = {"glusterfs.content": d_int(65536)}

OF_A_SYMLINK = ("STAT", "GETXATTR", "SETXATTR", "SETATTR") # calls that may succeed on a symlink


def gfid_text(g):
    h = g.hex()
    return "-".join((h[:8], h[8:12], h[12:16], h[16:20], h[20:]))


def handle_text(g, name):
    t = gfid_text(g)
    return "../../%s/%s/%s/%s" % (t[:2], t[2:4], t, name)


def through(peer, g, names=("shadow", "file", "passwd", "shut", "zero")):
    """Sends every call that reads or changes below a folder, by the folder's gfid. Returns the calls that succeed."""
    went = []

    def tried(what, reply):
        if reply.op_ret >= 0:
            went.append(what)
        return reply

    opened = tried("OPENDIR", peer.fop("OPENDIR", gfid=g))
    for fd in {opened.fd if opened.op_ret >= 0 else -2, -2}:
        for fop in ("READDIR", "READDIRP"):
            reply = tried(fop, peer.fop(fop, gfid=g, fd=fd, size=65536))
            if reply.op_ret > 0:
                went.append("names %s" % b" ".join(e["name"] for e in reply.entries)[:200])
    tried("STAT", peer.fop("STAT", gfid=g))
    tried("GETXATTR", peer.fop("GETXATTR", gfid=g, namelen=0, name=""))
    tried("SETXATTR", peer.fop("SETXATTR", gfid=g, dict={"user.attack": (6, u32(1) + b"x\0\0\0")}))
    tried("SETATTR", peer.fop("SETATTR", gfid=g, valid=1, stbuf=bytes(144) + u32(0o40777)))
    for name in names:
        for xdata in (CONTENT, {"gfid-req": d_gfid(gfid())}):
            tried("LOOKUP " + name, peer.fop("LOOKUP", pargfid=g, name=name, xdata=xdata))
        tried("UNLINK " + name, peer.fop("UNLINK", pargfid=g, name=name))
    for fop, fields in (("CREATE", {"flags": os.O_CREAT | os.O_RDWR, "mode": 0o104755}), ("MKDIR", {"mode": 0o40755}),
                        ("MKNOD", {"mode": 0o100644}), ("SYMLINK", {"linkname": "x"})):
        tried(fop, peer.fop(fop, pargfid=g, name="planted-" + fop, xdata={"gfid-req": d_gfid(gfid())}, **fields))
    return went


@attack
def a_removed_folders_handle_is_made_a_symlink():
    """The child of a folder that was removed as a whole keeps a handle that goes through its parent's gfid, and that gfid becomes a
    symlink."""
    with member() as peer:
        for number, (target, child) in enumerate((("/", "victim"), ("/", "etc"), ("../../../../../..", "victim"), ("/victim", "shut"),
                                                  ("../..", "00"), ("../../..", ".glusterfs"), ("/proc/self/root", "victim"))):
            name = "p%d" % number
            parent = make(peer, "MKDIR", name)
            below = make(peer, "MKDIR", child if child != ".glusterfs" else "indices", parent)
            reply = peer.fop("RMDIR", name=name, flags=1)
            assert reply.op_ret == 0, "RMDIR with flags 1: errno %d" % reply.op_errno
            peer.fop("SYMLINK", name="s%d" % number, linkname=target, xdata={"gfid-req": d_gfid(parent)})
            went = through(peer, below)
            assert not went, "to %s/%s: %s" % (target, child, "; ".join(went))
    serves()


@attack
def a_folder_below_a_moved_one_is_reached_by_its_old_handle():
    """As above, but the parent is emptied by renames, so that no removal of a tree takes part."""
    with member() as peer:
        parent = make(peer, "MKDIR", "parent")
        below = make(peer, "MKDIR", "victim", parent)
        assert peer.fop("RENAME", pargfid=parent, name="victim", pargfid2=ROOT, name2="elsewhere").op_ret == 0
        assert peer.fop("RMDIR", name="parent").op_ret == 0
        peer.fop("SYMLINK", name="link", linkname="/", xdata={"gfid-req": d_gfid(parent)})
        went = [what for what in through(peer, parent) if what not in OF_A_SYMLINK]
        assert not went, "by the parent: " + "; ".join(went)
        reply = peer.fop("LOOKUP", name="elsewhere")
        assert reply.op_ret == 0 and reply.stat["gfid"] == below, reply
        names = peer.fop("READDIRP", gfid=below, fd=peer.fop("OPENDIR", gfid=below).fd, size=65536)
        assert not {e["name"] for e in names.entries} - {b".", b".."}, "names in an empty folder"


@attack
def a_symlinks_text_reads_as_a_folders_handle():
    """A symlink's handle is the symlink itself: a text of the form of a folder's handle must not be taken for one."""
    with member() as peer:
        folder = make(peer, "MKDIR", "folder")
        make(peer, "CREATE", "inside", folder)
        texts = [handle_text(g, name) for g in (ROOT, folder) for name in ("..", ".", "../..", "../../..", "folder", "")]
        texts += [handle_text(ROOT, "folder/.."), handle_text(ROOT, ".glusterfs"), handle_text(folder, "../../../../../victim")]
        for number, link in enumerate(texts):
            reply = peer.fop("SYMLINK", name="t%d" % number, linkname=link, xdata={"gfid-req": d_gfid(gfid())})
            if reply.op_ret < 0:
                continue
            g = reply.stat["gfid"]
            again = peer.fop("LOOKUP", name="t%d" % number)
            assert again.op_ret == 0 and stat.S_ISLNK(again.stat["mode"]), "no symlink any more: %s" % link
            for asker in (peer, member()):
                went = [what for what in through(asker, g) if what not in OF_A_SYMLINK]
                assert not went, "%s: %s" % (link, "; ".join(went))
                reply = asker.fop("LOOKUP", gfid=g)
                assert reply.op_ret < 0 or stat.S_ISLNK(reply.stat["mode"]), "%s is mode %o by its gfid" % (link, reply.stat["mode"])
    serves()


@attack
def a_symlink_with_the_gfid_of_a_folder():
    """The gfid-req is the gfid of an existing folder, of a removed folder, of the root or of a folder of the brick."""
    with member() as peer:
        living = make(peer, "MKDIR", "living")
        gone = make(peer, "MKDIR", "gone")
        assert peer.fop("RMDIR", name="gone").op_ret == 0
        for number, g in enumerate((living, gone, ROOT, bytes(15) + b"\5", bytes(15) + b"\6", bytes(16))):
            peer.fop("SYMLINK", name="link%d" % number, linkname="/victim", xdata={"gfid-req": d_gfid(g)})
            reply = peer.fop("LOOKUP", pargfid=g, name="file", xdata=CONTENT)
            assert reply.op_ret < 0, "/victim/file was found through gfid %s" % gfid_text(g)
            reply = peer.fop("CREATE", pargfid=g, name="planted%d" % number, flags=os.O_CREAT | os.O_RDWR, mode=0o100644,
                             xdata={"gfid-req": d_gfid(gfid())})
            assert reply.op_ret < 0 or g in (living, ROOT), "a file was made through gfid %s" % gfid_text(g)
        assert stat.S_ISDIR(peer.fop("LOOKUP", name="living").stat["mode"])


# -- races: one connection changes the object of a gfid, others use the gfid ------------------------------------------

class Storm:
    """Connections that each repeat a list of calls at full speed. `seen(call, op_ret, op_errno, body)` of a connection
    gets the replies; a secret in a reply is found on arrival. A plan is (peer, [(fop, fields)], seen)."""

    AHEAD = 6 # repetitions under way on one connection

    def __init__(self, plans):
        self.select = selectors.DefaultSelector()
        self.lanes = []
        for peer, calls, seen in plans:
            peer.xid = -1 # the first call gets 0
            lane = {"peer": peer, "blob": b"".join(record(peer, fop, **fields) for fop, fields in calls), "calls": calls, "seen": seen,
                    "out": b"", "in": bytearray(), "answered": 0, "sent": 0}
            peer.sock.setblocking(False)
            self.lanes.append(lane)
            self.select.register(peer.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, lane)

    def run(self, seconds, rounds=None):
        """The first lane's repetitions, at most `rounds`."""
        end = time.monotonic() + seconds
        last = time.monotonic()
        first = self.lanes[0]
        while time.monotonic() < end and (rounds is None or first["answered"] // len(first["calls"]) < rounds):
            moved = False
            for key, events in self.select.select(1):
                if events & selectors.EVENT_WRITE:
                    moved |= self.send(key.data)
                if events & selectors.EVENT_READ:
                    moved |= self.receive(key.data)
            now = time.monotonic()
            last = now if moved else last
            assert now - last < 60, "no answer for a minute"
        for lane in self.lanes:
            self.select.unregister(lane["peer"].sock)
            lane["peer"].close()
        return first["answered"] // len(first["calls"])

    def send(self, lane):
        if not lane["out"]:
            if lane["sent"] - lane["answered"] >= self.AHEAD * len(lane["calls"]):
                time.sleep(0) # writable, but nothing to say
                return False
            lane["out"] = lane["blob"]
            lane["sent"] += len(lane["calls"])
        try:
            n = lane["peer"].sock.send(lane["out"])
        except BlockingIOError:
            return False
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed from error
        lane["out"] = lane["out"][n:]
        return n > 0

    def receive(self, lane):
        try:
            data = lane["peer"].sock.recv(1 << 18)
        except BlockingIOError:
            return False
        except ConnectionResetError as error:
            raise Closed from error
        if not data:
            raise Closed("by the daemon")
        buffer = lane["in"]
        buffer += data
        assert not SECRET or SECRET not in buffer, "the secret was sent"
        at = 0
        while len(buffer) - at >= 4:
            size = struct.unpack_from(">I", buffer, at)[0] & 0x7fffffff
            if len(buffer) - at - 4 < size:
                break
            xid, kind = struct.unpack_from(">II", buffer, at + 4)
            if kind == 1:
                lane["answered"] += 1
                # xid, type, accepted, verifier (2), accept status
                accepted = struct.unpack_from(">II", buffer, at + 12)[0] == 0 and struct.unpack_from(">I", buffer, at + 24)[0] == 0
                if lane["seen"] and accepted:
                    body = bytes(buffer[at + 28:at + 4 + size])
                    lane["seen"](lane["calls"][xid % len(lane["calls"])][0], *struct.unpack_from(">iI", body), body)
            at += 4 + size
        del buffer[:at]
        return True


def storm_of(mutate, use, seen=None, users=2, rounds=None, seconds=None):
    """A connection that changes and some that use, and a count of rounds."""
    plans = [(member(), mutate, None)] + [(member(), use, seen) for _ in range(users)]
    done = Storm(plans).run(seconds or sized(4, 300), rounds or sized(None, 1000000))
    print("# %d rounds" % done)
    assert done > 20, "only %d rounds were done" % done
    serves()


def call_make(fop, name, g, **fields):
    return fop, dict(fields, name=name, xdata={"gfid-req": d_gfid(g)})


def make_the_root_large():
    """A READDIRP of the large root takes a while, so the reply is old on arrival."""
    with member() as peer:
        for number in range(sized(300, 2000)):
            make(peer, "MKNOD", "f%d" % number)


@attack
def a_folder_becomes_a_symlink_while_it_is_read():
    """The type of an inode in an old reply must not count, because the folder's gfid is a symlink by then."""
    make_the_root_large()
    g = gfid()
    mutate = [call_make("MKDIR", "d", g, mode=0o40755), ("RMDIR", {"name": "d"}), call_make("SYMLINK", "d", g, linkname="/victim"),
              ("UNLINK", {"name": "d"})]
    use = [("READDIRP", {"size": 65536}), ("LOOKUP", {"gfid": g}), ("OPENDIR", {"gfid": g}), ("READDIRP", {"gfid": g, "size": 65536}),
           ("LOOKUP", {"pargfid": g, "name": "file", "xdata": CONTENT}), ("LOOKUP", {"pargfid": g, "name": "shut"}),
           call_make("CREATE", "planted", gfid(), pargfid=g, flags=os.O_CREAT | os.O_RDWR, mode=0o104755),
           ("SETATTR", {"gfid": g, "valid": 1, "stbuf": bytes(144) + u32(0o40777)}), ("UNLINK", {"pargfid": g, "name": "file"}),
           ("SETXATTR", {"gfid": g, "dict": {"user.attack": (6, u32(1) + b"x\0\0\0")}}), ("UNLINK", {"pargfid": g, "name": "planted"}),
           ("LOOKUP", {"name": "d"})]
    storm_of(mutate, use)


def races_of_a_file_and_a_node(mode, rdev=0):
    """A file's gfid becomes that of a node of another kind, again and again, while it is opened and read."""
    make_the_root_large()
    g = gfid()
    with member() as peer:
        make(peer, "MKNOD", "g")
        number = peer.fop("OPEN", gfid=peer.fop("LOOKUP", name="g").stat["gfid"], flags=os.O_RDONLY).fd # a connection's first
    mutate = [call_make("MKNOD", "f", g, mode=0o100644), ("LOOKUP", {"name": "f"}), ("UNLINK", {"name": "f"}),
              call_make("MKNOD", "f", g, mode=mode, dev=rdev), ("UNLINK", {"name": "f"})]
    opened = [("READ", {"gfid": g, "fd": number, "size": 4096}), ("RELEASE", {"fd": number})]
    use = [("READDIRP", {"size": 65536}), ("OPEN", {"gfid": g, "flags": os.O_RDONLY}), *opened,
           ("LOOKUP", {"name": "f", "xdata": CONTENT}), ("OPEN", {"gfid": g, "flags": os.O_RDWR}), *opened, ("READ", {"gfid": g, "size": 4096}),
           ("TRUNCATE", {"gfid": g, "offset": 0}), ("RCHECKSUM", {"gfid": g, "size": 4096}), ("FSYNC", {"gfid": g}),
           ("FALLOCATE", {"gfid": g, "size": 0})]

    def seen(fop, op_ret, _, body):
        assert fop != "READ" or op_ret <= 0, "%d bytes were read of a file that was always empty: the device was" % op_ret

    storm_of(mutate, use, seen, users=3)


@attack
@needs(devices=True)
def a_file_becomes_a_device_while_it_is_opened():
    races_of_a_file_and_a_node(stat.S_IFCHR | 0o666, os.makedev(1, 5))


@attack
def a_file_becomes_a_fifo_while_it_is_opened():
    races_of_a_file_and_a_node(stat.S_IFIFO | 0o666)


@attack
def a_file_becomes_a_symlink_while_its_mode_is_changed():
    g = gfid()
    mutate = [call_make("MKNOD", "f", g, mode=0o100644), ("UNLINK", {"name": "f"}), call_make("SYMLINK", "f", g, linkname="/victim/file"),
              ("UNLINK", {"name": "f"})]
    use = [("LOOKUP", {"name": "f"}), ("SETATTR", {"gfid": g, "valid": 1, "stbuf": bytes(144) + u32(0o100777)}),
           ("READ", {"gfid": g, "size": 4096}), ("TRUNCATE", {"gfid": g, "offset": 0}), ("OPEN", {"gfid": g, "flags": os.O_RDWR}),
           ("SETXATTR", {"gfid": g, "dict": {"user.attack": (6, u32(1) + b"x\0\0\0")}})]
    storm_of(mutate, use)


@attack
@needs(devices=True)
def devices_and_fifos_are_never_opened():
    """Without any race, by every way that opens."""
    with member() as peer:
        for name, mode, rdev in (("device", stat.S_IFCHR | 0o666, os.makedev(1, 5)), ("fifo", stat.S_IFIFO | 0o666, 0),
                                 ("socket", stat.S_IFSOCK | 0o666, 0)):
            g = make(peer, "MKNOD", name, mode=mode, dev=rdev)
            for fop, fields in (("OPEN", {"flags": os.O_RDONLY}), ("OPEN", {"flags": os.O_WRONLY}), ("READ", {"size": 100}),
                                ("TRUNCATE", {}), ("FTRUNCATE", {}), ("RCHECKSUM", {"size": 100}), ("SEEK", {}),
                                ("FALLOCATE", {"size": 100}), ("ZEROFILL", {"size": 100}), ("DISCARD", {"size": 100})):
                reply = peer.fop(fop, gfid=g, **fields)
                assert reply.op_ret < 0, "%s of a %s" % (fop, name)
            assert peer.fop("WRITE", b"x", gfid=g).op_ret < 0
            assert peer.fop("LOOKUP", name=name, xdata=CONTENT).op_ret == 0
            assert peer.fop("CREATE", name=name, flags=os.O_CREAT | os.O_RDWR, mode=0o100644,
                            xdata={"gfid-req": d_gfid(gfid())}).op_ret < 0
    serves()


# -- a local user of the server with permission to rename in the brick itself ------------------------------------------

def local_race(seconds, folder, moved, target):
    """In a process of its own: the folder and a symlink in its place, by turns. The child's pid."""
    pid = os.fork()
    if pid:
        return pid
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        os.rename(folder, moved)
        os.symlink(target, folder)
        time.sleep(random.choice((0, 0.0005, 0.005)))
        os.unlink(folder)
        os.rename(moved, folder)
        time.sleep(random.choice((0, 0.0005, 0.005)))
    os._exit(0)


@attack
def a_local_user_puts_a_symlink_in_a_folders_place():
    with member() as peer:
        home = make(peer, "MKDIR", "home")
        below = make(peer, "MKDIR", "victim", home)
        deep = make(peer, "MKDIR", "shut", below)
    folder, moved = os.path.join(ARGS.brick, "home"), os.path.join(ARGS.brick, "moved")
    seconds = sized(4, 60)
    use = []
    for g in (home, below, deep):
        use += [("LOOKUP", {"gfid": g}), ("LOOKUP", {"pargfid": g, "name": "file", "xdata": CONTENT}), ("OPENDIR", {"gfid": g}),
                ("READDIRP", {"gfid": g, "size": 65536}),
                call_make("CREATE", "made", gfid(), pargfid=g, flags=os.O_CREAT | os.O_RDWR, mode=0o104755),
                ("SETATTR", {"gfid": g, "valid": 1, "stbuf": bytes(144) + u32(0o40777)}), ("UNLINK", {"pargfid": g, "name": "made"}),
                ("SETXATTR", {"gfid": g, "dict": {"user.attack": (6, u32(1) + b"x\0\0\0")}}), ("UNLINK", {"pargfid": g, "name": "file"})]
    os.rename(folder, moved)
    os.symlink("/", folder)
    with member() as peer:
        for g in (below, deep, home):
            went = [what for what in through(peer, g) if g != home or what not in OF_A_SYMLINK]
            assert not went, "through a symlink in the place of a folder: " + "; ".join(went)
    os.unlink(folder)
    os.rename(moved, folder)
    pid = local_race(seconds, folder, moved, "/")
    done = Storm([(member(), use, None), (member(), use, None)]).run(seconds)
    status = os.waitpid(pid, 0)[1]
    assert status == 0, "the local user failed: %d" % status
    assert done > 20, "only %d rounds" % done
    serves()
