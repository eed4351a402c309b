#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""distribute_work.py DIR STEPS SEED: the same steps each time. Prints a line for each failed step, with the error.

There are few names, so that names are renamed onto each other, linked, removed and made again, on all subvolumes."""
import errno
import os
import random
import stat
import sys

NAMES = ["a", "b", "c", "file1", "file2", ".tmp.x1", "tmp", "Makefile"]
FOLDERS = ["d1", "d2", "d1/e1", "d2/e2", "d1/e3"]


def write(path, data):
    # a fifo, which nobody reads, is an error then
    handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_NONBLOCK, 0o640)
    os.write(handle, data)
    os.fsync(handle)
    os.close(handle)


def some_path(dice):
    folder = dice.choice(FOLDERS + [""])
    return os.path.join(folder, dice.choice(NAMES))


def make(dice):
    write(some_path(dice), bytes([dice.randrange(256)]) * dice.randrange(5000))


def move(dice):
    os.rename(some_path(dice), some_path(dice))


def link(dice):
    os.link(some_path(dice), some_path(dice), follow_symlinks=False)


def unlink(dice):
    os.unlink(some_path(dice))


def symlink(dice):
    os.symlink("to-%d" % dice.randrange(9), some_path(dice))


def node(dice):
    os.mknod(some_path(dice), 0o600 | stat.S_IFIFO)


def folder(dice):
    os.mkdir(dice.choice(FOLDERS), 0o755)


def remove_folder(dice):
    os.rmdir(dice.choice(FOLDERS))


def move_folder(dice):
    os.rename(dice.choice(FOLDERS), dice.choice(FOLDERS))


def mode(dice):
    path = dice.choice(FOLDERS) if dice.random() < 0.5 else some_path(dice)
    if not os.path.islink(path):
        os.chmod(path, dice.choice([0o700, 0o755, 0o1777]))


def owner(dice):
    path = dice.choice(FOLDERS) if dice.random() < 0.5 else some_path(dice)
    os.chown(path, dice.randrange(3), dice.randrange(3), follow_symlinks=False)


def xattr(dice):
    path = dice.choice(FOLDERS) if dice.random() < 0.7 else some_path(dice)
    if not os.path.islink(path):
        os.setxattr(path, "user.%d" % dice.randrange(3), b"value %d" % dice.randrange(9))


def no_xattr(dice):
    # The work removes no missing xattr, because a stock client may crash.
    folder, name = dice.choice(FOLDERS), "user.%d" % dice.randrange(3)
    if name in os.listxattr(folder):
        os.removexattr(folder, name)


def cut(dice):
    path, size = some_path(dice), dice.randrange(4000)
    if os.path.isfile(path) and not os.path.islink(path):
        os.truncate(path, size)


STEPS = [make] * 6 + [move] * 6 + [link, link, unlink, unlink, symlink, node, folder, folder, folder, remove_folder, move_folder, mode,
                                   owner, xattr, xattr, no_xattr, cut]


def main():
    os.chdir(sys.argv[1])
    dice = random.Random(int(sys.argv[3]))
    for name in FOLDERS:
        os.mkdir(name)
    for number in range(int(sys.argv[2])):
        step = dice.choice(STEPS)
        own = random.Random(dice.randrange(1 << 30))  # however much a step asks for, the next are the same
        try:
            step(own)
        except OSError as error:
            print(number, step.__name__, errno.errorcode[error.errno])
    for top, names, files in os.walk("."):
        names.sort()
        print(top, sorted(names), sorted(files))


main()
