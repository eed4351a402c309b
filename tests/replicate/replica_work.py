#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Work on a replicated volume, and its results on a brick.

    replica_work.py prepare DIR      makes the files and folders for the command change
    replica_work.py change DIR       one change of each kind, most on an object of its own
    replica_work.py random DIR SEED  random changes until SIGTERM, each followed by a check of the contents; prints the number of
                                     each finished change, and "well" in the end
    replica_work.py truncate FILE COPY N   truncates FILE N times by path; prints how often COPY, the file on a brick, is still dirty afterwards
    replica_work.py marks BRICK...   prints path, name and value in hex of every counter that is not zero, and the entries of the heal
                                     indices; gfids as paths, without the volume's name, one brick after the other
"""
import itertools
import os
import random
import signal
import socket
import stat
import struct
import sys


def put(path, data, flags=os.O_CREAT | os.O_WRONLY | os.O_TRUNC):
    fd = os.open(path, flags, 0o644)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def prepare(root):
    os.chdir(root)
    for name in ("over", "mode", "owner", "xattr", "noxattr", "short", "gone", "moved", "linked", "append", "target", "times",
                 "punched", "refused"):
        put(name, name.encode() * 100)
        os.setxattr(name, "user.old", b"value")
    for name in ("folder", "emptied", "moved-folder", "full"):
        os.mkdir(name)
        put(name + "/inside", b"x")
    os.unlink("emptied/inside")
    os.mkdir("replaced-folder")


def change(root):
    os.chdir(root)
    put("over", b"new", os.O_WRONLY)
    put("append", b"more", os.O_WRONLY | os.O_APPEND)
    os.truncate("short", 5)
    fd = os.open("punched", os.O_RDWR)
    os.posix_fallocate(fd, 0, 65536)
    os.close(fd)
    os.chmod("mode", 0o600)
    os.chown("owner", 1000, 1000)
    os.utime("times", (1e9, 1e9))
    os.setxattr("xattr", "user.new", b"value")
    os.removexattr("noxattr", "user.old")
    fd = os.open("made", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
    os.close(fd)
    put("written", b"first")
    os.mkdir("new-folder")
    put("new-folder/file", b"inside")
    os.mkfifo("fifo")
    sock = socket.socket(socket.AF_UNIX)
    sock.bind("socket")
    sock.close()
    os.symlink("nowhere", "symlink")
    os.link("linked", "folder/link")
    os.unlink("gone")
    os.rmdir("emptied")
    os.rename("moved", "folder/moved")
    os.rename("moved-folder", "replaced-folder")
    put("source", b"source")
    os.rename("source", "target")
    # All replicas refuse the call alike, so no replica has missed a change.
    for refused in (lambda: os.mkdir("folder"), lambda: os.rmdir("full"), lambda: os.unlink("no-such-file")):
        try:
            refused()
        except OSError:
            continue
        raise SystemExit("something went through that cannot")


class Shadow:
    """Random changes of a folder, with a record of the expected contents."""

    def __init__(self, root, seed):
        self.root, self.random, self.files = root, random.Random(seed), {}
        self.made, self.ended = 0, []
        os.makedirs(root + "/sub", exist_ok=True)

    def path(self, name):
        return os.path.join(self.root, name)

    def any(self):
        return self.random.choice(sorted(self.files)) if self.files else self.create()

    def create(self):
        name = "%sf%d" % (self.random.choice(("", "sub/")), self.made)
        self.made += 1
        put(self.path(name), b"", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        self.files[name] = b""
        return name

    def write(self):
        name, data = self.any(), self.random.randbytes(self.random.randrange(1, 20000))
        at = self.random.randrange(len(self.files[name]) + 1)
        with open(self.path(name), "r+b", buffering=0) as file:
            file.seek(at)
            file.write(data)
            if self.random.randrange(3) == 0:
                os.fsync(file.fileno())
        old = self.files[name]
        self.files[name] = old[:at] + data + old[at + len(data):]

    def append(self):
        name, data = self.any(), self.random.randbytes(self.random.randrange(1, 5000))
        put(self.path(name), data, os.O_WRONLY | os.O_APPEND)
        self.files[name] += data

    def truncate(self):
        name = self.any()
        size = self.random.randrange(len(self.files[name]) + 1)
        os.truncate(self.path(name), size)
        self.files[name] = self.files[name][:size]

    def rename(self):
        name, other = self.any(), self.any()
        if name != other:
            os.rename(self.path(name), self.path(other))
            self.files[other] = self.files.pop(name)

    def unlink(self):
        name = self.any()
        os.unlink(self.path(name))
        del self.files[name]

    def attributes(self):
        path = self.path(self.any())
        os.chmod(path, self.random.randrange(0o1000))
        os.setxattr(path, "user.number", b"%d" % self.random.randrange(1000))

    def check(self, names):
        for name in names:
            with open(self.path(name), "rb") as file:
                data = file.read()
            if data != self.files[name]:
                raise SystemExit("%s has %d bytes that are not the %d written" % (name, len(data), len(self.files[name])))

    def run(self):
        numbers = itertools.count()
        signal.signal(signal.SIGTERM, lambda number, frame: self.ended.append(number))
        changes = [self.create, self.write, self.write, self.append, self.truncate, self.rename, self.unlink, self.attributes]
        while not self.ended:
            self.random.choice(changes)()
            self.check([self.any()])
            print(next(numbers), flush=True)
        self.check(self.files)
        have = {os.path.relpath(os.path.join(folder, name), self.root) for folder, _, names in os.walk(self.root) for name in names}
        if have != set(self.files):
            raise SystemExit("names differ: %s" % (have ^ set(self.files)))
        print("well")


def gfid_of(path):
    try:
        return os.getxattr(path, "trusted.gfid", follow_symlinks=False).hex()
    except OSError:
        return None


def objects(brick):
    yield brick
    for folder, folders, files in os.walk(brick):
        if folder == brick and ".glusterfs" in folders:
            folders.remove(".glusterfs")
        for name in folders + files:
            yield os.path.join(folder, name)


def counters(path):
    for name in os.listxattr(path, follow_symlinks=False):
        if name.startswith("trusted.afr."):
            value = os.getxattr(path, name, follow_symlinks=False)
            if any(value):
                words = struct.unpack(">%dI" % (len(value) // 4), value)
                yield name if name == "trusted.afr.dirty" else "about " + name.rsplit("-", 1)[1], words


def index_names(brick, kind, paths):
    folder = os.path.join(brick, ".glusterfs", "indices", kind)
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        path = paths.get(name.replace("-", ""))
        if name.startswith(kind + "-"):
            continue
        entry = os.path.join(folder, name)
        if stat.S_ISDIR(os.lstat(entry).st_mode):
            for inside in os.listdir(entry):
                yield "%s %s: %s" % (kind, path, inside)
        else:
            yield "%s %s" % (kind, path)


def marks(brick):
    paths, lines = {}, set()
    for path in objects(brick):
        gfid = gfid_of(path)
        short = os.path.relpath(path, brick)
        if gfid:
            paths[gfid] = min(short, paths.get(gfid, short))
        for name, words in counters(path):
            lines.add("%s %s %s" % (short, name, " ".join("%x" % word for word in words)))
    for kind in ("xattrop", "dirty", "entry-changes"):
        lines.update(index_names(brick, kind, paths))
    return sorted(lines)


def truncate(path, copy, count):
    marked = 0
    for size in range(count):
        os.truncate(path, size)
        marked += any(name == "trusted.afr.dirty" for name, _ in counters(copy))
    print("%d of %d" % (marked, count))


def main():
    if sys.argv[1] == "truncate":
        truncate(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    elif sys.argv[1] == "marks":
        for number, brick in enumerate(sys.argv[2:]):
            for line in marks(brick):
                print("brick %d: %s" % (number, line))
    elif sys.argv[1] == "random":
        Shadow(sys.argv[2], int(sys.argv[3])).run()
    else:
        {"prepare": prepare, "change": change}[sys.argv[1]](sys.argv[2])


main()
