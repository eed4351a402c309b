#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""listing_work.py DIR OTHER: DIR, whose files are all there, is listed by one open descriptor, also while the same folder
is changed by OTHER, another mount of it. Prints what is wrong, a line each."""
import ctypes
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
libc.opendir.restype = libc.readdir.restype = ctypes.c_void_p
libc.readdir.argtypes = libc.telldir.argtypes = libc.rewinddir.argtypes = libc.closedir.argtypes = [ctypes.c_void_p]
libc.telldir.restype = ctypes.c_long
libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]
NAME_AT = 19  # in struct dirent


def read(stream):
    entry = libc.readdir(stream)
    return ctypes.string_at(entry + NAME_AT).decode() if entry else None


def rest(stream):
    return list(iter(lambda: read(stream), None))


def check(what, good):
    if not good:
        print(what)


def main():
    folder, other = sys.argv[1:]
    stream = libc.opendir(folder.encode())
    cookies, names = [], []
    while True:
        cookies.append(libc.telldir(stream))
        name = read(stream)
        if name is None:
            break
        names.append(name)
    real = set(names) - {".", ".."}
    check("a name is missing", real == set(os.listdir(other)))
    check("a name is listed twice", len(names) == len(set(names)))
    check("readdir returns an entry after the end", read(stream) is None)
    for at in range(0, len(names), len(names) // 7 or 1):
        libc.seekdir(stream, cookies[at])
        check("after seekdir(%d) the listing continues at another entry" % at, rest(stream) == names[at:])

    for i in range(8):
        with open("%s/late%d" % (other, i), "w"):
            pass
    os.unlink("%s/late0" % other)
    libc.rewinddir(stream)
    again = set(rest(stream)) - {".", ".."}
    check("a listing after rewinddir lacks a new name", again == real | {"late%d" % i for i in range(1, 8)})
    for i in range(1, 8):
        os.unlink("%s/late%d" % (other, i))
    libc.rewinddir(stream)
    check("a listing after rewinddir has a removed name", set(rest(stream)) - {".", ".."} == real)
    libc.closedir(stream)


main()
