#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# KILN_SOAK_MINUTES (10) of work on four volumes (2x2, three replicas, an arbiter, two replicas in one kilnd), each
# through two kiln-mounts and one stock mount, while bricks and mounts are killed with SIGKILL at random moments, at
# most one brick of a volume at a time. After a brick is back, the stock self-heal daemon makes the replicas equal.
# After a mount is back, other mounts see all acknowledged writes of its writers. No call of a live mount fails. In the end no
# heal is pending, no acknowledged write is lost, and neither the mounts nor the kilnd that were never killed have grown since the
# first third. KILN_SEED chooses the moments.
# Covers: xlators/cluster/replicate, xlators/cluster/distribute, xlators/protocol/client, xlators/mount/fuse

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
minutes=${KILN_SOAK_MINUTES:-10}
work=$tests_dir/mount/soak_work.py
volumes=(pair three arbiter still)
declare -A layout=([pair]=2x2 [three]=1x3 [arbiter]=1x3 [still]=1x2)
declare -A writers epoch shd_of
kills=0 mount_kills=0 checked=0 wrong=0 refused=0
RANDOM=${KILN_SEED:-11}

# Sets the volfile options of a volume.
of() {
    [[ $1 == arbiter ]] && export volfile_arbiter=yes || unset volfile_arbiter
}

# ---- volumes
make_volume() {
    local vol=$1 brick
    of "$vol"
    volume_split=$([[ $vol == still ]] && echo no || echo brick)
    volume_new "$vol" "${layout[$vol]}"
    if [[ $vol == arbiter ]]; then
        brick=${volume_bricks[$vol]##* }
        BRICK_IS_ARBITER=yes volfile_brick "$vol" "$brick" "${volume_id[$vol]}" >"${brick_volfile[$brick]}"
    fi
    volume_start "$vol"
    shd_start "$vol"
    shd_of[$vol]=$shd_pid
    shd_pid=
}

# The mounts one and two are Kiln's, and mount one is never killed; mount three is stock's.
begin_mount() {
    local vol=$1 who=$2
    of "$vol"
    if [[ $who == three ]]; then
        mount_volume "$vol" "$T/$vol-$who" utime --attribute-timeout=0 --entry-timeout=0
    else
        mount_kiln "$vol" "$T/$vol-$who" --attribute-timeout=0 --entry-timeout=0 --statedump-dir "$T/dumps"
        wait_for 240 "all bricks of $T/$vol-$who" has_all_children "$vol" "$who"
    fi
}

has_all_children() {
    children_up "$(volume_brick_count "${layout[$1]}")" "$T/$1-$2"
}

all_mounts_have_all() {
    local vol=$1
    has_all_children "$vol" one && has_all_children "$vol" two && mount_is_settled "$T/$vol-three"
}

# ---- writers: two for each mount, in separate folders; new writers for each life of the mount
begin_writers() {
    local vol=$1 who=$2 i name
    epoch[$vol-$who]=$((${epoch[$vol-$who]:-0} + 1))
    for i in 1 2; do
        name=$vol-$who-${epoch[$vol-$who]}-$i
        python3 "$work" write "$T/$vol-$who/$name" "$T/records/$name" "${KILN_SOAK_PAUSE:-0.05}" >>"$T/log/writers-$vol-$who.out" 2>&1 &
        writers[$vol-$who]+=" $!"
    done
    wait_for 240 "the writers of $vol-$who" have_begun "$vol" "$who"
}

have_begun() {
    [[ $(cat "$T/records/$1-$2-${epoch[$1-$2]}-"* | grep -c '^begun') -eq 2 ]]
}

signal_writers() {
    local who
    for who in one two three; do
        # end_writers reports a writer that has ended.
        # shellcheck disable=SC2086
        kill "-$2" ${writers[$1-$who]} 2>/dev/null || true
    done
}

# A failed call is right only where the mount was killed.
end_writers() {
    local vol=$1 who=$2 may_fail=$3 pid status
    for pid in ${writers[$vol-$who]}; do
        status=0
        wait "$pid" || status=$?
        [[ $status -eq 0 || $may_fail == yes ]] || { refused=$((refused + 1)); diag "$vol-$who: a call failed: $(tail -n 1 "$T/log/writers-$vol-$who.out")"; }
    done
    writers[$vol-$who]=
}

# Compares the acknowledged writes of mount $2 with the files on mount one.
check_epoch() {
    local vol=$1 who=$2 epoch=$3
    checked=$((checked + 1))
    timeout 600 python3 "$work" verify "$T/$vol-one" "$T/records/$vol-$who-$epoch-"* >"$T/check.out" 2>&1 ||
        { wrong=$((wrong + 1)); diag "$vol-$who-$epoch:" "$(cat "$T/check.out")"; }
}

# ---- trouble
kill_mount() {
    local vol=$1 who=$2 mnt=$T/$1-$2 old=${epoch[$1-$2]}
    mount_kills=$((mount_kills + 1))
    mount_kill "$mnt"
    end_writers "$vol" "$who" yes
    begin_mount_again "$vol" "$who"
    check_epoch "$vol" "$who" "$old"
    # Each fourth stays until the end.
    [[ $((old % 4)) -eq 0 ]] || rm -r "$T/$vol-one/$vol-$who-$old-"* || { wrong=$((wrong + 1)); diag "$vol-$who-$old is not removed"; }
    begin_writers "$vol" "$who"
}

begin_mount_again() {
    local vol=$1 who=$2
    of "$vol"
    if [[ $who == three ]]; then
        mount_volume "$vol" "$T/$vol-$who" utime --attribute-timeout=0 --entry-timeout=0
    else
        mount_kiln "$vol" "$T/$vol-$who" --attribute-timeout=0 --entry-timeout=0 --statedump-dir "$T/dumps"
        wait_for 240 "$T/$vol-$who to answer" stat "$T/$vol-$who"
    fi
}

a_mortal() {
    [[ $((RANDOM % 2)) -eq 0 ]] && echo two || echo three
}

kill_brick() {
    local vol=$1 daemon
    local -a bricks
    read -ra bricks <<<"${volume_bricks[$vol]}"
    daemon=${brick_daemon[${bricks[RANDOM % ${#bricks[@]}]}]}
    kills=$((kills + 1))
    daemon_kill "$daemon"
    sleep "$((RANDOM % 4)).$((RANDOM % 10))"
    [[ $((RANDOM % 3)) -ne 0 ]] || kill_mount "$vol" "$(a_mortal)"
    daemon_start "$daemon"
    wait_for 240 "all mounts of $vol to have all bricks" all_mounts_have_all "$vol" || return 1
    heal_at_rest "$vol"
}

# Heals while the writers are stopped, so that all bricks are equal before another brick of the volume dies.
heal_at_rest() {
    local vol=$1
    signal_writers "$vol" STOP
    # shellcheck disable=SC2086
    wait_for 240 "the heal of $vol" nothing_pending ${volume_bricks[$vol]} || { wrong=$((wrong + 1)); diag "$vol is not healed"; }
    signal_writers "$vol" CONT
}

replicas_are_equal() {
    local vol=$1 size=${layout[$1]#*x} brick first i=0
    for brick in ${volume_bricks[$vol]}; do
        [[ $((i % size)) -ne 0 ]] || first=$brick
        i=$((i + 1))
        [[ $first != "$brick" && ! ($vol == arbiter && $i -eq 3) ]] || continue
        bricks_get_equal "$first" "$brick" || return 1
    done
}

handles_hold() {
    local brick
    for brick in ${volume_bricks[$1]}; do
        brick_handles_hold "$brick" || return 1
    done
}

# ---- resources of the processes that are never killed
who_lives() {
    local vol
    for vol in "${volumes[@]}"; do
        echo "kiln-mount-$vol ${mount_pid[$T/$vol-one]}"
    done
    echo "kilnd-still ${daemon_pid[still-kiln]}"
}

# Runs beside the kills, because a round of kills can last for minutes.
sample() {
    local name pid
    while sleep "$((minutes > 20 ? 4 : 1))"; do
        while read -r name pid; do
            echo "$name $((SECONDS - began)) $(proc_rss_kb "$pid") $(proc_fds "$pid") $(proc_threads "$pid")"
        done < <(who_lives) >>"$T/samples"
    done
}

# Compares the medians of the second sixth and of the last sixth of the time. Pools and tables may be a little fuller, but a leak
# on each death or call would be larger after thousands of them.
growth() {
    awk -v end="$1" '
        function keep(when, i) { values[when, $1, i, ++n[when, $1, i]] = $i }
        function median(when, name, i,    k, j, v) {
            for (k = 2; k <= n[when, name, i]; k++) {
                v = values[when, name, i, k]
                for (j = k - 1; j >= 1 && values[when, name, i, j] > v; j--) values[when, name, i, j + 1] = values[when, name, i, j]
                values[when, name, i, j + 1] = v
            }
            return values[when, name, i, int((n[when, name, i] + 1) / 2)]
        }
        { seen[$1] = 1 }
        $2 >= end / 6 && $2 < end / 3 { for (c = 3; c <= 5; c++) keep("early", c) }
        $2 >= end * 5 / 6 { for (c = 3; c <= 5; c++) keep("late", c) }
        END {
            for (name in seen) {
                for (c = 3; c <= 5; c++) { early[c] = median("early", name, c); late[c] = median("late", name, c) }
                few = n["early", name, 3] < 10 || n["late", name, 3] < 10
                bad = late[3] > early[3] * 1.15 + 4096 || late[4] > early[4] + 12 || late[5] > early[5] + 8
                printf "%s: RSS %d to %d KiB, descriptors %d to %d, threads %d to %d, of %d and %d looks%s%s\n", name, early[3], late[3],
                    early[4], late[4], early[5], late[5], n["early", name, 3], n["late", name, 3], few ? " TOO FEW" : "", bad ? " GROWN" : ""
                grown += bad + few
                names++
            }
            exit names == 0 || grown > 0
        }' "$T/samples"
}

mkdir "$T/dumps" "$T/records"
for vol in "${volumes[@]}"; do
    make_volume "$vol"
    for who in one two three; do
        begin_mount "$vol" "$who"
    done
    for who in one two three; do
        begin_writers "$vol" "$who"
    done
done
began=$SECONDS ends=$((SECONDS + 60 * minutes)) stuck=0
sample &
sampler=$!
while [[ $SECONDS -lt $ends && $stuck -eq 0 ]]; do
    vol=${volumes[RANDOM % ${#volumes[@]}]}
    if [[ $vol == still || $((RANDOM % 3)) -eq 0 ]]; then
        kill_mount "$vol" "$(a_mortal)" || stuck=1
    else
        kill_brick "$vol" || stuck=1
    fi
    echo "$((SECONDS - began)) s: $kills bricks and $mount_kills mounts were killed; $checked looks, $wrong wrong, $refused refused" >"$T/log/soak.out"
done
lasted=$((SECONDS - began))
kill "$sampler"
is "$stuck" 0 "killed bricks and mounts all return"

# The surviving mounts and kilnd are idle for longer than the idle time of surplus workers.
for vol in "${volumes[@]}"; do
    signal_writers "$vol" TERM
    for who in one two three; do
        end_writers "$vol" "$who" no
    done
done
diag "$lasted s: $kills bricks and $mount_kills mounts were killed"
is "$refused" 0 "no call of a live mount failed"
is "$wrong" 0 "$checked checks after the death of a mount: each finds all acknowledged writes"
for vol in "${volumes[@]}"; do
    # shellcheck disable=SC2086
    t "$vol: no heal is pending" wait_for 240 "the heal of $vol" nothing_pending ${volume_bricks[$vol]}
    t "$vol: the replicas are equal" replicas_are_equal "$vol"
    t "$vol: each object has its handle" handles_hold "$vol"
    wrong=0
    for who in one two three; do
        for ((i = 1; i <= epoch[$vol-$who]; i++)); do
            [[ $i -ne epoch[$vol-$who] && $((i % 4)) -ne 0 ]] || check_epoch "$vol" "$who" "$i"
        done
    done
    is "$wrong" 0 "$vol: no acknowledged change is lost"
done
if grep -q '^SAN_FLAGS = ..*' "$(dirname "$KILND")/Makefile"; then
    diag "a sanitizer keeps freed memory: growth is not checked"
else
    status=0
    growth "$lasted" >"$T/growth" || status=$?
    is "$status" 0 "the mounts and the daemon that were never killed have not grown"
    diag "$(cat "$T/growth")"
fi
for vol in "${volumes[@]}"; do
    kill -TERM "${shd_of[$vol]}"
done
