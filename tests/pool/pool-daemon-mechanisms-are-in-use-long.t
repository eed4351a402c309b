#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A kilnd and a kiln-mount under ordinary work use each mechanism that was built for their hot path. The script reads
# figures of the running processes: the pool of call-stubs, the process pump, opens below /proc for each request, the
# sweep period, the sweeper, the coroutine stacks, and the receive buffers of the transport.
# Covers: libglusterfs/stack/call-stub.c, libglusterfs/event/pump.c, xlators/mount/fuse/groups.c,
# libglusterfs/mem/mem-sweep.c, libglusterfs/coro/stack-pool.c, rpc/transport/receive.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/measure.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
command -v strace >/dev/null || skip_all "no strace"

files=300
mnt=$T/mnt
mkdir -p "$T/b" "$mnt"
seed_work_build
of_mount=(mount "$mnt")

# figure LIST NAME KEY [mount DIR]: a figure of the pool or stack pool NAME; of all pools together if NAME is empty. LIST
# process: KEY of the process.
figure() {
    kiln --json pools "${@:4}" | python3 -c 'import json, sys
figures = json.load(sys.stdin)["figures"]
which, name, key = sys.argv[1:4]
print(figures["process"][key] if which == "process" else
      sum(p[key] for p in figures[which] if name in ("", p.get("pool-name", p.get("stack-pool")))))' "$1" "$2" "$3"
}
resident_kb() {
    awk '/^VmRSS/ { print $2 }' "/proc/$front_pid/status"
}
work() {
    "$seed_work" create "$mnt" "$1" >>"$T/log/work.out" && "$seed_work" write "$mnt" "$1" >>"$T/log/work.out"
}

front_start --pool-option sweep=30s
mkdir -p "$T/state/hooks/start/post"
printf '#!/bin/sh\nhead -c 8000 /dev/zero | tr "\\0" x\n' >"$T/state/hooks/start/post/S10prints"
chmod 700 "$T/state/hooks/start/post/S10prints"
kiln volume create v "$T/b/1" >/dev/null
kiln volume start v >/dev/null
mount_log=$T/log/kiln-mount.log
"$KILN_MOUNT" -N -s localhost --volfile-id v -l "$mount_log" "$mnt" >>"$T/log/mount.out" 2>&1 &
mount_pid=$!
wait_for 20 "the mount" mountpoint -q "$mnt"
chmod 777 "$mnt"
work 100
find "$mnt" -type f -delete

# ---- the pump --------------------------------------------------------------------------------

pumped=$(grep 'S10prints: ' "$T/log/kilnd.log" | grep -oE 'x{5,}' | tr -cd x | wc -c)
t "the pump has carried the 8000 bytes of a hook's output to the log" test "$pumped" -ge 8000
t "the pump of the hook comes from its pool" test "$(figure pools "struct pump" gets)" -ge 1

# ---- call-stubs ------------------------------------------------------------------------------

stubs=$(figure pools "struct call_stub" gets)
# Two processes lock the file in turn: the brick parks the call of the one that waits.
touch "$mnt/locked"
flock "$mnt/locked" -c "touch '$T/has-lock'; while [[ ! -e '$T/let-go' ]]; do sleep 0.05; done" &
holder=$!
wait_for 30 "the first lock" test -e "$T/has-lock"
flock "$mnt/locked" -c true &
waiter=$!
takes_a_stub() { [[ $(figure pools "struct call_stub" gets) -gt $stubs ]]; }
t "a call that waits for a lock is parked in a call-stub" wait_for 30 "a call-stub" takes_a_stub
t "the call-stub is in use while the call waits" test "$(figure pools "struct call_stub" active-count)" -ge 1
touch "$T/let-go"
wait "$holder" "$waiter"
is "$(figure pools "struct call_stub" active-count)" 0 "the call-stub is back after the call"

# ---- /proc -----------------------------------------------------------------------------------

is_traced() {
    local task
    for task in /proc/"$mount_pid"/task/*; do
        grep -q "^TracerPid:[[:space:]]*[1-9]" "$task/status" || return 1
    done
}
small_files() {
    python3 - "$mnt" $files <<'EOS'
import os, sys
os.setgroups([21001, 4242]); os.setgid(21001); os.setuid(21001)
for i in range(int(sys.argv[2])):
    with open("%s/user-%d" % (sys.argv[1], i), "w") as file:
        file.write("x" * 4096)
EOS
}
strace -f -qq -p "$mount_pid" -o "$T/mount.trace" &
tracer=$!
wait_for 60 "strace to trace each thread" is_traced
small_files
kill -INT "$tracer"
wait "$tracer" || true
opens=$(grep -cE '(open|openat)\(.*"/proc/' "$T/mount.trace" || true)
requests=$(grep -cE 'read(v)?\([0-9]+, .*= [1-9]' "$T/mount.trace" || true)
diag "$opens opens below /proc for $files files of an ordinary user, $requests reads of kiln-mount"
t "kiln-mount opens files below /proc at most three times for $files small files" test "$opens" -le 3
t "the trace has the requests of these files" test "$requests" -ge $files

# ---- the sweeper -----------------------------------------------------------------------------

t "the sweep period is set while kilnd runs" kiln pools set sweep 1s
is "$(figure process "" sweep-interval-ms)" 1000 "the new period is live"
sweeps=$(figure process "" sweep-count)
has_swept() { [[ $(figure process "" sweep-count) -ge $((sweeps + 2)) ]]; }
t "the sweeper runs with the new period" wait_for 20 "two sweeps" has_swept
work 2000
peak=$(resident_kb)
freed=$(figure process "" released-bytes)
find "$mnt" -type f -delete
has_released() { [[ $(figure process "" released-bytes) -gt $freed ]]; }
t "the sweeper returns memory after a burst" wait_for 20 "returned memory" has_released
diag "kilnd: $peak KB at the peak, $(resident_kb) KB after the burst, $(figure process "" released-bytes) bytes returned in all"

# ---- stacks ----------------------------------------------------------------------------------

takes=$(figure stacks "" takes "${of_mount[@]}")
reused=$(figure stacks "" reused "${of_mount[@]}")
work 100
more=$(($(figure stacks "" takes "${of_mount[@]}") - takes))
again=$(($(figure stacks "" reused "${of_mount[@]}") - reused))
diag "$more stacks were taken for $files files, $again of them from the pool"
t "calls of kiln-mount run on stacks of the pool" test "$more" -ge 100
t "at least nine of ten stacks are used again" test "$((again * 10))" -ge "$((more * 9))"

# ---- receive buffers -------------------------------------------------------------------------

transport() { # KEY: a figure of kilnd's transport, from a statedump
    sed -n '/^\[transport\]/,/^$/s/^'"$1"'=//p' "$dump"
}
system() { echo $(($(figure pools iobuf_4k system-allocs) + $(figure pools iobuf_16k system-allocs))); }
kiln pools set sweep 30s >/dev/null
work 200
dump=$(dump_take "$front_pid" "$T")
records=$(transport records) reads=$(transport reads)
gets=$(figure pools iobuf_16k gets)
for _ in {1..6}; do # the number of requests under way differs from round to round
    before=$(system)
    work 200
    [[ $(system) != "$before" ]] || break
done
dump=$(dump_take "$front_pid" "$T")
records=$(($(transport records) - records)) reads=$(($(transport reads) - reads))
gets=$(($(figure pools iobuf_16k gets) - gets))
diag "$records records were received by $reads calls of recv(2), into $gets buffers of 16 KiB"
t "records are received into buffers of the pool" test "$gets" -ge 1
t "a record needs at most 1.5 calls of recv(2)" test "$((reads * 10))" -le "$((records * 15))"
is "$(($(system) - before))" 0 "one of six further rounds receives into the same buffers"
umount "$mnt"
wait "$mount_pid" || true
