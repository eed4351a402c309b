#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Three bricks go away in turn, without a heal between. Each time names are removed and renamed. While only stale copies
# of the folder are there, a change of a name fails with ENOTCONN, and a mount that waits for bricks (--hard) makes the
# change when the good copy is back. After the heal by the self-heal daemon of stock or of Kiln, no
# acknowledged removal or rename has come back.
# Covers: xlators/cluster/replicate/transaction.c, xlators/features/hard/hard.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

volume_split=brick
mkdir "$T/dumps"

goes() { # BRICK
    daemon_kill "${brick_daemon[${bricks[$1]}]}"
    wait_for 240 "the others" children_up 2
}
returns() { # BRICK
    daemon_start "${brick_daemon[${bricks[$1]}]}"
    wait_for 240 "all" children_up 3
}
removes() { # NUMBER
    rm "$mnt/d/removed$1"
    mv "$mnt/d/renamed$1" "$mnt/d/moved$1"
    mv "$mnt/d/over$1" "$mnt/d/replaced$1"
    echo "$1" >"$mnt/d/made$1"
}
refusal() { # MESSAGE CMD...
    local said
    said=$(LC_ALL=C "${@:2}" 2>&1) && return 1
    [[ $said == *"$1"* ]] || { echo "$said"; return 1; }
}

for healer in stock kiln; do
    vol=v-$healer mnt=$T/mnt-$healer
    volume_new "$vol" 1x3
    volume_start "$vol"
    read -ra bricks <<<"${volume_bricks[$vol]}"
    mount_kiln "$vol" "$mnt" --attribute-timeout=0 --entry-timeout=0 --statedump-dir "$T/dumps"
    wait_for 240 "all" children_up 3
    mount_kiln "$vol" "$mnt-hard" --hard=240
    mkdir "$mnt/d"
    touch "$mnt/d/waits"
    for i in 0 2 1; do
        for name in removed renamed over replaced; do
            echo "$name$i" >"$mnt/d/$name$i"
        done
    done
    for i in 0 2; do
        goes "$i"
        t "$healer: names are changed without brick $i" removes "$i"
        returns "$i"
    done
    goes 1
    t "$healer: stale copies remove no name" refusal "endpoint is not connected" rm "$mnt/d/removed1"
    t "$healer: stale copies make no name" refusal "endpoint is not connected" mkdir "$mnt/d/made"
    t "$healer: stale copies rename no name" refusal "endpoint is not connected" mv "$mnt/d/renamed1" "$mnt/d/moved1"
    mv "$mnt-hard/d/waits" "$mnt-hard/d/waited" 2>"$T/log/waits.out" &
    waiting=$!
    returns 1
    t_here "$healer: a rename on a hard mount waits for the good copy" wait "$waiting"
    t "$healer: names are changed when the good copy is back" removes 1
    [[ $healer == stock ]] || kiln_heal_start "$vol"
    [[ $healer == kiln ]] || shd_start "$vol"
    t "$healer: the heal completes" wait_for 240 "the heal" nothing_pending "${bricks[@]}"
    is "$(ls "$mnt/d" | xargs)" "made0 made1 made2 moved0 moved1 moved2 replaced0 replaced1 replaced2 waited" "$healer: no name is lost, and none is back"
    is "$(cat "$mnt"/d/replaced? | xargs)" "over0 over1 over2" "$healer: the replaced names have the new files"
    t "$healer: the first two bricks are equal" bricks_get_equal "${bricks[0]}" "${bricks[1]}"
    t "$healer: the first and third brick are equal" bricks_get_equal "${bricks[0]}" "${bricks[2]}"
    kill -TERM "$shd_pid"
    shd_pid=
    t_here "$healer: the volume is unmounted" mount_end "$mnt"
    t_here "$healer: the hard mount is unmounted" mount_end "$mnt-hard"
    volume_stop "$vol"
done
