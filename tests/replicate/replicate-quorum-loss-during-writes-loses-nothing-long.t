#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Eight processes write, rename and remove through a kiln-mount of three replicas, and of two with an arbiter, when
# two of the bricks are killed at once. Every call fails with ENOTCONN, and no process hangs. The bricks return, the
# stock self-heal daemon makes all replicas equal, the writers continue on the same mount, and another two bricks are
# killed. No acknowledged change is lost. (Without the heal in between, each brick could be accused by another one.
# Names are then merged, and a removed name can come back, as with stock.)
# Covers: xlators/cluster/replicate/transaction.c, xlators/cluster/replicate/view.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

work=$tests_dir/mount/soak_work.py

# All writers have met an error, or all have finished two files more.
all_have() {
    local i
    for i in {1..8}; do
        [[ $(grep -c "$1" "$2$i") -ge ${3:-$((${done_before[i]} + 2))} ]] || return 1
    done
}

note_done() {
    local i
    for i in {1..8}; do
        done_before[i]=$(grep -c '^r' "$T/records/$vol-$i" || true)
        cat "$T/log/writer-$vol-$i" >>"$T/all-$vol"
        : >"$T/log/writer-$vol-$i"
    done
}

# A name that was in doubt need not be there to be removed.
odd_errors() {
    cat "$T/all-$vol" | grep -v 'Errno 107' | grep -vE '(unlink|rmdir|rename)\(.*Errno 2\]'
}

declare -a done_before writers
volume_split=brick
mount_graph=whole
mkdir "$T/records"
for vol in three arbiter; do
    volume_new "$vol" 1x3
    read -ra bricks <<<"${volume_bricks[$vol]}"
    if [[ $vol == arbiter ]]; then
        export volfile_arbiter=yes
        BRICK_IS_ARBITER=yes volfile_brick "$vol" "${bricks[2]}" "${volume_id[$vol]}" >"${brick_volfile[${bricks[2]}]}"
    fi
    volume_start "$vol"
    mnt=$T/mnt-$vol
    mount_kiln "$vol" "$mnt" --attribute-timeout=0 --entry-timeout=0
    wait_for 100 "the volume" test -d "$mnt/."
    shd_start "$vol"
    writers=()
    for i in {1..8}; do
        : >"$T/records/$vol-$i"
        python3 "$work" write "$mnt/$vol-$i" "$T/records/$vol-$i" 0.005 stubborn >>"$T/log/writer-$vol-$i" 2>&1 &
        writers+=($!)
    done
    note_done
    t "$vol: all writers work" wait_for 100 "the writers" all_have '^r' "$T/records/$vol-"
    for pair in "1 2" "0 1" "0 2"; do
        read -r one two <<<"$pair"
        note_done
        daemon_kill "${brick_daemon[${bricks[$one]}]}"
        daemon_kill "${brick_daemon[${bricks[$two]}]}"
        t "$vol: bricks $pair are killed, and each writer gets ENOTCONN" wait_for 60 "errors" all_have 'Errno 107' "$T/log/writer-$vol-" 1
        daemon_start "${brick_daemon[${bricks[$one]}]}"
        daemon_start "${brick_daemon[${bricks[$two]}]}"
        note_done
        t "$vol: all writers continue" wait_for 100 "the writers" all_have '^r' "$T/records/$vol-"
        kill -STOP "${writers[@]}"
        t "$vol: no heal is pending after the bricks returned" wait_for 240 "heal" nothing_pending "${bricks[@]}"
        kill -CONT "${writers[@]}"
    done
    note_done
    kill -TERM "${writers[@]}"
    for pid in "${writers[@]}"; do
        wait "$pid" || true
    done
    t_not "$vol: no call failed with another error" odd_errors
    t "$vol: no heal is pending in the end" wait_for 240 "heal" nothing_pending "${bricks[@]}"
    t "$vol: the first two bricks are equal" bricks_get_equal "${bricks[0]}" "${bricks[1]}"
    [[ $vol == arbiter ]] || t "$vol: the first and third brick are equal" bricks_get_equal "${bricks[0]}" "${bricks[2]}"
    t "$vol: no acknowledged change is lost" python3 "$work" verify "$mnt" "$T/records/$vol-"*
    kill -TERM "$shd_pid"
    shd_pid=
    t_here "$vol: the volume is unmounted" mount_end "$mnt"
    volume_stop "$vol"
done
