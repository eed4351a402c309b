#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Bricks of a dispersed volume, as many as the redundancy allows, are killed with SIGKILL and started again under
# random writes, truncations and appends through kiln-mount. The application sees no error and reads its own
# changes at any time. The stock self-heal daemon brings every missed change to the bricks, between two rounds and
# in the end, and afterwards all fragments belong together.
# Covers: xlators/cluster/disperse

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

work=$(dirname "$(readlink -f "$0")")/disperse_work.py
mnt=$T/mnt
mkdir "$T/dumps"
volume_split=brick

# The load has made so many changes since the mark.
went_on() {
    [[ $(wc -l <"$T/progress") -ge $(($1 + $2)) ]]
}
work_on() {
    local mark
    mark=$(wc -l <"$T/progress")
    wait_for 240 "the load to go on" went_on "$mark" "$1"
}

for layout in ${KILN_LAYOUTS:-1x2+1 1x4+2}; do
    vol=v${layout//+/-} size=$((${layout#*x})) redundancy=${layout#*+}
    copies=$T/copies-$layout
    mkdir -p "$copies"
    volume_new "$vol" "$layout"
    volume_start "$vol"
    read -ra bricks <<<"${volume_bricks[$vol]}"
    mount_kiln "$vol" "$T/mnt" --statedump-dir="$T/dumps"
    shd_start "$vol"
    : >"$T/progress"
    python3 "$work" random "$T/mnt" "$copies" 3 0 >"$T/progress" 2>"$T/log/load.out" &
    load=$!
    for ((round = 0; round < ${KILN_ROUNDS:-2}; round++)); do
        t "$layout, round $round: the load runs on all bricks" work_on 50
        for ((i = 0; i < redundancy; i++)); do
            daemon_kill "${brick_daemon[${bricks[$(((round + i) % size))]}]}"
        done
        t "$layout, round $round: the load runs without $redundancy of the bricks" work_on 100
        for ((i = 0; i < redundancy; i++)); do
            daemon_start "${brick_daemon[${bricks[$(((round + i) % size))]}]}"
        done
        t "$layout, round $round: the mount finds the returned bricks" wait_for 240 "all bricks" children_up "$size"
        t "$layout, round $round: the load runs on all bricks again" work_on 20
        # The files change all the time, and then a heal of them begins again and again.
        kill -STOP "$load"
        t "$layout, round $round: the heal ends" wait_for 240 "empty indices" nothing_pending "${bricks[@]}"
        kill -CONT "$load"
    done
    kill -TERM "$load"
    status=0
    wait "$load" || status=$?
    is "$status" 0 "$layout: the load saw no error, and read its changes"
    t "$layout: the files have their contents" python3 "$work" same "$T/mnt" "$copies"
    t_here "$layout: the volume is unmounted" mount_end "$T/mnt"
    t "$layout: the last heal ends" wait_for 240 "empty indices" nothing_pending "${bricks[@]}"
    t "$layout: all fragments belong together" python3 "$work" fragments "$redundancy" "${bricks[@]}"
    for brick in "${bricks[@]}"; do
        t "$layout: the handles of $(basename "$brick") are right" brick_handles_hold "$brick"
    done
    mount_volume "$vol" "$T/stock" plain
    t "$layout: the stock client reads the files" python3 "$work" same "$T/stock" "$copies"
    mount_end "$T/stock"
    volume_stop "$vol"
done
