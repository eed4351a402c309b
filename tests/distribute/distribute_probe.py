#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""distribute_probe.py make|hold|probe|look DIR: prints the possible operations on a distributed volume. Prints
what each step came to.

make: folders and files. hold: keeps them in the kernel's cache until a signal. probe: tries everything, by
names of all subvolumes. look: prints the contents."""
import errno
import os
import signal
import sys

LETTERS = "abcdefghij"


def attempt(what, function):
    try:
        result = function()
    except OSError as error:
        result = errno.errorcode[error.errno]
    print(what, result)


def create(path):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY))


def make():
    for name in ("d1", "d2", "d3", "empty"):
        os.mkdir(name)
    for letter in LETTERS:
        create("d1/" + letter)
    os.setxattr("d1", "user.a", b"1")


def hold():
    for name in ["d1", "d2", "d3", "empty"] + ["d1/" + letter for letter in LETTERS]:
        os.open(name, os.O_PATH)
    print("held", flush=True)
    signal.pause()


def folders():
    for name in ("d1", "d2", "d3"):
        attempt("chmod " + name, lambda: os.chmod(name, 0o700))
        attempt("setxattr " + name, lambda: os.setxattr(name, "user.b", b"2"))
        attempt("getxattr " + name, lambda: os.getxattr(name, "user.b"))
        attempt("rename " + name, lambda: os.rename(name, name + "x"))


def probe():
    for letter in LETTERS:
        attempt("stat " + letter, lambda: os.stat("d1/" + letter).st_size)
        attempt("create " + letter, lambda: create("d1/new" + letter))
        attempt("mkdir " + letter, lambda: os.mkdir("new" + letter))
        attempt("rename " + letter, lambda: os.rename("d1/" + letter, "d1/r" + letter))
        attempt("link " + letter, lambda: os.link("d1/r" + letter, "d2/l" + letter))
        attempt("unlink " + letter, lambda: os.unlink("d1/r" + letter))
    attempt("list", lambda: sorted(os.listdir("d1")))
    attempt("list the root", lambda: sorted(os.listdir(".")))
    attempt("rmdir", lambda: os.rmdir("empty"))
    folders()


def look():
    for top, names, files in sorted(os.walk(".")):
        print(top, sorted(names), sorted(files))
        attempt("xattrs of " + top, lambda: [(key, os.getxattr(top, key)) for key in sorted(os.listxattr(top))])
        attempt("mode of " + top, lambda: oct(os.stat(top).st_mode))


os.chdir(sys.argv[2])
{"make": make, "hold": hold, "probe": probe, "look": look}[sys.argv[1]]()
