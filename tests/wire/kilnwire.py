# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""A GlusterFS client that sends any bytes, for tests with calls that no correct client sends.

    peer = Peer("127.0.0.1", 49152)
    peer.dump()                                   # [(name, number, version), ...]
    peer.login("/bricks/b1")
    reply = peer.fop("LOOKUP", gfid=ROOT)         # Reply: op_ret, op_errno, fields; its length has been checked
    raw = peer.call(FOPS, 400, 27, b"...")        # Answer: accept status and body

Standard library only. Layouts: one row for each procedure, checked against the length of every reply, so a reply that is cut
short or too long is an error here as it is in a stock client.
"""
import itertools
import os
import socket
import struct
import uuid

FOPS, HANDSHAKE, DUMP = 1298437, 14398633, 123451501
SUCCESS, PROG_UNAVAIL, PROG_MISMATCH, PROC_UNAVAIL, GARBAGE_ARGS = range(5)
ROOT = bytes(15) + b"\1"
NOBODY = bytes(16)
ANONYMOUS = -2


class Closed(Exception):
    """The peer has closed the connection."""


class Leaked(Exception):
    """A reply holds the secret that tests/lib/own-root.sh has planted outside of the brick."""


SECRET = os.environ.get("KILN_SECRET", "").encode()


# -- XDR -------------------------------------------------------------------------------------------------------

def u32(v):
    return struct.pack(">I", v & 0xffffffff)


def u64(v):
    return struct.pack(">Q", v & 0xffffffffffffffff)


def opaque(b):
    return u32(len(b)) + b + bytes(-len(b) % 4)


def text(s):
    return opaque(s.encode() if isinstance(s, str) else s)


NULL_DICT = u32(0) + u32(-1) + u32(0)


def typed_dict(pairs):
    """{key: (tag, encoded value)}; see the helpers below."""
    if pairs is None:
        return NULL_DICT
    body = b"".join(opaque(k.encode() + b"\0") + u32(tag) + value for k, (tag, value) in pairs.items())
    return u32(len(body)) + u32(len(pairs)) + u32(len(pairs)) + body


def d_int(v):
    return 2, u64(v)


def d_str(s):
    return 5, opaque(s.encode() + b"\0")


def d_bytes(b):
    return 6, opaque(b)


def d_gfid(g):
    return 7, g


def old_dict(pairs):
    body = u32(len(pairs))
    for key, value in pairs.items():
        value = value.encode() + b"\0"
        body += u32(len(key)) + u32(len(value)) + key.encode() + b"\0" + value
    return body


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if len(self.data) - self.at < n:
            raise ValueError("reply cut short at byte %d of %d" % (self.at, len(self.data)))
        part = self.data[self.at:self.at + n]
        self.at += n
        return part

    def u32(self):
        return struct.unpack(">I", self.take(4))[0]

    def i32(self):
        return struct.unpack(">i", self.take(4))[0]

    def u64(self):
        return struct.unpack(">Q", self.take(8))[0]

    def opaque(self):
        n = self.u32()
        data = self.take(n)
        self.take(-n % 4)
        return data

    def gfid(self):
        return self.take(16)

    def iatt(self):
        raw = self.take(148)
        names = ("flags ino dev rdev size blocks attributes attributes_mask atime mtime ctime btime atime_nsec mtime_nsec "
                 "ctime_nsec btime_nsec nlink uid gid blksize mode").split()
        return dict(zip(names, struct.unpack(">8Q4q9I", raw[16:])), gfid=raw[:16])

    def dict(self):
        size, count, pairs = self.u32(), self.i32(), self.u32()
        if count < 0:
            return None
        begin = self.at
        out = {}
        for _ in range(pairs):
            key = self.opaque()
            tag = self.u32()
            if tag in (1, 5, 6):
                value = self.opaque()
            elif tag in (2, 3, 4):
                value = self.u64()
            else:
                value = self.take({7: 16, 8: 148, 9: 36}[tag])
            out[key.rstrip(b"\0").decode(errors="surrogateescape")] = value
        if self.at - begin != size:
            raise ValueError("xdr_size says %d, the pairs take %d" % (size, self.at - begin))
        return out

    def flock(self):
        return (self.u32(), self.u32(), self.u64(), self.u64(), self.u32(), self.opaque())

    def lease(self):
        return self.take(28)

    def statvfs(self):
        return struct.unpack(">11Q", self.take(88))

    def rchecksum(self):
        return self.u32(), self.u32(), self.opaque()

    def locks(self):
        out = []
        while self.u32():
            out.append((self.flock(), self.opaque(), self.u32()))
        return out

    def entries(self, with_iatt=False):
        out = []
        while self.u32():
            entry = {"ino": self.u64(), "off": self.u64(), "len": self.u32(), "type": self.u32(),
                     "name": self.opaque()}
            if with_iatt:
                entry["iatt"], entry["dict"] = self.iatt(), self.dict()
            out.append(entry)
        return out

    def entries_iatt(self):
        return self.entries(True)


# -- the table of fops: number, request fields, reply fields behind op_ret, op_errno, xdata -----------------------

R1 = "stat:iatt"
R2 = "pre:iatt post:iatt"
R3 = "stat:iatt pre:iatt post:iatt"
RDICT = "dict:dict pre:iatt post:iatt"
FOP_ROWS = {
    "STAT": (1, "gfid", R1),
    "READLINK": (2, "gfid size:u32", "stat:iatt path:opaque"),
    "MKNOD": (3, "pargfid dev:u64 mode:u32 umask:u32 name:text", R3),
    "MKDIR": (4, "pargfid mode:u32 umask:u32 name:text", R3),
    "UNLINK": (5, "pargfid name:text flags:u32", R2),
    "RMDIR": (6, "pargfid flags:u32 name:text", R2),
    "SYMLINK": (7, "pargfid name:text umask:u32 linkname:text", R3),
    "RENAME": (8, "pargfid pargfid2 name:text name2:text", "stat:iatt pre:iatt post:iatt pre2:iatt post2:iatt"),
    "LINK": (9, "gfid pargfid2 name2:text", R3),
    "TRUNCATE": (10, "gfid offset:u64", R2),
    "OPEN": (11, "gfid flags:u32", "fd:u64"),
    "READ": (12, "gfid fd offset:u64 size:u32 flags:u32", None),
    "WRITE": (13, "gfid fd offset:u64 size:u32 flags:u32", R2),
    "STATFS": (14, "gfid", "statvfs:statvfs"),
    "FLUSH": (15, "gfid fd", ""),
    "FSYNC": (16, "gfid fd flags:u32", R2),
    "SETXATTR": (17, "gfid flags:u32 dict", ""),
    "GETXATTR": (18, "gfid namelen:u32 name:text", RDICT),
    "REMOVEXATTR": (19, "gfid name:text", ""),
    "OPENDIR": (20, "gfid", "fd:u64"),
    "FSYNCDIR": (21, "gfid fd flags:u32", ""),
    "ACCESS": (22, "gfid mask:u32", ""),
    "CREATE": (23, "pargfid flags:u32 mode:u32 umask:u32 name:text", "stat:iatt fd:u64 pre:iatt post:iatt"),
    "FTRUNCATE": (24, "gfid fd offset:u64", R2),
    "FSTAT": (25, "gfid fd", R1),
    "LK": (26, "gfid fd cmd:u32 type:u32 flock", "flock:flock"),
    "LOOKUP": (27, "gfid pargfid flags:u32 name:text", "stat:iatt post:iatt"),
    "READDIR": (28, "gfid fd offset:u64 size:u32", "entries:entries"),
    "INODELK": (29, "gfid cmd:u32 type:u32 flock volume:text", ""),
    "FINODELK": (30, "gfid fd cmd:u32 type:u32 flock volume:text", ""),
    "ENTRYLK": (31, "gfid cmd:u32 type:u32 namelen:u64 name:text volume:text", ""),
    "FENTRYLK": (32, "gfid fd cmd:u32 type:u32 namelen:u64 name:text volume:text", ""),
    "XATTROP": (33, "gfid flags:u32 dict", RDICT),
    "FXATTROP": (34, "gfid fd flags:u32 dict", RDICT),
    "FGETXATTR": (35, "gfid fd namelen:u32 name:text", RDICT),
    "FSETXATTR": (36, "gfid fd flags:u32 dict", ""),
    "RCHECKSUM": (37, "gfid fd offset:u64 size:u32 flags:u32", "sums:rchecksum"),
    "SETATTR": (38, "gfid stbuf valid:u32", R2),
    "FSETATTR": (39, "gfid fd stbuf valid:u32", R2),
    "READDIRP": (40, "gfid fd offset:u64 size:u32", "entries:entries_iatt"),
    "RELEASE": (41, "gfid fd", ""),
    "RELEASEDIR": (42, "gfid fd", ""),
    "FREMOVEXATTR": (43, "gfid fd name:text", ""),
    "FALLOCATE": (44, "gfid fd flags:u32 offset:u64 size:u64", R2),
    "DISCARD": (45, "gfid fd offset:u64 size:u64", R2),
    "ZEROFILL": (46, "gfid fd offset:u64 size:u64", R2),
    "IPC": (47, "op:u32", ""),
    "SEEK": (48, "gfid fd offset:u64 what:u32", "offset:u64"),
    "LEASE": (50, "gfid lease", "lease:lease"),
    "GETACTIVELK": (51, "gfid", "locks:locks"),
    "SETACTIVELK": (52, "gfid locks", ""),
    "ICREATE": (53, "gfid mode:u32", R1),
    "NAMELINK": (54, "pargfid name:text", R2),
    "PUT": (55, "pargfid name:text mode:u32 umask:u32 flags:u32 offset:u64 size:u32 dict", R3),
    "COPY_FILE_RANGE": (56, "gfid gfid2 fd fd2:u64 offset:u64 offset2:u64 size:u32 flags:u32", R3),
}
DEFAULTS = {"gfid": ROOT, "gfid2": ROOT, "pargfid": ROOT, "pargfid2": ROOT, "fd": ANONYMOUS, "fd2": ANONYMOUS,
            "dict": None, "stbuf": bytes(148), "lease": bytes(28), "locks": u32(0),
            "flock": u32(0) + u32(0) + u64(0) + u64(0) + u32(0) + opaque(b"")}


def encode_field(field, values):
    name, _, kind = field.partition(":")
    value = values.get(name, DEFAULTS.get(name))
    if isinstance(value, Raw):
        return bytes(value)
    if name == "dict":
        return typed_dict(value)
    if name == "fd":
        return u64(value)
    if not kind:
        return value
    if kind == "text":
        return text(value or "")
    return (u64 if kind == "u64" else u32)(value or 0)


class Raw(bytes):
    """Bytes that go on the wire as they are, in place of any field."""


def encode_fop(fop, /, payload=b"", xdata=None, **values):
    """The arguments of a fop; fields that are not named have harmless values."""
    if fop == "LOOKUP" and "pargfid" not in values:
        values["pargfid"] = ROOT if values.get("name") else NOBODY
    if fop in ("WRITE", "PUT"):
        values.setdefault("size", len(payload))
    fields = b"".join(encode_field(f, values) for f in FOP_ROWS[fop][1].split())
    return fields + (bytes(xdata) if isinstance(xdata, Raw) else typed_dict(xdata)) + payload


class Reply:
    def __init__(self, name, body):
        r = Reader(body)
        self.op_ret, self.op_errno = r.i32(), r.i32()
        if name == "READ":
            self.stat, self.size = r.iatt(), r.u32()
            self.xdata = r.dict()
            self.payload = r.take(max(self.op_ret, 0))
        else:
            self.xdata = r.dict()
            for field in FOP_ROWS[name][2].split():
                key, _, kind = field.partition(":")
                setattr(self, key, getattr(r, kind)())
        if r.at != len(body):
            raise ValueError("%s: %d bytes too many in the reply" % (name, len(body) - r.at))

    def __repr__(self):
        return "op_ret %d, op_errno %d" % (self.op_ret, self.op_errno)


class Answer:
    """The fields of the RPC level: xid, whether denied, accept status, and the results."""

    def __init__(self, record):
        r = Reader(record)
        self.xid, self.type, self.denied = r.u32(), r.u32(), r.u32() == 1
        if self.denied:
            self.reject, self.auth = r.u32(), r.u32()
            self.status = None
        else:
            r.take(4)
            r.opaque()
            self.status = r.u32()
        self.body = record[r.at:]


class Peer:
    uids = itertools.count()

    def __init__(self, host, port, timeout=120, source=None):
        self.sock = socket.create_connection((host, port), timeout, (source, 0) if source else None)
        self.xid = 1
        self.callbacks = []
        self.pid, self.uid, self.gid, self.groups, self.owner = os.getpid(), 0, 0, [], b""

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- records

    def send_raw(self, data):
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed from error

    def send_record(self, record, fragments=1):
        step = -(-len(record) // fragments) or 1
        parts = [record[i:i + step] for i in range(0, len(record), step)] or [b""]
        self.send_raw(b"".join(u32(len(p) | (0x80000000 if i == len(parts) - 1 else 0)) + p
                               for i, p in enumerate(parts)))

    def receive_exactly(self, n):
        data = bytearray()
        while len(data) < n:
            try:
                part = self.sock.recv(min(n - len(data), 1 << 20))
            except ConnectionResetError as error:
                raise Closed from error
            if not part:
                raise Closed
            data += part
        return bytes(data)

    def receive_record(self):
        mark = struct.unpack(">I", self.receive_exactly(4))[0]
        if not mark & 0x80000000:
            raise ValueError("a reply in more than one fragment")
        record = self.receive_exactly(mark & 0x7fffffff)
        if SECRET and SECRET in record:
            raise Leaked("what lies outside of the brick was sent: " + repr(record[-300:]))
        return record

    def receive(self):
        """The next reply; callbacks on the way are kept."""
        while True:
            record = self.receive_record()
            if struct.unpack(">I", record[4:8])[0] == 1:
                return Answer(record)
            self.callbacks.append(record)

    # -- calls

    def credential(self):
        body = (u32(self.pid) + u32(self.uid) + u32(self.gid) + u32(0) + u32(0) + u64(0) +
                u32(len(self.groups)) + b"".join(u32(g) for g in self.groups) + opaque(self.owner))
        return u32(390040) + opaque(body)

    def head(self, program, version, procedure):
        self.xid += 1
        return u32(self.xid) + u32(0) + u32(2) + u32(program) + u32(version) + u32(procedure)

    def send(self, program, version, procedure, args=b"", cred=None, fragments=1):
        record = self.head(program, version, procedure) + (cred or self.credential()) + u32(0) + u32(0) + args
        self.send_record(record, fragments)
        return self.xid

    def call(self, program, version, procedure, args=b"", cred=None, fragments=1):
        xid = self.send(program, version, procedure, args, cred, fragments)
        while True:
            answer = self.receive()
            if answer.xid in (xid, 0):
                return answer

    def dump(self):
        r = Reader(self.call(DUMP, 1, 1, u64(0xcaed)).body)
        r.u64(), r.i32(), r.i32()
        out = []
        while r.u32():
            out.append((r.opaque().decode(), r.u64(), r.u64()))
        return out

    def ping(self):
        return self.call(DUMP, 1, 2).body

    def login(self, brick, uid=None, **more):
        """op_ret, op_errno and the reply's dict as raw bytes."""
        options = {"remote-subvolume": brick, "process-uuid": uid or "CTX_ID:%s-GRAPH_ID:0-PID:%d-RECON_NO:-%d" % (
            uuid.uuid4(), os.getpid(), next(self.uids)), "fops-version": "1298437", "client-version": "10.3"}
        options.update(more)
        r = Reader(self.call(HANDSHAKE, 2, 1, opaque(old_dict({k: v for k, v in options.items() if v is not None}))).body)
        result = r.i32(), r.i32(), r.opaque()
        if r.at != len(r.data):
            raise ValueError("SETVOLUME's reply is too long")
        return result

    def fop(self, fop, /, payload=b"", xdata=None, **values):
        answer = self.call(FOPS, 400, FOP_ROWS[fop][0], encode_fop(fop, payload, xdata, **values))
        if answer.status != SUCCESS:
            raise ValueError("%s: accept status %s" % (fop, answer.status))
        return Reply(fop, answer.body)
