# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""More removals wait for another client's locks than io-threads lets calls run: nobody else notices.

    waiting_removals.py HOST PORT BRICK
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "wire"))
from kilnwire import FOPS, FOP_ROWS, ROOT, Reply, encode_fop  # noqa: E402
from lock_peer import inodelk, login, make_file, unlock  # noqa: E402

FILES = 20  # io-threads' thread-count is 16
SECONDS = 20

holder, remover, bystander = (login(sys.argv, SECONDS) for _ in range(3))
gfids = [make_file(holder, "f%d" % i) for i in range(FILES)]
for gfid in gfids:
    assert inodelk(holder, gfid).op_ret == 0
for i in range(FILES):
    remover.send(FOPS, 400, FOP_ROWS["UNLINK"][0], encode_fop("UNLINK", pargfid=ROOT, name="f%d" % i))
while len(holder.callbacks) < FILES:  # each removal that waits tells the holder
    holder.callbacks.append(holder.receive_record())

began = time.monotonic()
assert bystander.fop("LOOKUP", gfid=ROOT).op_ret == 0
assert holder.fop("LOOKUP", gfid=gfids[0]).op_ret == 0  # the files are still there
for gfid in gfids:
    assert unlock(holder, gfid).op_ret == 0
for i in range(FILES):
    assert Reply("UNLINK", remover.receive().body).op_ret == 0
assert bystander.fop("LOOKUP", gfid=gfids[0]).op_ret < 0
print("# %d removals waited, and ended %.2f s after" % (FILES, time.monotonic() - began))
