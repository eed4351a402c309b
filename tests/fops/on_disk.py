#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Objects of every kind on a mount, and their state on the bricks.

    on_disk.py fill MOUNT NAME              makes the tree MOUNT/NAME and prints all its visible attributes
    on_disk.py verify MOUNT NAME STATE      compares the tree with the output of fill
    on_disk.py change MOUNT NAME            changes the tree in every way
    on_disk.py verify_changed MOUNT NAME    looks for these changes
    on_disk.py snapshot BRICK               prints every object of the brick with all attributes
    on_disk.py kinds BRICK prints every object of the brick with size, kinds of attributes, and pending heals
    on_disk.py compare BRICK NAME1 NAME2    compares the kinds of attributes of the objects of the two trees
"""
import hashlib
import os
import random
import stat
import subprocess
import sys


def put(path, data):
    with open(path, "wb") as file:
        file.write(data)
        reach_the_bricks(file)


def reach_the_bricks(file):
    """The client answers close() while writes are still under way, and a test unmounts soon."""
    file.flush()
    os.fsync(file.fileno())


def get(path):
    with open(path, "rb") as file:
        return file.read()


def fill(mount, name):
    top = os.path.join(mount, name)
    os.mkdir(top)
    os.chdir(top)
    dice = random.Random(5)
    for i in range(12):
        put("file%d" % i, dice.randbytes(i * 5000))
    os.makedirs("a/b/c")
    put("a/b/c/deep", b"deep")
    os.chmod("file1", 0o640)
    os.chown("file2", 1234, 2345)
    os.chmod("a/b", 0o2770)
    os.link("file3", "a/hard")
    os.symlink("file4", "soft")
    os.symlink("/absolute/" + "x" * 200, "a/long")
    os.mkfifo("fifo")
    os.mknod("device", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    os.setxattr("file5", "user.some", b"\0\1\2value")
    os.setxattr("a", "user.on-folder", b"v")
    os.utime("file6", ns=(1111111111222222222, 1333333333444444444))
    os.rename("file7", "a/moved")
    subprocess.check_call(["setfacl", "-m", "u:1234:rw", "file8"])
    subprocess.check_call(["setfacl", "-m", "d:u:1234:rwx", "a"])
    put("a/inherits", b"")
    put("n" * 255, b"long name")
    put("日本語", b"unicode")
    with open("sparse", "wb") as file:
        file.seek(10 << 20)
        file.write(b"end")
        reach_the_bricks(file)
    print("\n".join(seen(top)))


def seen(top):
    lines = []
    for folder, folders, files in os.walk(top):
        for entry in folders + files:
            path = os.path.join(folder, entry)
            info = os.lstat(path)
            kind = stat.S_IFMT(info.st_mode)
            extra = ""
            if kind == stat.S_IFREG:
                extra = "%d %s %d" % (info.st_size, hashlib.sha256(get(path)).hexdigest(), info.st_nlink)
            elif kind == stat.S_IFLNK:
                extra = os.readlink(path)
            elif kind == stat.S_IFCHR:
                extra = "%x" % info.st_rdev
            if kind != stat.S_IFLNK:
                extra += "".join(" %s=%s" % (key, os.getxattr(path, key).hex()) for key in sorted(os.listxattr(path))
                                 if key.startswith(("user.", "system.posix_acl")))
            times = "%d" % info.st_mtime_ns
            lines.append("%s %o %d:%d ino=%d mtime=%s %s" % (
                os.path.relpath(path, top), info.st_mode, info.st_uid, info.st_gid, info.st_ino, times, extra))
    return sorted(lines)


def verify(mount, name, state):
    with open(state) as file:
        want = file.read().splitlines()
    found = seen(os.path.join(mount, name))
    for line in sorted(set(want) ^ set(found)):
        print("missing:" if line in want else "unexpected:", line)
    return want == found


def change(mount, name):
    os.chdir(os.path.join(mount, name))
    with open("file9", "r+b") as file:
        file.seek(100)
        file.write(b"changed")
        reach_the_bricks(file)
    with open("file10", "ab") as file:
        file.write(b"appended")
        reach_the_bricks(file)
    os.truncate("file11", 10)
    os.rename("a/moved", "file7")
    os.rename("a/b", "b")
    os.unlink("a/hard")
    os.unlink("soft")
    os.unlink("file0")
    os.chmod("file1", 0o600)
    os.chown("file2", 0, 0)
    os.setxattr("file5", "user.some", b"other")
    os.setxattr("file5", "user.more", b"1")
    os.removexattr("a", "user.on-folder")
    os.link("file6", "b/c/link")
    os.mkdir("b/new")
    put("b/new/file", b"new")
    os.rename("n" * 255, "m" * 255)


def verify_changed(mount, name):
    os.chdir(os.path.join(mount, name))
    assert get("file9")[98:110][2:9] == b"changed"
    assert len(get("file9")) == 45000
    assert get("file10")[50000:] == b"appended"
    assert os.stat("file11").st_size == 10
    assert len(get("file7")) == 35000
    assert get("b/c/deep") == b"deep" and not os.path.exists("a/b")
    assert os.stat("file3").st_nlink == 1 and not os.path.lexists("soft") and not os.path.exists("file0")
    assert stat.S_IMODE(os.stat("file1").st_mode) == 0o600
    assert os.stat("file2").st_uid == 0
    assert os.getxattr("file5", "user.some") == b"other" and os.getxattr("file5", "user.more") == b"1"
    assert "user.on-folder" not in os.listxattr("a")
    assert os.stat("b/c/link").st_nlink == 2 and os.path.samefile("b/c/link", "file6")
    assert get("b/new/file") == b"new"
    assert get("m" * 255) == b"long name" and "n" * 255 not in os.listdir(".")
    return True


def attributes(path):
    return {key: os.getxattr(path, key, follow_symlinks=False)
            for key in os.listxattr(path, follow_symlinks=False)}


def snapshot(brick):
    for folder, folders, files in os.walk(brick):
        if folder == brick:
            folders.remove(".glusterfs")
        folders.sort()
        for entry in sorted(folders + files):
            path = os.path.join(folder, entry)
            info = os.lstat(path)
            print(os.path.relpath(path, brick), oct(info.st_mode), info.st_uid, info.st_gid, info.st_nlink,
                  info.st_mtime_ns, info.st_size if stat.S_ISREG(info.st_mode) else "",
                  *("%s=%s" % (key, value.hex()) for key, value in sorted(attributes(path).items())))


def shape(path):
    """Names of attributes and lengths of values; gfid2path names end in a hash, user values are the test's own."""
    found = []
    for key, value in sorted(attributes(path).items()):
        if key.startswith("trusted.gfid2path."):
            key = "trusted.gfid2path.*"
            # parent gfid / name
            assert value[36:37] == b"/" and value[37:] == os.path.basename(os.fsencode(path)) or os.stat(
                path, follow_symlinks=False).st_nlink > 2, value
        # The marks of replicate depend on the clock, and the brick that keeps a folder's metadata depends on the
        # folder's name.
        if not key.startswith("trusted.afr.") and key != "trusted.glusterfs.dht.mds":
            found.append("%s[%d]" % (key, len(value)) if key.startswith("trusted.g") and "path" not in key else key)
    return sorted(found)


def kinds(brick):
    """Says the same of two bricks that have seen the same work."""
    for folder, folders, files in os.walk(brick):
        if folder == brick:
            folders[:] = [name for name in folders if not name.startswith(".glusterfs")]
        for entry in folders + files:
            path = os.path.join(folder, entry)
            info = os.lstat(path)
            waits = [key for key, value in attributes(path).items() if key.startswith("trusted.afr.") and value.strip(b"\0")]
            print(os.path.relpath(path, brick), oct(info.st_mode), info.st_uid, info.st_gid, info.st_nlink if entry in files else "",
                  info.st_size if stat.S_ISREG(info.st_mode) else "", shape(path), "waits" if waits else "")


def compare(brick, one, two):
    """Where distribute put an object depends on its folder, so those are compared of which this brick has both."""
    same, compared = True, 0
    for name in ("", "a", "a/b", "a/b/c", "a/long", "a/inherits", "a/hard", "file3", "file4", "file5", "file6", "file8",
                 "soft", "fifo", "device", "日本語", "sparse"):
        first, second = os.path.join(brick, one, name), os.path.join(brick, two, name)
        if not os.path.lexists(first) or not os.path.lexists(second):
            continue
        compared += 1
        looks = []
        for path in (first, second):
            info = os.lstat(path)
            looks.append((oct(info.st_mode), info.st_uid, info.st_gid, shape(path),
                          None if stat.S_ISDIR(info.st_mode) else info.st_nlink))
        if looks[0] != looks[1]:
            same = False
            print("%s:\n  %s\n  %s" % (name, *looks))
    print(compared, "objects compared")
    return same and compared >= 3


def main():
    result = globals()[sys.argv[1]](*sys.argv[2:])
    sys.exit(0 if result in (None, True) else 1)


main()
