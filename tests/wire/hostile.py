#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""The calls of a hostile or broken peer. Each check must get an error in that fop's full layout, or a closed connection; and
after each check the brick must answer a valid LOOKUP on a fresh connection.

    hostile.py HOST PORT BRICK [--only PART-OF-A-NAME] [--spare-stock] [--seed N]

HOST, PORT and BRICK may come from KILN_TEST_HOST, KILN_TEST_PORT and KILN_TEST_BRICK. --spare-stock leaves out calls that are
known to crash glusterfsd 10.3. Prints TAP lines without a plan: `ok - ...`.
"""
import argparse
import errno
import os
import random
import socket
import sys
import time

from kilnwire import (ANONYMOUS, DUMP, FOP_ROWS, FOPS, GARBAGE_ARGS, HANDSHAKE, NOBODY, NULL_DICT, PROC_UNAVAIL,
                      PROG_MISMATCH, PROG_UNAVAIL, ROOT, SUCCESS, Closed, Peer, Raw, Reply, d_bytes, d_gfid, d_int, d_str, encode_fop,
                      old_dict, opaque, text, typed_dict, u32, u64)

CHECKS = []
ARGS = None
UNKNOWN = bytes.fromhex("deadbeef00001111222233334444deadbeef"[:32])
CREATE_FLAGS = os.O_CREAT | os.O_RDWR
counter = iter(range(1 << 30))


def check(function):
    CHECKS.append(function)
    return function


# Most of these calls crash glusterfsd 10.3. Any number that is no fd of the client is enough for a crash, so calls with random
# numbers are not sent to stock either.
def not_for_stock(function):
    function.not_for_stock = True
    return function


def fresh():
    return Peer(ARGS.host, ARGS.port)


def member():
    peer = fresh()
    op_ret, op_errno, _ = peer.login(ARGS.brick)
    assert op_ret == 0, "login: errno %d" % op_errno
    return peer


def unique():
    return "hostile-%d-%d" % (os.getpid(), next(counter))


def random_gfid():
    return os.urandom(16)


def same(got, want, what=""):
    assert got == want, "%s: got %r, want %r" % (what, got, want)


def fails(reply, *errnos):
    assert reply.op_ret == -1, "succeeded: %r" % reply
    if ARGS.spare_stock and errnos: # stock looks up an over-long name before the check of its length
        errnos += (errno.ENOENT,)
    assert not errnos or reply.op_errno in errnos, "errno %d (%s), want %s" % (
        reply.op_errno, errno.errorcode.get(reply.op_errno), " or ".join(errno.errorcode[e] for e in errnos))


def create(peer, name=None):
    gfid = random_gfid()
    reply = peer.fop("CREATE", name=name or unique(), flags=CREATE_FLAGS, mode=0o100644, xdata={"gfid-req": d_gfid(gfid)})
    assert reply.op_ret == 0, reply
    return gfid, reply.fd


def still_serves():
    with member() as peer:
        reply = peer.fop("LOOKUP", gfid=ROOT)
        assert reply.op_ret == 0, "LOOKUP of the root: %r" % reply
        same(reply.stat["gfid"], ROOT, "root's gfid")


# Accepts an answer or a closed connection, which must come soon.
def tolerates(peer, name, args):
    try:
        answer = peer.call(FOPS, 400, FOP_ROWS[name][0], args)
    except Closed:
        return None
    assert answer.denied or answer.status in (SUCCESS, GARBAGE_ARGS), "%s: accept status %s" % (name, answer.status)
    if answer.denied or answer.status != SUCCESS:
        return None
    return Reply(name, answer.body)


# -- before login -------------------------------------------------------------------------------------------------

@check
def dump_lists_the_served_programs():
    with fresh() as peer:
        listed = [(number, version) for _, number, version in peer.dump()]
        for program in ((FOPS, 400), (DUMP, 1), (HANDSHAKE, 2)):
            assert program in listed, listed
        assert not [p for p in listed if p[0] == 34123456], "Portmap is listed"
        same(peer.ping(), bytes(12), "PING")


@check
def unknown_programs_versions_and_procedures_get_errors():
    with member() as peer:
        same(peer.call(4711, 1, 1).status, PROG_UNAVAIL)
        answer = peer.call(FOPS, 399, 27)
        same((answer.status, answer.body), (PROG_MISMATCH, bytes(8)))
        for program, version, procedure in ((FOPS, 400, 57), (FOPS, 400, 0xffffffff), (DUMP, 1, 0), (DUMP, 1, 3),
                                            (HANDSHAKE, 2, 5), (HANDSHAKE, 2, 99)):
            same(peer.call(program, version, procedure).status, PROC_UNAVAIL, (program, procedure))
        same(peer.call(FOPS, 400, 49, bytes(64)).status, GARBAGE_ARGS, "COMPOUND")


@check
def fops_before_login_are_garbage_args():
    with fresh() as peer:
        for name in ("LOOKUP", "STAT", "CREATE", "WRITE"):
            same(peer.call(FOPS, 400, FOP_ROWS[name][0], encode_fop(name)).status, GARBAGE_ARGS, name)
        peer.send(FOPS, 400, 41, encode_fop("RELEASE", fd=0))
        same(peer.ping(), bytes(12), "PING after an unanswered RELEASE")


@check
def undecodable_headers_get_an_error_or_a_closed_connection():
    undecodable = bytes.fromhex("000000000000000100000000000000000000000000000004")
    for record in (b"", b"\0\0\0\5", u32(5) + u32(0) + u32(3) + bytes(28), u32(5) + u32(1) + u32(0) + bytes(16),
                   u32(5) + u32(0) + u32(2) + u32(DUMP) + u32(1) + u32(2) + u32(0) + u32(404) + bytes(412),
                   u32(5) + u32(0) + u32(2) + u32(DUMP) + u32(1) + u32(2) + u32(0) + u32(0xfffffffc)):
        with fresh() as peer:
            peer.send_record(record)
            try:
                same(peer.receive_record(), undecodable, record[:40].hex())
            except Closed:
                pass


@check
def an_unknown_message_type_closes_the_connection():
    with fresh() as peer:
        peer.send_record(u32(5) + u32(2) + u32(2) + u32(DUMP) + u32(1) + u32(2) + bytes(16))
        try:
            peer.receive_record()
        except Closed:
            return
        raise AssertionError("an answer to message type 2")


@check
def credentials_over_the_limits_are_denied():
    body = bytes(28) + u32(90) + bytes(360) + u32(4) + bytes(4)
    with fresh() as peer:
        answer = peer.call(DUMP, 1, 2, cred=u32(390040) + opaque(body))
        same((answer.denied, answer.reject, answer.auth), (True, 1, 0))
        for good in (bytes(28) + u32(87) + bytes(348) + opaque(bytes(4)), bytes(28) + u32(0) + opaque(bytes(91)), bytes(8)):
            same(peer.call(DUMP, 1, 2, cred=u32(390040) + opaque(good)).status, SUCCESS)
        same(peer.call(DUMP, 1, 2, cred=u32(12345) + opaque(b"abcd")).status, SUCCESS, "unknown flavor")


# A mark that promises a GiB must not make the brick set aside a GiB.
@check
def a_mark_of_a_gigabyte_before_login_takes_no_memory():
    for mark in (0x80000000 | 0x3fffffff, 0x3fffffff, 0xffffffff, 0x7fffffff):
        with fresh() as peer:
            before = resident_kb()
            peer.send_raw(u32(mark) + bytes(1000))
            time.sleep(0.1)
            if before:
                assert resident_kb() - before < 32 << 10, "resident memory grew by %d KiB" % (resident_kb() - before)


def resident_kb():
    """The daemon's, where its pid is given."""
    pid = os.environ.get("KILN_TEST_PID")
    if not pid:
        return 0
    with open("/proc/%s/status" % pid) as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


# Stock matches each of the keys with each of the object's xattrs: hours of work for one small request.
@check
@not_for_stock
def more_keys_than_the_bound_are_refused():
    with member() as peer:
        gfid = random_gfid()
        same(peer.fop("MKNOD", pargfid=ROOT, name=unique(), mode=0o100644, xdata={"gfid-req": d_gfid(gfid)}).op_ret, 0)
        for first in range(0, 100, 50):
            same(peer.fop("SETXATTR", gfid=gfid, dict={"user.%d" % i: d_bytes(b"1") for i in range(first, first + 50)}).op_ret, 0)
        everything = {"user.%d" % i: d_int(0) for i in range(256)}
        same(len(peer.fop("LOOKUP", gfid=gfid, xdata=everything).xdata), 100)
        for fop in ("LOOKUP", "STAT", "GETXATTR"):
            for keys in ({**everything, "user.more": d_int(0)}, {"user.*%d*" % i: d_int(0) for i in range(17)},
                         {"user.*%d*" % i: d_int(0) for i in range(20000)}):
                reply = peer.fop(fop, gfid=gfid, xdata=keys)
                same((reply.op_ret, reply.op_errno), (-1, errno.E2BIG), "%s with %d keys" % (fop, len(keys)))
        counters = {"trusted.afr.v-client-%d" % i: d_bytes(bytes(12)) for i in range(257)}
        reply = peer.fop("XATTROP", gfid=gfid, dict=counters)
        same((reply.op_ret, reply.op_errno), (-1, errno.E2BIG), "XATTROP")
        # All xattrs that an object can have can be removed in one call.
        same(peer.fop("REMOVEXATTR", gfid=gfid, name="", xdata={"user.%d" % i: d_str("") for i in range(5000)}).op_ret, 0)
        same(len(peer.fop("LOOKUP", gfid=gfid, xdata=everything).xdata), 0)


@check
def many_tiny_fragments_do_no_harm():
    with fresh() as peer:
        same(peer.call(DUMP, 1, 2, fragments=40).status, SUCCESS)
        peer.send_raw(u32(0) * 1000 + u32(0x80000000))
        try:
            peer.receive_record()
        except Closed:
            pass


@check
def failed_logins_give_no_access():
    with fresh() as peer:
        same(peer.login("/no/such/brick")[:2], (-1, errno.ENOENT))
        same(peer.login(None)[:2], (-1, errno.EINVAL))
        same(peer.login(ARGS.brick, **{"fops-version": "1"})[:2], (-1, errno.EINVAL))
        same(peer.login(ARGS.brick, **{"process-uuid": None})[:2], (-1, errno.EINVAL))
        for lie in (u32(1), u32(0x7fffffff), u32(1) + u32(0x7fffffff) + u32(1) + b"a\0b", u32(2) + u32(1) + u32(1) + b"a\0b",
                    u32(0xffffffff) + bytes(64)):
            answer = peer.call(HANDSHAKE, 2, 1, opaque(lie))
            assert answer.status in (SUCCESS, GARBAGE_ARGS)
        same(peer.call(FOPS, 400, 27, encode_fop("LOOKUP")).status, GARBAGE_ARGS, "fop after failed logins")
        same(peer.login(ARGS.brick)[0], 0)
        same(peer.fop("LOOKUP").op_ret, 0)


# -- known crashes of stock ---------------------------------------------------------------------------------------

@check
@not_for_stock
def fd_minus_one_is_refused():
    for name, (_, fields, _) in FOP_ROWS.items():
        if " fd" in fields and name not in ("RELEASE", "RELEASEDIR"):
            with member() as peer:
                payload = b"xxxx" if name == "WRITE" else b""
                fails(peer.fop(name, payload=payload, fd=-1, size=4), errno.EBADF, errno.EINVAL, errno.EOPNOTSUPP)


@check
@not_for_stock
def namelink_and_icreate_are_refused():
    with member() as peer:
        fails(peer.fop("NAMELINK", name=unique()))
        fails(peer.fop("NAMELINK", name=unique(), xdata={"gfid-req": d_gfid(random_gfid())}))
        fails(peer.fop("ICREATE", gfid=random_gfid(), mode=0o100644))


@check
@not_for_stock
def setactivelk_for_an_unknown_client_does_no_harm():
    flock = u32(1) + u32(0) + u64(0) + u64(10) + u32(7) + opaque(b"owner")
    locks = u32(1) + flock + text("no-such-client") + u32(0) + u32(0)
    with member() as peer:
        gfid, _ = create(peer)
        tolerates(peer, "SETACTIVELK", encode_fop("SETACTIVELK", gfid=gfid, locks=Raw(locks)))
        tolerates(peer, "SETACTIVELK", encode_fop("SETACTIVELK", gfid=gfid, locks=Raw(locks[:-4] * 500 + u32(0))))
        tolerates(peer, "SETACTIVELK", encode_fop("SETACTIVELK", gfid=UNKNOWN, locks=Raw(locks)))


@check
@not_for_stock
def put_lease_and_copy_are_answered():
    with member() as peer:
        for name in ("PUT", "LEASE", "COPY_FILE_RANGE", "IPC", "GETACTIVELK"):
            tolerates(peer, name, encode_fop(name, name=unique(), payload=b"data" if name == "PUT" else b""))


# -- names, gfids, fds ----------------------------------------------------------------------------------------------

BAD_NAMES = {"a/b": (errno.EPERM, errno.EINVAL), "/": (errno.EPERM, errno.EINVAL), "..": (), ".": (), "": (),
             "n" * 256: (errno.ENAMETOOLONG,), "n" * 5000: (errno.ENAMETOOLONG,), "a/../b": (errno.EPERM, errno.EINVAL),
             "../escape": (errno.EPERM, errno.EINVAL), ".glusterfs": ()}


@check
def bad_names_make_no_object():
    with member() as peer:
        for name, errnos in BAD_NAMES.items():
            fresh_gfid = {"gfid-req": d_gfid(random_gfid())}
            for fop, fields in (("MKDIR", {"mode": 0o755}), ("CREATE", {"flags": CREATE_FLAGS, "mode": 0o100644}),
                                ("MKNOD", {"mode": 0o100644}), ("SYMLINK", {"linkname": "target"})):
                fails(peer.fop(fop, name=name, xdata=fresh_gfid, **fields), *errnos)
            if name not in ("", ".", ".."):
                reply = peer.fop("LOOKUP", name=name)
                fails(reply, *errnos)
            for fop in ("UNLINK", "RMDIR"):
                fails(peer.fop(fop, name=name), *errnos)


@check
def bad_names_in_rename_and_link_are_refused():
    with member() as peer:
        good = unique()
        gfid, _ = create(peer, good)
        for name, errnos in BAD_NAMES.items():
            fails(peer.fop("RENAME", name=good, name2=name), *errnos)
            fails(peer.fop("RENAME", name=name, name2=unique()), *errnos)
            fails(peer.fop("LINK", gfid=gfid, name2=name), *errnos)
        same(peer.fop("LOOKUP", name=good).op_ret, 0, "the file is where it was")


@check
def a_nul_in_a_name_makes_no_object():
    with member() as peer:
        for fop in ("MKDIR", "LOOKUP", "UNLINK", "CREATE"):
            reply = tolerates(peer, fop, encode_fop(fop, name=Raw(opaque(b"abc\0def")), mode=0o755,
                                                    flags=CREATE_FLAGS if fop == "CREATE" else 0,
                                                    xdata={"gfid-req": d_gfid(random_gfid())}))
            if reply and fop in ("MKDIR", "CREATE") and not ARGS.spare_stock:
                fails(reply)


@check
def the_parent_of_the_root_is_not_found():
    with member() as peer:
        fails(peer.fop("LOOKUP", name=".."))
        fails(peer.fop("LOOKUP", name=".glusterfs"))


@check
def unknown_gfids_are_refused():
    by_gfid = [n for n, (_, fields, _) in FOP_ROWS.items() if fields.startswith("gfid") and " fd" not in fields]
    with member() as peer:
        for name in by_gfid:
            if ARGS.spare_stock and name in ("SETACTIVELK", "ICREATE", "LEASE"):
                continue
            reply = peer.fop(name, gfid=UNKNOWN, size=100, namelen=0, name2=unique(), cmd=1, volume="d",
                             dict={"user.x": d_bytes(b"1")})
            fails(reply)
            if name not in ("LOOKUP", "ICREATE", "LEASE", "SETACTIVELK", "GETACTIVELK", "INODELK", "ENTRYLK"):
                same(reply.op_errno, errno.ESTALE, name)
        fails(peer.fop("LOOKUP", gfid=UNKNOWN), errno.ENOENT)
        fails(peer.fop("LOOKUP", pargfid=UNKNOWN, name="x"), errno.ESTALE)
        fails(peer.fop("STAT", gfid=NOBODY), errno.EINVAL)
        fails(peer.fop("FSTAT", gfid=UNKNOWN, fd=ANONYMOUS), errno.ENOENT)


@check
@not_for_stock
def unknown_and_foreign_fds_are_refused():
    with member() as one, member() as other:
        gfid, number = create(one)
        for name, (_, fields, _) in FOP_ROWS.items():
            if " fd" not in fields or name in ("RELEASE", "RELEASEDIR", "COPY_FILE_RANGE"):
                continue
            for fd in (number, 1 << 20, 1 << 40, -3, -(1 << 63), (1 << 63) - 1):
                payload = b"xxxx" if name == "WRITE" else b""
                fails(other.fop(name, payload=payload, gfid=gfid, fd=fd, size=4), errno.EBADF)
        for fop in ("RELEASE", "RELEASEDIR"):
            for fd in (number, 1 << 40, -1, -2, -3):
                same(other.fop(fop, fd=fd).op_ret, 0, fop)
        same(one.fop("FSTAT", gfid=gfid, fd=number).op_ret, 0, "the owner's fd lives")


@check
def files_as_folders_and_folders_as_files_are_refused():
    with member() as peer:
        gfid, fd = create(peer)
        fails(peer.fop("LOOKUP", pargfid=gfid, name="x"))
        fails(peer.fop("MKDIR", pargfid=gfid, name="x", mode=0o755, xdata={"gfid-req": d_gfid(random_gfid())}))
        fails(peer.fop("OPENDIR", gfid=gfid), errno.ENOTDIR)
        fails(peer.fop("READDIRP", gfid=gfid, fd=fd, size=4096))
        fails(peer.fop("READLINK", gfid=gfid, size=100))
        fails(peer.fop("TRUNCATE", gfid=ROOT, offset=10))
        directory = peer.fop("OPENDIR", gfid=ROOT).fd
        fails(peer.fop("READ", gfid=ROOT, fd=directory, size=100))
        fails(peer.fop("WRITE", gfid=ROOT, fd=directory, payload=b"xx"))


@check
def numbers_out_of_bounds_do_no_harm():
    huge = (1 << 63) - 1
    with member() as peer:
        gfid, fd = create(peer)
        for size in (0xffffffff, 0x7fffffff, 129 << 20, 128 << 20):
            reply = peer.fop("READ", gfid=gfid, fd=fd, size=size)
            assert reply.op_ret <= 0, reply
        for offset in (huge, 1 << 63, (1 << 64) - 1):
            tolerates(peer, "READ", encode_fop("READ", gfid=gfid, fd=fd, offset=offset, size=10))
            fails(peer.fop("WRITE", gfid=gfid, fd=fd, offset=offset, payload=b"xx"))
            fails(peer.fop("FTRUNCATE", gfid=gfid, fd=fd, offset=1 << 63))
            for fop in ("FALLOCATE", "DISCARD", "ZEROFILL"):
                fails(peer.fop(fop, gfid=gfid, fd=fd, offset=offset, size=huge))
            tolerates(peer, "SEEK", encode_fop("SEEK", gfid=gfid, fd=fd, offset=offset, what=7))
            tolerates(peer, "READDIRP", encode_fop("READDIRP", gfid=ROOT, fd=ANONYMOUS, offset=offset, size=0xffffffff))
            tolerates(peer, "RCHECKSUM", encode_fop("RCHECKSUM", gfid=gfid, fd=fd, offset=offset, size=0xffffffff))
            tolerates(peer, "COPY_FILE_RANGE", encode_fop("COPY_FILE_RANGE", gfid=gfid, gfid2=gfid, fd=fd, fd2=fd, offset=offset,
                                                          offset2=offset, size=0xffffffff))


@check
def invalid_locks_do_no_harm():
    def flock(kind, whence, start, length, owner=b"o"):
        return Raw(u32(kind) + u32(whence) + u64(start) + u64(length) + u32(1) + opaque(owner))
    with member() as peer:
        gfid, fd = create(peer)
        for cmd in (0, 1, 2, 6, 99, 0xffffffff):
            for lock in (flock(9, 0, 0, 0), flock(1, 7, 0, 0), flock(1, 0, 1 << 63, 1), flock(2, 0, (1 << 63) - 1, (1 << 63) - 1),
                         flock(0, 0, 0, (1 << 64) - 1)):
                for fop in ("LK", "INODELK", "FINODELK"):
                    tolerates(peer, fop, encode_fop(fop, gfid=gfid, fd=fd, cmd=cmd, type=0, flock=lock, volume="d"))
        for cmd in (0, 1, 2, 99):
            for kind in (0, 1, 99):
                tolerates(peer, "ENTRYLK", encode_fop("ENTRYLK", gfid=ROOT, cmd=cmd, type=kind, namelen=1 << 40, name="n",
                                                      volume="d%d%d" % (cmd, kind)))
        tolerates(peer, "LK", encode_fop("LK", gfid=gfid, fd=fd, cmd=1, type=1, flock=flock(1, 0, 0, 0, bytes(5000))))
        tolerates(peer, "INODELK", encode_fop("INODELK", gfid=gfid, cmd=1, type=1, volume="d" * 100000))


# -- dicts --------------------------------------------------------------------------------------------------------

def lying_dicts():
    good = typed_dict({"user.a": d_bytes(b"value"), "gfid-req": d_gfid(random_gfid())})
    pair = opaque(b"user.a\0") + u32(6) + opaque(b"value")
    yield "more pairs than bytes", u32(len(pair)) + u32(0x7fffffff) + u32(0x7fffffff) + pair
    yield "count and npairs differ", u32(len(pair)) + u32(2) + u32(1) + pair
    yield "npairs larger", u32(len(pair)) + u32(1) + u32(2) + pair
    yield "negative count with pairs", u32(len(pair)) + u32(-5) + u32(1) + pair
    yield "negative count, huge npairs", u32(0) + u32(-1) + u32(0xffffffff)
    yield "key without NUL", u32(20) + u32(1) + u32(1) + opaque(b"user") + u32(6) + opaque(b"val")
    yield "empty key", u32(12) + u32(1) + u32(1) + opaque(b"") + u32(6) + opaque(b"v")
    yield "key of a NUL", u32(12) + u32(1) + u32(1) + opaque(b"\0") + u32(6) + opaque(b"v")
    yield "key length beyond the record", u32(20) + u32(1) + u32(1) + u32(0xffffffff) + b"user"
    yield "value length beyond the record", u32(24) + u32(1) + u32(1) + opaque(b"user.a\0") + u32(6) + u32(0x7fffffff) + b"v"
    yield "tag 0", u32(24) + u32(1) + u32(1) + opaque(b"user.a\0") + u32(0) + opaque(b"v")
    yield "tag 10", u32(24) + u32(1) + u32(1) + opaque(b"user.a\0") + u32(10) + opaque(b"v")
    yield "iatt cut short", u32(24) + u32(1) + u32(1) + opaque(b"user.a\0") + u32(8) + bytes(100)
    yield "key of 64 KiB", u32(0) + u32(1) + u32(1) + opaque(b"k" * 65535 + b"\0") + u32(6) + opaque(b"v")
    yield "size word too small", u32(4) + good[4:]
    yield "size word too large", u32(0x7fffffff) + good[4:]
    yield "20000 pairs", typed_dict({"user.%d" % i: d_int(i) for i in range(20000)})


@check
def dicts_with_wrong_lengths_do_no_harm():
    for what, lie in lying_dicts():
        with member() as peer:
            for name in ("LOOKUP", "STAT", "SETXATTR", "XATTROP", "MKDIR"):
                if "dict" in FOP_ROWS[name][1]:
                    args = encode_fop(name, dict=Raw(lie))
                else:
                    args = encode_fop(name, name=unique(), mode=0o755, xdata=Raw(lie))
                try:
                    tolerates(peer, name, args)
                except (ValueError, AssertionError) as error:
                    raise AssertionError("%s, %s: %s" % (what, name, error)) from error
                if name == "LOOKUP" and peer.sock.fileno() < 0:
                    break


@check
def a_dict_with_wrong_lengths_before_a_payload_does_no_harm():
    for what, lie in lying_dicts():
        with member() as peer:
            gfid, fd = create(peer)
            try:
                tolerates(peer, "WRITE", encode_fop("WRITE", gfid=gfid, fd=fd, payload=b"data", xdata=Raw(lie)))
            except (ValueError, AssertionError) as error:
                raise AssertionError("%s: %s" % (what, error)) from error


@check
def values_of_the_wrong_type_do_no_harm():
    keys = ["gfid-req", "trusted.glusterfs.mdata", "glusterfs.content", "link-count", "glusterfs.inodelk-dom-count", "umask", "mode",
            "set-ctime-mdata", "glusterfs.write-is-append", "trusted.afr.dirty", "list-xattr", "glusterfs.open-fd-count",
            "get-gfid-type", "gfidless-lookup", "glusterfs.parent-entrylk", "trusted.glusterfs.dht.linkto", "system.posix_acl_access"]
    values = [d_int(-1), d_str(""), d_str("x" * 1000), d_bytes(b""), d_bytes(b"\xff" * 15), d_bytes(bytes(17)), d_gfid(NOBODY),
              (8, bytes(148)), (9, bytes(36)), (4, bytes(8)), (1, opaque(b"no NUL"))]
    with member() as peer:
        gfid, fd = create(peer)
        for key in keys:
            for value in values:
                pair = {key: value}
                for name, fields in (("LOOKUP", {}), ("STAT", {}), ("SETXATTR", {"gfid": gfid, "dict": pair}),
                                     ("FXATTROP", {"gfid": gfid, "fd": fd, "dict": pair}),
                                     ("MKDIR", {"name": unique(), "mode": 0o755}),
                                     ("WRITE", {"gfid": gfid, "fd": fd, "payload": b"x"})):
                    peer.fop(name, xdata=pair, **fields)


@check
def a_write_with_another_size_than_its_payload_is_refused():
    with member() as peer:
        gfid, fd = create(peer)
        for size, payload in ((2, b"sixsix"), (20, b"xx"), (0xffffffff, b"x"), (1, b"")):
            reply = peer.fop("WRITE", gfid=gfid, fd=fd, size=size, payload=payload)
            if not ARGS.spare_stock:
                fails(reply, errno.EINVAL)
        if not ARGS.spare_stock:
            same(peer.fop("FSTAT", gfid=gfid, fd=fd).stat["size"], 0, "size of the file")


# -- whole programs -------------------------------------------------------------------------------------------------

@check
@not_for_stock
def truncated_arguments_are_garbage_args_for_every_procedure():
    for name in FOP_ROWS:
        args = encode_fop(name, gfid=UNKNOWN, gfid2=UNKNOWN, pargfid=UNKNOWN, pargfid2=UNKNOWN, fd=1 << 40, name="name",
                          name2="name2", linkname="link", volume="dom", dict={"user.a": d_bytes(b"v")},
                          xdata={"gfid-req": d_gfid(random_gfid())})
        peer = member()
        for cut in range(len(args)):
            try:
                answer = peer.call(FOPS, 400, FOP_ROWS[name][0], args[:cut])
            except Closed:
                peer = member()
                continue
            if name == "WRITE" and answer.status == SUCCESS:
                continue
            same(answer.status, GARBAGE_ARGS, "%s cut at %d of %d" % (name, cut, len(args)))
        reply = tolerates(peer, name, args + b"extra bytes are ignored ")
        if reply and name not in ("RELEASE", "RELEASEDIR", "IPC"):
            fails(reply)
        peer.close()


@check
@not_for_stock
def flipped_bits_do_no_harm_in_any_procedure():
    rng = random.Random(ARGS.seed)
    for name in FOP_ROWS:
        peer = member()
        for _ in range(25):
            args = bytearray(encode_fop(name, gfid=random_gfid(), fd=rng.choice((0, 5, ANONYMOUS)), name="name", name2="name2", cmd=1,
                                        linkname="link", volume="dom", size=rng.choice((0, 10, 4096)), mode=0o755,
                                        dict={"user.a": d_bytes(b"v")}, xdata={"gfid-req": d_gfid(random_gfid())}))
            for _ in range(rng.randrange(1, 9)):
                args[rng.randrange(len(args))] ^= 1 << rng.randrange(8)
            try:
                tolerates(peer, name, bytes(args))
            except Closed:
                peer = member()
            except socket.timeout:
                # A blocking lock may rightly wait for ever, because an earlier call of this loop holds the lock.
                assert "LK" in name, "%s: no answer" % name
                peer = member()
        peer.close()


@check
@not_for_stock
def random_bytes_do_no_harm():
    rng = random.Random(ARGS.seed)
    for _ in range(60):
        with fresh() as peer:
            try:
                peer.send_raw(rng.randbytes(rng.randrange(1, 3000)))
                peer.sock.shutdown(socket.SHUT_WR)
                while peer.sock.recv(65536):
                    pass
            except (Closed, ConnectionResetError, OSError):
                pass
    for _ in range(200):
        with fresh() as peer:
            peer.send_record(rng.randbytes(rng.randrange(0, 600)))
            try:
                peer.receive_record()
            except Closed:
                pass
    with member() as peer:
        for _ in range(300):
            procedure = rng.randrange(1, 57)
            try:
                peer.call(FOPS, 400, procedure, rng.randbytes(rng.randrange(0, 400)))
            except Closed:
                peer = member()


@check
def a_hang_up_at_any_byte_does_no_harm():
    record = encode_fop("CREATE", name=unique(), flags=CREATE_FLAGS, mode=0o100644, xdata={"gfid-req": d_gfid(random_gfid())})
    for cut in range(0, 160, 3):
        peer = member()
        whole = peer.head(FOPS, 400, 23) + peer.credential() + u32(0) + u32(0) + record
        peer.send_raw((u32(0x80000000 | len(whole)) + whole)[:cut])
        peer.close()


@check
def a_peer_that_does_not_read_delays_no_other_peer():
    with member() as peer:
        gfid, fd = create(peer)
        same(peer.fop("WRITE", gfid=gfid, fd=fd, payload=bytes(128 << 10)).op_ret, 128 << 10)
        peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.sock.settimeout(1)
        try:
            for _ in range(2000):
                peer.send(FOPS, 400, 12, encode_fop("READ", gfid=gfid, fd=fd, size=128 << 10))
        except (socket.timeout, Closed):
            pass
        still_serves()


# -- odd, but legal -----------------------------------------------------------------------------------------------

@check
@not_for_stock  # takes far more bytes for data than were sent
def a_write_in_fragments_is_whole():
    data = random.Random(ARGS.seed).randbytes(300001)
    with member() as peer:
        gfid, fd = create(peer)
        for fragments in (1, 2, 7, 60):
            args = encode_fop("WRITE", gfid=gfid, fd=fd, payload=data, xdata={"user.pad": d_bytes(bytes(fragments * 900))})
            answer = peer.call(FOPS, 400, 13, args, fragments=fragments)
            same(Reply("WRITE", answer.body).op_ret, len(data), "WRITE in %d fragments" % fragments)
            same(peer.fop("READ", gfid=gfid, fd=fd, size=len(data)).payload, data, "READ after %d fragments" % fragments)
            same(peer.fop("FTRUNCATE", gfid=gfid, fd=fd).op_ret, 0)


@check
def other_calls_in_fragments_are_whole():
    value = random.Random(ARGS.seed).randbytes(60000)
    with member() as peer:
        gfid, _ = create(peer)
        for fragments in (1, 3, 50):
            args = encode_fop("SETXATTR", gfid=gfid, dict={"user.large": d_bytes(value)})
            reply = Reply("SETXATTR", peer.call(FOPS, 400, 17, args, fragments=fragments).body)
            if reply.op_ret and reply.op_errno in (errno.E2BIG, errno.ENOSPC, errno.ERANGE):
                value = value[:1000]  # the file system beneath has small ones only
                continue
            same(reply.op_ret, 0, "SETXATTR in %d fragments, errno %d" % (fragments, reply.op_errno))
            reply = peer.fop("GETXATTR", gfid=gfid, name="user.large", namelen=1)
            same(reply.dict["user.large"], value)


@check
def a_thousand_concurrent_calls_are_answered():
    with member() as peer:
        xids = {peer.send(FOPS, 400, 27, encode_fop("LOOKUP", gfid=ROOT)) for _ in range(1000)}
        while xids:
            answer = peer.receive()
            xids.remove(answer.xid)
            same(Reply("LOOKUP", answer.body).op_ret, 0)


@check
@not_for_stock
def long_lists_are_complete():
    with member() as peer:
        directory = random_gfid()
        same(peer.fop("MKDIR", name=unique(), mode=0o755, xdata={"gfid-req": d_gfid(directory)}).op_ret, 0)
        for i in range(3000):
            same(peer.fop("MKNOD", pargfid=directory, name="entry-%d" % i, mode=0o100644,
                          xdata={"gfid-req": d_gfid(random_gfid())}).op_ret, 0)
        for fop in ("READDIR", "READDIRP"):
            names, offset, fd = set(), 0, peer.fop("OPENDIR", gfid=directory).fd
            while True:
                reply = peer.fop(fop, gfid=directory, fd=fd, offset=offset, size=0x7fffffff)
                assert reply.op_ret >= 0, reply
                same(len(reply.entries), reply.op_ret, "entries")
                if not reply.entries:
                    break
                names |= {e["name"] for e in reply.entries}
                offset = reply.entries[-1]["off"]
            same(len(names - {b".", b".."}), 3000, fop)
        lock = u32(1) + u32(1) + u32(0) + u64(0) + u64(10) + u32(7) + opaque(b"owner") + text("nobody") + u32(0)
        tolerates(peer, "SETACTIVELK", encode_fop("SETACTIVELK", gfid=directory, locks=Raw(lock * 100000 + u32(0))))


@check
def memory_before_login_is_bounded():
    count = 200
    before = resident_kb()
    peers = [fresh() for _ in range(count)]
    for peer in peers:
        peer.send_raw(u32(0x80000000 | 65000) + bytes(64000))
    grown = resident_kb() - before
    for peer in peers:
        peer.close()
    if before and not ARGS.spare_stock:
        assert grown < count * 80, "%d connections take %d KiB" % (count, grown)


def main():
    global ARGS
    parser = argparse.ArgumentParser()
    parser.add_argument("host", nargs="?", default=os.environ.get("KILN_TEST_HOST", "127.0.0.1"))
    parser.add_argument("port", nargs="?", type=int, default=os.environ.get("KILN_TEST_PORT"))
    parser.add_argument("brick", nargs="?", default=os.environ.get("KILN_TEST_BRICK"))
    parser.add_argument("--only", default="")
    parser.add_argument("--spare-stock", action="store_true")
    parser.add_argument("--seed", type=int, default=4711)
    ARGS = parser.parse_args()
    if not ARGS.port or not ARGS.brick:
        parser.error("no port or no brick")
    failed = 0
    for function in CHECKS:
        name = function.__name__.replace("_", " ")
        if ARGS.only not in function.__name__ or (ARGS.spare_stock and getattr(function, "not_for_stock", False)):
            continue
        problem = None
        for step in (function, still_serves):
            try:
                step()
            except Exception as error:  # whatever went wrong is this check's failure
                problem = problem or "%s%s: %s" % ("afterwards, " if step is still_serves else "", type(error).__name__, error)
        print(("ok - " if problem is None else "not ok - ") + name)
        if problem:
            failed += 1
            print("# " + problem[:800].replace("\n", "\n# "))
        sys.stdout.flush()
    sys.exit(1 if failed else 0)


main()
