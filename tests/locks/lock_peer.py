# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Functions shared by scripts about locks on the wire. argv: HOST PORT BRICK."""
from kilnwire import Peer, d_gfid, opaque, u32, u64

READ, WRITE, UNLOCK = 0, 1, 2
NOW, WAIT = 1, 2
DOMAIN = "v-replicate-0"
made = 0


def login(argv, seconds=120):
    peer = Peer(argv[1], int(argv[2]), seconds)
    assert peer.login(argv[3])[0] == 0
    peer.pid, peer.owner = 100, b"ownerown"
    return peer


def make_file(peer, name):
    global made
    made += 1
    gfid = bytes.fromhex("b1b2b3b4b5b6b7b8") + made.to_bytes(8, "big")
    assert peer.fop("CREATE", name=name, flags=0o102, mode=0o644, xdata={"gfid-req": d_gfid(gfid)}).op_ret == 0
    return gfid


def flock(kind, start=0, length=0):
    return u32(kind) + u32(0) + u64(start) + u64(length) + u32(100) + opaque(b"")


def inodelk_args(gfid, kind=WRITE, start=0, length=0, cmd=NOW, volume=DOMAIN):
    return dict(gfid=gfid, cmd=cmd, type=kind, flock=flock(kind, start, length), volume=volume)


def inodelk(peer, gfid, *more, **values):
    return peer.fop("INODELK", **inodelk_args(gfid, *more, **values))


def unlock(peer, gfid, start=0, length=0, volume=DOMAIN):
    return inodelk(peer, gfid, UNLOCK, start, length, volume=volume)
