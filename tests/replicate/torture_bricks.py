# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""The contents of the bricks of a replicated or dispersed volume: the pending heals, and the differences between
the bricks of a set."""
import errno
import hashlib
import os
import stat
import struct
import sys
import uuid

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "disperse"))
import fragments  # noqa: E402

HIDDEN = ("trusted.glusterfs.volume-id", "trusted.glusterfs.mdata")
INTERNAL = (".glusterfs", ".trashcan")


def objects(brick):
    """Paths below the brick, itself first."""
    yield "."
    for folder, folders, files in os.walk(brick):
        if folder == brick:
            folders[:] = [name for name in folders if name not in INTERNAL and not name.startswith(".glusterfs-anonymous-inode-")]
        folders.sort()
        for name in sorted(folders + files):
            yield os.path.relpath(os.path.join(folder, name), brick)


def xattrs(path):
    return {key: os.getxattr(path, key, follow_symlinks=False) for key in os.listxattr(path, follow_symlinks=False)}


def counters(values):
    """The pending xattrs of replicas, and the dirty counters of fragments, that are not zero."""
    dirty = values.get("trusted.ec.dirty", b"")
    counted = {"trusted.ec.dirty": struct.unpack(">%dQ" % (len(dirty) // 8), dirty)} if any(dirty) else {}
    return counted | {key: struct.unpack(">%dI" % (len(value) // 4), value) for key, value in values.items()
            if key.startswith("trusted.afr.") and any(value)}


def handle(brick, gfid):
    return os.path.join(brick, ".glusterfs", gfid[:2], gfid[2:4], gfid)


def index_entries(brick):
    for kind in ("xattrop", "dirty", "entry-changes"):
        folder = os.path.join(brick, ".glusterfs", "indices", kind)
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if name.startswith(kind + "-") or not os.path.lexists(handle(brick, name)):
                continue
            entry = os.path.join(folder, name)
            if not stat.S_ISDIR(os.lstat(entry).st_mode):
                yield kind, name, ""
                continue
            for inside in os.listdir(entry):
                yield kind, name, inside


def notes(bricks):
    """The notes about objects that a client was changing when it died."""
    return ["pending: %s: note %s" % (os.path.basename(brick), name) for brick in bricks
            for name in dead_notes(os.path.join(brick, ".glusterfs", "indices", "kiln-names"))]


def dead_notes(folder):
    return [name for name in os.listdir(folder) if name.endswith("-dead")] if os.path.isdir(folder) else []


def parked(brick):
    """The objects that heals have taken out of the tree, and the objects that the brick removes in the
    background. Both may hold links of existing files."""
    for name in os.listdir(brick):
        if name.startswith(".glusterfs-anonymous-inode-"):
            yield from os.listdir(os.path.join(brick, name))
    landfill = os.path.join(brick, ".glusterfs", "landfill")
    if os.path.isdir(landfill):
        yield from os.listdir(landfill)


def pending(bricks, indices_are_walked=True):
    """Each counter that is not zero, each entry of a heal index whose object exists, and each object that a
    heal has parked outside of the tree.

    A brick that dies between its index and the counters leaves an entry whose object has no counter. The self-heal daemon, which walks the
    indices, removes it; a mount, which meets objects by their names, does not know of it (indices_are_walked=False).
    """
    found = []
    for brick in bricks:
        paths, short, counted = {}, os.path.basename(brick), set()
        for path in objects(brick):
            try:
                values = xattrs(os.path.join(brick, path))
            except FileNotFoundError:
                continue
            if "trusted.gfid" in values:
                paths[str(uuid.UUID(bytes=values["trusted.gfid"]))] = path
            for key, words in sorted(counters(values).items()):
                counted.add(str(uuid.UUID(bytes=values.get("trusted.gfid", bytes(16)))))
                found.append("pending: %s: %s %s=%s" % (short, path, key, ",".join("%x" % word for word in words)))
        for kind, gfid, inside in index_entries(brick):
            if indices_are_walked or gfid in counted:
                found.append("pending: %s: index %s: %s (%s) %s" % (short, kind, gfid, paths.get(gfid), inside))
        found.extend("pending: %s: %s is parked" % (short, name) for name in parked(brick))
    return found


def half_renamed(bricks, size, renames):
    """The names of those (from, to) of which some bricks of a set have only the old, others only the new name of an object."""
    names = []
    for source, target in renames:
        for first in range(0, len(bricks), size):
            gfids = [[gfid_of(os.path.join(brick, name)) for name in (source, target)] for brick in bricks[first:first + size]]
            if any(old and old != new and [other for other in gfids if other[1] == old and other[0] != old] for old, new in gfids):
                names += [source, target]
    return names


def gfid_of(path):
    try:
        return os.getxattr(path, "trusted.gfid", follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENODATA):
            raise
        return None


def contents(path, info):
    if stat.S_ISREG(info.st_mode):
        with open(path, "rb") as file:
            return "%d bytes %s" % (info.st_size, hashlib.sha1(file.read()).hexdigest()[:12])
    return os.readlink(path) if stat.S_ISLNK(info.st_mode) else ""


def mtime(values):
    """Of the times that features/utime keeps for the volume: version, flags, ctime, mtime, atime."""
    data = values.get("trusted.glusterfs.mdata")
    if data is None:
        return None
    _, _, _, _, seconds, nanoseconds, _, _ = struct.unpack(">BQqqqqqq", data)
    return seconds + nanoseconds / 1e9


def describe(path, has_contents):
    info, values = os.lstat(path), xattrs(path)
    kept = {key: value.hex() for key, value in values.items()
            if (any(value) or not key.startswith("trusted.ec."))  # a counter that is absent is zero
            and key not in HIDDEN and key != "trusted.ec.dirty" and not key.startswith("trusted.afr.") and not key.startswith("trusted.gfid2path.")}
    gfid = kept.pop("trusted.gfid", None)
    has_times = has_contents or not stat.S_ISREG(info.st_mode)  # no write reaches an arbiter's file
    return {"gfid": gfid, "mode": "%o" % info.st_mode, "owner": "%d:%d" % (info.st_uid, info.st_gid),
            "links": info.st_nlink if not stat.S_ISDIR(info.st_mode) else None, "contents": contents(path, info) if has_contents else None,
            "xattrs": kept, "mtime": mtime(values) if has_times else None}


def is_linkto(view):
    return "trusted.glusterfs.dht.linkto" in view["xattrs"]


def compare_set(bricks, kind):
    """kind: `replicas`, `arbiter`, or the number of redundant bricks of a dispersed set."""
    without = {"replicas": 0, "arbiter": 1}.get(kind, len(bricks))
    trees = [{path: describe(os.path.join(brick, path), i < len(bricks) - without) for path in objects(brick)}
             for i, brick in enumerate(bricks)]
    names = [os.path.basename(brick) for brick in bricks]
    for path in sorted(set().union(*trees)):
        views = [tree.get(path) for tree in trees]
        if None in views:
            have = [view for view in views if view]
            yield "%s: %s is only on %s (gfid %s)" % ("linkto" if all(map(is_linkto, have)) else "replicas", path,
                                                      " ".join(name for name, view in zip(names, views) if view), have[0]["gfid"])
            continue
        for key in views[0]:
            values = [view[key] for view in views if view[key] is not None]
            if len({str(value) for value in values}) <= 1:
                continue
            if key == "mtime":
                yield "times: %s: mtimes differ by %.3f s" % (path, max(values) - min(values))
            else:
                yield "replicas: %s: %s: %s" % (path, key, " | ".join("%s %s" % (name, view[key]) for name, view in zip(names, views)))
        paths = [os.path.join(brick, path) for brick in bricks]
        if without == len(bricks) and stat.S_ISREG(os.lstat(paths[0]).st_mode) and (fault := fragments.fault_of(paths, int(kind))):
            yield "fragments: %s: %s" % (path, fault)


def compare(bricks, size, kind):
    """The differences between the bricks of each set of `size`. Lines that begin with `linkto:` and `times:` are differences that heals leave and that harm no data."""
    return [line for first in range(0, len(bricks), size) for line in compare_set(bricks[first:first + size], kind)]
