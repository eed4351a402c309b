#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""fuse_work.py: the rows of tests/bench/fuse.

    fuse_work.py prepare DIR FILES          DIR/tree.tar (FILES files of up to 16 KiB, 25 to a folder) and DIR/tree.json
    fuse_work.py run DIR MOUNT PID MB [ROW...]   runs the rows in MOUNT; a JSON line for each: row, ms, client CPU of process PID
    fuse_work.py report JSON OUT...         OUT, named SUBJECT.ROUND, has the lines of a subject and round

Each row leaves the files that the next row needs. Rows that read compare the data with the written data.
"""
import io
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tarfile
import time

SUBJECTS = ("stock", "kiln", "through")


def tree_files(count):
    rng = random.Random(11)
    for i in range(count):
        yield f"tree/d{i // 250:02d}/e{i // 25 % 10}/file-{i:05d}.c", rng.randbytes(rng.randrange(200, 16384))


def prepare(directory, count):
    with tarfile.open(os.path.join(directory, "tree.tar"), "w") as tar:
        for name, content in tree_files(count):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.mtime = 1700000000
            tar.addfile(info, io.BytesIO(content))


def must(*command, **kw):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **kw)
    if done.returncode:
        sys.exit(f"fuse_work: {' '.join(command)}: {done.stderr[-2000:]}{done.stdout[-500:]}")
    return done.stdout


def client_cpu(pid):
    """The process's CPU clock, in seconds (clock_getcpuclockid(3): ~pid << 3 | 2)."""
    return time.clock_gettime((~pid << 3) | 2)


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
        f.write("3")


class Rows:
    def __init__(self, directory, mount, megabytes):
        self.dir, self.mnt, self.mb = directory, mount, megabytes
        self.file = os.path.join(mount, "big")
        self.tree = os.path.join(mount, "tree")

    def fio(self, rw, size, *more):
        """The time that fio tells: it takes half a second to begin."""
        out = must("fio", "--name=x", f"--filename={self.file}", f"--rw={rw}", f"--bs={size}", "--ioengine=psync", "--output-format=json",
                   "--randseed=7", "--thread", *more, cwd=self.dir)
        return max(job["job_runtime"] for job in json.loads(out)["jobs"]) / 1000

    def seq_write(self):
        return self.fio("write", "128k", f"--size={self.mb}m", f"--fsync={self.mb * 2}")

    def seq_read(self):
        return self.fio("read", "128k", f"--size={self.mb}m", "--invalidate=1")

    def rand_read(self):
        """Past the page cache, which is the kernel's."""
        return self.fio("randread", "4k", f"--size={self.mb}m", f"--io_size={self.mb // 4}m", "--direct=1")

    def rand_read_4(self):
        return self.fio("randread", "4k", f"--size={self.mb}m", f"--io_size={self.mb // 16}m", "--direct=1", "--numjobs=4")

    def rand_write(self):
        return self.fio("randwrite", "4k", f"--size={self.mb}m", f"--io_size={self.mb // 4}m", f"--fsync={self.mb * 16}", "--overwrite=1")

    def rand_write_sync(self):
        return self.fio("randwrite", "4k", f"--size={self.mb}m", f"--io_size={max(1, self.mb // 32)}m", "--fsync=1", "--overwrite=1")

    def untar(self):
        must("tar", "-xf", os.path.join(self.dir, "tree.tar"), "-C", self.mnt)

    def ls_cold(self):
        must("ls", "-lR", self.tree)

    def ls_warm(self):
        for _ in range(3):
            must("ls", "-lR", self.tree)

    def read_cold(self):
        """Every file, as grep -r does."""
        for path, _, names in os.walk(self.tree):
            for name in names:
                with open(os.path.join(path, name), "rb") as f:
                    f.read()

    def git(self, *words):
        return must("git", "-c", "safe.directory=*", "-c", "gc.auto=0", "-c", "user.name=k", "-c", "user.email=k@k", "-C", self.tree, *words)

    def git_commit(self):
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")

    def git_status(self):
        for _ in range(3):
            if self.git("status", "--porcelain"):
                sys.exit("fuse_work: git finds changes that nobody made")

    def churn(self):
        """Small files that come and go: create, write, close, open, read, rename, remove."""
        base = os.path.join(self.mnt, "churn")
        os.mkdir(base)
        data = b"k" * 4096
        for i in range(400):
            name, other = f"{base}/f{i}", f"{base}/g{i % 20}"
            with open(name, "wb", buffering=0) as f:
                f.write(data)
            with open(name, "rb", buffering=0) as f:
                if f.read() != data:
                    sys.exit("fuse_work: churn read something else")
            os.rename(name, other)
            if i % 3 == 0:
                os.unlink(other)
        shutil.rmtree(base)

    def lone(self):
        """One file at a time: create, write, fsync, close, unlink."""
        for i in range(10):
            name = os.path.join(self.mnt, f"lone{i}")
            fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            os.write(fd, b"k" * 4096)
            os.fsync(fd)
            os.close(fd)
            os.unlink(name)

    def rm(self):
        must("rm", "-rf", self.tree)


COLD = ("seq_read", "ls_cold", "read_cold")
ROWS = ("seq_write", "seq_read", "rand_read", "rand_read_4", "rand_write", "rand_write_sync", "untar", "ls_cold", "ls_warm", "read_cold",
        "git_commit", "git_status", "churn", "lone", "rm")
TITLES = {
    "seq_write": "128 KiB sequential write, 4 fsyncs", "seq_read": "128 KiB sequential read, cold",
    "rand_read": "4 KiB random read, O_DIRECT", "rand_read_4": "4 KiB random read, O_DIRECT, 4 threads",
    "rand_write": "4 KiB random write, 4 fsyncs", "rand_write_sync": "4 KiB random write, fsync each", "untar": "untar",
    "ls_cold": "ls -lR, cold", "ls_warm": "ls -lR, warm, 3 times", "read_cold": "read all files, cold", "git_commit": "git add, commit",
    "git_status": "git status, 3 times", "churn": "small-file churn", "lone": "create, write, fsync, unlink, 10 files", "rm": "rm -rf",
}


def run(directory, mount, pid, megabytes, *names):
    rows = Rows(directory, mount, int(megabytes))
    for name in names or ROWS:
        if name in COLD:
            drop_caches()
        cpu, start = client_cpu(int(pid)), time.monotonic()
        told = getattr(rows, name)()
        wall = told or time.monotonic() - start
        print(json.dumps({"row": name, "ms": wall * 1000, "cpu_ms": (client_cpu(int(pid)) - cpu) * 1000}), flush=True)


def report(path, *outs):
    runs = {}
    for out in outs:
        subject = os.path.basename(out).split(".")[0]
        with open(out, encoding="utf-8") as f:
            for line in f:
                one = json.loads(line)
                runs.setdefault(one["row"], {}).setdefault(subject, []).append(one)
    print(f"{'':42}{'stock':>9}{'Kiln':>9}{'through':>9}  {'stock/Kiln':>10}  {'CPU':>5}  {'Kiln/through':>12}")
    table = []
    for row in ROWS:
        if row not in runs:
            continue
        ms = {s: statistics.median(r["ms"] for r in runs[row][s]) for s in runs[row]}
        cpu = {s: statistics.median(r["cpu_ms"] for r in runs[row][s]) for s in runs[row]}
        table.append({"row": row, "ms": ms, "cpu_ms": cpu, "runs": runs[row]})
        cells = "".join(f"{ms[s]:9.1f}" if s in ms else f"{'-':>9}" for s in SUBJECTS)

        def ratio(values, a, b, width):
            return f"{values[a] / values[b]:{width}.2f}" if values.get(a) and values.get(b) else f"{'-':>{width}}"
        print(f"{TITLES[row]:42}{cells}  {ratio(ms, 'stock', 'kiln', 10)}  {ratio(cpu, 'stock', 'kiln', 5)}  "
              f"{ratio(ms, 'kiln', 'through', 12)}")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(table, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    {"prepare": lambda d, n: prepare(d, int(n)), "run": run, "report": report}[sys.argv[1]](*sys.argv[2:])
