#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# One replica is down while kiln-mount changes files in every way. The pending counters and index entries on the
# other bricks then equal those of the stock client after the same work, with two replicas and with three. The stock
# self-heal daemon then makes the replicas equal, and no heal stays pending.
# Covers: xlators/cluster/replicate/changelog.c, xlators/cluster/replicate/transaction.c, xlators/features/index

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

# A stock mount of the same graph, without distribute.
mount_stock_bare() {
    local vol=$1 mnt=$2
    # shellcheck disable=SC2046
    volfile_id=${volume_id[$vol]} volfile_bare "$vol" $(volume_specs "$vol") >"$T/$vol-stock.vol"
    mount_launch "$mnt" -f "$T/$vol-stock.vol" --attribute-timeout=0 --entry-timeout=0
    mount_arrive "$vol" "$mnt"
}

answers() {
    ls "$1" >/dev/null 2>&1
}

work() {
    python3 "$(dirname "$0")/replica_work.py" "$@"
}

marks_of() {
    local -a bricks
    read -ra bricks <<<"${volume_bricks[$1]}"
    work marks "${bricks[@]}"
}

# Stock waits a second with the marks after a write.
marks_have_settled() {
    ! marks_of "$1" | grep -q ': .*trusted.afr.dirty'
}

volume_split=brick
for count in 2 3; do
    for client in kiln stock; do
        vol=v$count-$client mnt=$T/mnt-$count-$client
        volume_new "$vol" "1x$count"
        volume_start "$vol"
        read -ra bricks <<<"${volume_bricks[$vol]}"
        if [[ $client == kiln ]]; then
            mount_kiln "$vol" "$mnt" --attribute-timeout=0 --entry-timeout=0
        else
            mount_stock_bare "$vol" "$mnt"
        fi
        wait_for 240 "$mnt to answer" answers "$mnt"
        work prepare "$mnt"
        wait_for 240 "the marks of the first files to go" marks_have_settled "$vol"
        is "$(marks_of "$vol")" "" "$count replicas, $client: no marks while all bricks are up"
        daemon_kill "${brick_daemon[${bricks[1]}]}"
        wait_for 240 "$mnt to answer again" answers "$mnt"
        t "$count replicas, $client: all changes succeed with one brick down" work change "$mnt"
        wait_for 240 "the marks of what was changed" marks_have_settled "$vol"
        marks_of "$vol" >"$T/marks-$count-$client"
    done
    t "$count replicas: pending marks are left" test "$(grep -c ' about 1 ' "$T/marks-$count-kiln")" -gt 10
    t "$count replicas: both clients leave the same marks" diff "$T/marks-$count-stock" "$T/marks-$count-kiln"
    vol=v$count-kiln mnt=$T/mnt-$count-kiln
    read -ra bricks <<<"${volume_bricks[$vol]}"
    daemon_start "${brick_daemon[${bricks[1]}]}"
    shd_start "$vol"
    t "$count replicas: the self-heal daemon heals everything" wait_for 240 "heal" nothing_pending "${bricks[@]}"
    for brick in "${bricks[@]:1}"; do
        t "$count replicas: the bricks are equal" bricks_get_equal "${bricks[0]}" "$brick"
    done
    is "$(marks_of "$vol")" "" "$count replicas: no marks are left"
    kill -TERM "$shd_pid"
    shd_pid=
    mount_end "$T/mnt-$count-stock"
    t_here "$count replicas: the volume is unmounted" mount_end "$mnt"
    volume_stop "v$count-kiln"
    volume_stop "v$count-stock"
done
