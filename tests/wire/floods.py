#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Peers that request more than their share. Each check floods a brick and then checks the daemon's memory and refusals,
and whether the other brick of the process answers.

    floods.py HOST PORT BRICK OTHER-BRICK [--only PART-OF-A-NAME]

KILN_TEST_PID: the daemon's pid. Prints TAP lines without a plan. tests/bench/fairness runs the same floods and measures
times.
"""
import argparse
import collections
import errno
import os
import resource
import select
import socket
import ssl
import sys
import threading
import time

from kilnwire import FOP_ROWS, FOPS, HANDSHAKE, ROOT, Closed, Peer, Raw, Reply, d_bytes, d_gfid, d_int, encode_fop, old_dict, opaque, u32, u64

MIB = 1 << 20
WAITING_MAX = 16384
CREATE_FLAGS = os.O_CREAT | os.O_RDWR
FLOODS, CHECKS = {}, []
ARGS = None
names = iter(range(1 << 30))


def flood(function):
    FLOODS[function.__name__] = function
    return function


def check(function):
    CHECKS.append(function)
    return function


def member(brick=None):
    peer = Peer(ARGS.host, ARGS.port)
    op_ret, op_errno, _ = peer.login(brick or ARGS.brick)
    assert op_ret == 0, "login: errno %d" % op_errno
    return peer


def create(peer, parent=ROOT):
    gfid = os.urandom(16)
    reply = peer.fop("CREATE", pargfid=parent, name="flood-%d-%d" % (os.getpid(), next(names)), flags=CREATE_FLAGS, mode=0o100644,
                     xdata={"gfid-req": d_gfid(gfid)})
    assert reply.op_ret == 0, reply
    return gfid, reply.fd


def large_file(peer, size):
    gfid, fd = create(peer)
    assert peer.fop("FTRUNCATE", gfid=gfid, fd=fd, offset=size).op_ret == 0
    return gfid, fd


def record(peer, fop, /, **fields):
    body = peer.head(FOPS, 400, FOP_ROWS[fop][0]) + peer.credential() + u32(0) + u32(0) + encode_fop(fop, **fields)
    return u32(0x80000000 | len(body)) + body


def flock(kind, start=0, length=0, owner=b"o"):
    return Raw(u32(kind) + u32(0) + u64(start) + u64(length) + u32(os.getpid()) + opaque(owner))


def send_what_fits(peer, data, seconds=3):
    """How much was taken before nothing more was for a while."""
    peer.sock.setblocking(False)
    sent = 0
    while sent < len(data) and select.select([], [peer.sock], [], seconds)[1]:
        try:
            sent += peer.sock.send(data[sent:sent + MIB])
        except (BrokenPipeError, ConnectionResetError):
            break
    peer.sock.settimeout(120)
    return sent


# -- floods: each takes a number, and returns the connections that must stay open during the flood ----------------------

@flood
def silent_connections(count=3000):
    peers = []
    for _ in range(count):
        try:
            peers.append(socket.create_connection((ARGS.host, ARGS.port), 20))
        except OSError:
            break
    return peers


@flood
def large_reads(count=36):
    peer = member()
    gfid, fd = large_file(peer, 4096 * MIB)
    peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.send_raw(b"".join(record(peer, "READ", gfid=gfid, fd=fd, size=64 * MIB) for _ in range(count)))
    return [peer]


@flood
def unread_replies(count=20, reads=500, window=4096):
    peers = []
    for _ in range(count):
        peer = member()
        gfid, fd = large_file(peer, MIB)
        peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        peer.send_raw(b"".join(record(peer, "READ", gfid=gfid, fd=fd, size=MIB) for _ in range(reads)))
        peers.append(peer)
    return peers


@flood
def opens(count=20000):
    peer = member()
    gfid, _ = create(peer)
    sent = b"".join(record(peer, "OPEN", gfid=gfid, flags=os.O_RDWR) for _ in range(count))
    peer.refused = {}
    for at in range(0, count, 500):
        size = len(sent) // count
        peer.send_raw(sent[at * size:(at + 500) * size])
        for _ in range(500):
            reply = Reply("OPEN", peer.receive().body)
            if reply.op_ret:
                peer.refused[reply.op_errno] = peer.refused.get(reply.op_errno, 0) + 1
    return [peer]


@flood
def blocked_locks(count=20000):
    """One holds, the other waits `count` times. The second one has `.gfid`, `.answers`."""
    holder, waiter = member(), member()
    gfid, _ = create(holder)
    reply = holder.fop("INODELK", gfid=gfid, cmd=1, type=1, flock=flock(1, owner=b"holder"), volume="flood")
    assert reply.op_ret == 0, reply
    all_of_them = b"".join(record(waiter, "INODELK", gfid=gfid, cmd=2, type=1, flock=flock(1, owner=b"waiter"), volume="flood")
                           for _ in range(count))
    waiter.gfid, waiter.sent, waiter.of = gfid, send_what_fits(waiter, all_of_them), len(all_of_them)
    return [holder, waiter]


@flood
def lock_queues(count=4000):
    holder, waiter = member(), member()
    gfid, _ = create(holder)
    for peer, cmd, owner in ((holder, 1, b"holder"), (waiter, 2, b"waiter")):
        send_what_fits(peer, b"".join(record(peer, "INODELK", gfid=gfid, cmd=cmd, volume="flood", type=1, flock=flock(1, i * 10, 10, owner))
                                      for i in range(count)))
    for _ in range(count):
        holder.receive()
    storm = [member() for _ in range(20)]
    for i, peer in enumerate(storm):
        owner = b"storm%d" % i
        peer.send_raw(b"".join(record(peer, "INODELK", gfid=gfid, cmd=1, volume="flood", type=kind, flock=flock(kind, (1 << 40) + i, 1, owner))
                               for _ in range(10) for kind in (1, 2)))
    return [holder, waiter] + storm


@flood
def patterns(count=5000):
    peer = member()
    folder = os.urandom(16)
    peer.fop("MKDIR", name="flood-%d-%d" % (os.getpid(), next(names)), mode=0o755, xdata={"gfid-req": d_gfid(folder)})
    for _ in range(20):
        gfid, _ = create(peer, folder)
        for i in range(0, 100, 20):
            peer.fop("SETXATTR", gfid=gfid, dict={"user.flood-%d" % (i + k): d_bytes(b"v") for k in range(20)})
    fd = peer.fop("OPENDIR", gfid=folder).fd
    bomb = {"user.*%d*x" % i: d_int(0) for i in range(count)}
    one = record(peer, "READDIRP", gfid=folder, fd=fd, size=128 << 10, xdata=bomb)
    send_what_fits(peer, one * 8)
    return [peer]


@flood
def deep_paths(count=1500):
    peer = member()
    gfid = ROOT
    for _ in range(count):
        fresh = os.urandom(16)
        if peer.fop("MKDIR", pargfid=gfid, name="d", mode=0o755, xdata={"gfid-req": d_gfid(fresh)}).op_ret:
            break
        gfid = fresh
    peers = [peer]
    options = {"remote-subvolume": ARGS.brick, "process-uuid": "deep", "fops-version": "1298437", "subdir-mount": "/d" * count}
    for i in range(4):
        walker = Peer(ARGS.host, ARGS.port)
        walker.send(HANDSHAKE, 2, 1, opaque(old_dict(dict(options, **{"process-uuid": "deep-%d-%d" % (os.getpid(), i)}))))
        peers.append(walker)
    peer.send_raw(b"".join(record(peer, "LOOKUP", pargfid=gfid, name="none") for _ in range(200)))
    return peers


# -- checks -----------------------------------------------------------------------------------------------------------

def resident():
    with open("/proc/%s/status" % os.environ["KILN_TEST_PID"]) as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) >> 10


def peak_resident(seconds):
    end, peak = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        peak = max(peak, resident())
        time.sleep(0.05)
    return peak


def other_serves():
    with member(ARGS.other) as peer:
        reply = peer.fop("LOOKUP", gfid=ROOT)
        assert reply.op_ret == 0, "LOOKUP at the other brick: %r" % reply


def close(peers):
    for peer in peers:
        peer.close()


def client_hello():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ecdh_curve("prime256v1")
    sent = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), sent).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return sent.read()


class Handshakes:
    """Connections that send a ClientHello and then nothing; each thread holds the newest ones."""

    def __init__(self, count, held):
        self.is_over, self.hello, self.held = threading.Event(), client_hello(), held
        for _ in range(count):
            threading.Thread(target=self.shake, daemon=True).start()

    def shake(self):
        sockets = collections.deque()
        while not self.is_over.is_set():
            try:
                sockets.append(socket.create_connection((ARGS.host, ARGS.port), 20))
                sockets[-1].sendall(self.hello)
            except OSError:
                pass
            if len(sockets) > self.held:
                sockets.popleft().close()

    def close(self):
        self.is_over.set()


@flood
def half_handshakes(threads=4, held=200):
    """With a brick that has TLS the daemon signs for each of them. Without such a brick the daemon refuses them."""
    handshakes = Handshakes(threads, held)
    time.sleep(1)
    return [handshakes]


@flood
def unknown_users(connections=8):
    """Calls of ever new users, until the connections are closed. Without manage-gids these calls are ordinary calls."""
    peers = [member() for _ in range(connections)]

    def ask(peer):
        try:
            uid = 200000 + 1000000 * peers.index(peer)
            for _ in range(1024):
                peer.uid = uid = uid + 1
                peer.send_raw(record(peer, "ACCESS", gfid=ROOT, mask=4))
            while True:
                peer.receive_record()
                peer.uid = uid = uid + 1
                peer.send_raw(record(peer, "ACCESS", gfid=ROOT, mask=4))
        except (Closed, OSError):
            pass

    for peer in peers:
        threading.Thread(target=ask, args=(peer,), daemon=True).start()
    time.sleep(1)
    return peers


@check
def unread_reads_of_64_mib_take_no_more_memory_than_one():
    before = resident()
    peers = large_reads()
    grown = peak_resident(2) - before
    other_serves()
    close(peers)
    assert grown < 512, "resident memory grew by %d MiB" % grown


@check
def unread_replies_are_bounded_for_each_connection():
    before = resident()
    peers = unread_replies()
    grown = peak_resident(2) - before
    other_serves()
    close(peers)
    assert grown < 600, "resident memory grew by %d MiB" % grown


@check
def a_slow_reader_gets_every_reply():
    [peer] = unread_replies(1, 200, MIB)
    time.sleep(0.5)  # until the queue is full; if it is not yet, less is tested
    for _ in range(200):
        reply = Reply("READ", peer.receive().body)
        assert reply.op_ret == MIB, reply
    assert peer.fop("LOOKUP", gfid=ROOT).op_ret == 0
    close([peer])


@check
def blocked_locks_are_refused_at_their_bound_and_the_unlock_is_read():
    count, before = 20000, resident()
    holder, waiter = peers = blocked_locks(count)
    assert waiter.sent == waiter.of, "%d of %d bytes were read" % (waiter.sent, waiter.of)
    # Calls above the bound are answered at once, and so is another call behind all of them.
    xid = waiter.send(FOPS, 400, FOP_ROWS["LOOKUP"][0], encode_fop("LOOKUP", gfid=ROOT))
    refused, is_answered = 0, False
    while not is_answered or refused < count - WAITING_MAX:
        answer = waiter.receive()
        if answer.xid == xid:
            is_answered = True
            continue
        reply = Reply("INODELK", answer.body)
        assert (reply.op_ret, reply.op_errno) == (-1, errno.ENOLCK), "%r of call %d, after %d refused" % (reply, answer.xid, refused)
        refused += 1
    grown = resident() - before
    assert grown < 150, "resident memory grew by %d MiB" % grown
    assert holder.fop("INODELK", gfid=waiter.gfid, cmd=1, type=2, flock=flock(2, owner=b"holder"), volume="flood").op_ret == 0
    for _ in range(count - refused):
        assert Reply("INODELK", waiter.receive().body).op_ret == 0
    other_serves()
    close(peers)


def files_limit():
    with open("/proc/%s/limits" % os.environ["KILN_TEST_PID"]) as limits:
        return min(next(int(line.split()[3]) for line in limits if line.startswith("Max open files")), 1 << 20)


def count_open(socks):
    poller = select.poll()
    for sock in socks:
        poller.register(sock, select.POLLIN | select.POLLRDHUP)
    return len(socks) - len(poller.poll(0))


@check
def silent_connections_keep_no_client_out():
    most = files_limit() // 16
    count = min(most + 300, 3000)
    peers = silent_connections(count)
    for brick in (ARGS.brick, ARGS.other):
        with member(brick) as peer:
            assert peer.fop("LOOKUP", gfid=ROOT).op_ret == 0
    end = time.monotonic() + 20
    while (left := count_open(peers)) > most and time.monotonic() < end:
        time.sleep(0.05)
    close(peers)
    assert left <= most, "%d of %d are open, %d may be" % (left, count, most)


@check
def one_clients_opens_leave_descriptors_for_others():
    count, most = 20000, files_limit() * 3 // 16
    [peer] = opens(count)
    refused = sum(peer.refused.values())
    assert refused >= count - most - 32, "%d of %d were refused, %d may be open" % (refused, count, most)
    assert set(peer.refused) <= {errno.EMFILE}, peer.refused
    with member(ARGS.other) as other:
        for _ in range(100):
            create(other)
    with member() as second:
        assert second.fop("LOOKUP", gfid=ROOT).op_ret == 0
    close([peer])


# Every lock of each connection waits for a lock of the other connection: only the unlocks at their ends help.
@check
def two_connections_full_of_waiting_locks_get_their_unlocks_read():
    peers = [member(), member()]
    gfids = [create(p)[0] for p in peers]
    owners = [b"one", b"two"]
    for i in (0, 1):
        reply = peers[i].fop("INODELK", gfid=gfids[i], cmd=1, type=1, flock=flock(1, owner=owners[i]), volume="flood")
        assert reply.op_ret == 0, reply
    for i in (0, 1):
        peers[i].send_raw(b"".join(record(peers[i], "INODELK", gfid=gfids[1 - i], cmd=2, type=1, flock=flock(1, owner=owners[i]), volume="flood")
                                   for _ in range(2000)))
    for i in (0, 1):
        peers[i].send_raw(record(peers[i], "INODELK", gfid=gfids[i], cmd=1, type=2, flock=flock(2, owner=owners[i]), volume="flood"))
    for peer in peers:
        for _ in range(2001):
            assert Reply("INODELK", peer.receive().body).op_ret == 0
    close(peers)


def main():
    global ARGS
    parser = argparse.ArgumentParser()
    for name in ("host", "port", "brick", "other"):
        parser.add_argument(name)
    parser.add_argument("--only", default="")
    ARGS = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    failed = 0
    for function in CHECKS:
        if ARGS.only not in function.__name__:
            continue
        try:
            function()
            problem = None
        except Exception as error:  # whatever went wrong is this check's failure
            problem = "%s: %s" % (type(error).__name__, error)
        print(("not ok - " if problem else "ok - ") + function.__name__.replace("_", " "))
        if problem:
            failed += 1
            print("# " + problem[:800].replace("\n", "\n# "))
        sys.stdout.flush()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
