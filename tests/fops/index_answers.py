# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""The entries of a brick's index for the changed names of a directory, while clients and the self-heal daemon
change the counters: after each call the names in .glusterfs/indices/entry-changes, the counter's value, and
whether the directory waits for heal.

usage: index_answers.py HOST PORT BRICK VOL
"""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "wire"))
from kilnwire import *  # noqa: E402,F403

host, port, brick, vol = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
peer = Peer(host, port)
peer.login(brick)
DIRECTORY = bytes.fromhex("82111111222233334444%012x" % 1)
INDICES = os.path.join(brick, ".glusterfs/indices")
text = str(uuid.UUID(bytes=DIRECTORY))


def count(label, by, other=0, dirty=0, **flags):
    changes = {"trusted.afr.%s-client-1" % vol: d_bytes(struct.pack(">3i", 0, 0, by)),
               "trusted.afr.%s-client-2" % vol: d_bytes(struct.pack(">3i", 0, 0, other)),
               "trusted.afr.dirty": d_bytes(struct.pack(">3i", 0, 0, dirty))}
    r = peer.fop("XATTROP", gfid=DIRECTORY, flags=0, dict=changes,
                 xdata={"glusterfs.xattrop-" + k.replace("_", "-"): v for k, v in flags.items()})
    folder = os.path.join(INDICES, "entry-changes", text)
    names = sorted(os.listdir(folder)) if os.path.exists(folder) else "none"
    folder_on_disk = os.path.join(brick, "d")
    stored = os.listxattr(folder_on_disk)
    values = [struct.unpack(">3i", os.getxattr(folder_on_disk, k))[2] if k in stored else 0 for k in sorted(changes)]
    print("%s: %s; counters %s, names %s, waits %s" % (label, r.op_ret, values, names, os.path.exists(os.path.join(INDICES, "xattrop", text))))


peer.fop("MKDIR", name="d", pargfid=bytes(15) + b"\1", mode=0o755, umask=0, xdata={"gfid-req": d_gfid(DIRECTORY)})
one = d_int(1)
count("a name", 1, entry_create=d_str("first"))
count("one more", 1, entry_create=d_str("second"))
count("healed, as far as it was seen", -1, purge_index=one)
count("healed", -1, purge_index=one)
count("two replicas are away", 1, 1, entry_create=d_str("third"))
count("one is healed", -1, 0, purge_index=one)
count("so is the other", 0, -1, purge_index=one)
count("again", 1, entry_create=d_str("fourth"))
count("taken back", -1, entry_delete=d_str("fourth"))
count("again", 1, entry_create=d_str("fifth"))
count("back without a word of the names", -1)
count("with a word of the names that is 0", 0, purge_index=d_int(0))
count("nothing to count", 0, purge_index=one)
count("a name, dirty", 1, dirty=1, entry_create=d_str("sixth"))
count("healed, still dirty", -1, purge_index=one)
count("clean", 0, dirty=-1, purge_index=one)
