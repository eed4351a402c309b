#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Files of dispersed volumes of 2+1, 4+2 and two times 2+1 bricks, written at random by kiln-mount, are read by the
# stock client with any bricks away that the redundancy allows, and the other way round. All fragments belong
# together, with equal versions and sizes, and no object waits for heal. Files that kiln-mount changes without
# these bricks, which raises versions by random steps, are read and changed by the stock client and healed by
# stock's daemon.
# Covers: xlators/cluster/disperse

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

changes=${KILN_CHANGES:-150}
work=$(dirname "$(readlink -f "$0")")/disperse_work.py
volume_split=brick

# The fragments of each dispersed set.
sets_hold() {
    local i
    for ((i = 0; i < ${#bricks[@]}; i += size)); do
        python3 "$work" fragments "$redundancy" "${bricks[@]:i:size}" || return 1
    done
}

# The bricks to take away, from the first of each set on: as many as the redundancy.
take_away() {
    local first=$1 i k
    away=()
    for ((i = 0; i < ${#bricks[@]}; i += size)); do
        for ((k = 0; k < redundancy; k++)); do
            away+=("${brick_daemon[${bricks[$((i + (first + k) % size))]}]}")
        done
    done
    for daemon in "${away[@]}"; do
        daemon_kill "$daemon"
    done
}

bring_back() {
    for daemon in "${away[@]}"; do
        daemon_start "$daemon"
    done
}

for layout in ${KILN_LAYOUTS:-1x2+1 1x4+2 2x2+1}; do
    vol=v${layout//+/-} size=$((${layout#*x})) redundancy=${layout#*+}
    copies=$T/copies-$layout
    mkdir -p "$copies/kiln" "$copies/stock"
    volume_new "$vol" "$layout"
    volume_start "$vol"
    read -ra bricks <<<"${volume_bricks[$vol]}"
    mount_kiln "$vol" "$T/kiln"
    mkdir "$T/kiln/kiln" "$T/kiln/stock"
    t "$layout: random changes by kiln-mount read as written" \
        python3 "$work" random "$T/kiln/kiln" "$copies/kiln" 1 "$changes"
    mount_volume "$vol" "$T/stock" plain
    t "$layout: the stock client reads kiln-mount's files" python3 "$work" same "$T/stock/kiln" "$copies/kiln"
    t "$layout: random changes by the stock client read as written" \
        python3 "$work" random "$T/stock/stock" "$copies/stock" 2 "$changes"
    t "$layout: kiln-mount reads the stock client's files" python3 "$work" same "$T/kiln/stock" "$copies/stock"
    t "$layout: kiln-mount changes them further" \
        python3 "$work" random "$T/kiln/stock" "$copies/stock" 2 "$changes"
    mount_end "$T/stock"
    t_here "$layout: the volume is unmounted" mount_end "$T/kiln"
    t "$layout: all fragments belong together" sets_hold
    t "$layout: no object waits for heal" nothing_pending "${bricks[@]}"

    for ((first = 0; first < size; first += redundancy)); do
        take_away "$first"
        mount_kiln "$vol" "$T/kiln"
        mount_volume "$vol" "$T/stock" plain
        for folder in kiln stock; do
            t "$layout: without ${away[*]} the stock client reads the files of $folder" \
                python3 "$work" same "$T/stock/$folder" "$copies/$folder"
            t "$layout: without ${away[*]} kiln-mount reads the files of $folder" \
                python3 "$work" same "$T/kiln/$folder" "$copies/$folder"
        done
        mount_end "$T/stock"
        mount_end "$T/kiln"
        bring_back
    done

    mount_kiln "$vol" "$T/kiln"
    take_away 1
    t "$layout: without ${away[*]} kiln-mount changes files" python3 "$work" random "$T/kiln/kiln" "$copies/kiln" 7 "$changes"
    mount_volume "$vol" "$T/stock" plain
    t "$layout: without ${away[*]} the stock client reads the changes" python3 "$work" same "$T/stock/kiln" "$copies/kiln"
    t "$layout: the stock client changes the files further" python3 "$work" random "$T/stock/kiln" "$copies/kiln" 8 "$changes"
    t "$layout: kiln-mount reads the stock client's changes" python3 "$work" same "$T/kiln/kiln" "$copies/kiln"
    mount_end "$T/stock"
    t_here "$layout: kiln-mount ends without ${away[*]}" mount_end "$T/kiln"
    bring_back
    shd_start "$vol"
    t "$layout: stock's self-heal daemon heals the files" wait_for 120 "heal" nothing_pending "${bricks[@]}"
    t "$layout: all fragments of the healed files belong together" sets_hold
    take_away 0
    mount_volume "$vol" "$T/stock" plain
    t "$layout: without ${away[*]} the stock client reads the healed files" python3 "$work" same "$T/stock/kiln" "$copies/kiln"
    mount_end "$T/stock"
    bring_back
    volume_stop "$vol"
done
