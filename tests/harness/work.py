#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Work on a mount, the expected contents afterwards, and a check of every replica.

    work.py tree DIR MANIFEST FILES [SEED]         folders, files, links, renames, truncations, xattrs
    work.py smallfile DIR MANIFEST FILES [SEED]    create, append, read, chmod, xattr, rename, delete of small files
    work.py seed MANIFEST FILES TAG                does nothing: lists the files of `seed-work keep`
    work.py list DIR MANIFEST                      does nothing: lists the contents of DIR
    work.py check LAYOUT MANIFEST PLACE...         compares. PLACE is the same folder on each brick of the volume, in glusterd's order,
                                                   or with LAYOUT `mount` one on a mount. Prints `files N wrong N` and what is wrong

DIR is made and must not exist (except for list). LAYOUT is DxR; Dx2+1: every third brick is an arbiter, whose
files are empty; `pieces`: each brick has a piece of each file, with the same names, links and xattrs, and the
contents of pieces are not compared. A manifest is a JSON object: a path, and for it the SHA-256 of a file,
`folder`, or `-> TARGET`; xattrs that begin with user. follow after a blank. Exit status 1 when something is
wrong, or, with a traceback, when an operation failed.
"""
import hashlib
import json
import os
import random
import stat
import sys

FOLDER = "folder"
BLOCK = 4096
LINKTO = "trusted.glusterfs.dht.linkto"
SHOWN = 20


def checksum(data):
    return hashlib.sha256(data).hexdigest()


class Work:
    """Makes changes in a folder and records their expected results."""

    def __init__(self, place, seed):
        self.place = place
        self.dice = random.Random(seed)
        self.files, self.folders, self.links, self.marks = {}, [], {}, {}
        os.mkdir(place)

    def path(self, name):
        return os.path.join(self.place, name)

    def mkdir(self, name):
        os.mkdir(self.path(name))
        self.folders.append(name)

    def create(self, name, size):
        data = self.dice.randbytes(size)
        with open(self.path(name), "xb", buffering=0) as file:
            self.write(file, data)
        self.files[name] = data

    def write(self, file, data):
        done = file.write(data)
        if done != len(data):
            raise OSError(f"a short write: {done} of {len(data)}")

    def append(self, name, size):
        data = self.dice.randbytes(size)
        with open(self.path(name), "ab", buffering=0) as file:
            self.write(file, data)
        self.files[name] += data

    def truncate(self, name):
        self.files[name] = self.files[name][:len(self.files[name]) // 2]
        os.truncate(self.path(name), len(self.files[name]))

    def read(self, name):
        with open(self.path(name), "rb") as file:
            if file.read() != self.files[name]:
                raise OSError(f"{name}: not what was written")

    def mark(self, name):
        self.marks[name] = b"%d" % self.dice.randrange(1000)
        os.chmod(self.path(name), self.dice.choice((0o600, 0o640, 0o644)))
        os.setxattr(self.path(name), "user.work", self.marks[name])

    def rename(self, name, to):
        os.rename(self.path(name), self.path(to))
        self.files[to] = self.files.pop(name)
        if name in self.marks:
            self.marks[to] = self.marks.pop(name)

    def unlink(self, name):
        os.unlink(self.path(name))
        del self.files[name]
        self.marks.pop(name, None)

    def symlink(self, name, target):
        os.symlink(target, self.path(name))
        self.links[name] = target

    def hardlink(self, name, to):
        os.link(self.path(name), self.path(to))
        self.files[to] = self.files[name]
        if name in self.marks:
            self.marks[to] = self.marks[name]

    def manifest(self):
        found = {name: FOLDER for name in self.folders}
        found.update((name, "-> " + target) for name, target in self.links.items())
        for name, data in self.files.items():
            found[name] = checksum(data) + (" " + self.marks[name].decode() if name in self.marks else "")
        return found


def tree(work, files):
    """Every tenth object is a folder. Hard links come last: a change of a file with two names would change the contents of both names."""
    folders = ["."]
    for i in range(files):
        name = f"{work.dice.choice(folders)}/n{i}"
        if i % 10 == 0:
            work.mkdir(name)
            folders.append(name)
        else:
            work.create(name, work.dice.choice((0, 100, 5000, 70000)))
    names = list(work.files)
    for i, name in enumerate(names):
        if i % 7 == 0:
            work.truncate(name)
        elif i % 7 == 1:
            work.rename(name, f"{work.dice.choice(folders)}/moved{i}")
        elif i % 7 == 2:
            work.mark(name)
        elif i % 7 == 3:
            work.symlink(f"{name}-link", os.path.basename(name))
        elif i % 7 == 4:
            work.unlink(name)
    for name in [name for name in work.files if "moved" in name]:
        work.hardlink(name, name + "-too")


def smallfile(work, files):
    names = [f"small-{i}" for i in range(files)]
    for name in names:
        work.create(name, BLOCK)
    for name in names:
        work.append(name, 1000)
    for name in names:
        work.read(name)
    for name in names:
        work.mark(name)
    for i, name in enumerate(names):
        if i % 2:
            work.rename(name, f"renamed-{i}")
        else:
            work.unlink(name)


def kept_by_seed(files, tag):
    found = {}
    for i in range(files):
        name = f"file-{i:06d}"
        line = f"{tag} {name}\n".encode()
        found[name] = checksum((line * (BLOCK // len(line) + 1))[:BLOCK])
    return found


def value_of(path, info, is_arbiter=False):
    if stat.S_ISDIR(info.st_mode):
        return FOLDER
    if stat.S_ISLNK(info.st_mode):
        return "-> " + os.readlink(path)
    with open(path, "rb") as file:
        digest = checksum(file.read())
    if is_arbiter:
        digest = "empty" if info.st_size == 0 else f"{info.st_size} bytes on an arbiter"
    marked = "user.work" in os.listxattr(path)
    return digest + (" " + os.getxattr(path, "user.work").decode() if marked else "")


def is_linkto(path, info):
    """A pointer of distribute's to the subvolume that has the file: mode 1000, empty, and an xattr of its name."""
    return stat.S_ISREG(info.st_mode) and stat.S_IMODE(info.st_mode) == 0o1000 and LINKTO in os.listxattr(path)


def listing(place, is_arbiter=False):
    def unreadable(error):
        raise error

    found = {}
    for folder, folders, names in os.walk(place, onerror=unreadable):
        if folder == place:
            folders[:] = [name for name in folders if name != ".glusterfs"]
        for name in folders + names:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            if not is_linkto(path, info):
                found[os.path.relpath(path, place)] = value_of(path, info, is_arbiter)
    return found


class Check:
    def __init__(self, manifest):
        self.want = {os.path.normpath(name): value for name, value in manifest.items()}
        self.wrong = 0

    def complain(self, text):
        self.wrong += 1
        if self.wrong <= SHOWN:
            print(text)

    def compare(self, where, found, want):
        for name in sorted(set(found) | set(want)):
            if found.get(name) != want.get(name):
                self.complain(f"{where}/{name}: {found.get(name, 'missing')}, must be {want.get(name, 'not there')}")

    def is_file(self, name):
        return name in self.want and self.want[name] != FOLDER

    def bricks(self, layout, places):
        """A folder is on every brick, anything else on all replicas of one subvolume."""
        size = sum(map(int, layout.split("x")[1].split("+")))
        sets = [places[i:i + size] for i in range(0, len(places), size)]
        if len(sets) != int(layout.split("x")[0]):
            sys.exit(f"work.py: {len(places)} bricks are no {layout}")
        has = [[listing(place, "+" in layout and i == size - 1) for i, place in enumerate(one)] for one in sets]
        home = {}
        for number, replicas in enumerate(has):
            for name in set().union(*replicas):
                if self.is_file(name):
                    home.setdefault(name, []).append(number)
        for name, numbers in home.items():
            if len(numbers) > 1:
                self.complain(f"{name}: on the subvolumes {numbers}")
        for name in self.want:
            if self.is_file(name) and name not in home:
                self.complain(f"{name}: on no brick")
        for number, replicas in enumerate(has):
            want = {name: value for name, value in self.want.items() if value == FOLDER or number in home.get(name, ())}
            for i, found in enumerate(replicas):
                is_arbiter = "+" in layout and i == size - 1
                self.compare(sets[number][i], found, contents_as("empty", want) if is_arbiter else want)

    def pieces(self, places):
        for place in places:
            self.compare(place, contents_as("a piece", listing(place)), contents_as("a piece", self.want))


def contents_as(word, names):
    """Replaces the checksums of files by a word. Folders, links and xattrs stay."""
    return {name: value if value == FOLDER or value.startswith("-> ") else " ".join([word, *value.split(" ")[1:]])
            for name, value in names.items()}


def check(layout, manifest, places):
    with open(manifest, encoding="utf-8") as file:
        work = Check(json.load(file))
    if layout == "mount":
        work.compare(places[0], listing(places[0]), work.want)
    elif layout == "pieces":
        work.pieces(places)
    else:
        work.bricks(layout, places)
    print(f"files {sum(map(work.is_file, work.want))} wrong {work.wrong}")
    return work.wrong != 0


def save(manifest, found):
    with open(manifest, "w", encoding="utf-8") as file:
        json.dump(found, file)


def main(command, *words):
    if command in ("tree", "smallfile"):
        work = Work(words[0], int(words[3]) if len(words) > 3 else 1)
        {"tree": tree, "smallfile": smallfile}[command](work, int(words[2]))
        save(words[1], work.manifest())
    elif command == "seed":
        save(words[0], kept_by_seed(int(words[1]), words[2]))
    elif command == "list":
        save(words[1], listing(words[0]))
    elif command == "check":
        return check(words[0], words[1], words[2:])
    else:
        sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
