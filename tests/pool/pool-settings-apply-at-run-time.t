#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The memory pools of a kilnd and of a kiln-mount are configured while both run: the sweep period N, the cap, the
# release policy and the policy of stacks. After a burst the memory of both is back at its idle level within 2N. A
# load that repeats faster than N takes no memory from the system. `kiln pools trim` returns memory at once.
# Covers: libglusterfs/mem/mem-sweep.c, libglusterfs/mem/mem-option.c, libglusterfs/coro/pool-control.c, cli/pools.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/measure.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

mnt=$T/mnt
mkdir -p "$T/b"
of_mount=(mount "$mnt")
seed_work_build

# figure KEY [mount DIR]: of the process, or `total:KEY` of all pools together.
figure() {
    kiln --json pools "${@:2}" | python3 -c 'import json, sys
figures = json.load(sys.stdin)["figures"]
key = sys.argv[1]
print(sum(p[key[6:]] for p in figures["pools"]) if key.startswith("total:") else figures["process"][key])' "$1"
}
resident_kb() {
    awk '/^VmRSS/ { print $2 }' "/proc/$1/status"
}
work() {
    "$seed_work" create "$mnt" "$1" >>"$T/log/work.out" && "$seed_work" write "$mnt" "$1" >>"$T/log/work.out"
}
# Waits until the process has at most $2 KB and prints the time in milliseconds.
falls_to() {
    local from now
    from=$(date +%s%3N)
    while [[ $(resident_kb "$1") -gt $2 ]]; do
        now=$(date +%s%3N)
        [[ $((now - from)) -lt 20000 ]] || break
        sleep 0.05
    done
    echo $(($(date +%s%3N) - from))
}

front_start --pool-option sweep=30s --pool-option cap=96M
kiln volume create v "$T/b/1" >/dev/null
kiln volume start v >/dev/null
mkdir -p "$mnt"
"$KILN_MOUNT" -N -s localhost --volfile-id v -l "$T/log/kiln-mount.log" --pool-option=sweep=40s "$mnt" >>"$T/log/mount.out" 2>&1 &
mount_pid=$!
wait_for 20 "the mount" mountpoint -q "$mnt"

is "$(figure sweep-interval-ms) $(figure cap-bytes)" "30000 $((96 << 20))" "kilnd's command line sets the period and the cap"
is "$(figure sweep-interval-ms "${of_mount[@]}")" 40000 "kiln-mount's command line sets the period"
t "kiln sets kilnd's period" kiln pools set sweep 1s
is "$(figure sweep-interval-ms)" 1000 "kilnd has the new period"
t "kiln set all sets kilnd's period and cap" kiln set all sweep 2s cap 80M
is "$(figure sweep-interval-ms) $(figure cap-bytes)" "2000 $((80 << 20))" "kilnd has the period and the cap of kiln set all"
t_not "kiln set all refuses an option of a volume" kiln set all network.ping-timeout 10
kiln set all sweep 1s cap 96M >/dev/null
t "kiln sets kiln-mount's period" kiln pools mount "$mnt" set sweep 1s
is "$(figure sweep-interval-ms "${of_mount[@]}")" 1000 "kiln-mount has the new period"
t "kiln sets the policies" bash -c "'$KILN' pools set release keep && '$KILN' pools set stacks drop && '$KILN' pools mount '$mnt' set stacks keep"
is "$(figure pool-release) $(figure stack-policy) $(figure stack-policy "${of_mount[@]}")" "keep drop keep" "kilnd and kiln-mount have the new policies"
t "kiln sets the policies back" bash -c "'$KILN' pools set release drop && '$KILN' pools set stacks age && '$KILN' pools mount '$mnt' set stacks age"
t_not "kilnd refuses a period without a number" kiln pools set sweep soon
t_not "kiln-mount refuses a period without a number" kiln pools mount "$mnt" set sweep soon
t_not "an ordinary user reads no figures of a mount" setpriv --reuid 65534 --clear-groups getfattr -n trusted.kiln.pools "$mnt"
t_not "an ordinary user sets no option of a mount" setpriv --reuid 65534 --clear-groups setfattr -n trusted.kiln.pools -v "set sweep 1" "$mnt"

# A burst: many files exist at once, then none does.
files=3000
work 200
sleep 2.5 # a first round has warmed what is never given back; then two periods
rest=$(resident_kb "$front_pid")
mount_rest=$(resident_kb "$mount_pid")
"$seed_work" create "$mnt" "$files" >>"$T/log/work.out"
peak=$(resident_kb "$front_pid")
mount_peak=$(resident_kb "$mount_pid")
t "the burst takes memory: kilnd grows from $rest to $peak KB" test "$peak" -gt $((rest * 120 / 100))
find "$mnt" -type f -delete
ms=$(falls_to "$front_pid" $((rest * 110 / 100)))
diag "kilnd: $rest KB at rest, $peak KB at the peak, back within 10 % after $ms ms: $(resident_kb "$front_pid") KB"
t "kilnd is back within 10 % of rest after 2N" test "$ms" -lt 3000
ms=$(falls_to "$mount_pid" $((mount_rest * 110 / 100)))
diag "kiln-mount: $mount_rest KB at rest, $mount_peak KB at the peak, back after $ms ms more: $(resident_kb "$mount_pid") KB"
t "kiln-mount is back within 10 % of rest after 2N" test "$ms" -lt 3000

# Rounds that follow each other faster than N.
kiln pools set sweep 30s >/dev/null
round() { work 100 && find "$mnt" -type f -delete; }
for _ in {1..9}; do round; done
# The kernel reports some of the removed files late, so that a round may begin with more objects in use than the round before.
for _ in {10..14}; do
    before=$(figure total:system-allocs)
    round
    after=$(figure total:system-allocs)
    [[ $after != "$before" ]] || break
done
is "$((after - before))" 0 "the tenth round of a cyclic load, or one of the next four, takes no object from the system"
diag "$(figure total:gets) gets, $after objects from the system, $(figure sweep-count) sweeps"

work 300
t "trim hard returns all cached memory at once" kiln pools trim hard
t "fewer than 100 objects stay cached" test "$(figure total:cached-hot)" -lt 100
t "kiln trims a mount" kiln pools mount "$mnt" trim
t "the table names types, hits and bytes" grep -qE '^TYPE +SIZE +LIVE +HOT +COLD +BYTES +PADDING +HITS-HOT +HITS-COLD +SYSTEM' <<<"$(kiln pools)"
t "the table names the objects of each brick by type" grep -qE "^posix_inode +[0-9]+ +[0-9]+ $T/b/1" <<<"$(kiln pools)"
t "the table of a mount has the stacks" grep -qE '^STACKS' <<<"$(kiln pools mount "$mnt")"
umount "$mnt"
wait "$mount_pid" || true
