#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""A tour of the behaviour that POSIX demands of a file system, on any directory.

    posix_tour.py DIR [--acl] [--no-zero-range] [--no-shared-maps] [--cached] [--xattr-keeps-ctime] [--groups-are-kept] [--only SUBSTRING]

--cached: DIR is a mount whose kernel and md-cache may cache attributes for a second, for all users. Where a
volume differs from POSIX because of the stock client above the brick, the check says so and takes either
answer.

Prints `ok - NAME` or `not ok - NAME` and the reason for each check, and ends with 1 when one failed. Each check gets
an empty directory of its own. Run as root: checks of permissions become other users in child processes.
"""
import ctypes
import errno
import fcntl
import hashlib
import mmap
import os
import random
import shutil
import socket
import stat
import struct
import subprocess
import sys
import time
import traceback

CHECKS = []
ALICE, BOB, STAFF = 21001, 21002, 21100
LIBC = ctypes.CDLL(None, use_errno=True)
FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, FALLOC_ZERO_RANGE = 1, 2, 16


def check(function):
    CHECKS.append(function)
    return function


def needs(option):
    def mark(function):
        function.needs = option
        return function
    return mark


def fails(numbers, function, *args, **kwargs):
    """The call must fail with exactly this errno, or with one of a tuple of errnos."""
    numbers = numbers if isinstance(numbers, tuple) else (numbers,)
    wanted = " or ".join(errno.errorcode[n] for n in numbers)
    try:
        result = function(*args, **kwargs)
    except OSError as error:
        assert error.errno in numbers, "want %s, got %s from %s%r" % (
            wanted, errno.errorcode.get(error.errno, error.errno), function.__name__, args)
        return
    raise AssertionError("want %s, but %s%r gave %r" % (wanted, function.__name__, args, result))


def same(got, want, what=""):
    assert got == want, "%s: got %r, want %r" % (what, got, want)


def put(path, data=b"", mode=0o644):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view):]
    finally:
        os.close(fd)


def get(path):
    with open(path, "rb", buffering=0) as file:
        parts = []
        while True:
            part = file.read(1 << 20)
            if not part:
                return b"".join(parts)
            parts.append(part)


def touch(*paths):
    for path in paths:
        put(path)


def as_user(uid, gid, groups, function):
    """Runs function in a child with these credentials, and raises the exceptions of the child here."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 0
        try:
            os.close(reader)
            os.setgroups(groups)
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
            function()
        except BaseException:
            os.write(writer, traceback.format_exc().encode()[-4000:])
            status = 1
        os._exit(status)
    os.close(writer)
    said = b""
    while True:
        part = os.read(reader, 65536)
        if not part:
            break
        said += part
    os.close(reader)
    _, status = os.waitpid(child, 0)
    assert status == 0, "as uid %d: %s" % (uid, said.decode())


def fallocate(fd, mode, offset, length):
    if LIBC.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def eventually(function, seconds=60):
    deadline = time.monotonic() + seconds
    while True:
        try:
            return function()
        except (OSError, AssertionError):
            if time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def settle():
    """Waits until attributes that were cached for this user have expired: one second, in whole seconds in some caches."""
    if CACHED:
        time.sleep(2.2)


def mode_of(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def pattern(length, seed):
    return random.Random(seed).randbytes(length)


# ---- creating and opening ------------------------------------------------------------------------------------

@check
def create_makes_an_empty_file_with_the_requested_mode():
    old = os.umask(0o027)
    try:
        for mode, want in ((0o777, 0o750), (0o666, 0o640), (0o600, 0o600), (0o000, 0o000)):
            name = "f%o" % mode
            os.close(os.open(name, os.O_CREAT | os.O_RDWR, mode))
            same(mode_of(name), want, name)
            same(os.stat(name).st_size, 0, name)
    finally:
        os.umask(old)


@check
def o_excl_refuses_an_existing_name_of_any_kind():
    touch("file")
    os.mkdir("dir")
    os.symlink("nowhere", "link")
    os.mkfifo("fifo")
    for name in ("file", "dir", "link", "fifo"):
        fails(errno.EEXIST, os.open, name, os.O_CREAT | os.O_EXCL | os.O_WRONLY)


@check
def o_trunc_empties_the_file():
    put("f", b"x" * 10000)
    os.close(os.open("f", os.O_WRONLY | os.O_TRUNC))
    same(os.stat("f").st_size, 0)
    same(get("f"), b"")


@check
def o_append_writes_after_the_writes_of_other_descriptors():
    first = os.open("f", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    second = os.open("f", os.O_WRONLY | os.O_APPEND)
    for i in range(20):
        os.write((first, second)[i % 2], b"%02d;" % i)
    os.lseek(first, 0, os.SEEK_SET)
    os.write(first, b"end")
    os.close(first)
    os.close(second)
    same(get("f"), b"".join(b"%02d;" % i for i in range(20)) + b"end")


@check
def o_directory_refuses_files_and_o_nofollow_refuses_symlinks():
    touch("file")
    os.mkdir("dir")
    os.symlink("file", "link")
    fails(errno.ENOTDIR, os.open, "file", os.O_RDONLY | os.O_DIRECTORY)
    fails(errno.ELOOP, os.open, "link", os.O_RDONLY | os.O_NOFOLLOW)
    os.close(os.open("dir", os.O_RDONLY | os.O_DIRECTORY))


@check
def open_of_missing_names_and_of_directories_fails():
    fails(errno.ENOENT, os.open, "none", os.O_RDONLY)
    fails(errno.ENOENT, os.open, "none/below", os.O_RDONLY | os.O_CREAT)
    os.mkdir("dir")
    fails(errno.EISDIR, os.open, "dir", os.O_WRONLY)
    fails(errno.EISDIR, os.open, "dir", os.O_RDWR | os.O_CREAT)
    touch("file")
    fails(errno.ENOTDIR, os.open, "file/below", os.O_RDONLY)
    fails(errno.ENOTDIR, os.stat, "file/")


@check
def descriptors_refuse_calls_that_their_access_mode_excludes():
    put("f", b"abc")
    reading = os.open("f", os.O_RDONLY)
    writing = os.open("f", os.O_WRONLY)
    fails(errno.EBADF, os.write, reading, b"x")
    fails(errno.EBADF, os.read, writing, 1)
    os.close(reading)
    os.close(writing)


@check
def o_tmpfile_is_refused_or_makes_no_name():
    try:
        fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
    except OSError as error:
        assert error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL), error
        return
    os.write(fd, b"x")
    os.close(fd)
    same(os.listdir("."), [])


# ---- data ----------------------------------------------------------------------------------------------------

@check
def pieces_of_odd_sizes_read_back_as_written():
    want = bytearray(3 << 20)
    dice = random.Random(1)
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    for _ in range(200):
        offset = dice.randrange(len(want))
        data = dice.randbytes(min(dice.randrange(1, 70000), len(want) - offset))
        same(os.pwrite(fd, data, offset), len(data))
        want[offset:offset + len(data)] = data
    os.ftruncate(fd, len(want))
    for _ in range(200):
        offset = dice.randrange(len(want))
        length = dice.randrange(1, 70000)
        same(os.pread(fd, length, offset), bytes(want[offset:offset + length]), "at %d" % offset)
    os.fsync(fd)
    os.close(fd)
    same(hashlib.sha256(get("f")).digest(), hashlib.sha256(want).digest())


@check
def a_file_of_24_writes_of_1_mib_reads_back_as_written():
    data = pattern(1 << 20, 2)
    fd = os.open("f", os.O_CREAT | os.O_WRONLY)
    for _ in range(24):
        os.write(fd, data)
    os.close(fd)
    same(hashlib.sha256(get("f")).digest(), hashlib.sha256(data * 24).digest())


@check
def writev_and_readv_transfer_all_parts():
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    same(os.writev(fd, [b"one", b"", b"two" * 1000, b"three"]), 3008)
    os.lseek(fd, 0, os.SEEK_SET)
    parts = [bytearray(3), bytearray(3000), bytearray(9)]
    same(os.readv(fd, parts), 3008)
    same(bytes(parts[0]) + bytes(parts[1]) + bytes(parts[2][:5]), b"one" + b"two" * 1000 + b"three")
    os.close(fd)


@check
def reads_at_and_past_the_end_return_no_bytes():
    put("f", b"12345")
    fd = os.open("f", os.O_RDONLY)
    same(os.pread(fd, 100, 3), b"45")
    same(os.pread(fd, 100, 5), b"")
    same(os.pread(fd, 100, 1 << 40), b"")
    os.close(fd)
    touch("empty")
    same(get("empty"), b"")


@check
def writes_through_o_sync_and_o_dsync_read_back_as_written():
    for flag, name in ((os.O_SYNC, "sync"), (os.O_DSYNC, "dsync")):
        fd = os.open(name, os.O_CREAT | os.O_WRONLY | flag)
        same(os.write(fd, b"x" * 4096), 4096)
        os.close(fd)
        same(get(name), b"x" * 4096)
    fd = os.open("sync", os.O_RDWR)
    os.write(fd, b"y" * 100)
    os.fdatasync(fd)
    os.fsync(fd)
    os.close(fd)
    directory = os.open(".", os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


@check
def aligned_blocks_written_with_o_direct_read_back_as_written():
    block = mmap.mmap(-1, 8192)
    block.write(pattern(8192, 3))
    try:
        fd = os.open("f", os.O_CREAT | os.O_RDWR | os.O_DIRECT)
    except OSError as error:
        assert error.errno == errno.EINVAL, error       # a file system may not have it
        return
    same(os.write(fd, block), 8192)
    back = mmap.mmap(-1, 8192)
    os.lseek(fd, 0, os.SEEK_SET)
    same(os.readv(fd, [back]), 8192)
    same(back[:], block[:])
    os.close(fd)


@check
def truncate_shrinks_and_grows_files_and_refuses_directories():
    put("f", b"abcdefgh")
    os.truncate("f", 3)
    same(get("f"), b"abc")
    os.truncate("f", 10)
    same(get("f"), b"abc" + bytes(7))
    fd = os.open("f", os.O_RDWR)
    os.ftruncate(fd, 5)
    same(os.fstat(fd).st_size, 5)
    os.close(fd)
    os.mkdir("dir")
    fails(errno.EISDIR, os.truncate, "dir", 0)
    fails(errno.ENOENT, os.truncate, "none", 0)
    fails(errno.EINVAL, os.truncate, "f", -1)
    fd = os.open("f", os.O_RDONLY)
    fails(errno.EINVAL, os.ftruncate, fd, 1)
    os.close(fd)


@check
def a_private_map_leaves_the_file_unchanged():
    put("f", bytes(10000))
    fd = os.open("f", os.O_RDWR)
    with mmap.mmap(fd, 10000, mmap.MAP_PRIVATE) as view:
        view[5:10] = b"hello"
    os.close(fd)
    same(get("f"), bytes(10000), "private")


@check
@needs("shared-maps")
def a_shared_map_changes_the_file():
    put("f", bytes(10000))
    fd = os.open("f", os.O_RDWR)
    with mmap.mmap(fd, 10000, mmap.MAP_SHARED) as view:
        view[5000:5005] = b"hello"
        view.flush()
    os.close(fd)
    same(get("f"), bytes(5000) + b"hello" + bytes(4995), "shared")


@check
def sparse_file_has_holes_that_read_as_zeros():
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    os.pwrite(fd, b"start", 0)
    os.pwrite(fd, b"end", 1 << 33)
    os.fsync(fd)
    info = os.fstat(fd)
    same(info.st_size, (1 << 33) + 3)
    assert info.st_blocks * 512 < 1 << 24, "%d blocks are no holes" % info.st_blocks
    same(os.pread(fd, 4096, 1 << 32), bytes(4096))
    same(os.pread(fd, 10, 1 << 33), b"end")
    os.close(fd)


@check
def seek_finds_data_and_holes():
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    os.pwrite(fd, b"x" * 65536, 1 << 20)
    os.ftruncate(fd, 4 << 20)
    os.fsync(fd)
    same(os.lseek(fd, 0, os.SEEK_HOLE), 0, "hole at the start")
    same(os.lseek(fd, 0, os.SEEK_DATA), 1 << 20, "data")
    hole = os.lseek(fd, 1 << 20, os.SEEK_HOLE)
    assert (1 << 20) + 65536 <= hole < 4 << 20, hole
    fails(errno.ENXIO, os.lseek, fd, 2 << 20, os.SEEK_DATA)
    fails(errno.ENXIO, os.lseek, fd, 5 << 20, os.SEEK_HOLE)
    os.close(fd)


@check
def fallocate_reserves_blocks_and_extends_the_file():
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    os.write(fd, b"abc")
    fallocate(fd, FALLOC_KEEP_SIZE, 0, 1 << 20)
    same(os.fstat(fd).st_size, 3, "size kept")
    fallocate(fd, 0, 0, 1 << 20)
    same(os.fstat(fd).st_size, 1 << 20, "size")
    assert os.fstat(fd).st_blocks * 512 >= 1 << 20
    same(os.pread(fd, 5, 0), b"abc\0\0")
    fails(errno.EINVAL, fallocate, fd, 0, 0, 0)
    os.close(fd)


@check
def punched_holes_read_as_zeros():
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    os.write(fd, b"x" * 100000)
    os.fsync(fd)
    fallocate(fd, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, 8192, 40960)
    os.close(fd)
    same(get("f"), b"x" * 8192 + bytes(40960) + b"x" * (100000 - 49152))


@check
@needs("zero-range")
def zeroed_ranges_read_as_zeros_and_can_extend_the_file():
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    os.write(fd, b"x" * 100000)
    os.fsync(fd)
    fallocate(fd, FALLOC_ZERO_RANGE, 10000, 5000)
    same(os.pread(fd, 100000, 0), b"x" * 10000 + bytes(5000) + b"x" * 85000)
    fallocate(fd, FALLOC_ZERO_RANGE, 90000, 110000)
    same(os.fstat(fd).st_size, 200000)
    os.close(fd)


@check
def copy_file_range_copies_all_bytes():
    data = pattern(3 << 20, 4)
    put("from", data)
    source, target = os.open("from", os.O_RDONLY), os.open("to", os.O_CREAT | os.O_WRONLY)
    left = len(data)
    while left:
        count = os.copy_file_range(source, target, left)
        assert count > 0
        left -= count
    os.close(source)
    os.close(target)
    same(hashlib.sha256(get("to")).digest(), hashlib.sha256(data).digest())
    shutil.copy2("from", "again")
    same(hashlib.sha256(get("again")).digest(), hashlib.sha256(data).digest())


@check
def sendfile_sends_all_bytes():
    data = pattern(500000, 5)
    put("f", data)
    fd = os.open("f", os.O_RDONLY)
    out = os.open("g", os.O_CREAT | os.O_WRONLY)
    offset = 0
    while offset < len(data):
        offset += os.sendfile(out, fd, offset, len(data))
    os.close(fd)
    os.close(out)
    same(get("g"), data)


@check
def an_unlinked_open_file_lives_until_it_is_closed():
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    os.write(fd, b"before")
    os.unlink("f")
    settle()
    fails(errno.ENOENT, os.stat, "f")
    os.write(fd, b" after")
    same(os.pread(fd, 100, 0), b"before after")
    same(os.fstat(fd).st_size, 12)
    os.ftruncate(fd, 3)
    same(os.pread(fd, 100, 0), b"bef")
    try:
        os.fchmod(fd, 0o600)
    except OSError as error:
        # FUSE names the file, not the descriptor, in a change of mode; and the name is gone.
        assert IS_VOLUME and error.errno in (errno.ESTALE, errno.ENOENT), error
    touch("f")
    same(os.stat("f").st_size, 0, "a new file of the name")
    same(os.pread(fd, 100, 0), b"bef")
    os.close(fd)
    same(os.listdir("."), ["f"])


@check
def a_file_replaced_by_rename_while_open_lives_until_it_is_closed():
    put("old", b"old")
    put("new", b"new")
    fd = os.open("old", os.O_RDWR)
    os.rename("new", "old")
    same(os.pread(fd, 10, 0), b"old")
    os.write(fd, b"OLD")
    same(get("old"), b"new")
    os.close(fd)


# ---- names and directories -----------------------------------------------------------------------------------

@check
def mkdir_and_rmdir_succeed_or_fail_with_the_right_errno():
    old = os.umask(0o022)
    os.mkdir("a", 0o777)
    os.umask(old)
    same(mode_of("a"), 0o755)
    fails(errno.EEXIST, os.mkdir, "a")
    touch("file")
    fails(errno.EEXIST, os.mkdir, "file")
    fails(errno.ENOTDIR, os.mkdir, "file/x")
    fails(errno.ENOENT, os.mkdir, "none/x")
    os.mkdir("a/b")
    fails(errno.ENOTEMPTY, os.rmdir, "a")
    fails(errno.ENOTDIR, os.rmdir, "file")
    fails(errno.ENOENT, os.rmdir, "none")
    os.rmdir("a/b")
    os.rmdir("a")
    same(sorted(os.listdir(".")), ["file"])


@check
def unlink_removes_a_file_and_refuses_a_directory():
    os.mkdir("dir")
    fails(errno.EISDIR, os.unlink, "dir")
    fails(errno.ENOENT, os.unlink, "none")
    touch("f")
    fails(errno.ENOTDIR, os.unlink, "f/x")
    os.unlink("f")
    fails(errno.ENOENT, os.unlink, "f")


@check
def three_links_of_one_file_share_inode_and_data():
    touch("f")
    same(os.stat("f").st_nlink, 1)
    os.link("f", "g")
    os.mkdir("d")
    os.link("f", "d/h")
    same([os.stat(n).st_nlink for n in ("f", "g", "d/h")], [3, 3, 3])
    same(len({os.stat(n).st_ino for n in ("f", "g", "d/h")}), 1, "one inode")
    put("g", b"through g")
    same(get("d/h"), b"through g")
    os.unlink("f")
    os.unlink("g")
    same(os.stat("d/h").st_nlink, 1)
    same(get("d/h"), b"through g")


@check
def link_refuses_existing_targets_missing_names_and_directories():
    touch("f", "g")
    os.mkdir("d")
    fails(errno.EEXIST, os.link, "f", "g")
    fails(errno.EEXIST, os.link, "f", "d")
    fails(errno.ENOENT, os.link, "none", "x")
    fails(errno.ENOENT, os.link, "f", "none/x")
    fails(errno.EPERM, os.link, "d", "x")
    os.symlink("f", "s")
    os.link("s", "t", follow_symlinks=False)
    same(os.readlink("t"), "f")


@check
def symlinks_keep_targets_of_up_to_1023_bytes():
    for target in ("f", "../x/y", "/absolute", "a" * 1000, "x" * 1023):
        os.symlink(target, "s")
        same(os.readlink("s"), target)
        same(os.lstat("s").st_size, len(target))
        assert stat.S_ISLNK(os.lstat("s").st_mode)
        os.unlink("s")
    fails(errno.ENOENT, os.symlink, "", "s")
    touch("f")
    os.symlink("f", "s")
    fails(errno.EEXIST, os.symlink, "f", "s")
    fails(errno.EINVAL, os.readlink, "f")
    os.symlink("b", "a")
    os.symlink("a", "b")
    fails(errno.ELOOP, os.stat, "a")
    put("s", b"via link")
    same(get("f"), b"via link")
    os.chown("s", ALICE, STAFF, follow_symlinks=False)
    same(os.lstat("s").st_uid, ALICE)
    same(os.stat("f").st_uid, 0)


@check
def rename_of_a_file_replaces_a_file_and_refuses_a_directory():
    put("a", b"a")
    os.rename("a", "b")
    same(os.listdir("."), ["b"])
    put("c", b"c")
    inode = os.stat("c").st_ino
    os.rename("c", "b")
    same(get("b"), b"c")
    same(os.stat("b").st_ino, inode, "inode")
    os.link("b", "d")
    os.rename("b", "d")
    same(sorted(os.listdir(".")), ["b", "d"], "two links of one file: rename does nothing")
    os.mkdir("sub")
    os.rename("d", "sub/d")
    same(get("sub/d"), b"c")
    fails(errno.ENOENT, os.rename, "none", "x")
    fails(errno.ENOENT, os.rename, "b", "none/x")
    fails(errno.EISDIR, os.rename, "b", "sub")
    fails(errno.ENOTDIR, os.rename, "sub", "b")
    os.rename("b", "b")
    same(get("b"), b"c")


@check
def rename_of_a_directory_replaces_only_an_empty_directory():
    os.makedirs("a/b/c")
    put("a/b/f", b"x")
    os.rename("a", "z")
    same(get("z/b/f"), b"x")
    fails(errno.EINVAL, os.rename, "z", "z/b/z")
    os.mkdir("empty")
    os.rename("z", "empty")
    same(get("empty/b/f"), b"x")
    os.mkdir("other")
    touch("other/f")
    fails((errno.ENOTEMPTY, errno.EEXIST), os.rename, "empty", "other")
    os.mkdir("target")
    os.rename("empty/b", "target/b")
    same(get("target/b/f"), b"x")
    same(os.stat("target/b/..").st_ino, os.stat("target").st_ino, "dot-dot")


@check
def rename_noreplace_replaces_no_file():
    def renameat2(source, target, flags):
        if LIBC.renameat2(-100, source.encode(), -100, target.encode(), flags) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    put("a", b"a")
    put("b", b"b")
    try:
        renameat2("a", "b", 1)
    except OSError as error:
        assert error.errno in (errno.EEXIST, errno.EINVAL), error
    else:
        raise AssertionError("RENAME_NOREPLACE replaced")
    same((get("a"), get("b")), (b"a", b"b"))


@check
def names_of_255_bytes_are_accepted_and_longer_names_refused():
    for name in ("n" * 255, "ü" * 127 + "x", "日" * 85):
        same(len(name.encode()), 255)
        put(name, name.encode())
        same(os.listdir("."), [name])
        same(get(name), name.encode())
        os.rename(name, name[::-1])
        os.link(name[::-1], "short")
        os.unlink(name[::-1])
        os.unlink("short")
        os.mkdir(name)
        os.rmdir(name)
    for call in (os.stat, os.mkdir, os.unlink, lambda n: os.open(n, os.O_CREAT | os.O_RDWR)):
        fails(errno.ENAMETOOLONG, call, "n" * 256)


@check
def names_with_any_bytes_are_listed_and_opened():
    names = [b"blank name", b"new\nline", b"\xff\xfe not utf8", b"-dash", b"star*?[", b"quote'\"", b"\x01\x7f", b"...",
             b".hidden", b"trailing ", b"back\\slash", "Ελληνικά 日本語 🙂".encode(), b"a:b,c;d", b"%s%n%d"]
    for name in names:
        put(name, name)
    same(sorted(os.listdir(b".")), sorted(names))
    for name in names:
        same(get(name), name)
        os.unlink(name)
    same(os.listdir("."), [])


@check
def a_tree_of_depth_40_can_be_made_renamed_and_removed():
    here = os.open(".", os.O_RDONLY)
    path = ""
    for level in range(40):
        path += "%slevel-%02d" % ("/" if path else "", level)
        os.mkdir(path)
    put(path + "/f", b"deep")
    same(get(path + "/f"), b"deep")
    os.rename("level-00/level-01", "moved")
    same(get("moved/" + "/".join("level-%02d" % n for n in range(2, 40)) + "/f"), b"deep")
    shutil.rmtree("moved")
    same(os.listdir("level-00"), [])
    os.close(here)


@check
def a_path_longer_than_path_max_is_refused():
    part = "p" * 200
    depth = 0
    start = os.getcwd()
    while depth < 18:
        os.mkdir(part)
        os.chdir(part)
        depth += 1
    touch("f")
    same(os.path.exists(start + ("/" + part) * 18 + "/f"), True)
    os.chdir(start)
    fails(errno.ENAMETOOLONG, os.stat, "/".join([part] * 21))
    shutil.rmtree(part)


@check
def listing_shows_each_name_once():
    names = {"file-%04d" % i for i in range(1500)}
    for name in names:
        touch(name)
    found = os.listdir(".")
    same(len(found), len(set(found)), "doubles")
    same(set(found), names)
    kinds = {"d": stat.S_IFDIR, "l": stat.S_IFLNK, "p": stat.S_IFIFO, "f": stat.S_IFREG}
    os.mkdir("d")
    os.symlink("x", "l")
    os.mkfifo("p")
    touch("f")
    with os.scandir(".") as entries:
        for entry in entries:
            if entry.name in kinds:
                same(stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode), kinds[entry.name], entry.name)
                same(entry.inode(), os.lstat(entry.name).st_ino, entry.name)


@check
def a_long_listing_has_the_inode_numbers_of_stat():
    """No process requests attributes meanwhile, so the kernel requests only names from some page on."""
    for i in range(700):
        touch("file-with-a-name-of-some-length-%04d" % i)
        if i % 50 == 0:
            os.mkdir("folder-%d" % i)
    with os.scandir(".") as entries:
        found = {entry.name: entry.inode() for entry in entries}
    same(len(found), 714)
    others = [name for name, number in found.items() if os.lstat(name).st_ino != number]
    assert not others, "%d of %d have other numbers: %s" % (len(others), len(found), others[:3])


@check
def a_listing_during_removals_shows_every_name():
    for i in range(600):
        touch("f%03d" % i)
    seen = set()
    with os.scandir(".") as entries:
        for count, entry in enumerate(entries):
            seen.add(entry.name)
            if count < 300:
                os.unlink(entry.name)
    same(len(seen), 600)
    same(len(os.listdir(".")), 300)


@check
def a_rewound_listing_shows_a_new_name():
    touch(*("f%d" % i for i in range(50)))
    fd = os.open(".", os.O_RDONLY)
    first = sorted(os.listdir(fd))
    touch("late")
    os.lseek(fd, 0, os.SEEK_SET)
    same(sorted(os.listdir(fd)), sorted(first + ["late"]))
    os.close(fd)


@check
def the_folder_glusterfs_of_a_brick_is_hidden():
    root = MOUNT
    while not os.path.ismount(root) and root != "/":
        root = os.path.dirname(root)
    assert ".glusterfs" not in os.listdir(root)
    if IS_VOLUME:
        fails((errno.ENOENT, errno.EPERM), os.stat, os.path.join(root, ".glusterfs"))
        try:
            os.mkdir(os.path.join(root, ".glusterfs"))
        except OSError as error:
            assert error.errno in (errno.EPERM, errno.EEXIST, errno.ENOENT), error
        else:
            raise AssertionError("mkdir .glusterfs succeeded")


@check
def special_files_keep_type_and_device_number():
    os.mkfifo("fifo", 0o640)
    assert stat.S_ISFIFO(os.lstat("fifo").st_mode)
    os.mknod("char", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    os.mknod("block", 0o600 | stat.S_IFBLK, os.makedev(7, 0))
    os.mknod("regular", 0o644 | stat.S_IFREG)
    same(os.lstat("char").st_rdev, os.makedev(1, 3))
    same(os.lstat("block").st_rdev, os.makedev(7, 0))
    assert stat.S_ISBLK(os.lstat("block").st_mode)
    same(get("regular"), b"")
    fails(errno.EEXIST, os.mknod, "fifo", 0o600 | stat.S_IFIFO)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("socket")
    listener.listen(1)
    caller = socket.socket(socket.AF_UNIX)
    caller.connect("socket")
    caller.close()
    listener.close()
    assert stat.S_ISSOCK(os.lstat("socket").st_mode)
    child = os.fork()
    if child == 0:
        with open("fifo", "wb") as pipe:
            pipe.write(b"through the fifo")
        os._exit(0)
    same(get("fifo"), b"through the fifo")
    os.waitpid(child, 0)
    for name in os.listdir("."):
        os.unlink(name)


# ---- attributes ----------------------------------------------------------------------------------------------

@check
def chmod_sets_all_twelve_bits():
    touch("f")
    os.mkdir("d")
    for mode in (0o000, 0o400, 0o777, 0o1777, 0o2755, 0o4755, 0o7777, 0o644):
        os.chmod("f", mode)
        # On a file, distribute keeps set-gid with sticky for itself, as the mark of a file that moves.
        want = mode & ~0o3000 if IS_VOLUME and mode & 0o3000 == 0o3000 else mode
        assert mode_of("f") in (mode, want), oct(mode_of("f"))
        os.chmod("d", mode)
        same(mode_of("d"), mode)
    fd = os.open("f", os.O_RDONLY)
    os.fchmod(fd, 0o640)
    os.close(fd)
    same(mode_of("f"), 0o640)
    fails(errno.ENOENT, os.chmod, "none", 0o644)


@check
def chown_changes_owner_and_group_separately():
    touch("f")
    os.chown("f", ALICE, STAFF)
    same((os.stat("f").st_uid, os.stat("f").st_gid), (ALICE, STAFF))
    os.chown("f", BOB, -1)
    same((os.stat("f").st_uid, os.stat("f").st_gid), (BOB, STAFF))
    os.chown("f", -1, 0)
    same((os.stat("f").st_uid, os.stat("f").st_gid), (BOB, 0))
    fd = os.open("f", os.O_RDONLY)
    os.fchown(fd, 0, 0)
    os.close(fd)
    same((os.stat("f").st_uid, os.stat("f").st_gid), (0, 0))
    os.chown("f", 4000000000, 4000000001)
    same((os.stat("f").st_uid, os.stat("f").st_gid), (4000000000, 4000000001))


@check
def utimes_sets_times_to_the_nanosecond():
    touch("f")
    for atime, mtime in ((1000000000123456789, 1500000000987654321), (1, 2), (2000000000000000000, 0)):
        os.utime("f", ns=(atime, mtime))
        info = os.stat("f")
        same((info.st_atime_ns, info.st_mtime_ns), (atime, mtime))
    before = time.time()
    os.utime("f")
    assert before - 1 < os.stat("f").st_mtime < time.time() + 1
    os.symlink("f", "s")
    os.utime("s", ns=(5, 6), follow_symlinks=False)
    same(os.lstat("s").st_mtime_ns, 6)
    fd = os.open("f", os.O_RDWR)
    os.utime(fd, ns=(7, 8))
    os.close(fd)
    same(os.stat("f").st_mtime_ns, 8)


def times(path):
    info = os.lstat(path)
    return info.st_mtime_ns, info.st_ctime_ns


def later(path, function, mtime_moves, ctime_moves=True):
    """Runs function, and checks for each of the two times of path whether function has changed the time. None: not checked."""
    old = times(path)
    time.sleep(0.02)
    function()
    new = times(path)
    if mtime_moves and new[0] <= old[0]:
        settle()
        new = times(path)
    same(new[0] > old[0], mtime_moves, "mtime of %s" % path)
    if ctime_moves is not None:
        same(new[1] > old[1], ctime_moves, "ctime of %s" % path)


@check
def each_change_updates_the_times_that_posix_names():
    put("f", b"x")
    os.mkdir("d")
    later("f", lambda: put("f", b"y"), True)
    later("f", lambda: os.truncate("f", 100), True)
    later("f", lambda: os.chmod("f", 0o600), False)
    later("f", lambda: os.chown("f", ALICE, ALICE), False)
    later("f", lambda: os.link("f", "g"), False)
    later("f", lambda: os.unlink("g"), False)
    later("f", lambda: os.setxattr("f", "user.x", b"1"), False, None if CACHED or XATTR_KEEPS_CTIME else True)
    later("f", lambda: os.utime("f", (1, 2)), False)
    later("d", lambda: touch("d/a"), True)
    later("d", lambda: os.link("d/a", "d/b"), True)
    later("d", lambda: os.rename("d/a", "d/c"), True)
    later("d", lambda: os.symlink("x", "d/s"), True)
    later("d", lambda: os.mkdir("d/sub"), True)
    later("d", lambda: os.rmdir("d/sub"), True)
    later("d", lambda: os.unlink("d/s"), True)
    later("d", lambda: os.chmod("d", 0o700), False)
    later("f", lambda: get("f"), False, False)
    later("d", lambda: os.listdir("d"), False, False)


@check
def stat_and_fstat_return_the_same_attributes():
    put("f", b"x" * 5000)
    fd = os.open("f", os.O_RDONLY)
    one, two = os.stat("f"), os.fstat(fd)
    os.close(fd)
    for field in ("st_ino", "st_mode", "st_nlink", "st_uid", "st_gid", "st_size", "st_mtime_ns", "st_ctime_ns"):
        same(getattr(one, field), getattr(two, field), field)
    assert one.st_blocks > 0
    os.rename("f", "g")
    same(os.stat("g").st_ino, one.st_ino, "inode after rename")


@check
def statfs_shows_less_free_space_after_a_write():
    info = os.statvfs(".")
    assert info.f_blocks > 0 and info.f_bfree <= info.f_blocks and info.f_bavail <= info.f_bfree, info
    same(info.f_namemax, 255)
    assert info.f_bsize > 0
    free = info.f_bavail * info.f_frsize
    put("f", pattern(32 << 20, 6))
    fd = os.open("f", os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    info = os.statvfs(".")
    assert free - info.f_bavail * info.f_frsize >= 16 << 20, "32 MiB did not lessen the free space"


@check
def inode_numbers_of_200_files_differ():
    touch(*("f%d" % i for i in range(200)))
    same(len({os.stat("f%d" % i).st_ino for i in range(200)}), 200)


# ---- extended attributes -------------------------------------------------------------------------------------

@check
def xattrs_can_be_set_read_listed_and_removed():
    touch("f")
    os.mkdir("d")
    for path in ("f", "d"):
        same([n for n in os.listxattr(path) if n.startswith("user.")], [])
        os.setxattr(path, "user.one", b"1")
        os.setxattr(path, "user.two", b"\0\1\2\xff")
        os.setxattr(path, "user.empty", b"")
        os.setxattr(path, "trusted.three", b"root's")
        same(os.getxattr(path, "user.one"), b"1")
        same(os.getxattr(path, "user.two"), b"\0\1\2\xff")
        same(os.getxattr(path, "user.empty"), b"")
        same(os.getxattr(path, "trusted.three"), b"root's")
        same(sorted(n for n in os.listxattr(path) if n.startswith("user.")), ["user.empty", "user.one", "user.two"])
        os.setxattr(path, "user.one", b"longer than before")
        same(os.getxattr(path, "user.one"), b"longer than before")
        os.removexattr(path, "user.one")
        fails(errno.ENODATA, os.getxattr, path, "user.one")
        fails(errno.ENODATA, os.removexattr, path, "user.one")
    fails(errno.ENOENT, os.getxattr, "none", "user.one")


@check
def xattr_create_and_xattr_replace_refuse_as_documented():
    touch("f")
    fails(errno.ENODATA, os.setxattr, "f", "user.x", b"1", os.XATTR_REPLACE)
    os.setxattr("f", "user.x", b"1", os.XATTR_CREATE)
    fails(errno.EEXIST, os.setxattr, "f", "user.x", b"2", os.XATTR_CREATE)
    os.setxattr("f", "user.x", b"3", os.XATTR_REPLACE)
    same(os.getxattr("f", "user.x"), b"3")


@check
def xattrs_can_be_set_read_and_removed_through_a_descriptor():
    fd = os.open("f", os.O_CREAT | os.O_RDWR)
    os.setxattr(fd, "user.x", b"by fd")
    same(os.getxattr("f", "user.x"), b"by fd")
    assert "user.x" in os.listxattr(fd)
    os.removexattr(fd, "user.x")
    fails(errno.ENODATA, os.getxattr, fd, "user.x")
    os.close(fd)


@check
def xattr_values_of_up_to_64_kib_are_kept_and_longer_values_refused():
    touch("f")
    for size in (1, 255, 4096, 16000, 65535, 65536):
        value = pattern(size, size)
        try:
            os.setxattr("f", "user.big", value)
        except OSError as error:
            # The disk's own limit, and no other reason.
            assert error.errno in (errno.ENOSPC, errno.E2BIG), error
            assert size > 4000, "%d bytes refused" % size
            break
        same(os.getxattr("f", "user.big"), value, "%d bytes" % size)
    fails(errno.E2BIG, os.setxattr, "f", "user.big", bytes(65537))


@check
def sixty_xattrs_and_long_names_are_listed_and_read():
    touch("f")
    names = ["user.n%03d" % i for i in range(60)] + ["user." + "n" * 240, "user.ünïcode"]
    for name in names:
        os.setxattr("f", name, name.encode())
    assert set(names) <= set(os.listxattr("f"))
    for name in names:
        same(os.getxattr("f", name), name.encode())
        os.removexattr("f", name)
    same([n for n in os.listxattr("f") if n.startswith("user.")], [])


@check
def internal_xattrs_cannot_be_set():
    if not IS_VOLUME:
        return
    touch("f")
    for name in ("trusted.gfid", "trusted.glusterfs.volume-id"):
        try:
            os.setxattr("f", name, b"0123456789abcdef")
        except OSError as error:
            assert error.errno in (errno.EPERM, errno.ENOTSUP), error
        else:
            raise AssertionError("%s could be set" % name)
    same([n for n in os.listxattr("f") if "gfid" in n or "afr" in n], [])


# ---- permissions ---------------------------------------------------------------------------------------------

@check
def mode_bits_of_a_file_decide_by_owner_group_and_others():
    os.chmod(".", 0o755)
    for mode, who, can_read, can_write in (
            (0o600, "owner", True, True), (0o400, "owner", True, False), (0o200, "owner", False, True),
            (0o000, "owner", False, False), (0o060, "owner", False, False),
            (0o060, "group", True, True), (0o040, "group", True, False), (0o606, "group", False, False),
            (0o004, "other", True, False), (0o002, "other", False, True), (0o660, "other", False, False)):
        name = "f%o-%s" % (mode, who)
        put(name, b"data")
        os.chown(name, ALICE, STAFF)
        os.chmod(name, mode)

        def try_it():
            if can_read:
                same(get(name), b"data", name)
            else:
                fails(errno.EACCES, os.open, name, os.O_RDONLY)
            if can_write:
                os.close(os.open(name, os.O_WRONLY))
            else:
                fails(errno.EACCES, os.open, name, os.O_WRONLY)
            same(os.access(name, os.R_OK), can_read, "access " + name)
            same(os.access(name, os.W_OK), can_write, "access " + name)
        uid, groups = {"owner": (ALICE, []), "group": (BOB, [STAFF]), "other": (BOB, [])}[who]
        as_user(uid, uid, groups, try_it)


@check
def the_last_of_61_supplementary_groups_grants_access():
    os.chmod(".", 0o755)
    put("f", b"x")
    os.chown("f", 0, STAFF)
    os.chmod("f", 0o640)
    as_user(BOB, BOB, list(range(30000, 30060)) + [STAFF], lambda: same(get("f"), b"x"))
    as_user(BOB, BOB, list(range(30000, 30060)), lambda: fails(errno.EACCES, os.open, "f", os.O_RDONLY))


@check
@needs("groups")
def a_change_of_supplementary_groups_has_effect_at_once():
    """In one process, under the same ids. The stock client caches the groups of a user for minutes."""
    os.chmod(".", 0o755)
    for name, mode in (("theirs", 0o640), ("others", 0o604)):
        put(name, b"x")
        os.chown(name, 0, STAFF)
        os.chmod(name, mode)

    def opens_with(groups, name):
        os.seteuid(0)
        os.setgroups(groups)
        os.seteuid(BOB)
        os.close(os.open(name, os.O_RDONLY))

    def give_up():
        os.setresgid(BOB, BOB, BOB)
        for _ in range(2):
            opens_with([STAFF], "theirs")
            fails(errno.EACCES, opens_with, [STAFF], "others")
            opens_with([], "others")
            fails(errno.EACCES, opens_with, [], "theirs")
    as_user(0, 0, [], give_up)


@check
def mode_bits_of_a_directory_decide_about_search_list_and_change():
    os.chmod(".", 0o755)
    os.mkdir("d")
    put("d/f", b"x")
    os.chown("d", ALICE, ALICE)
    os.chmod("d", 0o711)

    def only_search():
        fails(errno.EACCES, os.listdir, "d")
        same(get("d/f"), b"x")
        fails(errno.EACCES, os.open, "d/new", os.O_CREAT | os.O_WRONLY)
        fails(errno.EACCES, os.unlink, "d/f")
        fails(errno.EACCES, os.mkdir, "d/sub")
        fails(errno.EACCES, os.rename, "d/f", "d/g")
        fails(errno.EACCES, os.symlink, "x", "d/s")
        fails(errno.EACCES, os.mkfifo, "d/p")
    as_user(BOB, BOB, [], only_search)
    os.chmod("d", 0o744)

    def only_names():
        settle()
        fails(errno.EACCES, os.stat, "d/f")
        fails(errno.EACCES, os.open, "d/f", os.O_RDONLY)
        same(os.listdir("d"), ["f"])
    as_user(BOB, BOB, [], only_names)
    os.chmod("d", 0o777)

    def all_of_it():
        os.unlink("d/f")
        os.mkdir("d/sub")
        touch("d/mine")
        same(os.stat("d/mine").st_uid, BOB)
        os.rename("d/mine", "d/sub/mine")
    as_user(BOB, BOB, [], all_of_it)


@check
def sticky_directories_protect_the_names_of_other_users():
    os.chmod(".", 0o755)
    os.mkdir("tmp")
    os.chmod("tmp", 0o1777)
    as_user(ALICE, ALICE, [], lambda: touch("tmp/alice", "tmp/gift"))

    def bob():
        # A volume answers EACCES where a disk file system answers EPERM; both refuse.
        for call in (lambda: os.unlink("tmp/alice"), lambda: os.rename("tmp/alice", "tmp/bob")):
            try:
                call()
            except PermissionError:
                continue
            raise AssertionError("a name of another was removed")
        touch("tmp/bob")
        os.unlink("tmp/bob")
    as_user(BOB, BOB, [], bob)
    as_user(ALICE, ALICE, [], lambda: os.unlink("tmp/alice"))


@check
def only_the_owner_changes_mode_and_group():
    os.chmod(".", 0o755)
    put("f", b"x")
    os.chown("f", ALICE, ALICE)
    os.chmod("f", 0o666)

    def bob():
        fails(errno.EPERM, os.chmod, "f", 0o600)
        fails(errno.EPERM, os.chown, "f", BOB, -1)
        if not IS_VOLUME:           # on a brick, a user with write permission may set any time
            fails(errno.EPERM, os.utime, "f", ns=(1, 2))
        os.utime("f")               # to now: allowed to a user with write permission
        os.setxattr("f", "user.x", b"1")
    as_user(BOB, BOB, [], bob)

    def alice():
        os.chmod("f", 0o640)
        fails(errno.EPERM, os.chown, "f", BOB, -1)
        fails(errno.EPERM, os.chown, "f", -1, STAFF)
        os.utime("f", ns=(1, 2))
    as_user(ALICE, ALICE, [], alice)
    as_user(ALICE, ALICE, [STAFF], lambda: os.chown("f", -1, STAFF))
    same(os.stat("f").st_gid, STAFF)


@check
def set_id_bits_are_cleared_by_a_write_and_by_chown():
    os.chmod(".", 0o755)
    put("f", b"x")
    os.chown("f", ALICE, ALICE)
    os.chmod("f", 0o6777)

    def bob():
        try:
            put("f", b"y")
        except PermissionError:
            # The kernel's FUSE client requests the change of mode before the write, as the writing user.
            assert IS_VOLUME
        else:
            same(mode_of("f") & 0o4000, 0, "set-uid after a write")
    as_user(BOB, BOB, [], bob)
    os.chmod("f", 0o6755)
    as_user(ALICE, ALICE, [STAFF], lambda: os.chown("f", -1, STAFF))
    same(mode_of("f") & 0o6000, 0, "set-id bits after chown")


@check
def new_names_in_a_set_gid_directory_get_the_directory_s_group():
    os.chmod(".", 0o755)
    os.mkdir("d")
    os.chown("d", 0, STAFF)
    os.chmod("d", 0o2777)

    def bob():
        touch("d/f")
        os.mkdir("d/sub")
        os.symlink("x", "d/s")
    as_user(BOB, BOB, [], bob)
    same(os.lstat("d/f").st_gid, STAFF, "file")
    same(os.lstat("d/sub").st_gid, STAFF, "directory")
    same(mode_of("d/sub") & 0o2000, 0o2000, "the bit itself")


@check
def new_objects_of_a_user_belong_to_the_user():
    os.chmod(".", 0o777)

    def alice():
        os.umask(0o002)
        touch("f")
        os.mkdir("d")
        os.mkfifo("p")
        os.symlink("f", "s")
    as_user(ALICE, STAFF, [], alice)
    for name in ("f", "d", "p", "s"):
        info = os.lstat(name)
        same((info.st_uid, info.st_gid), (ALICE, STAFF), name)
    as_user(BOB, BOB, [], lambda: fails(errno.EPERM, os.mknod, "dev", 0o600 | stat.S_IFCHR, os.makedev(1, 3)))


@check
def trusted_xattrs_are_refused_to_users():
    os.chmod(".", 0o777)
    touch("f")
    os.chmod("f", 0o666)
    os.setxattr("f", "trusted.x", b"1")

    def bob():
        fails(errno.EPERM, os.setxattr, "f", "trusted.y", b"1")
        fails((errno.EPERM, errno.ENODATA), os.getxattr, "f", "trusted.x")
    as_user(BOB, BOB, [], bob)


@check
def exec_needs_the_execute_bit():
    os.chmod(".", 0o755)
    shutil.copy("/bin/true", "prog")
    os.chmod("prog", 0o755)
    same(subprocess.call(["./prog"]), 0)
    os.chmod("prog", 0o644)
    fails(errno.EACCES, os.execv, "./prog", ["prog"])


# ---- ACLs ----------------------------------------------------------------------------------------------------

def setfacl(*args):
    done = subprocess.run(["setfacl", *args], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def getfacl(path):
    done = subprocess.run(["getfacl", "-cpnE", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@check
@needs("acl")
def acl_entries_grant_and_deny():
    os.chmod(".", 0o755)
    put("f", b"x")
    os.chmod("f", 0o600)
    as_user(BOB, BOB, [], lambda: fails(errno.EACCES, os.open, "f", os.O_RDONLY))
    setfacl("-m", "u:%d:r" % BOB, "f")
    same(getfacl("f"), ["user::rw-", "user:%d:r--" % BOB, "group::---", "mask::r--", "other::---"])
    same(mode_of("f"), 0o640, "the mask shows as the group's bits")
    as_user(BOB, BOB, [], lambda: same(get("f"), b"x"))
    as_user(BOB, BOB, [], lambda: fails(errno.EACCES, os.open, "f", os.O_WRONLY))
    os.chmod("f", 0o600)
    as_user(BOB, BOB, [], lambda: fails(errno.EACCES, os.open, "f", os.O_RDONLY))
    setfacl("-m", "g:%d:rw" % STAFF, "f")
    # An entry for the user comes before any of the groups.
    as_user(BOB, BOB, [STAFF], lambda: fails(errno.EACCES, os.open, "f", os.O_RDWR))
    as_user(ALICE, ALICE, [STAFF], lambda: os.close(os.open("f", os.O_RDWR)))
    os.chmod("f", 0o666)
    setfacl("-m", "u:%d:-" % BOB, "f")
    as_user(BOB, BOB, [], lambda: fails(errno.EACCES, os.open, "f", os.O_RDONLY))
    setfacl("-b", "f")
    as_user(BOB, BOB, [], lambda: same(get("f"), b"x"))


@check
@needs("acl")
def default_acls_are_inherited_by_new_objects():
    os.chmod(".", 0o755)
    os.mkdir("d")
    setfacl("-m", "d:u:%d:rwx,d:g::r,d:o::-" % BOB, "d")
    touch("d/f")
    os.mkdir("d/sub")
    touch("d/sub/g")
    assert "user:%d:rwx" % BOB in getfacl("d/f"), getfacl("d/f")
    assert "default:user:%d:rwx" % BOB in getfacl("d/sub"), getfacl("d/sub")
    assert "user:%d:rwx" % BOB in getfacl("d/sub/g"), getfacl("d/sub/g")


@check
@needs("acl")
def new_files_inherit_no_removed_default_acl():
    os.mkdir("d")
    setfacl("-m", "d:u:%d:rwx,d:g::r,d:o::-" % BOB, "d")
    touch("d/f")
    setfacl("-k", "d")
    settle()
    touch("d/later")
    assert "user:%d:rwx" % BOB not in getfacl("d/later")


# ---- locks of one mount --------------------------------------------------------------------------------------

@check
def record_locks_of_two_processes_conflict_by_range():
    put("f", bytes(100))
    fd = os.open("f", os.O_RDWR)
    fcntl.lockf(fd, fcntl.LOCK_EX, 10, 0)
    fcntl.lockf(fd, fcntl.LOCK_SH, 10, 50)

    def other():
        mine = os.open("f", os.O_RDWR)
        for length, start in ((1, 5), (0, 0), (1, 55)):
            fails((errno.EAGAIN, errno.EACCES), fcntl.lockf, mine, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
        fcntl.lockf(mine, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 55)
        fcntl.lockf(mine, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 20)
        asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 5, 0)
        kind, _, start, length, pid = struct.unpack("hhqqi4x", fcntl.fcntl(mine, fcntl.F_GETLK, asked))
        same((kind, start, length, pid), (fcntl.F_WRLCK, 0, 10, os.getppid()), "F_GETLK")
    as_user(0, 0, [], other)
    fcntl.lockf(fd, fcntl.LOCK_UN)

    def after():
        mine = os.open("f", os.O_RDWR)
        fcntl.lockf(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)
    as_user(0, 0, [], after)
    os.close(fd)


@check
def flock_locks_of_two_descriptors_conflict():
    touch("f")
    one, two = os.open("f", os.O_RDWR), os.open("f", os.O_RDWR)
    fcntl.flock(one, fcntl.LOCK_EX)
    fails(errno.EAGAIN, fcntl.flock, two, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(one, fcntl.LOCK_SH)
    fcntl.flock(two, fcntl.LOCK_SH | fcntl.LOCK_NB)
    fails(errno.EAGAIN, fcntl.flock, two, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(one)
    eventually(lambda: fcntl.flock(two, fcntl.LOCK_EX | fcntl.LOCK_NB))   # FUSE releases after close() returned
    os.close(two)


# ---- whole programs ------------------------------------------------------------------------------------------

@check
def tar_restores_an_equal_tree():
    os.makedirs("tree/a/b")
    for i in range(40):
        put("tree/a/b/f%d" % i, pattern(i * 700, i), 0o600 + i % 8)
    os.symlink("a/b/f1", "tree/link")
    os.link("tree/a/b/f2", "tree/hard")
    os.chmod("tree/a", 0o750)
    subprocess.check_call("tar -cf t.tar tree && mkdir x && tar -xpf t.tar -C x && diff -r tree x/tree", shell=True)
    same(mode_of("x/tree/a"), 0o750)
    same(os.stat("x/tree/hard").st_ino, os.stat("x/tree/a/b/f2").st_ino)


def main():
    global MOUNT, IS_VOLUME, CACHED, XATTR_KEEPS_CTIME
    arguments = sys.argv[1:]
    only = ""
    if "--only" in arguments:
        at = arguments.index("--only")
        only = arguments[at + 1]
        del arguments[at:at + 2]
    CACHED = "--cached" in arguments
    XATTR_KEEPS_CTIME = "--xattr-keeps-ctime" in arguments
    options = {"acl": "--acl" in arguments, "groups": "--groups-are-kept" not in arguments,
               "zero-range": "--no-zero-range" not in arguments, "shared-maps": "--no-shared-maps" not in arguments}
    MOUNT = os.path.abspath(arguments[0])
    IS_VOLUME = "fuse" in subprocess.run(["stat", "-f", "-c", "%T", MOUNT], capture_output=True, text=True).stdout
    base = os.path.join(MOUNT, "tour-%d" % os.getpid())
    os.mkdir(base)
    os.chmod(base, 0o755)
    os.umask(0o022)
    failed = 0
    for function in CHECKS:
        name = function.__name__.replace("_", " ")
        if only not in name or not options.get(getattr(function, "needs", ""), True):
            continue
        place = os.path.join(base, function.__name__)
        try:
            os.mkdir(place)
            os.chdir(place)
            function()
            print("ok - " + name)
        except Exception as error:
            failed += 1
            print("not ok - " + name)
            where = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == __file__][-2:]
            print("# %s: %s (lines %s)" % (type(error).__name__, str(error)[:600].replace("\n", "\n# "),
                                         ", ".join(str(f.lineno) for f in where)))
        sys.stdout.flush()
        os.chdir(MOUNT)
    shutil.rmtree(base, ignore_errors=True)
    sys.exit(1 if failed else 0)


main()
