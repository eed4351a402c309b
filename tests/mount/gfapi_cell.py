# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""gfapi_cell.py VOLFILE LOG NAME ONE TWO: the library works in the volume's folder NAME, which two mounts have at ONE and TWO.

Each of the three makes, changes, renames and removes objects, and the other two see the results. At the end all three append lines
to one file at once, and no line is lost or torn."""
import ctypes
import os
import random
import sys
import threading

volfile, log, name, one, two = sys.argv[1:]
api = ctypes.CDLL("libgfapi.so.0", use_errno=True)
size_t, long, pointer = ctypes.c_size_t, ctypes.c_long, ctypes.c_void_p
for call in "new", "creat", "open":
    getattr(api, "glfs_" + call).restype = pointer
for call in "pwrite", "pread", "write", "readlink":
    getattr(api, "glfs_" + call).restype = long
LINES = 200


class Library:
    """The calls of libgfapi with the names of the functions of os."""

    def __init__(self):
        self.fs = pointer(api.glfs_new(b"v"))
        self.must("volfile", api.glfs_set_volfile(self.fs, volfile.encode()))
        self.must("logging", api.glfs_set_logging(self.fs, log.encode(), 7))
        self.must("init", api.glfs_init(self.fs))

    def must(self, what, ret):
        if ret is None or ret < 0:
            error = ctypes.get_errno()
            raise OSError(error, "libgfapi: %s: %s" % (what, os.strerror(error)))
        return ret

    def path(self, path):
        return ("/%s/%s" % (name, path)).encode()

    def write(self, path, data):
        fd = pointer(self.must("creat", api.glfs_creat(self.fs, self.path(path), os.O_RDWR | os.O_TRUNC, 0o644)))
        wrote = self.must("write", api.glfs_pwrite(fd, data, size_t(len(data)), long(0), 0, None, None))
        self.must("close", api.glfs_close(fd))
        assert wrote == len(data)

    def read(self, path):
        fd = pointer(self.must("open", api.glfs_open(self.fs, self.path(path), os.O_RDONLY)))
        buffer = ctypes.create_string_buffer(1 << 20)
        got = self.must("read", api.glfs_pread(fd, buffer, size_t(1 << 20), long(0), 0, None))
        self.must("close", api.glfs_close(fd))
        return buffer.raw[:got]

    def append(self, path, lines):
        fd = pointer(self.must("open", api.glfs_open(self.fs, self.path(path), os.O_WRONLY | os.O_APPEND)))
        for line in lines:
            assert self.must("append", api.glfs_write(fd, line, size_t(len(line)), 0)) == len(line)
        self.must("close", api.glfs_close(fd))

    def mkdir(self, path):
        self.must("mkdir", api.glfs_mkdir(self.fs, self.path(path), 0o755))

    def rename(self, path, other):
        self.must("rename", api.glfs_rename(self.fs, self.path(path), self.path(other)))

    def symlink(self, target, path):
        self.must("symlink", api.glfs_symlink(self.fs, target.encode(), self.path(path)))

    def remove(self, path):
        self.must("unlink", api.glfs_unlink(self.fs, self.path(path)))

    def rmdir(self, path):
        self.must("rmdir", api.glfs_rmdir(self.fs, self.path(path)))

    def close(self):
        self.must("fini", api.glfs_fini(self.fs))


class Mount:
    """The same calls on a mount."""

    def __init__(self, top):
        self.top = top

    def path(self, path):
        return os.path.join(self.top, path)

    def write(self, path, data):
        with open(self.path(path), "wb") as file:
            file.write(data)

    def read(self, path):
        with open(self.path(path), "rb") as file:
            return file.read()

    def append(self, path, lines):
        fd = os.open(self.path(path), os.O_WRONLY | os.O_APPEND)
        for line in lines:
            assert os.write(fd, line) == len(line)
        os.close(fd)

    def mkdir(self, path):
        os.mkdir(self.path(path))

    def rename(self, path, other):
        os.rename(self.path(path), self.path(other))

    def symlink(self, target, path):
        os.symlink(target, self.path(path))

    def remove(self, path):
        os.unlink(self.path(path))

    def rmdir(self, path):
        os.rmdir(self.path(path))


def expect(client, path, data, what):
    try:
        got = client.read(path)
    except OSError as error:
        got = error
    if got != data:
        sys.exit("%s sees %s of %s as %r" % (type(client).__name__, what, path, got if isinstance(got, OSError) else len(got)))


def is_missing(client, path):
    try:
        client.read(path)
    except FileNotFoundError:
        return
    sys.exit("%s still sees %s" % (type(client).__name__, path))


def turns(clients):
    for i, client in enumerate(clients):
        folder, data = "dir%d" % i, random.Random(i).randbytes(300000)
        client.mkdir(folder)
        client.write(folder + "/a", data)
        client.symlink("a", folder + "/link")
        for other in clients:
            expect(other, folder + "/link", data, "the new contents")
        client.write(folder + "/a", data[:1000])
        client.rename(folder + "/a", folder + "/b")
        for other in clients:
            expect(other, folder + "/b", data[:1000], "the changed contents")
            is_missing(other, folder + "/a")
        other = clients[(i + 1) % len(clients)]
        other.remove(folder + "/b")
        other.remove(folder + "/link")
        other.rmdir(folder)
        for seer in clients:
            is_missing(seer, folder + "/b")


def appends(clients):
    clients[0].write("log", b"")
    failures = []

    def run(i):
        try:
            clients[i].append("log", [b"client %d line %06d %s\n" % (i, n, b"x" * (n * 7 % 200)) for n in range(LINES)])
        except (OSError, AssertionError) as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    want = sorted(b"client %d line %06d %s" % (i, n, b"x" * (n * 7 % 200)) for i in range(len(clients)) for n in range(LINES))
    for client in clients:
        lines = client.read("log").splitlines()
        if failures or sorted(lines) != want:
            sys.exit("%s sees %d of %d lines whole; failures: %s" % (type(client).__name__, len(set(lines) & set(want)), len(want), failures))
    clients[1].remove("log")


library = Library()
both = [library, Mount(one), Mount(two)]
turns(both)
appends(both)
library.close()
