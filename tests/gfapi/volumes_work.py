# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""volumes_work.py memory LOG COUNT: prints the memory of the process with one volume open, and with COUNT more.
volumes_work.py left LOG: closes a volume before its files.
volumes_work.py pending LOG: closes a volume while the callback of a write runs.
volumes_work.py many LOG: opens 50 volumes in one process, uses two of them from four threads, and closes all, three times.
volumes_work.py write LOG DIR: writes to a volume until DIR/stop exists, with the number of writes in DIR/count; reads all back."""
import ctypes
import errno
import os
import sys
import threading
import time

api = ctypes.CDLL("libgfapi.so.0", use_errno=True)
size_t, long, pointer = ctypes.c_size_t, ctypes.c_long, ctypes.c_void_p
for name in "new", "creat", "open", "opendir":
    getattr(api, "glfs_" + name).restype = pointer
for name in "pwrite", "pread":
    getattr(api, "glfs_" + name).restype = long
callback = ctypes.CFUNCTYPE(None, pointer, long, pointer, pointer, pointer)


def must(what, ok):
    if not ok:
        sys.exit("%s: %s" % (what, os.strerror(ctypes.get_errno())))


def opened(volume):
    fs = pointer(api.glfs_new(volume))
    must("server", api.glfs_set_volfile_server(fs, b"tcp", b"localhost", 24007) == 0)
    must("logging", api.glfs_set_logging(fs, sys.argv[2].encode(), 7) == 0)
    must("init", api.glfs_init(fs) == 0)
    return fs


def process():
    with open("/proc/self/status") as status:
        threads = [line.split()[1] for line in status if line.startswith("Threads:")][0]
    return int(threads), len(os.listdir("/proc/self/fd"))


def use(fs, number):
    """Writes a file by asynchronous calls and closes it in the last callback, then reads it."""
    name = b"/file-%d" % number
    fd = pointer(api.glfs_creat(fs, name, os.O_RDWR, 0o600))
    left, lock, done, results = [20], threading.Lock(), threading.Event(), []
    blocks = [bytes([number, i]) * 5000 for i in range(20)]

    @callback
    def wrote(file, ret, _before, _after, _data):
        with lock:
            left[0] -= 1
            is_last = left[0] == 0
            results.append(ret)
        if is_last:
            results.append(api.glfs_close(pointer(file)))
            done.set()

    for i, block in enumerate(blocks):
        must("pwrite_async", api.glfs_pwrite_async(fd, block, size_t(10000), long(i * 10000), 0, wrote, None) == 0)
    done.wait()
    must("results %s" % results, results == [10000] * 20 + [0])
    fd = pointer(api.glfs_open(fs, name, os.O_RDONLY))
    buffer = ctypes.create_string_buffer(200000)
    must("pread", api.glfs_pread(fd, buffer, size_t(200000), long(0), 0, None) == 200000 and buffer.raw == b"".join(blocks))
    must("close", api.glfs_close(fd) == 0)


def many():
    api.glfs_fini(opened(b"v"))
    before = process()
    for _ in range(3):
        volumes = [opened((b"v", b"w")[i % 2]) for i in range(50)]
        threads = process()[0]
        users = [threading.Thread(target=use, args=(volumes[i % 2], i)) for i in range(4)]
        for user in users:
            user.start()
        for user in users:
            user.join()
        for fs in volumes:
            must("fini", api.glfs_fini(fs) == 0)
    print("threads for one volume and for fifty:", before[0], threads)
    for _ in range(100):  # a connection's last worker closes its descriptor
        if process()[1] <= before[1]:
            break
        time.sleep(0.1)
    print("descriptors left:", process()[1] - before[1])


def resident():
    with open("/proc/self/status") as status:
        return [int(line.split()[1]) for line in status if line.startswith("VmRSS:")][0]


def memory():
    volumes = [opened(b"v")]
    before = resident()
    volumes += [opened((b"v", b"w")[i % 2]) for i in range(int(sys.argv[3]))]
    print("kB with one volume and with %d more: %d %d" % (len(volumes) - 1, before, resident()))
    for fs in volumes:
        must("fini", api.glfs_fini(fs) == 0)


def left():
    fs = opened(b"v")
    fd = pointer(api.glfs_creat(fs, b"/left", os.O_RDWR, 0o600))
    root = pointer(api.glfs_opendir(fs, b"/"))
    must("write", api.glfs_pwrite(fd, b"x", size_t(1), long(0), 0, None, None) == 1)
    must("fini", api.glfs_fini(fs) == 0)
    ret = api.glfs_pwrite(fd, b"x", size_t(1), long(0), 0, None, None)
    error = ctypes.get_errno()
    must("a write after fini", ret == -1)
    print("closed: %d %d, then: %s" % (api.glfs_closedir(root), api.glfs_close(fd), errno.errorcode[error]))


def pending():
    fs = opened(b"v")
    fd = pointer(api.glfs_creat(fs, b"/pending", os.O_RDWR, 0o600))
    begun, ended = threading.Event(), []

    @ctypes.CFUNCTYPE(None, pointer, ctypes.c_ssize_t, pointer, pointer, pointer)
    def written(*_):
        begun.set()
        time.sleep(0.5)
        ended.append(True)

    must("write", api.glfs_pwrite_async(fd, b"x", size_t(1), long(0), 0, written, None) == 0)
    begun.wait()
    must("fini", api.glfs_fini(fs) == 0)
    print("the callback had ended:", bool(ended))
    must("close", api.glfs_close(fd) == 0)


def write():
    fs, directory = opened(b"v"), sys.argv[3]
    fd = pointer(api.glfs_creat(fs, b"/log", os.O_RDWR, 0o600))
    count = 0
    while not os.path.exists(directory + "/stop"):
        must("write %d" % count, api.glfs_pwrite(fd, b"%08d" % count * 512, size_t(4096), long(count * 4096), 0, None, None) == 4096)
        must("fsync", api.glfs_fsync(fd, None, None) == 0)
        count += 1
        with open(directory + "/count.new", "w") as out:
            out.write("%d\n" % count)
        os.rename(directory + "/count.new", directory + "/count")
    buffer = ctypes.create_string_buffer(4096)
    for i in range(count):
        must("read %d" % i, api.glfs_pread(fd, buffer, size_t(4096), long(i * 4096), 0, None) == 4096 and buffer.raw == b"%08d" % i * 512)
    must("close", api.glfs_close(fd) == 0)
    must("fini", api.glfs_fini(fs) == 0)
    print("all writes are there")


globals()[sys.argv[1]]()
