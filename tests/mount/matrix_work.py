#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Workloads as applications make them, on one or two mounts of a volume.

    matrix_work.py NAME DIR1 [DIR2] [SEED]     DIR2: the same folder through another mount; without it DIR1 again
    matrix_work.py list                        the names

Status 0: each did what it must. Errors are on standard output. MATRIX_LOCAL: a folder on a file system that
holds all that a volume does; MATRIX_FILES: how many files the tree has; MATRIX_KILN: which of the mounts are
Kiln's, of "one two": of others less is asked."""
import difflib
import errno
import fcntl
import hashlib
import mmap
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
import traceback

WORKLOADS = {}
PATIENCE = 300 # seconds; who hangs is told of, not waited for


def workload(function):
    WORKLOADS[function.__name__.replace("_", "-")] = function
    return function


def run(*command, cwd=None, env=None):
    done = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
    if done.returncode:
        raise AssertionError("%s: status %d\n%s" % (" ".join(command), done.returncode, done.stdout[-3000:]))
    return done.stdout


def together(*jobs):
    """Each job in a process of its own, at once."""
    children = {}
    for number, (function, *args) in enumerate(jobs):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                random.seed(number)
                function(*args)
                status = 0
            except BaseException:
                print("job %d of %s: %s" % (number, function.__name__, traceback.format_exc()[-2500:]), flush=True)
            os._exit(status)
        children[child] = number
    failed, ends = [], time.monotonic() + PATIENCE
    while children and time.monotonic() < ends:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            time.sleep(0.02)
        elif children.pop(child, None) is not None and status:
            failed.append(child)
    assert not children, "HUNG: jobs %s" % sorted(children.values())
    assert not failed, "%d jobs failed" % len(failed)


def allowed(numbers, function, *args):
    """Errors that the other side's work explains are no failures. True: it succeeded."""
    try:
        function(*args)
        return True
    except OSError as error:
        if error.errno not in numbers:
            raise
        return False


def put(path, data=b"text"):
    with open(path, "wb") as file:
        file.write(data)


def is_kiln(mount):
    return mount in os.environ.get("MATRIX_KILN", "one two").split()


def get(path):
    with open(path, "rb") as file:
        return file.read()


def digest(top):
    """Names, modes, sizes, link counts and contents below `top`."""
    lines = []
    for folder, names, files in os.walk(top):
        names.sort()
        for name in sorted(names + files):
            path = os.path.join(folder, name)
            info = os.lstat(path)
            is_file = not (os.path.islink(path) or os.path.isdir(path)) and os.path.isfile(path)
            text = hashlib.sha1(get(path)).hexdigest() if is_file else os.readlink(path) if os.path.islink(path) else ""
            links = "-" if os.path.isdir(path) else info.st_nlink
            size = info.st_size if is_file else "-"
            lines.append("%s %o %d:%d %s %s %s" % (os.path.relpath(path, top), info.st_mode, info.st_uid, info.st_gid, links, size, text))
    return lines


def same(got, want, what):
    if got == want:
        return
    if isinstance(got, list):
        got, want = [[str(line) for line in lines] for lines in (got, want)]
        text = "\n".join(list(difflib.unified_diff(want, got, lineterm="", n=0))[:30])
    else:
        text = "got %r, want %r" % (got, want)
    raise AssertionError("%s:\n%s" % (what, text))


# ---- one mount works, the other looks ---------------------------------------------------------------------

@workload
def tree(one, two):
    """5,000 files in 250 folders, seen by the other, removed by the other."""
    count = max(250, int(os.environ.get("MATRIX_FILES", "5000")))
    for i in range(count):
        folder = "%s/d%d/e%d" % (one, i % 25, i % 250)
        if i < 250:
            os.makedirs(folder)
        put("%s/f%d" % (folder, i), b"%d\n" % i * (i % 50))
    same(digest(two), digest(one), "the other mount sees another tree")
    assert sum(len(files) for _, _, files in os.walk(two)) == count
    for i in range(25):
        shutil.rmtree("%s/d%d" % (two if i % 2 else one, i))
    same(os.listdir(one) + os.listdir(two), [], "names are left")


@workload
def git(one, two):
    """A repository is filled, cloned on the volume, built there, collected and checked."""
    env = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b",
               GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="safe.directory", GIT_CONFIG_VALUE_0="*")
    source = one + "/source"
    os.mkdir(source)
    run("git", "init", "-q", source, env=env)
    for i in range(60):
        put("%s/part%d.c" % (source, i), b"int part%d(int x)\n{\n    return x + %d;\n}\n" % (i, i))
    put(source + "/main.c", ("".join("int part%d(int);\n" % i for i in range(60)) + "int main(void)\n{\n    int sum = 0;\n" +
                             "".join("    sum += part%d(1);\n" % i for i in range(60)) + "    return sum != 1830;\n}\n").encode())
    put(source + "/Makefile", b"prog: $(patsubst %.c,%.o,$(wildcard *.c))\n\tcc -o $@ $^\n%.o: %.c\n\tcc -O0 -c -o $@ $<\n")
    for i in range(6):
        put(source + "/log", b"%d\n" % i * 1000)
        run("git", "add", "-A", cwd=source, env=env)
        run("git", "commit", "-qm", "c%d" % i, cwd=source, env=env)
    run("git", "clone", "-q", source, one + "/clone", env=env)
    run("make", "-s", "-j2", "-C", one + "/clone")
    run(two + "/clone/prog")
    run("git", "checkout", "-q", "-b", "side", "HEAD~3", cwd=two + "/clone", env=env)
    run("git", "checkout", "-q", "-", cwd=one + "/clone", env=env)
    run("git", "gc", "-q", "--aggressive", cwd=one + "/clone", env=env)
    same(run("git", "status", "--porcelain", "-uno", cwd=two + "/clone", env=env), "", "git status")
    for top in (one, two):
        run("git", "fsck", "--full", "--strict", cwd=top + "/clone", env=env)
        run("git", "fsck", "--full", "--strict", cwd=top + "/source", env=env)


def sqlite_writer(path, number, count):
    base = sqlite3.connect(path, timeout=240, isolation_level=None)
    for i in range(count):
        base.execute("BEGIN IMMEDIATE")
        (total,) = base.execute("SELECT value FROM total").fetchone()
        base.execute("UPDATE total SET value = ?", (total + 1,))
        base.execute("INSERT INTO line VALUES (?, ?, ?)", (number, i, "x" * (i * 37 % 3000)))
        base.execute("COMMIT")
    base.close()


@workload
def sqlite(one, two):
    """Four writers, two on each mount, count together; no step of theirs is lost."""
    for mode in ("DELETE", "TRUNCATE"):
        name = "/base-" + mode
        base = sqlite3.connect(one + name, isolation_level=None)
        base.execute("PRAGMA journal_mode=" + mode)
        base.execute("CREATE TABLE total (value INTEGER)")
        base.execute("INSERT INTO total VALUES (0)")
        base.execute("CREATE TABLE line (who INTEGER, step INTEGER, text TEXT)")
        base.close()
        together(*[(sqlite_writer, (one, two)[number % 2] + name, number, 20) for number in range(4)])
        for top in (one, two):
            base = sqlite3.connect(top + name, timeout=60)
            same(base.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "integrity")
            same(base.execute("SELECT value FROM total").fetchall(), [(80,)], "steps counted")
            same(base.execute("SELECT count(DISTINCT who * 1000 + step) FROM line").fetchall(), [(80,)], "lines")
            base.close()


@workload
def fio(one, two):
    """fio writes at random with several engines and sizes, and verifies the data."""
    for name, options in (("psync", ["--ioengine=psync", "--fsync=16"]), ("aio", ["--ioengine=libaio", "--iodepth=8", "--direct=1"]),
                          ("mmap", ["--ioengine=mmap"] if is_kiln("one") else ["--ioengine=sync"]), ("append", ["--ioengine=psync", "--rw=write", "--file_append=0", "--end_fsync=1"])):
        run("fio", "--name=" + name, "--directory=" + one, "--size=6m", "--bsrange=512-64k" if name != "aio" else "--bs=4k", "--rw=randwrite",
            "--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0", "--numjobs=2", "--group_reporting", *options)


@workload
def tar_and_rsync(one, two):
    """Files with xattrs, ACLs, hard links, holes and odd names go there and back."""
    local = os.environ.get("MATRIX_LOCAL", "/tmp")
    source = "%s/tar-%d" % (local, os.getpid())
    os.makedirs(source + "/a/b")
    random.seed(1)
    for i in range(150):
        path = "%s/a/f%d %s" % (source, i, "\u00e4\n'\"\\" if i % 10 == 0 else "")
        put(path, random.randbytes(i * 97))
        os.chmod(path, (0o644, 0o4755, 0o600, 0o2770)[i % 4])
        os.setxattr(path, "user.number", b"%d\0x" % i)
        os.utime(path, ns=(10 ** 18 + i, 10 ** 18 + 2 * i))
        if i % 7 == 0:
            os.link(path, "%s/a/b/h%d" % (source, i))
        if i % 11 == 0:
            os.symlink("../f%d" % i, "%s/a/b/s%d" % (source, i))
    with open(source + "/a/holes", "wb") as file:
        file.seek(30 << 20)
        file.write(b"end")
    os.mkfifo(source + "/a/fifo")
    run("setfacl", "-m", "u:21001:r,g:21002:rw", source + "/a/f1 ")
    run("bash", "-c", "tar -C '%s' --xattrs --acls -cSf - a | tar -C '%s' --xattrs --acls -xSpf -" % (source, one))
    want = digest(source + "/a")
    same(digest(two + "/a"), want, "after tar")
    run("rsync", "-aXAHS", one + "/a/", two + "/b/")
    same(digest(one + "/b"), want, "after rsync")
    # An XFS shows root its ACLs also as trusted.SGI_ACL_FILE, a volume does not.
    same(run("rsync", "-aXAHSin", "--filter=-x trusted.*", "--delete", source + "/a/", two + "/b/"), "", "rsync finds a difference")
    run("bash", "-c", "tar -C '%s' --xattrs --acls -cSf - b | tar -C '%s' --xattrs --acls -xSpf -" % (two, source))
    same(digest(source + "/b"), want, "and back")
    shutil.rmtree(source)


# ---- both work at once ------------------------------------------------------------------------------------

def crowd_member(top, number):
    for i in range(25):
        name = "%s/p%d-%d" % (top, number, i)
        put(name, b"x" * 100)
        os.rename(name, name + "r")
        if i % 3 == 0:
            os.link(name + "r", name + "l")
        os.mkdir(name + "d")
        os.listdir(top)
        os.rmdir(name + "d")
        if i % 2:
            os.unlink(name + "r")


@workload
def crowd(one, two):
    """32 processes in one folder, half of them on each mount."""
    together(*[(crowd_member, (one, two)[number % 2], number) for number in range(32)])
    want = sorted(name for number in range(32) for i in range(25)
                  for name in (["p%d-%dr" % (number, i)] if i % 2 == 0 else []) + (["p%d-%dl" % (number, i)] if i % 3 == 0 else []))
    same(sorted(os.listdir(one)), want, "names through the first mount")
    same(sorted(os.listdir(two)), want, "names through the second mount")
    same(digest(two), digest(one), "the two mounts")


APPENDED, APPEND_END = 80, 15


def appended(number):
    """Yields the appended pieces of a writer, one for each write, in bytes that no other writer uses: 16 * number + a digit."""
    for i in range(APPENDED):
        digits = [int(digit) for digit in "%05d" % i] + [10] * (i % 90) + [APPEND_END]
        yield bytes(128 + 16 * number + digit for digit in digits)


def appender(path, number):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for piece in appended(number):
        assert os.write(fd, piece) == len(piece)
    os.close(fd)


@workload
def append(one, two):
    """Pieces appended by six processes on two mounts: each is there once, each writer's in their order, and whole where the mount
    does not let the kernel cut writes at the pages of its cache."""
    together(*[(appender, (one, two)[number % 2] + "/log", number) for number in range(6)])
    for top in (one, two):
        data = get(top + "/log")
        for number in range(6):
            mine = bytes(byte for byte in data if byte >> 4 == number + 8)
            same(mine.hex(" "), b"".join(appended(number)).hex(" "), "what %d has appended" % number)
        for here, after in zip(data, data[1:] + b"\0"):
            number = (here >> 4) - 8
            if here >> 4 != after >> 4 and is_kiln(("one", "two")[number % 2]):
                same(here & 15, APPEND_END, "the last byte before somebody else's of %d" % number)


def counter(path, count, whole):
    fd = os.open(path, os.O_RDWR)
    for _ in range(count):
        fcntl.lockf(fd, fcntl.LOCK_EX, 0 if whole else 8, 0)
        value = int(os.pread(fd, 8, 0))
        os.pwrite(fd, b"%08d" % (value + 1), 0)
        fcntl.lockf(fd, fcntl.LOCK_UN, 0 if whole else 8, 0)
    os.close(fd)


@workload
def locks(one, two):
    """Counting under fcntl locks by six processes on two mounts; record locks of one hold off the other."""
    for whole in (True, False):
        name = "/count%d" % whole
        put(one + name, b"00000000")
        together(*[(counter, (one, two)[number % 2] + name, 30, whole) for number in range(6)])
        same(get(two + name), b"00000180", "count")
    put(one + "/records", b"x" * 100)
    first, second = os.open(one + "/records", os.O_RDWR), os.open(two + "/records", os.O_RDWR)
    fcntl.lockf(first, fcntl.LOCK_EX, 10, 20)

    def other():
        fd = os.open(two + "/records", os.O_RDWR)
        for start, length, there in ((0, 20, False), (20, 1, True), (29, 5, True), (30, 5, False), (0, 0, True)):
            got = not allowed((errno.EAGAIN, errno.EACCES), fcntl.lockf, fd, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
            same(got, there, "lock at %d+%d held off" % (start, length))
            if not got:
                fcntl.lockf(fd, fcntl.LOCK_UN, length, start)
        os.close(fd)
    together((other,))
    fcntl.lockf(first, fcntl.LOCK_UN, 10, 20)
    os.close(first)
    os.close(second)


def storm_member(top, number):
    """A name may be missing because somebody else has moved it: nothing else may go wrong."""
    missing = (errno.ENOENT, errno.ESTALE)
    for i in range(60):
        a, b = random.randrange(12), random.randrange(12)
        allowed(missing, os.rename, "%s/n%d" % (top, a), "%s/n%d" % (top, b))
        if i % 5 == 0:
            allowed(missing + (errno.ENOTEMPTY, errno.EEXIST, errno.EINVAL), os.rename, "%s/d%d" % (top, a % 3), "%s/d%d" % (top, b % 3))
        if i % 4 == number % 4:
            temporary = "%s/t%d" % (top, number)
            put(temporary, b"%d" % number * 10)
            os.rename(temporary, "%s/n%d" % (top, a))


@workload
def storm(one, two):
    """Renames of few names by twelve processes on two mounts. In the end each name is a whole file, the same through both."""
    for i in range(12):
        put("%s/n%d" % (one, i), b"0" * 10)
    for i in range(3):
        os.mkdir("%s/d%d" % (one, i))
    together(*[(storm_member, (one, two)[number % 2], number) for number in range(12)])
    for top in (one, two):
        for name in os.listdir(top):
            if name.startswith("n"):
                data = get(top + "/" + name)
                assert data == data[:len(data) // 10] * 10 and data, "%s holds %r" % (name, data)
    same(digest(two), digest(one), "the two mounts")
    assert len(os.listdir(one)) == len(set(os.listdir(one))), "a name is listed twice"
    for name in os.listdir(one):
        path = one + "/" + name
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    same(os.listdir(two), [], "what is left")


def maker(top, ends):
    count = 0
    while time.monotonic() < ends:
        allowed((errno.EEXIST,), os.mkdir, top + "/d")
        for i in range(3):
            allowed((errno.ENOENT, errno.ESTALE), put, "%s/d/f%d" % (top, i), b"x")
            allowed((errno.ENOENT, errno.ESTALE), os.unlink, "%s/d/f%d" % (top, i))
        count += 1
    assert count


def remover(top, ends):
    while time.monotonic() < ends:
        allowed((errno.ENOENT, errno.ENOTEMPTY, errno.ESTALE), os.rmdir, top + "/d")


@workload
def create_against_rmdir(one, two):
    """One makes files in a folder that the other removes: neither hangs, and no file is without its folder."""
    for a, b in ((one, two), (two, one), (one, one)):
        ends = time.monotonic() + 4
        together((maker, a, ends), (remover, b, ends))
        allowed((errno.ENOENT,), shutil.rmtree, a + "/d")
    same(os.listdir(one), [], "what is left")


# ---- one mount alone --------------------------------------------------------------------------------------

@workload
def fsx(one, two, seed=1, steps=1500):
    """Random reads, writes, truncations, maps, holes and reopenings against a shadow in memory."""
    randomly = random.Random(seed)
    limit, shadow, path = 300000, bytearray(), one + "/file"
    fds = [os.open(path, os.O_RDWR | os.O_CREAT, 0o644)]
    log = []
    acts = ["read", "read", "write", "write", "append", "truncate", "punch", "allocate", "reopen", "other", "sync", "copy"]
    acts += ["map-read", "map-write", "zero"] if is_kiln("one") else [] # see the head of matrix

    def check(what):
        if os.fstat(fds[0]).st_size != len(shadow):
            raise AssertionError("%s: size %d, want %d; steps: %s" % (what, os.fstat(fds[0]).st_size, len(shadow), log[-12:]))

    def span():
        offset = randomly.randrange(limit)
        return offset, randomly.randrange(1, min(limit - offset, 70000) + 1)
    for step in range(steps):
        act = randomly.choice(acts)
        offset, length = span()
        log.append((step, act, offset, length))
        fd = randomly.choice(fds)
        if act in ("write", "append"):
            offset = len(shadow) if act == "append" else offset
            length = max(1, min(length, limit - offset)) if offset < limit else 0
            data = randomly.randbytes(length)
            if length:
                assert os.pwrite(fd, data, offset) == length, log[-1]
                shadow.extend(bytes(max(0, offset + length - len(shadow))))
                shadow[offset:offset + length] = data
        elif act == "read" or act == "other":
            where = path if act == "read" else two + "/file"
            if act == "other":
                os.fsync(fd)
                other = os.open(where, os.O_RDONLY)
                got = os.pread(other, length, offset)
                os.close(other)
            else:
                got = os.pread(fd, length, offset)
            want = bytes(shadow[offset:offset + length])
            if got != want:
                at = next((i for i in range(min(len(got), len(want))) if got[i] != want[i]), min(len(got), len(want)))
                raise AssertionError("%s: %d bytes, want %d; they differ at %d; steps: %s" % (act, len(got), len(want), offset + at, log[-12:]))
        elif act == "truncate":
            (os.ftruncate(fd, offset) if randomly.random() < .5 else os.truncate(path, offset))
            del shadow[offset:]
            shadow.extend(bytes(offset - len(shadow)))
        elif act.startswith("map") and shadow:
            offset = offset % len(shadow)
            length = min(length, len(shadow) - offset)
            with mmap.mmap(fd, len(shadow)) as memory:
                if act == "map-read":
                    assert memory[offset:offset + length] == shadow[offset:offset + length], log[-12:]
                else:
                    data = randomly.randbytes(length)
                    memory[offset:offset + length] = data
                    shadow[offset:offset + length] = data
                    memory.flush()
        elif act in ("punch", "zero", "allocate"):
            option = {"punch": "-pn", "zero": "-z", "allocate": "-x"}[act]
            done = subprocess.run(["fallocate", option, "-o", str(offset), "-l", str(length), path], capture_output=True, text=True)
            if done.returncode:
                assert "not supported" in done.stderr, (log[-1], done.stderr)
                continue
            if act != "punch":
                shadow.extend(bytes(max(0, offset + length - len(shadow))))
            if act != "allocate":
                end = min(offset + length, len(shadow))
                if offset < end:
                    shadow[offset:end] = bytes(end - offset)
        elif act == "copy" and len(shadow) > 20:
            length = min(length, len(shadow) // 2)
            source, target = randomly.randrange(len(shadow) - length + 1), randomly.randrange(limit - length)
            if source + length <= target or target + length <= source:
                count = os.copy_file_range(fd, fd, length, source, target)
                shadow.extend(bytes(max(0, target + count - len(shadow))))
                shadow[target:target + count] = shadow[source:source + count]
        elif act == "reopen":
            if len(fds) < 3:
                fds.append(os.open(path, os.O_RDWR))
            else:
                os.close(fds.pop(randomly.randrange(1, 3)))
        elif act == "sync":
            os.fsync(fd)
        check(act)
    for fd in fds:
        os.close(fd)
    same(hashlib.sha1(get(path)).hexdigest(), hashlib.sha1(shadow).hexdigest(), "the whole file")
    same(hashlib.sha1(get(two + "/file")).hexdigest(), hashlib.sha1(shadow).hexdigest(), "through the other mount")


@workload
def nameless(one, two):
    """All that can be asked of an open file whose name is gone. Stock bricks know it by its descriptor alone."""
    for fate in ("unlinked", "replaced"):
        path = "%s/%s" % (one, fate)
        put(path)
        fd = os.open(path, os.O_RDWR)
        os.setxattr(fd, "user.old", b"1")
        if fate == "replaced":
            put(path + ".new")
            os.rename(path + ".new", path)
        else:
            os.unlink(path)
        os.pwrite(fd, b"hello", 0)
        os.ftruncate(fd, 4)
        if is_kiln("one"):
            os.fchmod(fd, 0o600)
            os.fchown(fd, 21001, 21002)
            os.utime(fd, (5, 6))
            os.setxattr(fd, "user.new", b"2")
            os.removexattr(fd, "user.old")
            same([name for name in os.listxattr(fd) if name.startswith("user.")], ["user.new"], "xattrs")
            same(os.getxattr(fd, "user.new"), b"2", "an xattr")
            os.fstatvfs(fd)
            info = os.fstat(fd)
            same((info.st_mode, info.st_uid, info.st_gid, info.st_mtime), (0o100600, 21001, 21002, 6), "attributes")
        same((os.fstat(fd).st_nlink, os.fstat(fd).st_size, os.pread(fd, 9, 0)), (0, 4, b"hell"), "what is left of it")
        os.close(fd)
    folder = one + "/folder"
    os.mkdir(folder)
    fd = os.open(folder, os.O_RDONLY)
    os.rmdir(folder)
    if is_kiln("one"):
        os.fchmod(fd, 0o700)
        same(oct(os.fstat(fd).st_mode), "0o40700", "the mode of a folder")
        os.fstatvfs(fd)
    assert not allowed((errno.ENOENT, errno.ESTALE), os.mkdir, "/proc/self/fd/%d/x" % fd, 0o755), "made in what is no more"
    os.close(fd)


@workload
def names(one, two):
    """Long names, deep paths, holes, hard links, xattrs, as the other mount sees them; statfs."""
    for letter in "abc":
        put(one + "/" + letter * 255, letter.encode())
    os.rename(one + "/" + "a" * 255, one + "/" + "d" * 255)
    os.link(one + "/" + "b" * 255, one + "/" + "e" * 255)
    same(sorted(os.listdir(two)), [letter * 255 for letter in "bcde"], "names of 255 bytes")
    before = os.getcwd()
    os.chdir(one)
    for _ in range(60):
        os.mkdir("x" * 60)
        os.chdir("x" * 60)
    put("end", b"end")
    os.chdir(two)
    for _ in range(60):
        os.chdir("x" * 60)
    same(get("end"), b"end", "60 folders deep")
    os.chdir(before)
    with open(one + "/holes", "wb") as file:
        file.truncate(1 << 40)
        file.seek(1 << 39)
        file.write(b"middle")
    with open(two + "/holes", "rb") as file:
        file.seek((1 << 39) - 2)
        same(file.read(10), b"\0\0middle\0\0", "in a file of 1 TiB")
        same(os.stat(two + "/holes").st_size, 1 << 40, "its size")
        assert os.stat(two + "/holes").st_blocks < 10000
    for i in range(60):
        os.setxattr(one + "/holes", "user.%d" % i, b"v" * i)
    same({name: os.getxattr(two + "/holes", name) for name in os.listxattr(two + "/holes") if name.startswith("user.")},
         {"user.%d" % i: b"v" * i for i in range(60)}, "xattrs")
    for i in range(90):
        os.link(one + "/holes", "%s/hard%d" % (one, i))
    same(os.stat(two + "/hard7").st_nlink, 91, "links")
    first, second = os.statvfs(one), os.statvfs(two)
    same((first.f_blocks * first.f_frsize, first.f_namemax), (second.f_blocks * second.f_frsize, second.f_namemax), "statfs")
    shutil.rmtree(two + "/" + "x" * 60)


@workload
def user_acls(one, two):
    """ACLs set by a user on one mount are kept to by the other's users."""
    os.chmod(one, 0o777)

    def as_user(uid, function):
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        function()

    def owner():
        os.mkdir(one + "/mine", 0o700)
        put(one + "/mine/file", b"secret")
        run("setfacl", "-m", "u:21002:rx,d:u:21002:r", one + "/mine")
        run("setfacl", "-m", "u:21002:r", one + "/mine/file")
        put(one + "/mine/later", b"later")
        os.chmod(one + "/mine/later", 0o640)

    def friend():
        for top in (two, one):
            same(get(top + "/mine/file"), b"secret", "the friend reads")
            same(get(top + "/mine/later"), b"later", "what is inherited")
            assert not allowed((errno.EACCES,), put, top + "/mine/file", b"no"), "the friend writes"
            assert not allowed((errno.EACCES,), put, top + "/mine/new", b"no"), "the friend makes"

    def stranger():
        for top in (two, one):
            assert not allowed((errno.EACCES,), get, top + "/mine/file"), "a stranger reads"
            assert not allowed((errno.EPERM, errno.EACCES), os.chmod, top + "/mine", 0o777), "a stranger changes the mode"
    for uid, function in ((21001, owner), (21002, friend), (21003, stranger)):
        together((as_user, uid, function))
    same(run("getfacl", "-cpn", one + "/mine", one + "/mine/later"), run("getfacl", "-cpn", two + "/mine", two + "/mine/later"), "getfacl")


@workload
def maps(one, two):
    """Data written through a map on one mount is read on the other after msync; two processes share a map on
    one mount."""
    if not is_kiln("one"): # a mount without a page cache has no shared maps
        one, two = two, one
        if not is_kiln("two"):
            return
    put(one + "/map", bytes(1 << 20))

    def half(offset):
        fd = os.open(one + "/map", os.O_RDWR)
        with mmap.mmap(fd, 1 << 20) as memory:
            for i in range(offset, 1 << 20, 8192):
                memory[i:i + 4096] = bytes([i // 4096 % 256]) * 4096
            memory.flush()
        os.close(fd)
    together((half, 0), (half, 4096))
    same(hashlib.sha1(get(two + "/map")).hexdigest(), hashlib.sha1(b"".join(bytes([i % 256]) * 4096 for i in range(256))).hexdigest(), "through the other")


def main():
    if sys.argv[1:] == ["list"]:
        print("\n".join(WORKLOADS))
        return 0
    name, one = sys.argv[1:3]
    two = sys.argv[3] if len(sys.argv) > 3 and sys.argv[3] else one
    try:
        WORKLOADS[name](one, two, *(int(n) for n in sys.argv[4:]))
    except BaseException:
        print(traceback.format_exc()[-4000:])
        return 1
    return 0


status = main()
sys.stdout.flush()
os._exit(status)
