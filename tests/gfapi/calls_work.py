# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""calls_work.py SERVER VOLUME DIRECTORY LOG [PART]: makes calls of the libgfapi.so.0 that the dynamic linker finds, in a new directory of
the volume, and prints the result of each, so that the output for two libraries can be compared."""
import ctypes
import errno
import os
import stat
import sys
import tempfile
import time

api = ctypes.CDLL("libgfapi.so.0", use_errno=True)
long, size_t, pointer = ctypes.c_long, ctypes.c_size_t, ctypes.c_void_p


class Timespec(ctypes.Structure):
    _fields_ = [("sec", ctypes.c_int64), ("nsec", ctypes.c_int64)]


class Stat(ctypes.Structure):
    _fields_ = [("dev", ctypes.c_uint64), ("ino", ctypes.c_uint64), ("nlink", ctypes.c_uint64), ("mode", ctypes.c_uint32),
                ("uid", ctypes.c_uint32), ("gid", ctypes.c_uint32), ("pad", ctypes.c_int32), ("rdev", ctypes.c_uint64),
                ("size", ctypes.c_int64), ("blksize", ctypes.c_int64), ("blocks", ctypes.c_int64), ("atime", Timespec),
                ("mtime", Timespec), ("ctime", Timespec), ("unused", ctypes.c_int64 * 3)]


class Dirent(ctypes.Structure):
    _fields_ = [("ino", ctypes.c_uint64), ("off", ctypes.c_int64), ("reclen", ctypes.c_uint16), ("type", ctypes.c_uint8),
                ("name", ctypes.c_char * 256)]


class Statx(ctypes.Structure):
    _fields_ = [("mask", ctypes.c_uint64), ("attributes", ctypes.c_uint64), ("attributes_mask", ctypes.c_uint64),
                ("atime", Timespec), ("btime", Timespec), ("ctime", Timespec), ("mtime", Timespec), ("ino", ctypes.c_uint64),
                ("size", ctypes.c_uint64), ("blocks", ctypes.c_uint64), ("rdev_major", ctypes.c_uint32),
                ("rdev_minor", ctypes.c_uint32), ("dev_major", ctypes.c_uint32), ("dev_minor", ctypes.c_uint32),
                ("blksize", ctypes.c_uint64), ("nlink", ctypes.c_uint64), ("uid", ctypes.c_uint32), ("gid", ctypes.c_uint32),
                ("mode", ctypes.c_uint32), ("more", ctypes.c_uint8 * 64)]


class Flock(ctypes.Structure):
    _fields_ = [("type", ctypes.c_short), ("whence", ctypes.c_short), ("start", ctypes.c_int64), ("len", ctypes.c_int64),
                ("pid", ctypes.c_int32)]


POINTERS = ("new open creat opendir dup getcwd realpath readdir from_glfd h_lookupat h_create_from_handle h_creat h_mkdir h_mknod "
            "h_symlink h_open h_opendir h_creat_open object_copy xreaddirplus_get_object xreaddirplus_get_stat").split()
SIZES = ("read write pread pwrite readv writev preadv pwritev lseek getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr "
         "telldir copy_file_range h_extract_handle h_anonymous_read h_anonymous_write").split()


def call(name, *args):
    """The result of a call: a number, an address, or the name of an errno."""
    function = getattr(api, "glfs_" + name)
    function.restype = pointer if name in POINTERS else long if name in SIZES else ctypes.c_int
    ctypes.set_errno(0)
    result = function(*args)
    if result is None or result == -1:
        return errno.errorcode.get(ctypes.get_errno(), ctypes.get_errno())
    return result


def show(what, *result):
    print(what, *result)
    sys.stdout.flush()


def try_call(name, *args):
    """Makes a call and prints it with its result."""
    shown = " ".join(a.decode() if isinstance(a, bytes) else str(a.value) if isinstance(a, (long, size_t)) else str(a)
                     if isinstance(a, int) else "." for a in args)
    result = call(name, *args)
    if name in POINTERS and not isinstance(result, str):
        show(name, shown, "->", "made")
        return pointer(result)
    show(name, shown, "->", result)
    return result


def show_stat(what, result, st):
    fields = (oct(st.mode), st.nlink if not stat.S_ISDIR(st.mode) else "-", st.uid, st.gid, st.size if stat.S_ISREG(st.mode) else "-",
              st.rdev) if result == 0 else ()
    show(what, result, *fields)


def look(fs, path, name="stat"):
    st = Stat()
    show_stat("%s %s" % (name, path.decode()), call(name, fs, path, ctypes.byref(st)), st)
    return st


def names_and_attributes(fs):
    for path in b"d", b"d/e", b"d", b"none/x", b".", b"d/.", b"d/..", b"":
        try_call("mkdir", fs, path, 0o750)
    try_call("chdir", fs, b"none")
    f = try_call("creat", fs, b"d/f", os.O_RDWR, 0o640)
    try_call("write", f, b"0123456789", size_t(10), 0)
    try_call("close", f)
    for path in b"d", b"d/e", b"d/f", b"d/f/", b"d/f/x", b"none", b"none/x", b".", b"..", b"/", b"//", b"", b"d/../d/./f", b"x" * 256:
        look(fs, path)
        look(fs, path, "lstat")
    try_call("symlink", fs, b"f", b"d/link")
    try_call("symlink", fs, b"/none/at/all", b"d/dangling")
    try_call("symlink", fs, b"e", b"d/to-dir")
    for path in b"d/link", b"d/dangling", b"d/to-dir", b"d/to-dir/", b"d/to-dir/.":
        look(fs, path)
        look(fs, path, "lstat")
        text = ctypes.create_string_buffer(100)
        result = call("readlink", fs, path, text, size_t(99))
        show("readlink", path.decode(), result, text.raw[:result] if isinstance(result, int) and result >= 0 else "")
    for flags, path in ((0, b"d/f"), (os.O_EXCL, b"d/f"), (0, b"d"), (0, b"d/link"), (os.O_TRUNC, b"d/t"), (0, b"none/x")):
        f = try_call("creat", fs, path, os.O_RDWR | flags, 0o777)
        if isinstance(f, pointer):
            call("close", f)
    for flags, path in ((os.O_RDONLY, b"d/f"), (os.O_RDONLY, b"d"), (os.O_RDONLY, b"none"), (os.O_RDWR, b"d/link"), (os.O_RDONLY, b"d/dangling")):
        f = try_call("open", fs, path, flags)
        if isinstance(f, pointer):
            call("close", f)
    try_call("mknod", fs, b"d/fifo", stat.S_IFIFO | 0o600, long(0))
    try_call("mknod", fs, b"d/dev", stat.S_IFBLK | 0o600, long(os.makedev(7, 9)))
    look(fs, b"d/fifo")
    look(fs, b"d/dev")
    try_call("link", fs, b"d/f", b"d/hard")
    try_call("link", fs, b"d/f", b"d/hard")
    try_call("link", fs, b"d", b"d2")
    try_call("link", fs, b"none", b"d2")
    look(fs, b"d/hard")
    for old, new in ((b"d/hard", b"d/hard2"), (b"none", b"x"), (b"d", b"d/e/x"), (b"d/f", b"d/e"), (b"d/e", b"d/f"), (b"d/e", b"e2")):
        try_call("rename", fs, old, new)
    for path in b"d/hard2", b"d", b"none", b"d/f/":
        try_call("unlink", fs, path)
    for path in b"d/f", b"d", b"none", b"e2":
        try_call("rmdir", fs, path)
    for mode in 0o600, 0o4755, 0o7777:
        try_call("chmod", fs, b"d/f", mode)
        look(fs, b"d/f")
    try_call("chown", fs, b"d/f", 1001, 1002)
    look(fs, b"d/f")
    try_call("lchown", fs, b"d/link", 1003, -1)
    look(fs, b"d/link", "lstat")
    times = (Timespec * 2)(Timespec(1000000001, 5), Timespec(1000000002, 6))
    try_call("utimens", fs, b"d/f", times)
    st = look(fs, b"d/f")
    show("times", st.atime.sec, st.atime.nsec, st.mtime.sec, st.mtime.nsec)
    for mode in os.F_OK, os.R_OK, os.W_OK:
        try_call("access", fs, b"d/f", mode)
    try_call("access", fs, b"none", os.F_OK)
    try_call("truncate", fs, b"d/f", long(5))
    look(fs, b"d/f")
    real = ctypes.create_string_buffer(4096)
    for path in b"d/link", b"d/to-dir", b"none", b"d/../d/f", b"/":
        result = call("realpath", fs, path, real)
        show("realpath", path.decode(), result if isinstance(result, str) else real.value)


def ours(fs):
    """Not for GlusterFS's library, which does not come back from a loop of links, and crashes at the close of a file that a
    program has written to, but not opened for writing."""
    call("close", pointer(call("creat", fs, b"data", os.O_RDWR, 0o600)))
    f = try_call("open", fs, b"data", os.O_RDONLY)
    try_call("write", f, b"x", size_t(1), 0)
    try_call("close", f)
    call("symlink", fs, b"b", b"a")
    call("symlink", fs, b"a", b"b")
    look(fs, b"a")
    look(fs, b"a/x")
    look(fs, b"a", "lstat")
    try_call("creat", fs, b"a", os.O_RDWR, 0o600)
    o = pointer(call("h_lookupat", fs, None, b"data", None, 0))
    try_call("h_lookupat", fs, o, b"x", None, 0)  # GlusterFS's: one of three errors
    call("h_close", o)


def directories(fs):
    for name in b"one", b"two", b"three":
        call("mkdir", fs, b"list/" + name, 0o755) if name != b"one" else (call("mkdir", fs, b"list", 0o755), call("mkdir", fs, b"list/one", 0o755))
    for path in b"none", b"d/f":
        try_call("opendir", fs, path)
    d = try_call("opendir", fs, b"list")
    entry, out, st = Dirent(), pointer(), Stat()
    seen, cookies = [], []
    while True:
        cookies.append(call("telldir", d))
        result = call("readdirplus_r", d, ctypes.byref(st), ctypes.byref(entry), ctypes.byref(out))
        if result != 0 or not out.value:
            show("end", result)
            break
        seen.append((entry.name, entry.type, stat.S_IFMT(st.mode) if entry.name not in (b".", b"..") else 0,
                     entry.ino == st.ino or entry.name in (b".", b"..")))
    for line in sorted(seen):
        show("entry", *line)
    call("seekdir", d, long(cookies[-2]))
    rest = []
    while call("readdir_r", d, ctypes.byref(entry), ctypes.byref(out)) == 0 and out.value:
        rest.append(entry.name)
    show("after seekdir", len(rest), len(rest) == 1 and rest[0] not in (s[0] for s in seen[:-1]) or rest == [seen[-1][0]])
    call("seekdir", d, long(0))
    count = 0
    while call("readdir_r", d, ctypes.byref(entry), ctypes.byref(out)) == 0 and out.value:
        count += 1
    show("again", count == len(seen))
    try_call("closedir", d)


def data(fs):
    f = try_call("creat", fs, b"data", os.O_RDWR, 0o600)
    before, after = Statx(), Statx()
    show("pwrite", call("pwrite", f, b"abcdefgh", size_t(8), long(4), 0, ctypes.byref(before), ctypes.byref(after)), before.size,
         after.size, oct(after.mode), after.nlink, after.uid, after.mask & 0x3ff)
    buffer = ctypes.create_string_buffer(100)
    show("pread", call("pread", f, buffer, size_t(100), long(0), 0, ctypes.byref(after)), buffer.raw[:12], after.size)
    show("pread at the end", call("pread", f, buffer, size_t(100), long(12), 0, None))
    for offset, whence in ((2, os.SEEK_SET), (3, os.SEEK_CUR), (-4, os.SEEK_END), (-100, os.SEEK_CUR), (0, 99), (100, os.SEEK_SET)):
        try_call("lseek", f, long(offset), whence)
    call("lseek", f, long(4), os.SEEK_SET)
    show("read", call("read", f, buffer, size_t(3), 0), buffer.raw[:3])
    show("read", call("read", f, buffer, size_t(3), 0), buffer.raw[:3])
    show("write", call("write", f, b"XY", size_t(2), 0), call("lseek", f, long(0), os.SEEK_CUR))
    g = try_call("dup", f)
    show("the position of the copy", call("lseek", g, long(0), os.SEEK_CUR) in (0, 12))
    try_call("close", g)
    show("ftruncate", call("ftruncate", f, long(6), ctypes.byref(before), ctypes.byref(after)), before.size, after.size)
    for st in before, after:
        show("its attributes", hex(st.mask), st.nlink, st.uid, st.gid, oct(st.mode), st.rdev_major, st.rdev_minor, st.dev_major, st.dev_minor,
             st.ino > 0, st.mtime.sec > 0)
    show("fsync", call("fsync", f, ctypes.byref(before), ctypes.byref(after)), after.size)
    show("fdatasync", call("fdatasync", f, None, None))
    st = Stat()
    show_stat("fstat", call("fstat", f, ctypes.byref(st)), st)
    show("same inode", st.ino == look(fs, b"data").ino, st.dev == look(fs, b"data").dev)
    for keep, offset, size in ((0, 0, 100), (1, 0, 4096)):
        try_call("fallocate", f, keep, long(offset), size_t(size))
        look(fs, b"data")
    try_call("zerofill", f, long(50), long(100))
    look(fs, b"data")
    try_call("discard", f, long(0), size_t(4))
    show("pread", call("pread", f, buffer, size_t(6), long(0), 0, None), buffer.raw[:6])
    try_call("fchmod", f, 0o644)
    try_call("fchown", f, 5, 6)
    try_call("futimens", f, (Timespec * 2)(Timespec(3, 4), Timespec(5, 6)))
    st = look(fs, b"data")
    show("times", st.atime.sec, st.atime.nsec, st.mtime.sec, st.mtime.nsec)
    try_call("close", f)
    f = try_call("open", fs, b"data", os.O_WRONLY | os.O_APPEND)
    show("append", call("write", f, b"tail", size_t(4), 0))
    try_call("close", f)
    look(fs, b"data")
    f = try_call("open", fs, b"data", os.O_RDWR | os.O_TRUNC)
    look(fs, b"data")
    lock = Flock(1, 0, 0, 10, 0)  # F_WRLCK
    try_call("fd_set_lkowner", f, b"owner-01", 8)
    show("F_SETLK", call("posix_lock", f, 6, ctypes.byref(lock)))
    g = try_call("open", fs, b"data", os.O_RDWR)
    try_call("fd_set_lkowner", g, b"owner-02", 8)
    show("F_SETLK of another owner", call("posix_lock", g, 6, ctypes.byref(lock)))
    other = Flock(1, 0, 5, 1, 0)
    show("F_GETLK", call("posix_lock", g, 5, ctypes.byref(other)), other.type, other.start, other.len)
    try_call("close", f)
    show("after the close", call("posix_lock", g, 6, ctypes.byref(lock)))
    try_call("close", g)


def xattrs(fs):
    call("close", pointer(call("creat", fs, b"x", os.O_RDWR, 0o600)))
    buffer = ctypes.create_string_buffer(1000)
    for name, value, flags in ((b"user.a", b"1", 0), (b"user.a", b"22", 1), (b"user.a", b"22", 2), (b"user.b", b"", 0),
                               (b"user.none", b"1", 2), (b"trusted.c", b"333", 0), (b"trusted.gfid", b"0123456789abcdef", 0)):
        try_call("setxattr", fs, b"x", name, value, size_t(len(value)), flags)
    for name in b"user.a", b"user.b", b"user.none", b"trusted.c":
        for size in 0, 1, 1000:
            result = call("getxattr", fs, b"x", name, buffer, size_t(size))
            show("getxattr", name.decode(), size, result, buffer.raw[:result] if size and isinstance(result, int) else "")
    result = call("listxattr", fs, b"x", buffer, size_t(1000))
    names = [n for n in buffer.raw[:result].split(b"\0") if n.startswith((b"user.", b"trusted.c"))]
    show("listxattr", sorted(names))
    for name in b"user.a", b"user.a":
        try_call("removexattr", fs, b"x", name)
    f = pointer(call("open", fs, b"x", os.O_RDWR))
    show("fsetxattr", call("fsetxattr", f, b"user.f", b"ff", size_t(2), 0))
    show("fgetxattr", call("fgetxattr", f, b"user.f", buffer, size_t(100)), buffer.raw[:2])
    show("fremovexattr", call("fremovexattr", f, b"user.f"))
    show("fgetxattr", call("fgetxattr", f, b"user.f", buffer, size_t(100)))
    call("close", f)


def handles(fs):
    """Objects instead of paths, as an NFS server uses them."""
    st, buffer = Stat(), ctypes.create_string_buffer(100)
    made = ctypes.byref(st)

    def shown(what, result):
        show_stat(what, 0 if isinstance(result, pointer) else result, st)
        return result

    def look_at(what, o):
        show_stat("h_stat " + what, call("h_stat", fs, o, ctypes.byref(st)), st)

    here = try_call("h_lookupat", fs, None, b"/", made, 0)
    here = pointer(call("h_lookupat", fs, here, directory_of_part.strip(b"/"), made, 0))
    top = shown("h_mkdir", try_call("h_mkdir", fs, here, b"top", 0o751, made))
    try_call("h_mkdir", fs, here, b"top", 0o751, made)
    deep = shown("h_mkdir", try_call("h_mkdir", fs, top, b"deep", 0o755, made))
    f = pointer()
    o = shown("h_creat_open", try_call("h_creat_open", fs, top, b"f", os.O_RDWR, 0o640, made, ctypes.byref(f)))
    show("pwrite", call("pwrite", f, b"0123456789", size_t(10), long(0), 0, None, None))
    try_call("close", f)
    look_at("f", o)
    shown("h_creat", try_call("h_creat", fs, top, b"c", os.O_RDWR, 0o600, made))
    try_call("h_creat", fs, top, b"c", os.O_RDWR | os.O_EXCL, 0o600, made)
    shown("h_creat_open without flags", try_call("h_creat_open", fs, top, b"z", 0, 0o600, made, ctypes.byref(f)))
    show("pwrite", call("pwrite", f, b"zz", size_t(2), long(0), 0, None, None))
    try_call("close", f)
    try_call("h_creat_open", fs, top, b"z", 0, 0o600, made, ctypes.byref(f))
    try_call("h_creat", fs, top, b"z", 0, 0o600, made)
    try_call("h_unlink", fs, top, b"z")
    shown("h_mknod", try_call("h_mknod", fs, top, b"fifo", stat.S_IFIFO | 0o600, long(0), made))
    link = shown("h_symlink", try_call("h_symlink", fs, top, b"link", b"f", made))
    show("h_readlink", call("h_readlink", fs, link, buffer, size_t(99)), buffer.raw[:1])
    show("h_readlink of a file", call("h_readlink", fs, o, buffer, size_t(99)))
    shown("followed", try_call("h_lookupat", fs, top, b"link", made, 1))
    shown("not followed", try_call("h_lookupat", fs, top, b"link", made, 0))
    shown("two names", try_call("h_lookupat", fs, here, b"top/f", made, 0))
    shown("above", try_call("h_lookupat", fs, deep, b"..", made, 0))
    try_call("h_lookupat", fs, top, b"none", made, 0)

    handle = ctypes.create_string_buffer(16)
    show("h_extract_handle", call("h_extract_handle", o, None, 0), call("h_extract_handle", o, handle, 15),
         call("h_extract_handle", o, handle, 16), handle.raw == bytes(16))
    again = shown("h_create_from_handle", try_call("h_create_from_handle", fs, handle, 16, made))
    try_call("h_create_from_handle", fs, b"0123456789abcdef", 16, made)
    try_call("h_create_from_handle", fs, handle, 15, made)
    copy = try_call("object_copy", again)
    show("h_close", call("h_close", again))

    st.mode, st.uid, st.gid, st.size = stat.S_IFREG | 0o604, 11, 12, 7
    st.atime, st.mtime = Timespec(1000, 1), Timespec(2000, 2)
    show("h_setattrs", call("h_setattrs", fs, copy, ctypes.byref(st), 0x1 | 0x2 | 0x4 | 0x10 | 0x20))
    look_at("f", o)
    show("times", st.atime.sec, st.atime.nsec, st.mtime.sec, st.mtime.nsec)
    show("h_setattrs", call("h_setattrs", fs, copy, ctypes.byref(st), 0))
    show("h_truncate", call("h_truncate", fs, o, long(8)), call("h_truncate", fs, deep, long(8)))
    look_at("f", o)
    show("h_access", call("h_access", fs, o, os.R_OK), call("h_access", fs, o, os.F_OK))
    show("h_anonymous_write", call("h_anonymous_write", fs, o, b"XYZ", size_t(3), long(6)))
    show("h_anonymous_read", call("h_anonymous_read", fs, o, buffer, size_t(100), long(4)), buffer.raw[:5])
    show("h_setxattrs", call("h_setxattrs", fs, o, b"user.h", b"value", size_t(5), 0))
    show("h_getxattrs", call("h_getxattrs", fs, o, b"user.h", buffer, size_t(100)), buffer.raw[:5],
         call("h_getxattrs", fs, o, b"user.h", buffer, size_t(2)))
    show("h_removexattrs", call("h_removexattrs", fs, o, b"user.h"), call("h_removexattrs", fs, o, b"user.h"))

    for flags in os.O_RDONLY, os.O_RDWR:
        g = try_call("h_open", fs, o, flags)
        show("pread", call("pread", g, buffer, size_t(100), long(0), 0, None), buffer.raw[:9])
        try_call("close", g)
    show("h_link", call("h_link", fs, o, deep, b"hard"), call("h_link", fs, o, deep, b"hard"), call("h_link", fs, top, deep, b"dir"))
    look_at("f", o)
    show("h_rename", call("h_rename", fs, top, b"f", deep, b"g"), call("h_rename", fs, top, b"f", deep, b"g"))
    look_at("f", o)

    d = try_call("h_opendir", fs, top)
    seen, entry, out, plus = [], Dirent(), pointer(), pointer()
    while True:
        result = call("xreaddirplus_r", d, 3, ctypes.byref(plus), ctypes.byref(entry), ctypes.byref(out))
        if not out.value or isinstance(result, str):
            show("end", result)
            break
        if entry.name in (b".", b".."):
            continue
        inside = pointer(call("object_copy", pointer(call("xreaddirplus_get_object", plus))))
        of_list = Stat.from_address(call("xreaddirplus_get_stat", plus))
        call("h_stat", fs, inside, ctypes.byref(st))
        seen.append((entry.name, result, st.ino == of_list.ino == entry.ino, oct(st.mode) == oct(of_list.mode)))
        call("free", plus)
        call("h_close", inside)
    for line in sorted(seen):
        show("entry", *line)
    try_call("closedir", d)

    for name in b"deep", b"c", b"none", b"fifo", b"link":
        try_call("h_unlink", fs, top, name)
    try_call("h_unlink", fs, deep, b"hard")
    try_call("h_unlink", fs, deep, b"g")
    look_at("an object without names", o)
    show("h_anonymous_read", call("h_anonymous_read", fs, o, buffer, size_t(100), long(0)))
    try_call("h_create_from_handle", fs, handle, 16, made)
    try_call("h_unlink", fs, top, b"deep")
    show("h_close", call("h_close", copy), call("h_close", o), call("h_close", top), call("h_close", deep), call("h_close", here))


def callers(fs):
    """Calls of a user, by the ids that the thread has set."""
    call("mkdir", fs, b"shared", 0o777)
    call("chmod", fs, b"shared", 0o777)
    call("mkdir", fs, b"private", 0o700)
    api.glfs_setfsuid(1234)
    api.glfs_setfsgid(1235)
    api.glfs_setfsgroups(size_t(2), (ctypes.c_uint32 * 2)(1236, 1237))
    f = try_call("creat", fs, b"shared/mine", os.O_RDWR, 0o600)
    if isinstance(f, pointer):
        call("close", f)
    look(fs, b"shared/mine")
    try_call("mkdir", fs, b"private/d", 0o700)
    try_call("chown", fs, b"shared/mine", 1234, 1236)
    try_call("chown", fs, b"shared/mine", 1234, 1299)
    look(fs, b"shared/mine")
    api.glfs_setfsgroups(size_t(0), None)
    api.glfs_setfsuid(0)
    api.glfs_setfsgid(0)
    os.setegid(2345)
    os.seteuid(2344)
    f = try_call("creat", fs, b"shared/effective", os.O_RDWR, 0o600)
    os.seteuid(0)
    os.setegid(0)
    if isinstance(f, pointer):
        call("close", f)
    look(fs, b"shared/effective")


def acl_shown(acl):
    """The ACL's text, of an address of libacl's object."""
    if not isinstance(acl, int):
        return acl
    libacl.acl_to_any_text.restype = ctypes.c_char_p
    numeric_ids = 8
    return libacl.acl_to_any_text(pointer(acl), None, ctypes.c_char(b","), numeric_ids).decode()


def acl_of(text):
    libacl.acl_from_text.restype = pointer
    return pointer(libacl.acl_from_text(text))


def later_calls(fs):
    """Calls of later versions: attributes of struct glfs_stat, ACLs of objects, leases, advisory locks, the volfile."""
    global libacl
    libacl = ctypes.CDLL("libacl.so.1")
    f = call("creat", fs, b"later", os.O_RDWR, 0o644)
    f = pointer(f)
    st, look_st = Statx(), Stat()
    st.mode, st.uid, st.gid, st.size, st.nlink = 0o604, 5, 6, 100, 3
    st.atime, st.mtime, st.ctime = Timespec(1000, 1), Timespec(2000, 2), Timespec(3000, 3)
    for mask in 0x2, 0x8, 0x10, 0x20, 0x40, 0x84, 0x200, 0x800, 0, 0x7ff, 1 << 40:
        st.mask = mask
        st.mode = 0o604 if mask == 0x2 else 0o4640
        show("setattr", hex(mask), call("setattr", fs, b"later", ctypes.byref(st), 0))
        look(fs, b"later")
        show("fsetattr", hex(mask), call("fsetattr", f, ctypes.byref(st)))
        st.uid, st.gid = st.uid + 10, st.gid + 10
        call("lstat", fs, b"later", ctypes.byref(look_st))
        show("times", look_st.atime.sec if mask in (0x20, 0x7ff) else 0, look_st.mtime.sec if mask in (0x40, 0x7ff) else 0)
    call("symlink", fs, b"later", b"later-link")
    st.mask, st.uid = 0x8, 77
    for follow in 0, 1:
        show("setattr of a link", call("setattr", fs, b"later-link", ctypes.byref(st), follow))
        look(fs, b"later-link", "lstat")
        look(fs, b"later")
    show("setattr", call("setattr", fs, b"none", ctypes.byref(st), 0), call("setattr", fs, b"later", None, 0), call("fsetattr", f, None))
    show("statx", call("statx", fs, b"none", 0x7ff, ctypes.byref(st)), call("statx", fs, b"later", 0x80000000, ctypes.byref(st)),
         call("statx", fs, b"later", 0x7ff, ctypes.byref(st)))
    call("chmod", fs, b"later", 0o640)
    call("mkdir", fs, b"later-dir", 0o751)
    file, folder = (pointer(call("h_lookupat", fs, None, directory_of_part + name, None, 0)) for name in (b"/later", b"/later-dir"))
    api.glfs_h_acl_get.restype = pointer
    access, inherited, other = 0x8000, 0x4000, 5

    def get(o, kind):
        ctypes.set_errno(0)
        acl = api.glfs_h_acl_get(fs, o, kind)
        return acl_shown(acl) if acl else errno.errorcode.get(ctypes.get_errno(), ctypes.get_errno())

    for what, o in ("file", file), ("folder", folder):
        for kind in access, inherited, other:
            show("acl", what, kind, get(o, kind))
        for kind, text in ((access, b"u::rw-,u:12:r-x,g::r--,g:34:-w-,g:7:r--,m::rwx,o::--x"), (access, b"u::rw-,g::r--,o::---"),
                           (access, b"u::r--,u:4294967294:rw-,g::---,m::rw-,o::---"), (inherited, b"u::rwx,u:12:r-x,g::r-x,m::r-x,o::r-x"), (other, b"u::r--,g::r--,o::r--")):
            show("acl set", what, kind, text.decode(), call("h_acl_set", fs, o, kind, acl_of(text)), get(o, kind))
        show("acl set without entries", what, call("h_acl_set", fs, o, inherited, pointer(libacl_empty())), get(o, inherited))
        show("acl set NULL", call("h_acl_set", fs, o, access, None))
    lease = (ctypes.c_uint32 * 16)(2, 1, 7, 7, 7, 7)
    show("lease", call("lease", f, lease, None, None), call("h_lease", fs, file, lease), call("h_lease", fs, None, lease))
    lock = Flock(1, 0, 0, 10, 0)
    show("file_lock", call("file_lock", f, 6, ctypes.byref(lock), 0))
    text = ctypes.create_string_buffer(1 << 20)
    id = ctypes.create_string_buffer(16)
    result = api.glfs_get_volumeid(fs, id, long(16))
    show("volumeid", result, id.raw.hex())
    api.glfs_get_volfile.restype = long
    missing = -api.glfs_get_volfile(fs, None, size_t(0))
    show("get_volfile", api.glfs_get_volfile(fs, text, size_t(100)) == 100 - missing, api.glfs_get_volfile(fs, text, size_t(1 << 20)),
         len(text.value) == missing, text.value.startswith(b"volume "))
    show("close", call("close", f))


def libacl_empty():
    libacl.acl_init.restype = pointer
    return libacl.acl_init(1)


def dumps(fs):
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "plain")
        os.mkdir(os.path.join(folder, "dumps"))
        with open(plain, "w"):
            show("set_statedump_path of a file", call("set_statedump_path", fs, plain.encode()))
        show("set_statedump_path of no path", call("set_statedump_path", fs, None))
        show("set_statedump_path", call("set_statedump_path", fs, os.path.join(folder, "dumps").encode()))
        for key in b"h", b"s", b"x":
            show("sysrq", key.decode(), call("sysrq", fs, ctypes.c_char(key)))
        dumped = os.listdir(os.path.join(folder, "dumps"))
        show("dumps", [name.split(".")[0] for name in dumped], [name.split(".")[1] == str(os.getpid()) for name in dumped])
        with open(os.path.join(folder, "dumps", dumped[0])) as f:
            text = f.read()
        show("a dump names the volume", volume_of_dump in text, "its end", "DUMP-END-TIME" in text)


def main():
    server, volume, directory, log = (a.encode() for a in sys.argv[1:5])
    for _ in range(20):  # GlusterFS's init fails while the bricks have just been started
        fs = pointer(call("new", volume))
        servers = call("set_volfile_server", fs, b"tcp", server, 24007), call("set_volfile_server", fs, b"rdma-not", server, 0)
        call("set_logging", fs, log, 7)
        result = call("init", fs)
        if result == 0:
            break
        time.sleep(0.5)
    show("server", *servers)
    show("init", result)
    if result:
        sys.exit(1)
    for _ in range(600):  # GlusterFS's init may return before its bricks are connected
        if call("mkdir", fs, directory, 0o755) in (0, "EEXIST"):
            break
        time.sleep(0.1)
    show("directory", call("chdir", fs, directory))
    text = ctypes.create_string_buffer(100)
    call("getcwd", fs, text, size_t(100))
    show("getcwd", text.value == b"/" + directory.strip(b"/"))
    global directory_of_part
    directory_of_part = directory
    global volume_of_dump
    volume_of_dump = volume.decode()
    parts = [names_and_attributes, directories, data, xattrs, handles, later_calls, callers, dumps]
    for part in parts if len(sys.argv) == 5 else [globals()[sys.argv[5]]]:
        show("----", part.__name__)
        part(fs)
    show("fini", call("fini", fs) == 0 or "failed")
    os._exit(0)


main()
