# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""How tests/bench/pool measures: builds its program, runs it once for each figure, contenders in turn."""
import concurrent.futures
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys

import pool_rows as R

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BENCH = ["pool-work.c", "pool-ways.c", "pool-old.c", "pool-memory.c", "pool-sweep.c", "pool-survivors.c"]

# The share of a row's work that a contender does: slow contenders need less work for a figure of the same
# quality.
SHARE = {"glibc": 0.5, "off": 0.4, "upstream": 0.25, "seed": 0.4, "exact": 0.5, "poison": 0.02, "trace:1000": 0.1}
SHARE_ASAN = 0.02


def uncounted_sources(directory):
    """A copy of the pool without the one counter of its fast path; None if this version has no such thing."""
    src = os.path.join(directory, "uncounted")
    shutil.copytree(os.path.join(TOP, "libglusterfs", "mem"), os.path.join(src, "mem"))
    found = 0
    for name in ("mem-inline.h", "mem-pool.c"):
        path = os.path.join(src, "mem", name)
        with open(path) as f:
            text, n = re.subn(r"^\s*mem_bump64\(&l->gets, 1\);\n", "", f.read(), flags=re.M)
        found += n
        with open(path, "w") as f:
            f.write(text)
    return src if found else None


def compile_start(out, source_root, more):
    mem = os.path.join(source_root, "mem")
    sources = sorted(os.path.join(mem, f) for f in os.listdir(mem) if f.startswith("mem-") and f.endswith(".c"))
    cmd = shlex.split(os.environ.get("CC", "gcc")) + [
        "-std=gnu17", "-O2", "-g", "-D_GNU_SOURCE", "-DMEM_IN_PROGRAM", "-pthread",
        "-I" + source_root, "-I" + os.path.join(TOP, "libglusterfs"), "-I" + HERE,
        "-include", os.path.join(HERE, "pool-window.h"), *more,
        *(os.path.join(HERE, f) for f in BENCH), *sources, "-o", out]
    return subprocess.Popen(cmd)


def build(directory, asan, uncounted):
    """The bench and the pool in one program, in up to three variants; the tree's own build is not needed."""
    jobs = {"": ([], os.path.join(TOP, "libglusterfs"))}
    if uncounted:
        copy = uncounted_sources(directory)
        if copy:
            jobs["uncounted"] = ([], copy)
        else:
            print("# uncounted: the fast path has no counter that could be left out; left out")
    if asan:
        jobs["asan"] = (["-fsanitize=address"], os.path.join(TOP, "libglusterfs"))
    programs, running = {}, {}
    for name, (more, root) in jobs.items():
        programs[name] = os.path.join(directory, "pool-work" + ("-" + name if name else ""))
        running[name] = compile_start(programs[name], root, more)
    for name, job in running.items():
        if job.wait():
            sys.exit(f"pool: cannot build {name or 'the program'}")
    return programs


class Others:
    """Since it was made: which part of all CPUs went to other processes, and which the hypervisor took."""

    def __init__(self):
        self.since = self.now()

    @staticmethod
    def now():
        with open("/proc/stat") as f:
            user, nice, system, idle, wait, irq, soft, steal = (int(x) for x in f.readline().split()[1:9])
        own = sum(os.times()[:4]) * os.sysconf("SC_CLK_TCK")
        return user + nice + system + irq + soft, idle + wait + steal, steal, own

    def share(self):
        busy, rest, _, own = (b - a for a, b in zip(self.since, self.now()))
        return max(0, busy - own) / max(1, busy + rest)

    def own_seconds(self):
        return (self.now()[3] - self.since[3]) / os.sysconf("SC_CLK_TCK")

    def stolen(self):
        busy, rest, steal, _ = (b - a for a, b in zip(self.since, self.now()))
        return steal / max(1, busy + rest)


class Bench:
    """One machine, one placement; every method runs processes and returns figures."""

    def __init__(self, programs, placement, ways, libraries, repeat, scale):
        self.programs, self.placement, self.found, self.libraries = programs, placement, ways, libraries
        self.repeat, self.scale = repeat, scale
        self.general = [w for w in ways if w in R.GENERAL or w in libraries]
        self.retakes = 0  # samples taken again because another process ran meanwhile
        self.retakes_left = 0

    def command(self, way):
        env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_POOL") and k != "LD_PRELOAD"}
        env["POOL_CPUS"] = "%d,%d" % self.placement
        program, arg = self.programs[way if way in ("uncounted", "asan") else ""], way
        if way in self.general:
            arg = "malloc"
            if way in self.libraries or way in R.PRELOAD:
                env["LD_PRELOAD"] = self.libraries.get(way) or R.PRELOAD[way]
        else:
            env["KILN_POOLS"] = way if way in ("off", "poison") or way.startswith("trace") else "on"
            if way in ("off", "poison", "uncounted", "asan") or way.startswith("trace"):
                arg = "pool"
        return program, arg, env

    def once(self, way, case, size, scale=1.0):
        program, arg, env = self.command(way)
        env["POOL_SCALE"] = f"{scale:.4f}"
        r = subprocess.run([program, arg, case, str(size)], env=env, capture_output=True, text=True, timeout=300)
        if r.returncode or r.stderr.strip():
            sys.exit(f"pool: {way} {case}: exit {r.returncode}: {r.stderr.strip()}")
        return [float(x) for x in r.stdout.split()]

    def scale_of(self, way, case):
        scale = self.scale
        if R.spins(case):
            scale = max(scale, 0.5 if way in SHARE or way in self.general else 1)  # long enough to see who else ran
        elif case.startswith(("random", "handed", "replace", "fop")):
            scale = min(1, scale * 2)  # short runs would measure the warming up of many threads
        if way == "seed" and case.startswith(("flow", "batch", "trip")):
            return scale / 20  # nothing is exchanged, so its memory grows with every object: this is enough to see
        return scale * (SHARE_ASAN if way == "asan" else SHARE.get(way, 1))

    def timed(self, way, case, size):
        """Returns ns an object, and whether the process had its CPUs alone. Repeats a disturbed measurement a
        few times."""
        scale, need = self.scale_of(way, case), R.alone_share(case) if self.placement[0] != self.placement[1] else 0
        ns, share = self.once(way, case, size, scale)
        for _ in range(2):
            if share >= need or self.retakes_left <= 0:
                break
            self.retakes += 1
            self.retakes_left -= 1
            again, more = self.once(way, case, size, scale)
            if more > share:
                ns, share = again, more
        return ns, share >= need

    def ring(self):
        ns, alone = self.timed("harness", "flow11-2cpu", 256)
        return ns, R.regime_of(ns) if alone else "disturbed"

    def turns(self, ways, case, size):
        """All ways in turn, repeat times, each turn beginning with another: {way: [(ns, alone)]}, [(ring ns, regime)].
        After two turns on a busy machine it stops."""
        got, rings = {w: [] for w in ways}, []
        for turn in range(self.repeat):
            if R.spins(case):
                rings.append(self.ring())
                if turn and {g for _, g in rings} == {"disturbed"}:
                    break  # somebody else has the CPUs, threads that spin take for ever, and the row will not be judged
            for way in ways[turn % len(ways):] + ways[:turn % len(ways)]:
                got[way].append(self.timed(way, case, size))
        return got, rings

    def row(self, ways, case, size):
        """Medians. Where threads spin on two CPUs: of the turns of the regime that most turns were in, by the cost of
        the bare ring at each turn's beginning."""
        got, rings = self.turns(ways, case, size)
        turns = len(got[ways[0]])
        rings = rings[:turns]
        regimes = [g for _, g in rings]
        regime = max(("near", "far"), key=regimes.count) if set(regimes) & {"near", "far"} else "disturbed" if rings else ""
        keep = [i for i in range(turns) if not rings or regimes[i] == regime or regime == "disturbed"]
        ns, doubtful = {}, []
        for way in ways:
            values = [got[way][i][0] for i in keep if got[way][i][1]]
            if not values:  # somebody else ran in every one
                values = [got[way][i][0] for i in keep]
                doubtful.append(way)
            ns[way] = {"median": statistics.median(values), "min": min(values), "max": max(values), "n": len(values)}
        if doubtful and (set(doubtful) & set(R.OURS) or set(doubtful) & set(self.general)):
            regime = "disturbed"
        ring = statistics.median([rings[i][0] for i in keep]) if rings else None
        return {"case": case, "size": size, "ns": ns, "regime": regime, "ring": ring, "turns": f"{len(keep)}/{turns}"}

    def get0(self, size):
        ways = [w for w in R.GET0_WAYS if w in self.found or w in self.libraries]
        got = {(w, c): [] for w in ways for c in ("get", "get0")}
        for turn in range(self.repeat):
            for way in ways[turn % len(ways):] + ways[:turn % len(ways)]:
                for case in ("get", "get0"):
                    got[way, case].append(self.timed(way, case, size)[0])
        get, get0 = ({w: statistics.median(got[w, c]) for w in ways} for c in ("get", "get0"))
        return {"size": size, "get": get, "get0": get0, "extra": {w: get0[w] - get[w] for w in ways}}

    def idle(self, threads, ways):
        """They sleep most of the time, so three at once."""
        jobs = [(n, w) for n in threads for w in ways(n)]
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            got = list(pool.map(lambda j: self.once(j[1], f"idle-{j[0]}", 256), jobs))
        return [{"threads": n, "way": w, "mb": mb} for (n, w), mb in zip(jobs, got)]

    def survivors(self, case, ways):
        return [{"case": case, "way": w, "got": self.once(w, case, 256)} for w in ways]

    def oneway(self, ways):
        out = []
        for way in ways:
            others = Others()
            first, growth, cached = self.once(way, "oneway", 256)
            out.append({"way": way, "first": first, "growth": growth, "cached": cached, "others": others.share()})
        return out

    def steady(self):
        out = []
        for percent in R.STEADY:
            others = Others()
            for _ in range(3):
                gets, system, late, warm = self.once("pool", f"steady-{percent}", 256)
                if not late:
                    break
                self.retakes += 1
            out.append({"percent": percent, "gets": gets, "system": system, "late": late, "warm": warm,
                        "per_million": system * 1e6 / gets, "others": others.share()})
        return out

    def sweep(self, passes):
        keys = ("windows", "p50", "p99", "max", "pass", "membarrier", "demotes", "bypass")
        out = []
        for running, what in R.SWEEPS:
            others = Others()
            r = dict(zip(keys, self.once("pool", f"sweep-{running}-{passes}", 256)), running=running, what=what)
            out.append(dict(r, others=others.share()))
        return out
