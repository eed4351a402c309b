#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Work on a replicated volume, and what it leaves on a brick.

    replica_work.py prepare DIR      files and folders that the next one changes
    replica_work.py change DIR       one change of each kind, most on an object of its own
    replica_work.py marks BRICK...   who accuses whom: path, counter, value in hex, for every counter that is not zero; and what
                                     the heal indices name. Gfids as paths, the volume's name left out, bricks one after the other
"""
import os
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
    # All that were asked refuse alike: nobody has missed anything.
    for refused in (lambda: os.mkdir("folder"), lambda: os.rmdir("full"), lambda: os.unlink("no-such-file")):
        try:
            refused()
        except OSError:
            continue
        raise SystemExit("something went through that cannot")


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


def main():
    if sys.argv[1] == "marks":
        for number, brick in enumerate(sys.argv[2:]):
            for line in marks(brick):
                print("brick %d: %s" % (number, line))
    else:
        {"prepare": prepare, "change": change}[sys.argv[1]](sys.argv[2])


main()
