#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""The contents of a volume's bricks, in a form in which two volumes can be compared.

    brick_trees.py [--no-names] BRICK...        prints every object of each brick: mode, owner, size, links, contents, xattrs

--no-names: without gfid2path, of which stock bricks keep some for names that are no more.

A gfid is shown as the first path that has it, a subvolume by its number. Data that differs from run to run (times, volume-id,
inode numbers) is left out. Objects of .glusterfs are not shown, but each object must have its handle there, and each handle its
object."""
import hashlib
import os
import stat
import sys

NAMES = True
# The stock client of 11 writes 1 as the first word of the layout of a folder that the client has repaired, that of 10 writes 0.
REPAIRS_ARE_MARKED = "KILN_STOCK_VERSION" in os.environ
HIDDEN = ("trusted.glusterfs.volume-id", "trusted.glusterfs.mdata")


def objects(brick):
    """Paths below the brick, itself first, without .glusterfs."""
    yield ""
    for folder, names, files in os.walk(brick):
        if folder == brick:
            names[:] = [name for name in names if name != ".glusterfs"]
        names.sort()
        for name in sorted(names + files):
            yield os.path.relpath(os.path.join(folder, name), brick)


def xattrs(path):
    return {key: os.getxattr(path, key, follow_symlinks=False) for key in os.listxattr(path, follow_symlinks=False)}


def text_of(gfid):
    text = gfid.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def paths_by_gfid(bricks):
    found = {}
    for brick in bricks:
        for path in objects(brick):
            gfid = xattrs(os.path.join(brick, path)).get("trusted.gfid")
            if gfid is not None:
                name = "/" + path
                found[text_of(gfid)] = min(found.get(text_of(gfid), name), name)
    return found


def contents(path, mode):
    if stat.S_ISREG(mode):
        with open(path, "rb") as file:
            return hashlib.sha1(file.read()).hexdigest()[:12]
    return os.readlink(path) if stat.S_ISLNK(mode) else "-"


def shown_xattrs(values, paths):
    """A count of changes that is not negative is clean: a stock client adds one when removing an xattr fails."""
    for key, value in sorted(values.items()):
        if key in HIDDEN:
            continue
        if key == "trusted.gfid":
            yield "gfid=" + paths[text_of(value)]
        elif key == "trusted.glusterfs.dht.mds" and value[0] < 0x80:
            yield "mds"
        elif key == "trusted.afr.dirty" and not any(value):
            # Clients and heals ignore this value. kiln-mount sets the mark of a new file before the first write (lock-new-files),
            # and clears the mark when no write comes.
            continue
        elif key.startswith("trusted.gfid2path."):
            if not NAMES:
                continue
            parent, _, name = value.decode().partition("/")
            yield "name=%s:%s" % (paths.get(parent, parent), name)
        elif key == "trusted.glusterfs.dht" and REPAIRS_ARE_MARKED:
            yield "layout=" + value[4:].hex()
        elif key == "trusted.glusterfs.dht.linkto":
            yield "to=" + value.rstrip(b"\0").decode().partition("-client-")[2]
        else:
            yield "%s=%s" % (key, value.hex())


def describe(brick, path, paths):
    whole = os.path.join(brick, path)
    info = os.lstat(whole)
    size = info.st_size if stat.S_ISREG(info.st_mode) else "-"
    links = info.st_nlink if not stat.S_ISDIR(info.st_mode) else "-"
    return "/%s %o %d:%d %s %s %x %s %s" % (path, info.st_mode, info.st_uid, info.st_gid, size, links, info.st_rdev,
                                          contents(whole, info.st_mode), " ".join(sorted(shown_xattrs(xattrs(whole), paths))))


def check_handles(brick):
    """Every object has its handle; no handle is without an object but those of the volume's own."""
    handles = set()
    for path in objects(brick):
        gfid = xattrs(os.path.join(brick, path)).get("trusted.gfid")
        text = text_of(gfid)
        handle = os.path.join(brick, ".glusterfs", text[:2], text[2:4], text)
        handles.add(handle)
        if not os.path.lexists(handle):
            print("NO HANDLE /%s" % path)
    for first in sorted(os.listdir(os.path.join(brick, ".glusterfs"))):
        top = os.path.join(brick, ".glusterfs", first)
        if len(first) != 2 or not os.path.isdir(top):
            continue
        for second in os.listdir(top):
            for name in os.listdir(os.path.join(top, second)):
                if os.path.join(top, second, name) not in handles and not name.startswith("00000000-0000-0000"):
                    print("NO OBJECT for handle %s of brick %s" % (name, os.path.basename(brick)))


def main():
    global NAMES
    NAMES = sys.argv[1] != "--no-names"
    bricks = [os.path.abspath(brick) for brick in sys.argv[1 if NAMES else 2:]]
    paths = paths_by_gfid(bricks)
    for number, brick in enumerate(bricks):
        for path in objects(brick):
            if path.startswith(".glusterfs-anonymous-inode-"):  # made by stock's self-heal daemon for itself
                continue
            print(number, describe(brick, path, paths))
        check_handles(brick)


main()
