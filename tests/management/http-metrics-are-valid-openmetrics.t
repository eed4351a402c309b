#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# /metrics is strict OpenMetrics, has exactly the families that doc/metrics.md lists, and its figures match the calls
# that were made, also with a quote in a name. /top gives the same figures, on the management socket only.
# Covers: glusterfsd/metrics.c, bricks/figures.c, bricks/top-answer.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"
export KILN_POOLS=on # in a build with ASan they are off if nobody says so, and then have no figures

volume_new v 1x2
volume_new w 1x1
kilnd_options=(--management-socket "$T/http" --metrics-address 127.0.0.1:9421)
volume_start v
mount_volume v "$T/mnt" plain
read -r first _ <<<"${volume_bricks[v]}"

for i in $(seq 20); do
    dd if=/dev/zero of="$T/mnt/f$i" bs=4096 count=8 conv=fsync status=none
done
echo 3 >/proc/sys/vm/drop_caches || true
cat "$T"/mnt/f* >/dev/null
exec 5<"$T/mnt/f1"

scrape() {
    curl -sS --fail --max-time 120 -H 'Accept: application/openmetrics-text; version=1.0.0' "$@" -o "$T/metrics"
}
value() {
    python3 "$tests_dir/management/openmetrics.py" "$T/metrics" "$@"
}
t "/metrics answers" scrape http://127.0.0.1:9421/metrics
# The last close of a file reaches the brick some time after it.
one_is_open() {
    scrape http://127.0.0.1:9421/metrics && [[ $(value kiln_brick_open_files volume=v "brick_path=$first") == 1 ]]
}
t "/metrics counts one open file" wait_for 120 "one open file" one_is_open
families() {
    value >"$T/unsorted" && LC_ALL=C sort "$T/unsorted" >"$T/families"
}
t "/metrics is valid OpenMetrics" families
content_type() {
    curl -sS --max-time 120 -o /dev/null -w '%{content_type}' --unix-socket "$T/http" "$@" http://kiln/metrics
}
is "$(content_type -H 'Accept: application/openmetrics-text')" "application/openmetrics-text; version=1.0.0; charset=utf-8" \
    "the socket's answer has the content type of OpenMetrics"
is "$(content_type)" "text/plain; version=0.0.4; charset=utf-8" "a scraper that does not accept OpenMetrics gets Prometheus text"
curl -sS --fail --max-time 120 http://127.0.0.1:9421/metrics >"$T/older"
t "Prometheus text names counters as their samples" grep -q '^# TYPE kiln_brick_fop_calls_total counter$' "$T/older"
t_not "Prometheus text has nothing that only OpenMetrics has" grep -E '^# EOF| info$' "$T/older"
if type -P promtool >/dev/null; then
    t "promtool check metrics finds no fault in Prometheus text" promtool check metrics <"$T/older"
    t "promtool check rules finds no fault in the alert rules" promtool check rules "$source_dir/extras/monitoring/alerts.yml"
else
    diag "no promtool (package prometheus): promtool checks nothing"
fi
curl -sS --fail --max-time 120 -H 'Accept-Encoding: gzip' http://127.0.0.1:9421/metrics >"$T/zipped"
is "$(zcat "$T/zipped" | grep -c '^kiln_brick_fop_calls_total')" "$(grep -c '^kiln_brick_fop_calls_total' "$T/older")" "an answer with gzip has the same lines"
t "gzip makes the answer a fifth at most" test "$(($(stat -c %s "$T/zipped") * 5))" -le "$(stat -c %s "$T/older")"

sed -n 's/^| `\([a-z_]*\)` | \([a-z]*\) |.*/\1 \2/p' "$source_dir/doc/metrics.md" | LC_ALL=C sort >"$T/listed"
t "doc/metrics.md lists exactly the families of /metrics" diff "$T/listed" "$T/families"

of_brick=(volume=v "brick_path=$first")
is "$(value gluster_brick_up "${of_brick[@]}")" 1 "the brick is up"
is "$(value kiln_brick_written_bytes_total "${of_brick[@]}")" $((20 * 8 * 4096)) "/metrics has the written bytes"
is "$(value kiln_brick_fop_calls_total "${of_brick[@]}" fop=create)" 20 "/metrics has the calls of CREATE"
is "$(value kiln_brick_fop_duration_seconds_count "${of_brick[@]}" fop=create)" 20 "/metrics has as many durations of CREATE"
is "$(value gluster_volume_profile_fop_hits volume=v "brick=$first" fop=CREATE)" 20 "/metrics has the calls of CREATE under the dashboards' name"
is "$(value kiln_brick_clients "${of_brick[@]}")" 1 "/metrics has one client"
is "$(value kiln_brick_locks_waiting "${of_brick[@]}")" 0 "/metrics has no waiting lock"
is "$(value kiln_volume_bricks volume=v)" 2 "/metrics has the number of bricks of the volume"
is "$(value kiln_volume_clients volume=v)" 1 "/metrics has the clients of the volume"
is "$(value kiln_volume_written_bytes_total volume=v)" $((2 * 20 * 8 * 4096)) "/metrics has the bytes written to all bricks of the volume"
is "$(value kiln_volume_heal_pending volume=v)" 0 "/metrics has no object that waits for heal"
is "$(value kiln_bricks state=serving)" 2 "/metrics has the bricks of the process"
is "$(value kiln_process_threads)" "$(proc_threads "${daemon_pid[$(volume_daemons v)]}")" "/metrics has the number of threads"
is "$(value gluster_brick_capacity_bytes_total "${of_brick[@]}")" \
    "$(($(stat -f -c '%b * %S' "$first")))" "/metrics has the size of the disk"
is_positive() {
    python3 -c 'import sys; sys.exit(not float(sys.argv[1]) > 0)' "$(value "$@")"
}
is "$(grep -c '^kiln_filesystem_size_bytes{' "$T/metrics")" 1 "two bricks on a file system have one line for its size"
is "$(value kiln_filesystem_size_bytes "${of_brick[@]}")" "$(($(stat -f -c '%b * %S' "$first")))" "the line of the file system has the labels of the first brick"
t "/metrics has the memory of the brick" is_positive kiln_brick_memory_bytes "${of_brick[@]}"
t "/metrics has the p99 of WRITE" is_positive kiln_brick_fop_duration_quantile_seconds "${of_brick[@]}" fop=writev quantile=0.99
exec 5<&-

"$KILND" -N -f "${brick_volfile[${volume_bricks[w]}]}" --brick-name 'a "quoted\ name' --brick-port 0 --port-file "$T/w.port" \
    -l "$T/log/w.log" --management-socket "$T/http-w" &
pid=$!
wait_for 120 "the other kilnd" test -s "$T/w.port"
t "/metrics answers for a brick with a strange name" scrape --unix-socket "$T/http-w" http://kiln/metrics
t "the answer with the strange name is valid OpenMetrics" families
t "a brick that no client has called has its file system's size" is_positive kiln_filesystem_size_bytes 'brick_path=a \"quoted\\ name'
t_not "that brick has no family that repeats it" grep '^gluster_brick_capacity_bytes_total{' "$T/metrics"
is "$(value kiln_brick_clients 'brick_path=a \"quoted\\ name')" 0 "the brick is found by the strange name"
kill -TERM "$pid"
t_here "kilnd ends with status 0" wait "$pid"

top() {
    curl -sS --fail --max-time 120 --unix-socket "$T/http" "http://kiln/top$1"
}
creates_of() { # of all calls since kilnd's start, which some seconds ago began
    top "" | python3 -c '
import json, sys
told = json.load(sys.stdin)
for b in told["bricks"]:
    if b["brick"] == sys.argv[1]:
        fop = {f["fop"]: f for f in b["fops"]}["create"]
        assert 0 < fop["p50_us"] <= fop["p99_us"] and 0 < fop["share"] < 100, fop
        print(b["volume"], round(fop["ops"] * told["seconds"]), b["clients"])' "$first"
}
is "$(creates_of)" "v 20 1" "/top has the same figures"
# 20 files are made within the second that is asked about.
top "?ms=3000&slow=0" >"$T/top" &
pid=$!
sleep 0.5
for i in $(seq 20); do
    : >"$T/mnt/g$i"
done
t_here "/top of three seconds answers" wait "$pid"
is "$(python3 -c '
import json, sys
told = json.load(open(sys.argv[2]))
assert 3 <= told["seconds"] < 60, told["seconds"]
brick, = [b for b in told["bricks"] if b["brick"] == sys.argv[1]]
fops = {f["fop"]: f for f in brick["fops"]}
assert "writev" not in fops and abs(sum(f["share"] for f in fops.values()) - 100) < 0.1, fops
print(round(fops["create"]["ops"] * told["seconds"]), len(brick["slow"]), brick["client_list"][0]["received"] > 0)' \
    "$first" "$T/top")" "20 0 True" "/top of three seconds has the calls of that time"
for bad in ms=60001 ms=-1 ms= ms=1s slow=x; do
    is "$(curl -sS --max-time 120 -o /dev/null -w '%{http_code}' --unix-socket "$T/http" "http://kiln/top?$bad")" 400 "/top?$bad is refused"
done
is "$(curl -sS --max-time 120 -o /dev/null -w '%{http_code}' http://127.0.0.1:9421/top)" 404 "the TCP address does not serve /top"
