# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Kiln's libgfapi as the client of tests/replicate/torture, in a process of its own that SIGKILL ends like a mount.

torture_gfapi.py VOLFILE LOG SOCKET opens the volume and makes the calls that come from connections to SOCKET, a thread for each
connection, until SIGTERM. Library(SOCKET) in another process has the functions of the module os that torture_work.py uses; after the
end of the process they fail with ENOTCONN, as the calls of a dead mount do."""
import contextlib
import ctypes
import errno
import os
import pickle
import signal
import socket
import stat
import struct
import sys
import threading

size_t, long, pointer = ctypes.c_size_t, ctypes.c_long, ctypes.c_void_p
LARGEST = 1 << 20  # bytes of a file, of a list of names


class Stat(ctypes.Structure):
    _fields_ = [("st_dev", ctypes.c_uint64), ("st_ino", ctypes.c_uint64), ("st_nlink", ctypes.c_uint64), ("st_mode", ctypes.c_uint32),
                ("ids", ctypes.c_uint32 * 3), ("st_rdev", ctypes.c_uint64), ("st_size", ctypes.c_int64), ("rest", ctypes.c_int64 * 11)]


class Dirent(ctypes.Structure):
    _fields_ = [("ino", ctypes.c_uint64), ("off", ctypes.c_int64), ("reclen", ctypes.c_uint16), ("type", ctypes.c_uint8),
                ("name", ctypes.c_char * 256)]


# ---- messages: four bytes of length, then pickle's bytes
def send(connection, thing):
    data = pickle.dumps(thing)
    connection.sendall(struct.pack(">I", len(data)) + data)


def receive(connection):
    def bytes_of(count):
        data = b""
        while len(data) < count:
            more = connection.recv(count - len(data))
            if not more:
                raise ConnectionResetError
            data += more
        return data
    return pickle.loads(bytes_of(struct.unpack(">I", bytes_of(4))[0]))


class Library:
    """A file system as torture_work.Mount; each method of Volume can be called."""
    top = "/"

    def __init__(self, path):
        self.connection = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(ConnectionRefusedError):  # the process has just been killed: each call answers ENOTCONN
            self.connection.connect(path)

    def __getattr__(self, name):
        def call(*args):
            try:
                send(self.connection, (name, args))
                error, result = receive(self.connection)
            except OSError as gone:
                raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN)) from gone
            if error:
                raise OSError(error, os.strerror(error))
            return result
        return call


# ---- the process with the library
class Volume:
    def __init__(self, volfile, log):
        self.api = ctypes.CDLL("libgfapi.so.0", use_errno=True)
        for name in "new", "creat", "open", "opendir":
            getattr(self.api, "glfs_" + name).restype = pointer
        for name in "pwrite", "pread", "write", "readlink", "lgetxattr", "llistxattr":
            getattr(self.api, "glfs_" + name).restype = long
        self.files, self.last, self.lock = {}, 0, threading.Lock()
        self.fs = pointer(self.api.glfs_new(b"v"))
        self.must(self.api.glfs_set_volfile(self.fs, volfile.encode()))
        self.must(self.api.glfs_set_logging(self.fs, log.encode(), 7))
        self.must(self.api.glfs_init(self.fs))

    @staticmethod
    def must(result):
        if result is None or result < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return result

    def path_call(self, name, path, *args):
        return self.must(getattr(self.api, "glfs_" + name)(self.fs, path.encode(), *args))

    def open(self, path, flags, mode=0):
        if flags & os.O_CREAT:
            file = self.path_call("creat", path, flags, mode)
        else:
            file = self.path_call("open", path, flags)
        with self.lock:
            self.last += 1
            self.files[self.last] = pointer(file)
            return self.last

    def close(self, fd):
        self.must(self.api.glfs_close(self.files.pop(fd)))

    def write(self, fd, data):
        return self.must(self.api.glfs_write(self.files[fd], data, size_t(len(data)), 0))

    def pwrite(self, fd, data, at):
        return self.must(self.api.glfs_pwrite(self.files[fd], data, size_t(len(data)), long(at), 0, None, None))

    def fsync(self, fd):
        self.must(self.api.glfs_fsync(self.files[fd], None, None))

    def truncate(self, path, size):
        self.path_call("truncate", path, long(size))

    def rename(self, path, to):
        self.path_call("rename", path, to.encode())

    def link(self, path, to):
        self.path_call("link", path, to.encode())

    def symlink(self, text, path):
        self.path_call("symlink", text, path.encode())

    def unlink(self, path):
        self.path_call("unlink", path)

    def rmdir(self, path):
        self.path_call("rmdir", path)

    def mkdir(self, path, mode=0o755):
        self.path_call("mkdir", path, mode)

    def mkfifo(self, path, mode):
        self.path_call("mknod", path, stat.S_IFIFO | mode, long(0))

    def chmod(self, path, mode):
        self.path_call("chmod", path, mode)

    def setxattr(self, path, key, value):
        self.path_call("setxattr", path, key.encode(), value, size_t(len(value)), 0)

    def removexattr(self, path, key):
        self.path_call("removexattr", path, key.encode())

    def lstat(self, path):
        found = Stat()
        self.path_call("lstat", path, ctypes.byref(found))
        return os.stat_result((found.st_mode, found.st_ino, 0, found.st_nlink, 0, 0, found.st_size, 0, 0, 0))

    def text_call(self, name, path, *args):
        buffer = ctypes.create_string_buffer(LARGEST)
        count = self.path_call(name, path, *args, buffer, size_t(LARGEST))
        return buffer[:count]

    def readlink(self, path):
        return self.text_call("readlink", path).decode()

    def getxattr(self, path, key):
        return self.text_call("lgetxattr", path, key.encode())

    def listxattr(self, path):
        return [name.decode() for name in self.text_call("llistxattr", path).split(b"\0") if name]

    def read_file(self, path):
        buffer = ctypes.create_string_buffer(LARGEST)
        file = pointer(self.path_call("open", path, os.O_RDONLY))
        try:
            count = self.must(self.api.glfs_pread(file, buffer, size_t(LARGEST), long(0), 0, None))
            return buffer[:count]
        finally:
            self.api.glfs_close(file)

    def listdir(self, path):
        folder, entry, found, names = pointer(self.path_call("opendir", path)), Dirent(), pointer(), []
        try:
            while True:
                self.must(self.api.glfs_readdir_r(folder, ctypes.byref(entry), ctypes.byref(found)))
                if not found.value:
                    return names
                if entry.name not in (b".", b".."):
                    names.append(entry.name.decode())
        finally:
            self.api.glfs_closedir(folder)


def serve(volume, connection):
    try:
        while True:
            name, args = receive(connection)
            try:
                answer = 0, getattr(volume, name)(*args)
            except OSError as error:
                answer = error.errno, None
            send(connection, answer)
    except OSError:
        connection.close()


def main(volfile, log, path):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    volume = Volume(volfile, log)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path + ".new")
    listener.listen()
    os.rename(path + ".new", path)  # the socket takes connections from its first moment

    def accept():
        while True:
            threading.Thread(target=serve, args=(volume, listener.accept()[0]), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    signal.sigwait({signal.SIGTERM})
    for file in volume.files.values():
        volume.api.glfs_close(file)
    status = volume.api.glfs_fini(volume.fs)
    print("glfs_fini:", status, flush=True)
    os._exit(status != 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
