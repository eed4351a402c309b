#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The latencies that kilnd reports agree with independent measurements of the same calls: by fio, through the stock
# client library, and by strace, which delays every 20th data system call of each worker by 40 ms. Some relations hold
# on a busy machine, too. There are as many durations as fio did reads and writes. A duration in the brick is never
# shorter than the delay of its system call, and never longer than the client's wait. So each quantile, and the number
# of durations above a limit, lie between strace's delay and fio's figures. The middle of a bucket is at most 1/64
# off; fio's buckets have the same error. The client's share of the median is printed next to that of a null call.
# Covers: xlators/debug/io-stats/latency.c, libglusterfs/base/histogram.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"
command -v strace >/dev/null || skip_all "no strace"
[[ $(strace -o /dev/null -e inject=pread64:delay_enter=1 true 2>&1) == "" ]] || skip_all "strace may not trace here, or injects no delays"

mkdir -p "$T/b"
front_start --metrics-address 127.0.0.1:9421
kiln volume create v "$T/b/1"
for layer in write-behind read-ahead io-cache quick-read open-behind stat-prefetch readdir-ahead; do
    kiln volume set v "performance.$layer" off
done
kiln volume start v
front_mount v "$T/mnt"
dd if=/dev/urandom of="$T/mnt/file" bs=64k count=64 status=none
umount "$T/mnt"
kiln volume stop v
kiln volume start v # it counts from here

strace -f -qq -p "$front_pid" -o "$T/trace" -e trace=pread64,pwritev -e inject=pread64,pwritev:delay_enter=40000:when=20+20 &
tracer=$!
is_traced() {
    grep -qx "TracerPid:[[:space:]]*$tracer" /proc/"$front_pid"/task/*/status &&
        ! grep -qx "TracerPid:[[:space:]]*0" /proc/"$front_pid"/task/*/status
}
t "strace traces every thread of kilnd" wait_for 120 "strace to trace each thread" is_traced
t "fio reads and writes by gfapi" fio --name=gfapi --ioengine=gfapi --volume=v --brick=127.0.0.1 --filename=file --rw=randrw --bs=4k \
    --size=4m --io_size=4m --iodepth=1 --allow_file_create=0 --output-format=json+ --output="$T/fio.json"
kiln --json volume profile v >"$T/profile"
curl -sS --fail http://127.0.0.1:9421/metrics >"$T/metrics"
nulls() {
    PYTHONPATH=$tests_dir/wire python3 -c '
import sys, time
from kilnwire import Peer
took = []
with Peer("127.0.0.1", int(sys.argv[1])) as peer:
    for _ in range(200):
        begin = time.monotonic()
        peer.ping()
        took.append((time.monotonic() - begin) * 1e6)
print("%.0f" % sorted(took)[100])' "$(kiln --json status v | python3 -c 'import json, sys; print(json.load(sys.stdin)["volumes"][0]["bricks"][0]["port"])')"
}
null_us=$(nulls)
kill -INT "$tracer"
wait "$tracer" || true
include "the latencies of kilnd agree with fio's" python3 - "$T" "$null_us" <<'EOS'
import json, re, sys
folder, null_us = sys.argv[1], sys.argv[2]
EDGE_NS, ERROR, WAIT_US = 1 << 25, 1 + 1 / 64, 40000

with open(folder + "/profile") as file:
    bricks = {f["fop"]: f for f in json.load(file)["bricks"][0]["fops"]}
with open(folder + "/metrics") as file:
    metrics = file.read()

def longer_than_edge(fop):
    counts = {m[1]: int(m[2]) for m in re.finditer(
        r'^kiln_brick_fop_duration_seconds_bucket\{[^}]*fop="%s",le="([^"]*)"\} (\d+)$' % fop, metrics, re.M)}
    return counts["+Inf"] - counts["%.9g" % (EDGE_NS / 1e9)]

def ok(is_ok, text):
    print(("ok - " if is_ok else "not ok - ") + text)

with open(folder + "/fio.json") as file:
    text = file.read()
job = json.loads(text[text.index("{"):])["jobs"][0]
with open(folder + "/trace") as file:
    waited = [line for line in file if "(DELAYED)" in line]
for way, fop, call in ("read", "readv", "pread64"), ("write", "writev", "pwritev"):
    brick, client = bricks[fop], job[way]
    bins = {int(ns): n for ns, n in client["clat_ns"]["bins"].items()}
    ok(brick["calls"] == client["total_ios"] == sum(bins.values()) > 300,
       "%s: %d calls of the brick, %d of fio" % (way, brick["calls"], client["total_ios"]))
    slow = sum(call in line for line in waited)
    seen = longer_than_edge(fop)
    longer = sum(n for ns, n in bins.items() if ns > EDGE_NS / ERROR)
    ok(0 < slow <= seen <= longer, "above 33.6 ms: %d by strace, %d by the brick, %d by fio" % (slow, seen, longer))
    for share, key in ("50", "p50_us"), ("99", "p99_us"):
        told, outside = brick[key], client["clat_ns"]["percentile"][share + ".000000"] / 1000
        ok(told <= outside * ERROR ** 2, "p%s: the brick says %.0f us, fio %.0f" % (share, told, outside))
    ok(brick["p99_us"] * ERROR >= WAIT_US, "p99 is not shorter than the wait of every 20th")
    print("# the client's share of the median: %.0f us; a null call takes %s" % (
        client["clat_ns"]["percentile"]["50.000000"] / 1000 - brick["p50_us"], null_us))
EOS
