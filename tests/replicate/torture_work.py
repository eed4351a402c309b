# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""The writers of tests/replicate/torture, and the comparison of a mount or of libgfapi's view with the acknowledged changes.

torture.py runs both. A writer keeps its model in STATE/wN and a journal of its calls in STATE/wN.log. It changes only names of its own, so
it knows what each call must do: a call that succeeds has happened, and a call that fails because the mount died may have happened or
not. Both are right then for the names and files of this call, so the writer leaves them alone for the rest of the round. Names of
different writers lie in the same folders, too."""
import contextlib
import copy
import errno
import os
import pickle
import random
import stat
import time
import traceback

import torture_gfapi

DEAD = (errno.ENOTCONN, errno.ECONNABORTED, errno.ENODEV)
SHARED = ("shared-0", "shared-1")
WITHOUT = os.environ.get("TORTURE_WITHOUT", "").split()
STRIPE = int(os.environ.get("TORTURE_STRIPE", "0"))  # bytes of a stripe of a dispersed file
LIMIT = 30  # names of a writer


class Mount:
    """A mount's file system: the functions of the module os."""

    def __init__(self, top):
        self.top = top

    def __getattr__(self, name):
        return getattr(os, name)

    @staticmethod
    def read_file(path):
        with open(path, "rb") as file:
            return file.read()


def file_system(mnt):
    """MNT is a mount point, or the socket of torture_gfapi.py."""
    return torture_gfapi.Library(mnt) if mnt.endswith(".sock") else Mount(mnt)


class File:
    def __init__(self, kind, data, mode):
        self.kind, self.data, self.mode, self.xattrs = kind, data, mode, {}
        self.others = []  # further states that are right: (data, mode, xattrs)


class Model:
    """names: path to File, or to a Folder's File of kind 'd'. open_names: path to the list of further Files (or None) that are right there;
    moves: (from, to, file) of renames whose outcome is open: a name that is
    gone is the other."""

    def __init__(self):
        self.names, self.open_names, self.moves = {}, {}, []

    def parent_is_sure(self, path):
        return not any(path == other or path.startswith(other + "/") for other in self.open_names)

    def settled(self):
        open_files = [file for file in self.names.values() if file.others]
        return [path for path in sorted(self.names)
                if self.parent_is_sure(path) and not any(self.names[path] is file for file in open_files) and not self.has_open_below(path)]

    def has_open_below(self, path):
        return any(other.startswith(path + "/") for other in self.open_names)

    def below(self, path):
        return [other for other in self.names if other.startswith(path + "/")]


class Writer:
    def __init__(self, mnt, state, name, seed):
        self.fs, self.name, self.dice = file_system(mnt), name, random.Random("%s %s" % (seed, name))
        self.file = os.path.join(state, name)
        self.journal = open(self.file + ".log", "a", buffering=1, encoding="ascii")
        self.stop_file = state + ".stop"
        self.model = Model()
        self.serial = 0
        if os.path.exists(self.file):
            with open(self.file, "rb") as file:
                self.model, self.serial = pickle.load(file)

    def whole(self, path):
        return os.path.join(self.fs.top, path)

    # ---- one call and what it means
    def call(self, text, apply, function, *args):
        """Runs the function; apply changes a model into the one after it."""
        self.journal.write("%.3f %s\n" % (time.time(), text))
        try:
            function(*args)
        except OSError as error:
            self.journal.write("%.3f    failed: %s\n" % (time.time(), error.strerror))
            self.leave_open(apply)
            raise
        self.journal.write("%.3f    done\n" % time.time())
        apply(self.model)

    def leave_open(self, apply):
        """The call may have happened or not."""
        model = self.model
        after = copy.deepcopy(model, memo := {})
        apply(after)
        twin = {id(memo[id(file)]): file for file in model.names.values()}
        for path in set(model.names) | set(after.names):
            old, new = model.names.get(path), after.names.get(path)
            mine = twin.get(id(new), new)
            if old is not mine:
                model.open_names.setdefault(path, []).append(mine)
            elif old is not None and (old.data, old.mode, old.xattrs) != (new.data, new.mode, new.xattrs):
                old.others = [(new.data, new.mode, new.xattrs)]

    # ---- choices
    def new_path(self):
        self.serial += 1
        return "%s/%s-%d" % (self.folder(), self.name, self.serial)

    def folder(self):
        own = [path for path in self.model.settled() if self.model.names[path].kind == "d"]
        return self.dice.choice([self.name, self.name] + list(SHARED) + own)

    def any(self, kinds="f"):
        """A name that nothing is open of, or None."""
        found = [path for path in self.model.settled() if self.model.names[path].kind in kinds]
        return self.dice.choice(found) if found else None

    def bytes(self):
        return self.dice.randbytes(self.dice.choice((1, 40, 700, 4096, 5000, 20000)))

    # ---- calls
    def create(self):
        path, data, mode = self.new_path(), b"", self.dice.choice((0o644, 0o600, 0o755))

        def apply(model):
            model.names[path] = File("f", data, mode)

        def do():
            self.fs.close(self.fs.open(self.whole(path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        self.call("create %s" % path, apply, do)
        if self.dice.random() < 0.8:
            self.change(path, 0, self.bytes())

    def change(self, path, at, data, flags=0):
        """Writes and syncs: without fsync, nothing is promised."""
        def apply(model):
            file = model.names[path]
            old = file.data.ljust(at, b"\0")
            file.data = old[:at] + data + old[at + len(data):]

        def do():
            fd = self.fs.open(self.whole(path), os.O_WRONLY | flags)
            try:
                if flags & os.O_APPEND:
                    self.fs.write(fd, data)
                else:
                    self.fs.pwrite(fd, data, at)
                self.fs.fsync(fd)
            finally:
                self.fs.close(fd)
        self.call("write %s at %d, %d bytes%s" % (path, at, len(data), ", append" if flags else ""), apply, do)

    def write(self):
        path = self.any()
        if path:
            self.change(path, self.dice.randrange(len(self.model.names[path].data) + 100), self.bytes())

    def append(self):
        path = self.any()
        if path and len(self.model.names[path].data) < 100000:
            self.change(path, len(self.model.names[path].data), self.bytes(), os.O_APPEND)

    def stream(self):
        """One descriptor that stays open over several writes, each synced."""
        path = self.any()
        if not path:
            return
        fd = self.fs.open(self.whole(path), os.O_WRONLY)
        try:
            for _ in range(self.dice.randrange(2, 6)):
                at, data = self.dice.randrange(8000), self.bytes()

                def apply(model, at=at, data=data):
                    file = model.names[path]
                    old = file.data.ljust(at, b"\0")
                    file.data = old[:at] + data + old[at + len(data):]

                def do(at=at, data=data):
                    self.fs.pwrite(fd, data, at)
                    self.fs.fsync(fd)
                self.call("stream %s at %d, %d bytes" % (path, at, len(data)), apply, do)
        finally:
            self.fs.close(fd)

    def truncate(self):
        path = self.any()
        if not path:
            return
        size = self.dice.randrange(len(self.model.names[path].data) + 50)

        def apply(model):
            model.names[path].data = model.names[path].data[:size].ljust(size, b"\0")
        self.call("truncate %s to %d" % (path, size), apply, self.fs.truncate, self.whole(path), size)

    def replace(self):
        """Opens a file with O_TRUNC, and writes new contents."""
        path, data = self.any(), self.bytes()
        if not path:
            return
        fds = []

        def set_data(model, contents):
            model.names[path].data = contents

        def do():
            self.fs.write(fds[0], data)
            self.fs.fsync(fds[0])
        try:
            self.call("empty %s" % path, lambda model: set_data(model, b""),
                      lambda: fds.append(self.fs.open(self.whole(path), os.O_WRONLY | os.O_TRUNC)))
            self.call("fill %s with %d bytes" % (path, len(data)), lambda model: set_data(model, data), do)
        finally:
            for fd in fds:
                self.fs.close(fd)

    def rename(self):
        path, over = self.any(), self.any()
        if not path:
            return
        if over is None or self.dice.random() < 0.5:
            over = self.new_path()
        if self.model.names.get(over) is not self.model.names[path]:
            self.rename_to(path, over)

    def rename_folder(self):
        path = self.any("d")
        if path:
            to = self.new_path()
            if not (to + "/").startswith(path + "/"):
                self.rename_to(path, to)

    def rename_to(self, path, to):
        def apply(model):
            for below in model.below(path):
                model.names[to + below[len(path):]] = model.names.pop(below)
            model.names[to] = model.names.pop(path)

        file = self.model.names[path]
        try:
            self.call("rename %s %s%s" % (path, to, " (over)" if to in self.model.names else ""), apply, self.fs.rename,
                      self.whole(path), self.whole(to))
        except OSError:
            self.model.moves.append((path, to, file))
            raise

    def unlink(self):
        path = self.any("flp")
        if path:
            self.call("unlink %s" % path, lambda model: model.names.pop(path), self.fs.unlink, self.whole(path))

    def mkdir(self):
        path = self.new_path()
        if path.count("/") > 4:
            return

        def apply(model):
            model.names[path] = File("d", None, 0o755)
        self.call("mkdir %s" % path, apply, self.fs.mkdir, self.whole(path), 0o755)

    def rmdir(self):
        empty = [path for path in self.model.settled() if self.model.names[path].kind == "d" and not self.model.below(path)]
        if empty:
            path = self.dice.choice(empty)
            self.call("rmdir %s" % path, lambda model: model.names.pop(path), self.fs.rmdir, self.whole(path))

    def link(self):
        path, to = self.any(), self.new_path()
        if not path:
            return

        def apply(model):
            model.names[to] = model.names[path]
        self.call("link %s %s" % (path, to), apply, self.fs.link, self.whole(path), self.whole(to))

    def symlink(self):
        path, text = self.new_path(), "to-%d" % self.serial

        def apply(model):
            model.names[path] = File("l", text, 0o777)
        self.call("symlink %s" % path, apply, self.fs.symlink, text, self.whole(path))

    def mknod(self):
        path = self.new_path()

        def apply(model):
            model.names[path] = File("p", None, 0o644)
        self.call("mkfifo %s" % path, apply, self.fs.mkfifo, self.whole(path), 0o644)

    def chmod(self):
        path, mode = self.any("fd"), self.dice.choice((0o600, 0o640, 0o644, 0o700, 0o755, 0o711))
        if not path:
            return

        def apply(model):
            model.names[path].mode = mode
        self.call("chmod %s %o" % (path, mode), apply, self.fs.chmod, self.whole(path), mode)

    def setxattr(self):
        path, value = self.any("fd"), b"%d" % self.serial
        key = self.dice.choice(("user.one", "user.two"))
        if not path:
            return

        def apply(model):
            model.names[path].xattrs = {**model.names[path].xattrs, key: value}
        self.call("setxattr %s %s %s" % (path, key, value.decode()), apply, self.fs.setxattr, self.whole(path), key, value)

    def removexattr(self):
        found = [path for path in self.model.settled() if self.model.names[path].xattrs]
        if not found:
            return
        path = self.dice.choice(found)
        key = min(self.model.names[path].xattrs)

        def apply(model):
            model.names[path].xattrs = {k: v for k, v in model.names[path].xattrs.items() if k != key}
        self.call("removexattr %s %s" % (path, key), apply, self.fs.removexattr, self.whole(path), key)

    def step(self):
        removals, additions = [self.unlink] * 4 + [self.rmdir] * 2, [self.create] * 5 + [self.mkdir, self.link, self.symlink, self.mknod]
        changes = [self.write] * 2 + [self.replace] * 2 + [self.rename] * 3 + [
            self.append, self.stream, self.truncate, self.rename_folder, self.chmod, self.setxattr, self.removexattr]
        full = len(self.model.names) - LIMIT
        calls = changes + (removals if full > -15 else []) + (additions if full < 0 else [])
        self.dice.choice([call for call in calls if call.__name__ not in WITHOUT])()

    def run(self):
        """0: stopped or the mount has died, 1: a call of a mount that lives has failed."""
        status = 0
        self.journal.write("%.3f begins with %d names\n" % (time.time(), len(self.model.names)))
        try:
            while not os.path.exists(self.stop_file): # a signal would interrupt calls
                self.step()
        except OSError as error:
            self.journal.write("%.3f ends: %s\n" % (time.time(), error))
            if not self.mount_is_dead():
                with open(self.file + ".error", "w", encoding="utf-8") as file:
                    file.write("%s: %s" % (self.name, error))
                status = 1
        self.save()
        return status

    def mount_is_dead(self):
        """A living mount, too, answers ENOTCONN when too few bricks are up; only a dead mount answers ENOTCONN for its root."""
        try:
            self.fs.lstat(self.fs.top)
            self.fs.listdir(self.fs.top)
        except OSError as other:
            return other.errno in DEAD
        return False

    def save(self):
        with open(self.file + ".new", "wb") as file:
            pickle.dump((self.model, self.serial), file)
        os.rename(self.file + ".new", self.file)


def writer_names(count):
    return ["w%d" % i for i in range(count)]


def writers_start(mnt, state, count, seed):
    """Process ids of writers that work until STATE.stop exists, or until the mount is gone. Exit status 1: a call on a living mount failed,
    which STATE/wN.error names."""
    fs = file_system(mnt)
    for name in list(SHARED) + writer_names(count):
        with contextlib.suppress(FileExistsError):
            fs.mkdir(os.path.join(fs.top, name))
    children = []
    for name in writer_names(count):
        child = os.fork()
        if child == 0:
            os._exit(writer_main(mnt, state, name, seed))
        children.append(child)
    return children


def writer_main(mnt, state, name, seed):
    try:
        return Writer(mnt, state, name, seed).run()
    except BaseException:
        with open(os.path.join(state, name + ".error"), "w", encoding="utf-8") as file:
            file.write(traceback.format_exc())
        return 1


# ---- comparison
class Found:
    def __init__(self, fs, path):
        info = fs.lstat(path)
        self.kind = {stat.S_IFREG: "f", stat.S_IFDIR: "d", stat.S_IFLNK: "l", stat.S_IFIFO: "p"}[stat.S_IFMT(info.st_mode)]
        self.mode, self.ino, self.links, self.size, self.data = stat.S_IMODE(info.st_mode), info.st_ino, info.st_nlink, info.st_size, None
        self.xattrs, self.times = {}, 1
        if self.kind == "l":
            self.data = fs.readlink(path)
        elif self.kind == "f":
            self.data = fs.read_file(path)
        if self.kind in "fd":
            self.xattrs = {key: fs.getxattr(path, key) for key in fs.listxattr(path) if key.startswith("user.")}


def walk(mnt, wrong):
    fs = file_system(mnt)
    found = {}
    moved = []

    def visit(folder):
        try:
            names = fs.listdir(os.path.join(fs.top, folder))
        except OSError as error:
            wrong.append("mount: list %s: %s" % (folder, error.strerror))
            return
        for name in sorted(set(names)):
            path = os.path.join(folder, name)
            if path == ".trashcan":
                continue
            try:
                found[path] = Found(fs, os.path.join(fs.top, path))
                found[path].times = names.count(name)
            except OSError as error:
                # The LOOKUP may have completed the rename of a mount that died: the folder has its new name now.
                if error.errno == errno.ENOENT and name not in fs.listdir(os.path.join(fs.top, folder)):
                    moved.append(path)
                    continue
                found[path] = None
                wrong.append("mount: %s: %s" % (path, error.strerror))
                continue
            if found[path].kind == "d":
                visit(path)
    visit("")
    if moved:
        found.clear()
        visit("")
    return found


def look_at_all(mnt):
    """As `find -ls` and a read of each file do: a mount that heals does so for all names that it meets."""
    for folder, _, files in os.walk(mnt):
        for name in files:
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError):
                if stat.S_ISREG(os.lstat(path).st_mode):
                    with open(path, "rb") as file:
                        file.read(1)


def is_mix(got, old, new):
    """A call in flight: each byte is the old or the new one, and the size is between the two. In a dispersed file, fragments of the old
    and the new stripe decode to other bytes, in all stripes that the call changes."""
    if not min(len(old), len(new)) <= len(got) <= max(len(old), len(new)):
        return False
    longest = max(len(old), len(new))
    old, new = old.ljust(longest, b"\0"), new.ljust(longest, b"\0")
    if STRIPE:
        return all(old[at:at + STRIPE] != new[at:at + STRIPE] or got[at:at + STRIPE] == old[at:at + STRIPE][:len(got) - at]
                   for at in range(0, len(got), STRIPE))
    return all(byte in (old[i], new[i], 0) for i, byte in enumerate(got))


def differs(found, file):
    """Returns the fault of the object there, or None."""
    if found.kind != file.kind:
        return "a %s in place of a %s" % (found.kind, file.kind)
    states = [(file.data, file.mode, file.xattrs)] + file.others
    if file.kind == "f" and found.data != file.data and not any(is_mix(found.data, file.data, other[0]) for other in file.others):
        return "other contents: %d bytes in place of %d" % (len(found.data), len(file.data))
    if file.kind == "f" and found.size != len(found.data):
        return "size %d of %d bytes" % (found.size, len(found.data))
    if file.kind == "l" and found.data != file.data:
        return "links to %s in place of %s" % (found.data, file.data)
    if file.kind in "fd" and found.mode not in [state[1] for state in states]:
        return "mode %o in place of %o" % (found.mode, file.mode)
    if file.kind in "fd" and found.xattrs not in [state[2] for state in states]:
        return "xattrs %s in place of %s" % (found.xattrs, file.xattrs)
    return None


def verify_writer(model, found, owned, wrong):
    seen = {}
    for path in sorted(set(model.names) | set(model.open_names) | owned):
        rights = [model.names.get(path)] + model.open_names.get(path, [])
        there = found.get(path)
        if path in found and there is None:
            continue  # told of by walk
        if there is None:
            if None not in rights:
                wrong.append("lost: %s" % path)
            continue
        files = [file for file in rights if file is not None]
        if not files:
            wrong.append("came back: %s (%s)" % (path, there.kind))
            continue
        reasons = [differs(there, file) for file in files]
        if None not in reasons:
            wrong.append("differs: %s: %s" % (path, "; ".join(reasons)))
        elif path in model.names and path not in model.open_names and model.parent_is_sure(path):
            seen.setdefault(id(files[0]), []).append((path, there))
    for same in seen.values():
        if len({there.ino for _, there in same}) > 1:
            wrong.append("differs: %s are not one file" % " ".join(path for path, _ in same))
    for source, target, file in model.moves:
        there = found.get(target)
        if source not in found and (there is None or differs(there, file)):
            wrong.append("lost: %s, which was renamed to %s when the mount died" % (source, target))


def count_links(found, open_names, wrong):
    """A rename between subvolumes that died leaves a second link of the file in one of them: the names of such a file are its leftovers."""
    names, leftovers = {}, []
    for path, there in found.items():
        if there and there.kind != "d":
            names.setdefault(there.ino, []).append((path, there.links))
    for same in names.values():
        if any(links != len(same) for _, links in same):
            is_open = any(path in open_names for path, _ in same)
            (leftovers if is_open else wrong).append("%s: %s: links %s" % ("leftover" if is_open else "links", " ".join(path for path, _ in same),
                                                                       [links for _, links in same]))
    return leftovers


def listed_twice(found, open_names, wrong):
    leftovers = []
    for path, there in found.items():
        if there and there.times > 1:
            (leftovers if path in open_names else wrong).append("%s: %s is listed %d times" %
                                                                ("leftover" if path in open_names else "mount", path, there.times))
    return leftovers


def as_found(found, name, owned):
    """The model of what is there."""
    model, by_inode = Model(), {}
    for path in owned:
        there = found[path]
        if there.ino not in by_inode:
            by_inode[there.ino] = file = File(there.kind, there.data, there.mode)
            file.xattrs = there.xattrs
        model.names[path] = by_inode[there.ino]
    return model


def owner_of(path):
    """A name in a shared folder begins with its writer's."""
    parts = path.split("/")
    return parts[1].split("-")[0] if parts[0] in SHARED and len(parts) > 1 else parts[0]


def renames_in_flight(state):
    """(from, to) of the renames in which the mount died."""
    found = []
    for name in sorted(name for name in os.listdir(state) if "." not in name):
        with open(os.path.join(state, name), "rb") as file:
            found += [(source, target) for source, target, _ in pickle.load(file)[0].moves]
    return found


def verify(mnt, state):
    """What is wrong on the mount. When nothing is, the models become as the mount is: a call whose outcome was open is decided."""
    wrong = []
    found = walk(mnt, wrong)
    writers = sorted(name for name in os.listdir(state) if "." not in name)
    tops = set(SHARED) | set(writers)
    for path in sorted(tops - set(found)):
        wrong.append("lost: %s" % path)
    for path in sorted(found):
        if path not in tops and owner_of(path) not in writers:
            wrong.append("came back: %s, which nobody has made" % path)
    models = {}
    for name in writers:
        with open(os.path.join(state, name), "rb") as file:
            model, serial = pickle.load(file)
        owned = {path for path in found if path not in tops and owner_of(path) == name}
        verify_writer(model, found, owned, wrong)
        models[name] = (model, serial, owned)
    open_names = set().union(*(model.open_names for model, _, _ in models.values()))
    leftovers = count_links(found, open_names, wrong) + listed_twice(found, open_names, wrong)
    if wrong:
        return wrong + leftovers
    for name, (model, serial, owned) in models.items():
        with open(os.path.join(state, name), "wb") as file:
            pickle.dump((as_found(found, name, owned), serial), file)
    return leftovers
