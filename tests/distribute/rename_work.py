#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""rename_work.py MOUNT OTHER COUNT: renames files through MOUNT, whose kernel keeps old lookups for valid, after OTHER has
changed the files. Prints a line for each fault."""
import errno
import os
import sys

mount, other, count = sys.argv[1], sys.argv[2], int(sys.argv[3])


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def read(path):
    with open(path) as file:
        return file.read()


def rename(old, new):
    try:
        os.rename(os.path.join(mount, old), os.path.join(mount, new))
        return 0
    except OSError as error:
        return error.errno


def seen(name):
    """Returns the other mount's view of the name: None, "folder" or the file's text."""
    path = os.path.join(other, name)
    if not os.path.lexists(path):
        return None
    return "folder" if os.path.isdir(path) else read(path)


def nothing(old, new):
    pass


def source_gone(old, new):
    os.unlink(os.path.join(other, old))


def source_another(old, new):
    os.unlink(os.path.join(other, old))
    write(os.path.join(other, old), "another")


def source_moved_in(old, new):
    write(os.path.join(other, old + "-in"), "moved in")
    os.rename(os.path.join(other, old + "-in"), os.path.join(other, old))


def target_gone(old, new):
    os.unlink(os.path.join(other, new))


def target_moved_in(old, new):
    write(os.path.join(other, new + "-in"), "moved in")
    os.rename(os.path.join(other, new + "-in"), os.path.join(other, new))


def target_folder(old, new):
    os.unlink(os.path.join(other, new))
    os.mkdir(os.path.join(other, new))


# change, is there a target, the rename's errno, the contents of the old and of the new name
CASES = [
    (nothing, False, 0, None, "old"),
    (nothing, True, 0, None, "old"),
    (source_gone, True, errno.ENOENT, None, "new"),
    (source_another, True, 0, None, "another"),
    (source_another, False, 0, None, "another"),
    (source_moved_in, True, 0, None, "moved in"),
    (target_gone, True, 0, None, "old"),
    (target_moved_in, True, 0, None, "old"),
    (target_folder, True, errno.EISDIR, "old", "folder"),
]


def main():
    for number, (change, has_target, error, old_seen, new_seen) in enumerate(CASES):
        for i in range(count):
            old, new = "o%d.%d" % (number, i), "n%d.%d" % (number, i)
            write(os.path.join(mount, old), "old")
            if has_target:
                write(os.path.join(mount, new), "new")
            change(old, new)
            result = rename(old, new), seen(old), seen(new)
            if result != (error, old_seen, new_seen):
                print("%s, target %s: %s to %s: %s" % (change.__name__, has_target, old, new, result))


main()
