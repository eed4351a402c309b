#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# With kiln-mount --shared, mounts of several volumes join and leave one process, with a constant number of threads
# and little memory for each mount. A stuck brick, a mount that fails and a mount that ends do not affect the other
# mounts. The memory of a mount is freed and audited when it leaves, and the process ends with its last mount.
# Covers: mount/shared.c, mount/mount.c, xlators/mount/fuse/fuse.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

for vol in a b; do
    volume_new "$vol" 1x1
    volume_start "$vol"
    volfile_bare "$vol" "$(volume_specs "$vol")" >"$T/$vol.vol"
done
log=$T/log/shared.log

join() {
    mkdir -p "$T/m/$2"
    "$KILN_MOUNT" --shared -l "$log" -f "$T/$1.vol" "${@:3}" "$T/m/$2"
}

pids() {
    pgrep -f "kiln-mount --shared" || true
}

# Each mount is asked for by its name, because a mount that was refused leaves a moment after the refusal.
left() {
    grep -q "$T/m/$1 is no more \[mount-left\]" "$log"
}

rss_kib() {
    awk '/^Rss:/ { print $2 }' "/proc/$1/smaps_rollup"
}

t "the first mount starts the process" join a a1
pid=$(pids)
is "$(wc -w <<<"$pid")" 1 "one process serves the first mount"
t "a mount of another volume joins the process" join b b1
t "a second mount of the first volume joins the process" join a a2 --acl --read-only
is "$(pids)" "$pid" "one process serves all three mounts"
echo text >"$T/m/a1/file"
echo other >"$T/m/b1/file"
is "$(cat "$T/m/a2/file") $(cat "$T/m/b1/file")" "text other" "each mount shows the files of its volume"
t_not "the mount with --read-only refuses a new file" touch "$T/m/a2/new"

status=0
join none x 2>"$T/refused.out" || status=$?
is "$status" 1 "a mount that cannot be made is refused"
cp "$T/a.vol" "$T/bad.vol"
volfile_layer top features/cdc a >>"$T/bad.vol"
status=0
join bad x 2>"$T/refused.out" || status=$?
is "$status" 1 "a mount that the process refuses exits with 1"
t "the message names the unsupported layer" grep -q "features/cdc is not built" "$T/refused.out"
t_not "the refused volume is not mounted" mount_is_listed "$T/m/x"

t "the helper of mount(8) is linked" ln -s "$KILN_MOUNT" "$T/mount.kiln"
mkdir -p "$T/m/helped"
t "the helper of mount(8) joins the process without --shared" "$T/mount.kiln" "$T/a.vol" "$T/m/helped" -o rw,attribute-timeout=0
is "$(pids)" "$pid" "one process serves the helper's mount"
is "$(cat "$T/m/helped/file")" text "the helper's mount works"

# A brick that hangs.
kill -STOP "${daemon_pid[${brick_daemon[${volume_bricks[b]}]}]}"
timeout 600 cat "$T/m/b1/file2" >"$T/stuck.out" 2>&1 &
stuck=$!
waits_in_fuse() { grep -q request_wait_answer "/proc/$(pgrep -x cat -P "$stuck")/stack"; }
wait_for 60 "a call to hang" waits_in_fuse
echo more >>"$T/m/a1/file"
is "$(tr '\n' ' ' <"$T/m/helped/file")" "text more " "a stuck brick does not affect other mounts"
t "a stuck mount can be removed" umount -l "$T/m/b1"
t "another mount joins while one is stuck" join a a3
t "another mount is unmounted while one is stuck" umount "$T/m/a3"
t "the other mount leaves the process at once" wait_for 240 "a3 to leave" left a3
kill -CONT "${daemon_pid[${brick_daemon[${volume_bricks[b]}]}]}"
wait "$stuck" || true
t "the stuck mount leaves when its brick has answered" wait_for 240 "b1 to leave" left b1

# The process gets no further descriptor, because all descriptors below the limit are open.
limit=$(prlimit --pid "$pid" --nofile --noheadings --output SOFT)
prlimit --pid "$pid" --nofile=3:
join a late >"$T/late.out" 2>&1 &
late=$!
t "a new mount waits while the process has no descriptors" wait_for 60 "the request to wait" grep -q 'shared-not-taken' "$log"
spent=$(proc_cpu_ms "$pid")
sleep 1
spent=$(($(proc_cpu_ms "$pid") - spent))
t "the process is idle while the new mount waits ($spent ms of a second)" test "$spent" -lt 150
prlimit --pid "$pid" --nofile="$limit":
t_here "the waiting mount starts as soon as descriptors are free" wait "$late"
umount "$T/m/late"

# Many.
threads=$(ls "/proc/$pid/task" | wc -l)
for i in {1..10}; do
    join a "warm$i"
done
first=$(rss_kib "$pid")
for i in {1..40}; do
    join a "many$i"
done
each=$((($(rss_kib "$pid") - first) / 40))
diag "an idle mount takes $each KiB of memory, $(($(ls "/proc/$pid/fd" | wc -l))) descriptors are open for 53 mounts"
grep -q '^SAN_FLAGS = ..*' "$(dirname "$KILN_MOUNT")/Makefile" || t "an idle mount takes at most 256 KiB ($each)" test "$each" -le 256
t "the number of threads does not depend on the mounts ($threads, $(ls "/proc/$pid/task" | wc -l))" test "$(ls "/proc/$pid/task" | wc -l)" -le $((threads + 8))
for i in {1..10}; do
    umount "$T/m/warm$i"
done
for i in {1..40}; do
    umount "$T/m/many$i"
done
is "$(cat "$T/m/a2/file" | head -1)" text "the other mounts still work"
for i in a1 a2 helped; do
    umount "$T/m/$i"
done
t "the process ends with its last mount" wait_for 240 "the process to end" process_gone "$pid"
t "the process ended with status 0" grep -q "exit status 0" "$log"
t_not "the process leaked no object" grep -E 'graph-audit|graph-inodes-left|fuse-audit' "$log"
t "a later mount starts a process again" join a a1
t_not "the later process is a new one" test "$(pids)" = "$pid"
kill -TERM "$(pids)"
t "SIGTERM removes all mounts" wait_for 240 "the process to end" process_gone "$(pids)"
t_not "no mount is left after SIGTERM" mount_is_listed "$T/m/a1"
