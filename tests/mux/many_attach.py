# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Attaches bricks to a running kilnd through the -S socket, as glusterd does, and detaches a brick from the
middle while other bricks work.

usage: many_attach.py SOCKET PORT PID DIR COUNT TEMPLATE

DIR gets the bricks b0 ... and their volfiles; TEMPLATE is the volfile of a brick @BRICK@ of the volume 5f0c7a3e-8d11-4f4e-9a57-1c2d3e4f5a6b.
Prints `ok - ...` and `not ok - ...` lines, and the costs of a brick.
"""
import os
import sys
import threading
import time
import uuid

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "..", "wire"), os.path.join(here, "..", "lib")]
from brick_op import BrickOps
from kilnwire import Peer, ROOT, d_gfid

ATTACH, TERMINATE, STATUS, UNDER_WAY, THREADS_MORE = 12, 1, 4, 64, 16
VOLUME = uuid.UUID("5f0c7a3e-8d11-4f4e-9a57-1c2d3e4f5a6b")
socket_path, port, pid, place, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
middle = count // 2


def say(is_right, text):
    print("%s - %s" % ("ok" if is_right else "not ok", text), flush=True)


def brick(i):
    return os.path.join(place, "b%d" % i)


def make(i, template):
    os.makedirs(os.path.join(brick(i), ".glusterfs"), 0o700)
    os.setxattr(brick(i), "trusted.glusterfs.volume-id", VOLUME.bytes)
    with open(brick(i) + ".vol", "w") as file:
        file.write(template.replace("@BRICK@", brick(i)))


def cost():
    with open("/proc/%d/status" % pid) as file:
        rss = next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
    return rss, len(os.listdir("/proc/%d/fd" % pid)), len(os.listdir("/proc/%d/task" % pid))


def attach_all(ops):
    """Several are under way; the number of those that failed."""
    failed = sent = done = 0
    while done < count:
        while sent < count and sent - done < UNDER_WAY:
            ops.send(ATTACH, brick(sent) + ".vol")
            sent += 1
        reply = ops.receive()[1]
        done += 1
        if reply.op_ret != 0:
            failed += 1
            print("# attach:", reply.op_errstr)
    return failed


def login(i):
    """Logs in to brick i. Returns the answer and the peer."""
    peer = Peer("127.0.0.1", port)
    return peer.login(brick(i))[:2], peer


class Worker(threading.Thread):
    """Makes, writes, reads and removes files on a brick until told to stop."""

    def __init__(self, i):
        super().__init__()
        self.answer, self.peer = login(i)
        self.rounds, self.errors, self.is_over = 0, 0, False

    def run(self):
        while not self.is_over:
            gfid, data = uuid.uuid4().bytes, os.urandom(500)
            name = "f%d" % self.rounds
            made = self.peer.fop("CREATE", pargfid=ROOT, name=name, flags=2, mode=0o644, xdata={"gfid-req": d_gfid(gfid)})
            wrote = self.peer.fop("WRITE", gfid=gfid, fd=made.fd, payload=data)
            read = self.peer.fop("READ", gfid=gfid, fd=made.fd, size=1000)
            self.peer.fop("RELEASE", gfid=gfid, fd=made.fd)
            gone = self.peer.fop("UNLINK", pargfid=ROOT, name=name)
            self.errors += made.op_ret != 0 or wrote.op_ret != len(data) or bytes(read.payload) != data or gone.op_ret != 0
            self.rounds += 1


def wait_for(condition, seconds=240):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def answers(i, want):
    """True if a login to brick i gets the answer `want`. The connection ends at once."""
    got, peer = login(i)
    peer.close()
    return got == want


def detach_under_load(ops):
    workers = [Worker(i) for i in sorted({0, middle - 1, middle + 1, count - 1})]
    say(all(w.answer[0] == 0 for w in workers), "clients log in to bricks beside the middle brick")
    for w in workers:
        w.start()
    wait_for(lambda: all(w.rounds > 20 for w in workers))
    say(ops.call(TERMINATE, brick(middle)).op_ret == 0, "the middle brick is detached")
    say(wait_for(lambda: answers(middle, (-1, 2))), "a login to the detached brick is answered ENOENT")
    seen = [w.rounds for w in workers]
    say(wait_for(lambda: all(w.rounds > n + 20 for w, n in zip(workers, seen))), "clients of the other bricks continue")
    say(ops.call(ATTACH, brick(middle) + ".vol").op_ret == 0, "the middle brick is attached again")
    say(answers(middle, (0, 0)), "a login to the attached brick succeeds")
    for w in workers:
        w.is_over = True
    for w in workers:
        w.join()
    say(sum(w.errors for w in workers) == 0, "no call of %d rounds met an error" % sum(w.rounds for w in workers))


def status_stays_small(ops):
    """glusterd and the CLI join the answers of all bricks of a volume, key by key."""
    reply = ops.call(STATUS, "", {"cmd": 257, "brick-name": brick(middle), "volname": "v"})
    pools = [value for key, value in reply.output.items() if key.startswith("pool") and key.endswith(".name")]
    say(reply.op_ret == 0 and len(pools) == int(reply.output["mempool-count"]), "status mem of a brick has %d pools" % len(pools))
    say("struct inode" in pools and "struct rpc_request" not in pools, "status mem of a brick has only pools with objects of the brick")


def main():
    with open(sys.argv[6]) as file:
        template = file.read()
    for i in range(count):
        make(i, template)
    ops = BrickOps(socket_path, 1200)
    rss, fds, threads = cost()
    begin = time.monotonic()
    failed = attach_all(ops)
    ms = (time.monotonic() - begin) * 1000 / count
    say(failed == 0, "%d bricks are attached" % count)
    more = cost()
    print("# a brick: %.2f ms, %.1f KiB RSS, %.2f descriptors; %d threads" % (
        ms, (more[0] - rss) / count, (more[1] - fds) / count, more[2]))
    say(more[1] - fds <= 4 * count + 8, "a brick has at most 4 descriptors")
    say(all(answers(i, (0, 0)) for i in range(count)), "a login to each brick succeeds")
    status_stays_small(ops)
    detach_under_load(ops)
    # The janitors of thousands of bricks keep a few more workers busy than the janitors of hundreds of
    # bricks.
    say(wait_for(lambda: cost()[2] <= threads + THREADS_MORE), "no thread belongs to a brick")


main()
