#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""dead_rename.py CLIENT STEP FOLDER OLD NEW SOURCE HASHED: a rename of FOLDER/OLD to FOLDER/NEW by a client that dies.

SOURCE and HASHED are PORT:BRICK, of the file's brick and of the new name's hashed brick. CLIENT is the name of SOURCE in the
mount's graph. STEP is the last change of the client: link, the second name; rename, the new name's link file; inplace, the
RENAME of a file that is on the hashed brick (SOURCE = HASHED); or folder, the RENAME of a folder on HASHED alone."""
import os
import sys
import uuid

from kilnwire import Peer, d_gfid, d_str

client, step, folder, old, new, source, hashed = sys.argv[1:]


def login(at):
    port, brick = at.split(":")
    peer = Peer("127.0.0.1", int(port))
    assert peer.login(brick)[0] == 0
    return peer


def must(reply):
    assert reply.op_ret >= 0, reply
    return reply


brick = source.split(":")[1]
parent = os.getxattr(os.path.join(brick, folder), "trusted.gfid")
gfid = os.getxattr(os.path.join(brick, folder, old), "trusted.gfid")
for at in {source, hashed}:  # the brick knows the folder once a client has looked it up
    must(login(at).fop("LOOKUP", name=folder))
from_name = "%s/%s" % (uuid.UUID(bytes=parent), old)
peer = login(source)
must(peer.fop("LOOKUP", pargfid=parent, name=old))
if step == "folder":
    peer = login(hashed)
    must(peer.fop("LOOKUP", pargfid=parent, name=old))
    must(peer.fop("RENAME", pargfid=parent, pargfid2=parent, name=old, name2=new))
elif step == "inplace":
    must(peer.fop("RENAME", pargfid=parent, pargfid2=parent, name=old, name2=new, xdata={"kiln.name-note": d_str(from_name)}))
else:
    must(peer.fop("LINK", gfid=gfid, pargfid2=parent, name2=new, xdata={"kiln.name-note": d_str(from_name)}))
if step == "rename":
    peer = login(hashed)
    must(peer.fop("MKNOD", pargfid=parent, name=old, mode=0o101000, xdata={
        "gfid-req": d_gfid(gfid), "trusted.glusterfs.dht.linkto": d_str(client)}))
    must(peer.fop("RENAME", pargfid=parent, pargfid2=parent, name=old, name2=new))
os._exit(0)
