# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""The matrix of tests/bench/pool: the rows, their targets, and the verdicts on figures.

Every target has three levels: must, realistic, moonshot. A row without a target is printed without a verdict.
"""
from collections import namedtuple

PRELOAD = {"jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2.0", "tcmalloc": "libtcmalloc_minimal.so.4"}
PACKAGE = {"jemalloc": "libjemalloc2", "mimalloc": "libmimalloc2.0", "tcmalloc": "libtcmalloc-minimal4"}
GENERAL = ["glibc", "jemalloc", "mimalloc", "tcmalloc"]
OURS = ["pool", "inline"]
NEAR_NS, FAR_NS = 14, 70  # ring only, an object: near up to here; far up to here; beyond, the machine is at something else

# over: "best" general allocator, or a contender's name; net: the harness is taken off both sides
Target = namedtuple("Target", "over net pool inline far", defaults=(None,))
Row = namedtuple("Row", "case size what targets quick", defaults=((), True))

FAR_FLOW, FAR_TRIP = (0.9, 1.0, 1.35), (0.7, 0.95, 1.1)


def best(levels, inline=None, far=None):
    return Target("best", False, levels, inline or levels, far)


def net(levels):
    return Target("best", True, levels, levels)


def over(name, levels):
    return Target(name, False, levels, levels)


ONE_CPU = (best((1.35, 1.45, 1.7)), net((2.2, 2.5, 5.0)))
TWO_CPUS = (best((1.0, 1.15, 2.0), far=FAR_FLOW), over("mimalloc", (1.8, 3.0, None)), over("jemalloc", (5.0, 10.0, None)),
            over("tcmalloc", (5.0, 10.0, None)), over("glibc", (10.0, 20.0, None)))
UPSTREAM = over("upstream", (8.0, 10.0, 16.0))

ROWS = [
    Row("lifo-1", 256, "same thread, depth 1", (best((1.3, 1.45, 3.4), (1.6, 1.9, 3.4)), UPSTREAM)),
    Row("lifo-64", 256, "same thread, depth 64", (best((1.25, 1.4, 3.4), (1.6, 2.0, 3.4)), UPSTREAM)),
    Row("lifo-512", 256, "same thread, depth 512"),
    Row("bulk-64", 256, "64 at once, in bulk where there is such a call"),
    Row("lifo-64", 128, "depth 64, 128 B", (), False),
    Row("lifo-64", 512, "depth 64, 512 B", (), False),
    Row("lifo-64", 2048, "depth 64, 2 KiB", (), False),
    Row("flow11-1cpu", 256, "1:1, one CPU", ONE_CPU),
    Row("flow21-1cpu", 256, "2:1, one CPU", ONE_CPU),
    Row("batch64-1cpu", 256, "1:1 in batches of 64, one CPU", (best((1.5, 1.75, 1.95)),)),
    Row("flow11-2cpu", 256, "1:1, two CPUs", TWO_CPUS),
    Row("batch64-2cpu", 256, "1:1 in batches of 64, two CPUs", (best((1.0, 1.15, 2.0), far=FAR_FLOW),)),
    Row("flow21-2cpu", 256, "2:1, two CPUs", (best((1.2, 1.4, 1.8), far=FAR_FLOW),)),
    Row("flow12-2cpu", 256, "1:2, two CPUs", (best((0.9, 1.05, 1.25), far=FAR_FLOW),)),
    Row("trip-2cpu", 256, "request and reply, two CPUs", (best((0.75, 1.0, 1.2), far=FAR_TRIP),)),
    Row("random-2-2cpu", 256, "random types and slots, 2 threads", (best((1.05, 1.11, 1.2)), net((1.5, 2.2, 5.0)))),
    Row("replace-2-2cpu", 256, "each step a get and a put"),
    Row("fop-2-2cpu", 256, "FOP-shaped, local", (best((1.2, 1.34, 1.55)),)),
    Row("fop-1-1cpu", 256, "FOP-shaped, one thread"),
    Row("fop-peer-2cpu", 256, "FOP-shaped, 40 % put by the peer", (best((0.9, 1.0, 1.2)),)),
    Row("handed-64-2cpu", 256, "64 threads on 2 CPUs", (best((1.0, 1.12, 1.2)),)),
    Row("handed-256-2cpu", 256, "256 threads on 2 CPUs", (best((0.95, 1.05, 1.15)),)),
]
WAYS = ["harness", "floor"] + GENERAL + ["upstream", "seed", "off", "pool", "owner", "inline"]

GET0_SIZES = [64, 128, 256, 512, 1024, 2048]
GET0_WAYS = GENERAL + ["pool", "inline"]
GET0_LIMIT, GET0_JUDGED = (4.0, 2.5, 1.5), 512

ACCOUNTING = [("lifo-1", "depth 1", True), ("lifo-64", "depth 64", True), ("random-2-2cpu", "random, 2 threads", False)]
ACCOUNTING_WAYS = ["uncounted", "pool", "owner", "exact"]
ACCOUNTING_LIMIT = (0.6, 0.4, 0.05)

MODES = ["off", "pool", "poison", "trace:1000"]

IDLE_THREADS = [2, 64, 300]
IDLE_SHARE, IDLE_LIMIT = 0.1, (6.0, 6.0, 3.0)  # of the peak; MB
GROWTH_MB, CACHED_MB = 0.27, 2.0  # two CPUs hold back 32 pages each of what the kernel counts: less is 0
STEADY = [10, 50, 90]  # the load's cycle, in hundredths of N
STEADY_LIMIT = (100, 1, 0)  # objects from the system in a million gets
SWEEP_LIMIT = (100, 50, 20)  # us, 99 of 100
OTHERS = 0.05  # of the CPUs to other processes: a sweeper that had to wait for them says nothing
SWEEPS = [(0, "all blocked"), (2, "2 of them running")]


def has_floor(case):
    """Objects pass from thread to thread in both directions alike, or not at all: LIFOs without bounds will do."""
    return case.startswith(("fop-1-", "fop-2-", "random-2-", "replace-2-"))


def two_cpus(case):
    return case.endswith("-2cpu")


def spins(case):
    """True if the threads of the case wait by spinning: on two CPUs such a case measures wall time, of one
    regime or the other."""
    return two_cpus(case) and case.startswith(("flow", "batch", "trip"))


def alone_share(case):
    """How much of two CPUs a sample must have had to count; 0 where that cannot be told."""
    return 0.9 if spins(case) else 0.8 if case in ("random-2-2cpu", "replace-2-2cpu", "fop-2-2cpu", "fop-peer-2cpu") else 0


def regime_of(ring_ns):
    return "near" if ring_ns <= NEAR_NS else "far" if ring_ns <= FAR_NS else "disturbed"


def level(value, levels, higher):
    """The highest level reached; "" where there is no target."""
    if levels is None or value is None:
        return "not judged"
    reached = "BELOW"
    for name, limit in zip(("must", "realistic", "moonshot"), levels):
        if limit is not None and (value >= limit if higher else value <= limit):
            reached = name
        elif limit is not None:
            break
    return reached


def verdict(what, who, value, levels, higher, unit="", why=None, far=False):
    return {"what": what, "who": who, "value": value, "unit": unit, "levels": levels, "higher": higher, "far": far,
            "level": why or level(value, levels, higher), "holds": not why and level(value, levels, higher) != "BELOW"}


def ratio(row, base, way, net=False):
    """How many times faster way is than base; None if it cannot be told from the harness."""
    ns = row["ns"]
    off = ns["harness"]["median"] if net else 0
    below, above = ns[way]["median"] - off, ns[base]["median"] - off
    return above / below if below > 0 else None


def best_general(row):
    return min((w for w in row["general"]), key=lambda w: row["ns"][w]["median"])


def judge_row(row, targets):
    """Verdicts of one row of the main table; row as measured, with its regime."""
    out = []
    for t in targets:
        far = row["regime"] == "far"
        if t.over != "best" and t.over not in row["ns"]:
            continue
        base = row["best"] if t.over == "best" else t.over
        what = row["what"] + (", net" if t.net else "") + ("" if t.over == "best" else f", against {t.over}")
        for who in OURS:
            levels = t.far if far and t.far else getattr(t, who)  # without one for the far regime, the near one's
            why = "disturbed" if row["regime"] == "disturbed" else None
            value = ratio(row, base, who, t.net)
            if value is None and not why:
                value = float("inf")  # not to be told from the harness
            out.append(verdict(what, who, value, levels, True, "x", why, far))
    return out


def judge_get0(rows):
    return [verdict(f"get0 - get, {r['size']} B", who, r["extra"][who], GET0_LIMIT, False, " ns")
            for r in rows if r["size"] <= GET0_JUDGED for who in OURS if who in r["extra"]]


def judge_accounting(rows):
    return [verdict(f"accounting, type and owner, {r['what']}", "owner", r["extra"]["owner"], ACCOUNTING_LIMIT, False, " ns")
            for r in rows if r["judged"] and r["extra"].get("owner") is not None]


def judge_idle(rows):
    out = []
    for r in rows:
        if r["way"] == "pool":
            peak, last = r["mb"][0], r["mb"][3]
            limit = (min(IDLE_LIMIT[0], IDLE_SHARE * peak),) + IDLE_LIMIT[1:]
            out.append(verdict(f"idle after 2N, {r['threads']} threads", "pool", last, limit, False, " MB"))
    return out


def judge_oneway(rows):
    return [verdict("one-way flow of 20 million, growth" + (f" (and {r['cached']:.1f} MB cached)"), r["way"], r["growth"],
                    (GROWTH_MB, GROWTH_MB, GROWTH_MB if r["cached"] <= CACHED_MB else -1), False, " MB",
                    spoiled(r, r["growth"], (GROWTH_MB,)))
            for r in rows if r["way"] in OURS]


def spoiled(r, value, levels):
    """Why a miss is not held against the pool: it was not the case in question."""
    if value <= levels[0]:
        return None
    return "late" if r.get("late") else "disturbed" if r["others"] > OTHERS else None


def judge_steady(rows):
    return [verdict(f"steady load, cycle {r['percent'] / 100:.1f} N, from the system", "pool", r["per_million"], STEADY_LIMIT,
                    False, " in 10^6", spoiled(r, r["per_million"], STEADY_LIMIT)) for r in rows]


def judge_sweep(rows):
    return [verdict(f"sweep of 300 threads, {r['what']}, p99", "pool", r["p99"], SWEEP_LIMIT, False, " us",
                    spoiled(r, r["p99"], SWEEP_LIMIT)) for r in rows]


def summary(runs):
    """One entry for each target, over all runs."""
    out = {}
    for run in runs:
        for v in run["verdicts"]:
            out.setdefault((v["what"].split(" (and ")[0], v["who"]), []).append(v)
    # Shows the near regime's target, unless all runs were far. Each run is judged by its own regime.
    return [{"what": what, "who": who, "values": [v["value"] for v in vs], "levels": min(vs, key=lambda v: v["far"])["levels"],
             "unit": vs[0]["unit"], "higher": vs[0]["higher"], "reached": [v["level"] for v in vs],
             "far": [v["far"] for v in vs], "holds": sum(v["holds"] for v in vs), "of": len(runs)}
            for (what, who), vs in out.items()]
