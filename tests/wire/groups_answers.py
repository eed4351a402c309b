# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Which of a brick's files callers may open by their groups, when the brick looks groups up itself: a line an answer.

usage: groups_answers.py HOST PORT BRICK WORD UID:GID[:GROUP,GROUP] ...

The brick's root has the files gN, which group N may read and nobody else. WORD is put before each line. A word `run=COMMAND` runs a command
in between.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kilnwire import *  # noqa: E402,F403

host, port, brick, word = sys.argv[1:5]
peer = Peer(host, int(port))
result = peer.login(brick)
assert result[0] == 0, result
gfids = {}
for name in sorted(os.listdir(brick)):
    if name.startswith("g"):
        number = int(name[1:])
        r = peer.fop("LOOKUP", pargfid=ROOT, name=name,
                     xdata={"gfid-req": d_gfid(bytes.fromhex("7777000011112222333300000000%04x" % number))})
        assert r.op_ret == 0, (name, r.op_errno)
        gfids[number] = r.stat["gfid"]
for who in sys.argv[5:]:
    if who.startswith("run="):
        subprocess.run(who[4:], shell=True, check=True)
        continue
    uid, gid, *groups = who.split(":")
    peer.uid, peer.gid = int(uid), int(gid)
    peer.groups = [int(g) for g in groups[0].split(",")] if groups else []
    may = [str(n) for n, gfid in sorted(gfids.items()) if peer.fop("OPEN", gfid=gfid, flags=0).op_ret == 0]
    print("%s %s: %s" % (word, who, " ".join(may) or "none"))
