#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Random changes run through kiln-mount, each followed by a check of the expected tree, while one brick after the
# other is killed at a random moment of a change and returns some changes later (200 kills, by turns with two
# replicas, three, and two with an arbiter). Each time everything is healed: by the stock self-heal daemon while the
# changes continue, or by the mount itself with the volume's self-heal options on, which looks up every name. Then no
# mark is left, and all replicas have the same names, attributes, xattrs and contents. KILN_KILLS sets the number of
# kills.
# Covers: xlators/cluster/replicate

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
kills=${KILN_KILLS:-200}
here=$(dirname "$0")

progress() {
    wc -l <"$T/work"
}

has_done() {
    [[ $(progress) -ge $1 ]] || process_gone "$work_pid"
}

# A line for each object, without the counters that are zero. On an arbiter volume the lines have neither size nor contents.
tree_of() {
    python3 "$tests_dir/distribute/brick_trees.py" --no-names "${bricks[@]}" | grep "^$1 \|^NO " | grep -v '^[0-9]* /\.glusterfs-anonymous' |
        sed -E 's/^[0-9]+ //; :again; s/ trusted\.afr\.[^ =]*=0*( |$)/ /; t again; s/ +$//' |
        if [[ -n $arbiter ]]; then awk '{ $4 = "-"; $7 = "-"; print }'; else cat; fi
}

trees_are_equal() {
    local i
    for ((i = 1; i < ${#bricks[@]}; i++)); do
        diff <(tree_of 0) <(tree_of "$i") || return 1
    done
    [[ -z $arbiter ]] || bricks_hold_the_same
}

bricks_hold_the_same() {
    bricks_equal "${bricks[0]}" "${bricks[1]}"
}

# A removed object keeps its entry in the heal index until the daemon's next run; no counter is left.
walk_heals() {
    find "$mnt" -ls >/dev/null 2>&1
    python3 "$here/replica_work.py" marks "${bricks[@]}" >"$T/marks" && ! grep -qv ' None' "$T/marks"
}

is_healed() {
    if [[ $healer == daemon ]]; then
        nothing_pending "${bricks[@]}"
    else
        walk_heals
    fi
}

# The changes wait while the replicas are compared.
is_equal_at_rest() {
    kill -STOP "$work_pid"
    if ! wait_for 240 "heal" is_healed || ! wait_for 60 "equal replicas" trees_are_equal; then
        diag "$(trees_are_equal; python3 "$here/replica_work.py" marks "${bricks[@]}")"
        return 1
    fi
    kill -CONT "$work_pid"
}

kill_one() {
    local daemon=${brick_daemon[${bricks[$1]}]}
    sleep "0.0$((RANDOM % 100))"
    daemon_kill "$daemon"
    wait_for 240 "changes without brick $1" has_done $(($(progress) + 1 + RANDOM % 8))
    daemon_start "$daemon"
    wait_for 240 "all children" children_up "${#bricks[@]}"
    wait_for 240 "changes with all there" has_done $(($(progress) + 2))
}

# VOL LAYOUT HEALER KILLS
turn() {
    local vol=$1 n failed=0
    healer=$3
    volume_new "$vol" "$2"
    volume_start "$vol"
    read -ra bricks <<<"${volume_bricks[$vol]}"
    mnt=$T/mnt-$vol
    [[ $healer == daemon ]] || volfile_heal=heal
    mount_kiln "$vol" "$mnt" --attribute-timeout=0 --entry-timeout=0 --statedump-dir "$T/dumps"
    volfile_heal=
    wait_for 240 "all children" children_up "${#bricks[@]}"
    [[ $healer != daemon ]] || shd_start "$vol"
    python3 "$here/replica_work.py" random "$mnt/random" "$RANDOM" >"$T/work" 2>"$T/log/work-$vol.log" &
    work_pid=$!
    wait_for 240 "the first changes" has_done 5
    for ((n = 0; n < $4; n++)); do
        kill_one $((n % ${#bricks[@]}))
        is_equal_at_rest || { failed=1; diag "kill $n of $vol"; break; }
        process_gone "$work_pid" && break
    done
    is "$n $failed" "$4 0" "$vol: $4 kills are healed by the $healer, and the replicas are equal"
    kill -CONT "$work_pid"
    kill -TERM "$work_pid"
    wait_for 480 "the work's end" process_gone "$work_pid"
    is "$(tail -n 1 "$T/work")" well "$vol: each change had its right result, and all reads were right"
    [[ $healer != daemon ]] || { kill -TERM "$shd_pid"; shd_pid=; }
    t_here "$vol: the volume is unmounted" mount_end "$mnt"
    volume_stop "$vol"
}

RANDOM=${KILN_SEED:-7}
mkdir "$T/dumps"
volume_split=brick
arbiter=
turn two 1x2 daemon $((kills / 4))
turn three 1x3 daemon $((kills / 4))
turn two-alone 1x2 mount $((kills / 4))
turn three-alone 1x3 mount $((kills / 8))
arbiter=yes
volfile_arbiter=yes
turn arbiter 1x3 daemon $((kills / 16))
turn arbiter-alone 1x3 mount $((kills - kills / 4 * 3 - kills / 8 - kills / 16))
