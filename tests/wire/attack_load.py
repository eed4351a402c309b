# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Ways to take the daemon, or the clients of other bricks, down: memory, descriptors, threads, locks, time."""
import errno
import os
import socket
import time

from attack import (ARGS, SANITIZER, SLOW, Witness, answers, attack, cpu_seconds, created, descriptors, fresh, gfid, make, member, needs, post,
                    record, resident_mb, serves, sized, wait_until)
from kilnwire import FOPS, ROOT, Closed, Raw, d_bytes, d_gfid, d_int, encode_fop, u32, u64

READ_LOCK, WRITE_LOCK, UNLOCK = 0, 1, 2
TRY, WAIT = 1, 2 # commands of INODELK and LK
# Factors for the freed memory that AddressSanitizer keeps, and for the shadow memory of both sanitizers.
MEMORY_TIMES = {"": 1, "address": 4, "thread": 6}[SANITIZER]


def flock(kind, start=0, length=0, owner=b"owner"):
    return Raw(u32(kind) + u32(0) + u64(start) + u64(length) + u32(os.getpid()) + u32(len(owner)) + owner + bytes(-len(owner) % 4))


def inodelk(g, cmd, kind, start=0, length=0, owner=b"owner", domain="attack"):
    return {"gfid": g, "cmd": cmd, "type": kind, "flock": flock(kind, start, length, owner), "volume": domain}


def connections_of(count, source="127.0.0.2"):
    made = []
    for _ in range(count):
        sock = socket.socket()
        sock.settimeout(20)
        sock.bind((source, 0))
        sock.connect(("127.0.0.1", ARGS.port))
        made.append(sock)
    return made


# -- memory of the dead ------------------------------------------------------------------------------------------------

@attack
def a_lock_outlives_its_client_on_a_gfid_that_was_used_again():
    """The file's gfid becomes a symlink's, so that the inode is no longer found by it; the lock's client goes; another one meets the
    lock through its old fd."""
    for kind in ("FINODELK", "LK", "FENTRYLK"):
        for again in ("SYMLINK", "MKDIR", "MKNOD"):
            holder, other = member(), member()
            name = "f-%s-%s" % (kind, again)
            g, fd = created(holder, name)
            other_fd = other.fop("OPEN", gfid=g, flags=os.O_RDWR).fd
            fields = {"cmd": TRY, "type": WRITE_LOCK, "flock": flock(WRITE_LOCK), "volume": "attack"}
            if kind == "FENTRYLK":
                fields = {"cmd": 2, "type": WRITE_LOCK, "name": "n", "namelen": 1, "volume": "attack"}
            assert holder.fop(kind, gfid=g, fd=fd, **fields).op_ret == 0
            assert holder.fop("UNLINK", name=name).op_ret == 0
            holder.fop(again, name=name, linkname="x", mode={"MKDIR": 0o40755}.get(again, 0o10644), xdata={"gfid-req": d_gfid(g)})
            for _ in range(3):
                holder.fop("LOOKUP", name=name)
                holder.fop("READDIRP", gfid=ROOT, fd=holder.fop("OPENDIR").fd, size=65536)
            holder.close()
            waiter = member()
            reply = None
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                reply = other.fop(kind, gfid=g, fd=other_fd, **fields)
                if reply.op_ret == 0:
                    break
                time.sleep(0.02)
            assert reply.op_ret == 0, "%s, then %s: the lock of a client that is gone holds: errno %d" % (kind, again, reply.op_errno)
            other.close()
            waiter.close()
    serves()


# -- memory ---------------------------------------------------------------------------------------------------------------

@attack
def reads_with_unread_replies_take_bounded_memory():
    """Each asks for 64 MiB of a sparse file, nothing is read back."""
    with member() as peer:
        g, fd = created(peer, "sparse")
        assert peer.fop("FTRUNCATE", gfid=g, fd=fd, offset=64 << 20).op_ret == 0
    before = resident_mb()
    peers = [member(source="127.0.0.2") for _ in range(sized(4, 40))]
    worst = 0
    with Witness() as witness:
        for peer in peers:
            peer.send_raw(b"".join(record(peer, "READ", gfid=g, size=64 << 20) for _ in range(36)))
        end = time.monotonic() + sized(3, 15)
        while time.monotonic() < end:
            worst = max(worst, resident_mb() - before)
            time.sleep(0.05)
        for peer in peers:
            peer.close()
    print("# resident memory grew by %d MB" % worst)
    assert worst < 384 * MEMORY_TIMES, "%d connections made resident memory grow by %d MB" % (len(peers), worst)
    wait_until(lambda: resident_mb() - before < 128 * MEMORY_TIMES, 30, "the memory of connections that are gone")
    witness.answered_in(lookup=1, login=2)
    serves()


@attack
def records_of_129_mib_are_promised_and_2_mib_of_each_come():
    """The mark of the largest record that is taken gets memory for the bytes that arrive, and no more."""
    before = resident_mb()
    peers = [member(source="127.0.0.2") for _ in range(sized(12, 100))]
    worst = 0
    with Witness() as witness:
        for peer in peers:
            peer.send_raw(u32(0x80000000 | 129 << 20) + bytes(2 << 20))
        end = time.monotonic() + sized(2, 10)
        while time.monotonic() < end:
            worst = max(worst, resident_mb() - before)
            time.sleep(0.05)
        for peer in peers:
            peer.close()
    print("# resident memory grew by %d MB" % worst)
    assert worst < (32 + 4 * len(peers)) * MEMORY_TIMES, "%d connections made resident memory grow by %d MB" % (len(peers), worst)
    wait_until(lambda: resident_mb() - before < 32 * MEMORY_TIMES, 30, "the memory of connections that are gone")
    witness.answered_in(lookup=1, login=2)
    over = member(source="127.0.0.2")
    over.send_raw(u32(0x80000000 | (129 << 20) + 1))
    try:
        answer = over.sock.recv(1)
    except ConnectionError:
        answer = b""
    assert answer == b"", "a record of more than 129 MiB is not refused"
    serves()


@attack
def unread_replies_of_all_kinds_take_bounded_memory():
    """READDIRPs of a large folder and GETXATTRs of a large value, nothing is read back."""
    with member() as peer:
        folder = make(peer, "MKDIR", "large")
        for number in range(1000):
            make(peer, "MKNOD", "name-of-some-length-%08d" % number, folder)
        g, _ = created(peer, "xattrs")
        assert peer.fop("SETXATTR", gfid=g, dict={"user.big": d_bytes(bytes(60000))}).op_ret == 0
    before = resident_mb()
    peers = [member(source="127.0.0.2") for _ in range(sized(4, 20))]
    for peer in peers:
        fd = peer.fop("OPENDIR", gfid=folder).fd
        peer.sock.settimeout(1)
        try:
            for _ in range(40):
                peer.send_raw(b"".join(record(peer, "READDIRP", gfid=folder, fd=fd, size=1 << 20) for _ in range(20)) +
                              b"".join(record(peer, "GETXATTR", gfid=g, name="user.big", namelen=8) for _ in range(100)))
        except (TimeoutError, Closed):
            pass # not read from any more, or thrown out: both are right
    time.sleep(1)
    grown = resident_mb() - before
    print("# resident memory grew by %d MB" % grown)
    assert grown < 256 * MEMORY_TIMES, "resident memory grew by %d MB" % grown
    for peer in peers:
        peer.close()
    serves()


@attack
def calls_that_wait_without_end():
    """Blocked INODELKs of a connection, small and with 60 KB of xdata."""
    count = sized(20000, 200000)
    with member() as holder:
        g, _ = created(holder, "held")
        assert holder.fop("INODELK", **inodelk(g, TRY, WRITE_LOCK)).op_ret == 0
        before = resident_mb()
        for xdata, many in ((None, count), ({"user.filling": d_bytes(bytes(60000))}, count // 40)):
            with member(source="127.0.0.2") as peer:
                peer.sock.settimeout(2)
                one = record(peer, "INODELK", xdata=xdata, **inodelk(g, WAIT, WRITE_LOCK, owner=b"waiter"))
                sent = 0
                try:
                    while sent < many:
                        peer.sock.sendall(one * min(100, many - sent))
                        sent += 100
                except (TimeoutError, ConnectionError):
                    pass # the daemon reads no more
                time.sleep(0.5)
                grown = resident_mb() - before
                print("# about %d calls sent, resident memory grew by %d MB" % (sent, grown))
                assert grown < 128 * MEMORY_TIMES, "%d waiting calls: %d MB" % (sent, grown)
                serves(source="127.0.0.3")
    serves()


@attack
def pieces_of_records_before_the_login():
    """64 KiB of one connection that has not logged in, in the pieces that take most."""
    before = resident_mb()
    peers = []
    for step in (4096, 1, 65532, 16380, 20000):
        for _ in range(sized(100, 1000)):
            peer = fresh("127.0.0.2")
            try:
                peer.send_raw(u32(16384 if step < 20000 else 0x80000000 | 16380))
                for _ in range(3 if step > 1 else 20):
                    peer.send_raw(bytes(min(step, 5400)))
            except Closed:
                pass
            peers.append(peer)
    time.sleep(0.5)
    grown = resident_mb() - before
    print("# %d connections, resident memory grew by %.1f MB" % (len(peers), grown))
    assert grown < len(peers) * 0.0645 * MEMORY_TIMES + 8, "%d connections take %.1f MB" % (len(peers), grown)
    for peer in peers:
        peer.close()
    serves()


# -- descriptors ----------------------------------------------------------------------------------------------------------

def silence(source, good):
    made = connections_of(3100, source)
    try:
        begin = time.monotonic()
        deadline = begin + 60
        while True:
            try:
                serves(source=good, seconds=5)
                break
            except (Closed, OSError) as error:
                assert time.monotonic() < deadline, "nobody gets in for a minute: %s" % type(error).__name__
                time.sleep(0.2)
        print("# %d silent connections: a login after %.1f s" % (len(made), time.monotonic() - begin))
        assert time.monotonic() - begin < 5, "a login took %.1f s" % (time.monotonic() - begin)
    finally:
        for sock in made:
            sock.close()


@attack
@needs(nofile=4000)
def connections_that_never_speak():
    silence("127.0.0.2", "127.0.0.1")
    serves()


@attack
@needs(nofile=4000)
def connections_that_never_speak_from_many_addresses():
    made = []
    for last in range(10, 60):
        try:
            made += connections_of(62, "127.0.1.%d" % last)
        except OSError:
            break
    time.sleep(0.2)
    begin = time.monotonic()
    while True:
        try:
            serves(source="127.0.0.1", seconds=5)
            break
        except (Closed, OSError) as error:
            assert time.monotonic() - begin < 5, "nobody gets in: %s" % type(error).__name__
            time.sleep(0.1)
    print("# %d silent connections: a login after %.1f s" % (len(made), time.monotonic() - begin))
    for sock in made:
        sock.close()
    serves()


@attack
def silent_connections_are_closed_in_time():
    """The deadline of a login; a peer that sends a byte now and then is no better than one that is silent."""
    made = connections_of(10)
    slow = connections_of(10)
    began = time.monotonic()
    while time.monotonic() - began < 90 and (made or slow):
        for sock in list(slow):
            try:
                sock.sendall(b"\0" if time.monotonic() - began < 1 else b"")
            except OSError:
                slow.remove(sock)
        for group in (made, slow):
            for sock in list(group):
                sock.setblocking(False)
                try:
                    if not sock.recv(1):
                        group.remove(sock)
                except BlockingIOError:
                    pass
                except OSError:
                    group.remove(sock)
        time.sleep(0.25)
    print("# closed after %.1f s" % (time.monotonic() - began))
    assert not made and not slow, "%d silent and %d slow connections are still open after 90 s" % (len(made), len(slow))
    serves()


@attack
@needs(nofile=4000)
def one_client_opens_everything():
    before = descriptors()
    with member() as peer:
        g, _ = created(peer, "opened")
        folder = make(peer, "MKDIR", "folder")
        refused = 0
        for number in range(5000):
            reply = peer.fop("OPENDIR" if number % 2 else "OPEN", gfid=folder if number % 2 else g, flags=os.O_RDONLY)
            if reply.op_ret < 0:
                assert reply.op_errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.EUSERS, errno.EDQUOT), reply
                refused += 1
                if refused == 100:
                    break
        print("# refused after %d opens, %d descriptors" % (number, descriptors()))
        for brick in (ARGS.other, ARGS.brick):
            with member(brick, source="127.0.0.3") as other:
                theirs, fd = created(other, "theirs")
                assert other.fop("FSTAT", gfid=theirs, fd=fd).op_ret == 0
                for _ in range(20):
                    reply = other.fop("OPEN", gfid=theirs, flags=os.O_RDWR)
                    assert reply.op_ret == 0, "another client's OPEN: errno %d" % reply.op_errno
    wait_until(lambda: descriptors() <= before + 16, 20, "descriptors of a client that is gone")
    serves()


# -- locks ----------------------------------------------------------------------------------------------------------------

@attack
def removals_that_wait_take_no_slot():
    """Removals of files that another client holds inodelks on, more than there are slots for blocking calls."""
    holder, remover, third = member(timeout=30), member(), member(timeout=30)
    files = [created(holder, "held-%d" % number)[0] for number in range(60)]
    folders = [make(holder, "MKDIR", "folder-%d" % number) for number in range(10)]
    for g in files + folders:
        assert holder.fop("INODELK", **inodelk(g, TRY, WRITE_LOCK, domain="v-replicate-0")).op_ret == 0
    for number in range(len(files)):
        post(remover, "UNLINK", name="held-%d" % number)
    for number in range(len(folders)):
        post(remover, "RMDIR", name="folder-%d" % number)
    time.sleep(0.3)
    begin = time.monotonic()
    for number in range(20):
        assert third.fop("LOOKUP", name="held-%d" % number, xdata={"glusterfs.content": d_int(4096)}).op_errno in (0, errno.ENOENT)
        assert third.fop("MKNOD", name="third-%d" % number, mode=0o100644, xdata={"gfid-req": d_gfid(gfid())}).op_ret == 0
    took = time.monotonic() - begin
    assert took < 3 * SLOW, "a third client waited %.1f s" % took
    for g in files + folders:
        reply = holder.fop("WRITE", b"x", gfid=g) if g in files[:5] else None
        assert reply is None or reply.op_ret == 1, reply
        assert holder.fop("INODELK", **inodelk(g, TRY, UNLOCK, domain="v-replicate-0")).op_ret == 0
    for answer in answers(remover, len(files) + len(folders)).values():
        assert answer.body[:4] == bytes(4), "a removal failed: errno %d" % int.from_bytes(answer.body[4:8], "big")
    for peer in (holder, remover, third):
        peer.close()
    serves()


@attack
def a_long_queue_of_locks():
    """Thousands of locks granted and thousands waiting on one inode; then many connections that lock and unlock there."""
    count = sized(2500, 8000)
    holder, waiter = member(), member(source="127.0.0.2")
    g, _ = created(holder, "queue")
    with Witness() as witness:
        begin = time.monotonic()
        blob = b"".join(record(holder, "INODELK", **inodelk(g, TRY, WRITE_LOCK, 10 * i, 10, b"h%d" % i)) for i in range(count))
        holder.sock.settimeout(300)
        granted = 0
        for at in range(0, count, 500):
            holder.xid = 0
            blob = b"".join(record(holder, "INODELK", **inodelk(g, TRY, WRITE_LOCK, 10 * i, 10, b"h%d" % i)) for i in range(at, at + 500))
            holder.send_raw(blob)
            granted += sum(answer.body[:4] == bytes(4) for answer in answers(holder, 500).values())
        waiter.sock.settimeout(3)
        queued = 0
        try:
            for at in range(0, count, 500):
                waiter.send_raw(b"".join(record(waiter, "INODELK", **inodelk(g, WAIT, WRITE_LOCK, 10 * i, 10, b"w%d" % i))
                                         for i in range(at, at + 500)))
                queued += 500
        except (TimeoutError, Closed):
            pass
        time.sleep(0.5)
        print("# %d granted, %d sent to wait in %.1f s" % (granted, queued, time.monotonic() - begin))
        begin = time.monotonic()
        assert holder.fop("INODELK", **inodelk(g, TRY, UNLOCK, 0, 10, b"h0")).op_ret == 0
        took = time.monotonic() - begin
        print("# an unlock took %.0f ms" % (took * 1e3))
        busy = [member(source="127.0.0.2") for _ in range(sized(20, 40))]
        for n, peer in enumerate(busy):
            calls = [record(peer, "INODELK", **inodelk(g, TRY, kind, (count + n) * 10, 10, b"b%d" % n)) for kind in (WRITE_LOCK, UNLOCK)] * 20
            peer.send_raw(b"".join(calls))
        for peer in busy:
            peer.sock.settimeout(120)
            answers(peer, 40)
            peer.close()
    holder.close()
    waiter.close()
    assert took < 0.25 * SLOW, "an unlock took %.2f s" % took
    witness.answered_in(lookup=0.5, login=2)
    serves()


# -- time -----------------------------------------------------------------------------------------------------------------

def files_with_xattrs(peer, folder, files, xattrs):
    pairs = {"user.%04d" % number: d_bytes(b"x") for number in range(xattrs)}
    for number in range(files):
        g = make(peer, "MKNOD", "f%d" % number, folder)
        assert peer.fop("SETXATTR", gfid=g, dict=pairs).op_ret == 0


@attack
def patterns_times_xattrs_times_entries():
    patterns = sized(5000, 20000)
    with member() as peer:
        folder = make(peer, "MKDIR", "many")
        files_with_xattrs(peer, folder, sized(50, 100), 100)
        fd = peer.fop("OPENDIR", gfid=folder).fd
        bomb = {"user.*a*%d" % number: d_int(0) for number in range(patterns)}
        exact = {"user.none-%d" % number: d_int(0) for number in range(patterns)}
        with Witness() as witness:
            begin = time.monotonic()
            reply = peer.fop("LOOKUP", pargfid=folder, name="f0", xdata=bomb)
            print("# a LOOKUP with %d patterns: %d, %.2f s" % (patterns, reply.op_ret, time.monotonic() - begin))
            assert time.monotonic() - begin < SLOW, "one LOOKUP took %.1f s" % (time.monotonic() - begin)
            used = cpu_seconds()
            for xdata in (bomb, exact):
                for _ in range(sized(10, 20)):
                    peer.send_raw(record(peer, "READDIRP", gfid=folder, fd=fd, size=1 << 20, xdata=xdata))
            time.sleep(0.5)
            peer.close()
            begin = time.monotonic()
            serves(seconds=60, source="127.0.0.3")
            took = time.monotonic() - begin
            time.sleep(1)
            before = cpu_seconds()
            time.sleep(1)
            burnt = cpu_seconds() - before
    print("# another client of the brick waited %.2f s, %.1f s of CPU, %.2f in a second after it had gone" % (took, cpu_seconds() - used, burnt))
    assert took < 1.5 * SLOW, "another client of the brick waited %.1f s" % took
    assert burnt < 0.8, "the daemon still works for a client that is gone"
    witness.answered_in(lookup=0.5, login=2)


@attack
def a_login_with_a_deep_path():
    """More components than a login may have, of folders that are there and of ones that are not."""
    with member() as peer:
        parent = ROOT
        for _ in range(300):
            parent = make(peer, "MKDIR", "d", parent)
    for depth, expected in ((256, 0), (257, errno.ENAMETOOLONG), (300, errno.ENAMETOOLONG)):
        with fresh() as peer:
            _, op_errno, _ = peer.login(ARGS.brick, **{"subdir-mount": "/d" * depth})
            assert op_errno == expected, "a login to level %d: errno %d" % (depth, op_errno)
    depth = sized(1000, 4000)
    for path in ("/d" * depth, "/" * depth, "/." * depth, "/.." * depth, "/" + "d" * 4000, "/d" * 100 + "/x" * 3000):
        begin = time.monotonic()
        with fresh() as peer:
            op_ret, _, _ = peer.login(ARGS.brick, **{"subdir-mount": path})
            assert op_ret < 0 or not path.strip("/"), "a login to %s..." % path[:20]
        took = time.monotonic() - begin
        assert took < 2 * SLOW, "a login to %s... took %.1f s" % (path[:20], took)
    serves()


@attack
def folders_of_great_depth():
    depth = sized(1200, 4000)
    with member() as peer:
        parent = ROOT
        made = 0
        begin = time.monotonic()
        for number in range(depth):
            g = gfid()
            reply = peer.fop("MKDIR", pargfid=parent, name="d", mode=0o40755, xdata={"gfid-req": d_gfid(g)})
            if reply.op_ret < 0:
                assert reply.op_errno in (errno.ENAMETOOLONG, errno.ELOOP), reply
                break
            parent = g
            made += 1
        print("# %d levels in %.1f s" % (made, time.monotonic() - begin))
        for fop, fields in (("MKNOD", {"name": "f%d", "mode": 0o100644}), ("CREATE", {"name": "c%d", "mode": 0o100644, "flags": os.O_CREAT | os.O_RDWR})):
            begin = time.monotonic()
            for number in range(100):
                peer.fop(fop, pargfid=parent, xdata={"gfid-req": d_gfid(gfid())}, **{k: v % number if k == "name" else v for k, v in fields.items()})
            took = (time.monotonic() - begin) / 100
            print("# %s at level %d: %.1f ms" % (fop, made, took * 1e3))
            assert took < 0.005 * SLOW, "%s at level %d takes %.1f ms" % (fop, made, took * 1e3)
        with Witness() as witness:
            begin = time.monotonic()
            with fresh() as other:
                other.login(ARGS.brick, **{"subdir-mount": "/d" * made})
            took = time.monotonic() - begin
        print("# a login to level %d: %.2f s" % (made, took))
        assert took < 2 * SLOW, "a login to level %d took %.1f s" % (made, took)
        witness.answered_in(lookup=0.5, login=2)
    serves()


@attack
def calls_of_closed_connections_cost_no_further_cpu():
    """Expensive calls that only read, sent by connections that close at once."""
    with member() as peer:
        g, fd = created(peer, "sparse")
        assert peer.fop("FTRUNCATE", gfid=g, fd=fd, offset=64 << 20).op_ret == 0
    used = cpu_seconds()
    calls = sized(200, 1000)
    for _ in range(sized(5, 40)):
        peer = member(source="127.0.0.2")
        peer.sock.settimeout(3)
        try:
            peer.send_raw(b"".join(record(peer, "RCHECKSUM", gfid=g, size=32 << 20) for _ in range(calls)))
        except (TimeoutError, Closed):
            pass
        peer.close()
    begin = time.monotonic()
    serves(seconds=60)
    waited = time.monotonic() - begin
    time.sleep(1)
    before = cpu_seconds()
    time.sleep(1)
    burnt = cpu_seconds() - before
    print("# a newcomer waited %.2f s; %.1f s of CPU, %.2f in a second afterwards" % (waited, cpu_seconds() - used, burnt))
    assert waited < 5 * SLOW, "a newcomer waited %.1f s" % waited
    assert burnt < 0.8, "the daemon still works for clients that are gone"


@attack
def an_index_of_many_entries_is_read_in_parts():
    with member() as peer:
        for number in range(sized(5000, 20000)):
            g = make(peer, "MKNOD", "i%d" % number)
            reply = peer.fop("XATTROP", gfid=g, dict={"trusted.afr.dirty": d_bytes(u32(1) * 3)})
            assert reply.op_ret == 0, "XATTROP: %r" % reply
        name = "glusterfs.xattrop_dirty_gfid"
        reply = peer.fop("GETXATTR", gfid=ROOT, name=name, namelen=len(name))
        assert reply.op_ret >= 0, "GETXATTR of the index's gfid: %r" % reply
        index = reply.dict[name][:16]
        fd = peer.fop("OPENDIR", gfid=index).fd
        for size in (0xffffffff, 0x7fffffff, 1 << 20):
            reply = peer.call(FOPS, 400, 28, encode_fop("READDIR", gfid=index, fd=fd, size=size))
            assert len(reply.body) < 200 << 10, "READDIR with size %d: %d bytes in one reply" % (size, len(reply.body))
            assert len(reply.body) > 1000, "nothing in the index"
    serves()
