#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Changes of attributes, and their results on a brick.

    attributes_work.py unpack DIR COUNT      makes files as tar does: write, times, owner, mode, close
    attributes_work.py storm DIR WHO COUNT   COUNT random changes of the attributes of a few files and a folder, which others change, too
    attributes_work.py show DIR              the attributes of all that is there, a line each
"""
import os
import random
import sys

NAMES = ("one", "two", "three", "folder")


def unpack(root, count):
    for i in range(int(count)):
        fd = os.open(f"{root}/file{i}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        os.write(fd, b"x" * 5000)
        os.utime(fd, (1e9, 1e9 + i))
        os.fchown(fd, 1000 + i, 1000)
        os.fchmod(fd, 0o640)
        os.close(fd)


def storm(root, who, count):
    rng = random.Random(who)
    for i in range(int(count)):
        path = f"{root}/{rng.choice(NAMES)}"
        rng.choice((
            lambda: os.chmod(path, rng.randrange(0o400, 0o777)),
            lambda: os.chown(path, rng.randrange(5000), rng.randrange(5000)),
            lambda: os.utime(path, (rng.randrange(10**9), rng.randrange(10**9))),
            lambda: os.setxattr(path, "user.last", f"{who} {i}".encode()),
            lambda: os.setxattr(path, f"user.{who}", str(i).encode()),
        ))()
    print("done")


def show(root):
    for folder, names, files in os.walk(root):
        names[:] = sorted(n for n in names if n != ".glusterfs")
        for name in sorted(names + files):
            path = f"{folder}/{name}"
            st = os.lstat(path)
            xattrs = {x: os.getxattr(path, x) for x in sorted(os.listxattr(path)) if x.startswith("user.")}
            # Bricks have different times for a folder when names are made and removed there.
            times = st.st_mtime_ns if name in files else 0
            print(os.path.relpath(path, root), oct(st.st_mode), st.st_uid, st.st_gid, times, xattrs)


{"unpack": unpack, "storm": storm, "show": show}[sys.argv[1]](*sys.argv[2:])
