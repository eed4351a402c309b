#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A replica must not be accused of missing a change when only the mount was short of memory. A kiln-mount of two
# replicas gets a memory limit (RLIMIT_AS) near its current size, changed every moment, while twelve writers work.
# Then the limit is lifted. No connection to a brick was lost, no file accuses a replica of a change that failed for
# the mount's lack of memory, no lock is left on the bricks, no write that fsync acknowledged is lost, and the
# replicas are equal without a heal.
#
#   KILN_HUNGRY_SECONDS (12)     duration of a round
#   KILN_HUNGRY_ROUNDS (1)       rounds, with limits of other kinds and a new mount each time
#
# Covers: xlators/cluster/replicate/fan.c, xlators/cluster/replicate/transaction.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$kiln_lib/hunger.sh"

hunger_skip_unless_possible
here=$(dirname "$0")
seconds=${KILN_HUNGRY_SECONDS:-12}
dumps=$T
[[ $BRICKD == kiln ]] || dumps=/run/gluster


mount_graph=whole
volume_split=brick
volume_new v 1x2
volume_start v
read -ra bricks <<<"${volume_bricks[v]}"

# Sets the limit a little below or above the present size, a few times a second; in each third round never above.
starve() {
    local span=$((1024 << (round % 3)))
    [[ $((round % 3)) -ne 0 ]] || span=1
    while :; do
        hunger_limit "$pid" $(($(hunger_has "$pid") + RANDOM % span - span / 4)) || return 0
        sleep "0.$((RANDOM % 3))"
    done
}

work() {
    timeout $((seconds + 60)) python3 "$here/hungry_replicas.py" work "$mnt/$round" "$1" "$seconds" "$T/record.$round-$1"
}

works() {
    seq 1000 >"$mnt/after-$round" && cmp <(seq 1000) "$mnt/after-$round"
}

# The accusations in the xattrs of the bricks' files.
accusations() {
    local brick
    for brick in "${bricks[@]}"; do
        getfattr -R -h -d -m 'trusted.afr.v-client' -e hex --absolute-names "$brick" 2>/dev/null |
            awk '/^# file/ { name = $3 } /=0x/ && !/=0x0*$/ { print name, $0 }'
    done
}

accuses_nobody() {
    [[ -z $(accusations) ]] || { diag "$(accusations | head -20)"; return 1; }
}

# Granted or waited for, at either brick.
locks() {
    local brick
    for brick in "${bricks[@]}"; do
        grep -hE '\((ACTIVE|BLOCKED)\)=' "$(dump_take "${daemon_pid[${brick_daemon[$brick]}]}" "$dumps")"
    done
}

has_no_locks() {
    [[ -z $(locks) ]]
}

shows_a_lock() {
    local status=0
    exec 9>"$mnt/held"
    flock 9
    [[ -n $(locks) ]] || status=1
    exec 9>&-
    return "$status"
}

lost_no_connection() {
    ! grep -E 'brick-peer-down|rpc-client-dropped' "$log"
}

for ((round = 1; round <= ${KILN_HUNGRY_ROUNDS:-1}; round++)); do
    mnt=$T/mnt-$round log=$T/log/kiln-mount-mnt-$round.log
    mount_kiln v "$mnt"
    wait_for 240 "the volume" test -d "$mnt/."
    pid=${mount_pid[$mnt]}
    mkdir "$mnt/$round"
    t_here "a held lock is visible at the bricks" shows_a_lock
    starve &
    starver=$!
    t_here "every call of twelve writers is answered while the memory limit changes" hunger_crowd 12 "$round" work
    { kill "$starver" && wait "$starver"; } 2>/dev/null || true
    hunger_ends "$pid"
    diag "$(cat "$T/told.$round-"*)"
    t "the process is alive" kill -0 "$pid"
    t "everything works after the limit was lifted" wait_for 60 "it to work" works
    t "no lock is left on the bricks" wait_for 60 "the locks to go" has_no_locks
    t_here "no replica is accused" accuses_nobody
    t "no heal is pending" nothing_pending "${bricks[@]}"
    t "the replicas are equal" bricks_equal "${bricks[@]}"
    t "every acknowledged write is there" python3 "$here/hungry_replicas.py" check "$mnt/$round" "$T"/record."$round"-*
    t_here "no connection to a brick was lost" lost_no_connection
    t "some calls failed with ENOMEM" grep -q ENOMEM "$T"/told."$round"-*
    t "the log says that memory is short" grep -qE "no memory|out of memory" "$log"
    rm -rf "${mnt:?}/$round"
    t_here "the volume is unmounted" mount_end "$mnt"
done
