#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""fuse_work.py: the rows of tests/bench/fuse.

    fuse_work.py prepare DIR FILES          DIR/tree.tar (FILES files of up to 16 KiB, 25 to a folder) and DIR/tree.json
    fuse_work.py run DIR MOUNT PID,BRICK... MB [ROW...]   runs the rows in MOUNT; a JSON line for each: row, ms, client CPU of
                                            process PID, CPU of PID and all BRICK processes
    fuse_work.py report JSON OUT...         OUT, named SUBJECT.ROUND, has the lines of a subject and round
    fuse_work.py users DIR MOUNT PID,BRICK... MB [ROW...]   runs the rows of small files, each by root and by an ordinary user
    fuse_work.py users-report JSON OUT...   prints the ratios user / root

Each row leaves the files that the next row needs. Rows that read compare the data with the written data.
"""
import io
import json
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tarfile
import time

SUBJECTS = ("stock", "kiln", "inside", "through")
USER, GROUPS = 21001, range(21001, 21017)


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

    def big(self, rw, size, *more):
        """A row of the fio table: the file has MB megabytes, and MB megabytes are moved at most."""
        return self.fio(rw, size, f"--size={self.mb}m", *more)

    def write_1m(self):
        return self.big("write", "1m", "--end_fsync=1")

    def read_1m(self):
        return self.big("read", "1m", "--invalidate=1")

    def write_1m_direct(self):
        return self.big("write", "1m", "--direct=1", "--overwrite=1")

    def read_1m_direct(self):
        return self.big("read", "1m", "--direct=1")

    def write_128k_direct(self):
        return self.big("write", "128k", "--direct=1", "--overwrite=1")

    def read_128k_direct(self):
        return self.big("read", "128k", "--direct=1")

    def rand_write_direct(self):
        return self.big("randwrite", "4k", f"--io_size={self.mb // 4}m", "--direct=1", "--overwrite=1")

    def rand_write_direct_4(self):
        return self.big("randwrite", "4k", f"--io_size={self.mb // 16}m", "--direct=1", "--overwrite=1", "--numjobs=4")

    def rand_read_buffered(self):
        return self.big("randread", "4k", f"--io_size={self.mb // 8}m", "--invalidate=1")

    def sqlite(self):
        """200 transactions of one row each, and 200 that find a row."""
        base = sqlite3.connect(os.path.join(self.mnt, "base.db"), isolation_level=None)
        base.execute("create table t (k integer primary key, v text)")
        for i in range(200):
            base.execute("insert into t values (?, ?)", (i, "kiln" * 50))
        for i in range(200):
            if base.execute("select v from t where k = ?", (i,)).fetchone() != ("kiln" * 50,):
                sys.exit("fuse_work: sqlite lost a row")
        base.close()

    def fsyncs_4(self):
        """Four writers in four files, an fsync for each 4 KiB."""
        return self.fio("write", "4k", f"--filename={self.file}.1:{self.file}.2:{self.file}.3:{self.file}.4", "--file_service_type=roundrobin",
                        f"--size={max(4, self.mb // 8)}m", "--fsync=1", "--numjobs=4", "--overwrite=1")

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


COLD = ("seq_read", "read_1m", "rand_read_buffered", "ls_cold", "read_cold")
FIO = ("seq_write", "seq_read", "write_1m", "read_1m", "write_1m_direct", "read_1m_direct", "write_128k_direct", "read_128k_direct",
       "rand_read", "rand_read_4", "rand_read_buffered", "rand_write", "rand_write_direct", "rand_write_direct_4", "rand_write_sync",
       "fsyncs_4")
SMALL = ("sqlite", "untar", "ls_warm", "read_cold", "git_commit", "git_status", "churn", "lone", "rm")
ROWS = FIO + SMALL[:2] + ("ls_cold",) + SMALL[2:]
TITLES = {
    "seq_write": "128 KiB sequential write, 4 fsyncs", "seq_read": "128 KiB sequential read, cold",
    "rand_read": "4 KiB random read, O_DIRECT", "rand_read_4": "4 KiB random read, O_DIRECT, 4 threads",
    "write_1m": "1 MiB sequential write, 1 fsync", "read_1m": "1 MiB sequential read, cold",
    "write_1m_direct": "1 MiB sequential write, O_DIRECT", "read_1m_direct": "1 MiB sequential read, O_DIRECT",
    "write_128k_direct": "128 KiB sequential write, O_DIRECT", "read_128k_direct": "128 KiB sequential read, O_DIRECT",
    "rand_read_buffered": "4 KiB random read, cold", "rand_write_direct": "4 KiB random write, O_DIRECT",
    "rand_write_direct_4": "4 KiB random write, O_DIRECT, 4 threads", "fsyncs_4": "4 KiB write, fsync each, 4 threads and files",
    "sqlite": "sqlite, 200 transactions",
    "rand_write": "4 KiB random write, 4 fsyncs", "rand_write_sync": "4 KiB random write, fsync each", "untar": "untar",
    "ls_cold": "ls -lR, cold", "ls_warm": "ls -lR, warm, 3 times", "read_cold": "read all files, cold", "git_commit": "git add, commit",
    "git_status": "git status, 3 times", "churn": "small-file churn", "lone": "create, write, fsync, unlink, 10 files", "rm": "rm -rf",
}


def run(directory, mount, pids, megabytes, *names):
    rows = Rows(directory, mount, int(megabytes))
    client, *bricks = [int(pid) for pid in pids.split(",") if pid]

    def cpu():
        alone = client_cpu(client)
        return alone, alone + sum(client_cpu(pid) for pid in bricks)
    chosen = [row for name in names or ROWS for row in (FIO if name == "fio" else (name,))]
    for name in chosen:
        if name in COLD:
            drop_caches()
        before, start = cpu(), time.monotonic()
        told = getattr(rows, name)()
        wall = told or time.monotonic() - start
        after = cpu()
        print(json.dumps({"row": name, "ms": wall * 1000, "cpu_ms": (after[0] - before[0]) * 1000,
                          "all_cpu_ms": (after[1] - before[1]) * 1000}), flush=True)


def by_user(uid, work):
    """Runs work() in a child of that user."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            if uid:
                os.setgroups(list(GROUPS))
                os.setgid(uid)
                os.setuid(uid)
            work()
            status = 0
        finally:
            os._exit(status)
    if os.waitpid(pid, 0)[1]:
        sys.exit(f"fuse_work: a row of user {uid} failed")


def run_users(directory, mount, pids, megabytes, *names):
    client = int(pids.split(",")[0])
    everybody = {}
    # Each second round begins with the user, because the second of two rows also pays for late work of the first.
    is_odd = int(mount.rsplit("-", 1)[1]) % 2
    for uid in (0, USER) if is_odd else (USER, 0):
        home = os.path.join(mount, str(uid))
        os.mkdir(home)
        os.chown(home, uid, uid)
        everybody[uid] = Rows(directory, home, int(megabytes))
    os.chmod(mount, 0o755)
    for name in names or SMALL:
        for uid, rows in everybody.items():
            if name in COLD:
                drop_caches()
            before, start = client_cpu(client), time.monotonic()
            by_user(uid, getattr(rows, name))
            print(json.dumps({"row": name, "uid": uid, "ms": (time.monotonic() - start) * 1000,
                              "cpu_ms": (client_cpu(client) - before) * 1000}), flush=True)


def report_users(path, *outs):
    runs = {}
    for out in outs:
        with open(out, encoding="utf-8") as f:
            for one in map(json.loads, f):
                key = (os.path.basename(out).split(".")[0], one["row"])
                runs.setdefault(key, {}).setdefault(one["uid"], []).append(one)
    table = []
    print(f"{'':54}{'root ms':>9}{'user ms':>9}  {'user/root':>9}  {'CPU of the client':>17}")
    for (subject, row), both in runs.items():
        def ratio(key):
            return statistics.median(u[key] / r[key] for r, u in zip(both[0], both[USER]))
        ms = [statistics.median(r["ms"] for r in both[uid]) for uid in (0, USER)]
        table.append({"subject": subject, "row": row, "wall": ratio("ms"), "cpu": ratio("cpu_ms"), "runs": both})
        print(f"{subject + ': ' + TITLES[row]:54}{ms[0]:9.1f}{ms[1]:9.1f}  {ratio('ms'):9.3f}  {ratio('cpu_ms'):17.3f}")
    for subject in sorted({t["subject"] for t in table}):
        for key in ("wall", "cpu"):
            print(f"{subject}: median of the rows, {key}: {statistics.median(t[key] for t in table if t['subject'] == subject):.3f}")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(table, f, indent=1)
        f.write("\n")


def report(path, *outs):
    runs = {}
    for out in outs:
        subject = os.path.basename(out).split(".")[0]
        with open(out, encoding="utf-8") as f:
            for line in f:
                one = json.loads(line)
                runs.setdefault(one["row"], {}).setdefault(subject, []).append(one)
    heads = "".join(f"{s:>9}" for s in SUBJECTS)
    print(f"{'':44}{heads}  {'stock/kiln':>10}  {'CPU':>5}  {'+brick':>6}  {'kiln/through':>12}  {'stock/inside':>12}  {'inside/through':>14}")
    table = []
    for row in ROWS:
        if row not in runs:
            continue

        def median(key):
            return {s: statistics.median(r[key] for r in runs[row][s]) for s in runs[row]}
        ms, cpu, total = median("ms"), median("cpu_ms"), median("all_cpu_ms")
        table.append({"row": row, "ms": ms, "cpu_ms": cpu, "all_cpu_ms": total, "runs": runs[row]})
        cells = "".join(f"{ms[s]:9.1f}" if s in ms else f"{'-':>9}" for s in SUBJECTS)

        def ratio(values, a, b, width):
            return f"{values[a] / values[b]:{width}.2f}" if values.get(a) and values.get(b) else f"{'-':>{width}}"
        print(f"{TITLES[row]:44}{cells}  {ratio(ms, 'stock', 'kiln', 10)}  {ratio(cpu, 'stock', 'kiln', 5)}  "
              f"{ratio(total, 'stock', 'kiln', 6)}  {ratio(ms, 'kiln', 'through', 12)}  {ratio(ms, 'stock', 'inside', 12)}  "
              f"{ratio(ms, 'inside', 'through', 14)}")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(table, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    {"prepare": lambda d, n: prepare(d, int(n)), "run": run, "report": report, "users": run_users,
     "users-report": report_users}[sys.argv[1]](*sys.argv[2:])
