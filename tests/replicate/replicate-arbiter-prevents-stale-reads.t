#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount mounts two replicas and an arbiter. The POSIX tour passes. The arbiter has all names and no contents. The
# pending counters that kiln-mount leaves while one of the three bricks is down equal those of the stock client. One
# data brick and the arbiter are enough to work. The arbiter and a data brick that missed changes never return stale
# data.
# Covers: xlators/cluster/replicate/view.c, xlators/cluster/replicate/transaction.c,
# xlators/features/arbiter/arbiter.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

volume_split=brick
export volfile_arbiter=yes

arbiter_volume() {
    local vol=$1 brick
    volume_new "$vol" 1x3
    brick=${volume_bricks[$vol]##* }
    BRICK_IS_ARBITER=yes volfile_brick "$vol" "$brick" "${volume_id[$vol]}" >"${brick_volfile[$brick]}"
    volume_start "$vol"
    read -ra bricks <<<"${volume_bricks[$vol]}"
}

work() {
    python3 "$(dirname "$0")/replica_work.py" "$@"
}

answers() {
    ls "$1" >/dev/null 2>&1
}

is_settled() {
    ! work marks "${bricks[@]}" | grep -q 'trusted.afr.dirty'
}

kind_listing() {
    (cd "$1" && find . -path ./.glusterfs -prune -o -printf '%P %y %m %U:%G\n' | sort)
}

content_bytes() {
    find "$1" -path "$1/.glusterfs" -prune -o -type f -size +0 -print
}

arbiter_volume tour
mount_kiln tour "$T/mnt-tour" --acl --attribute-timeout=0 --entry-timeout=0
include "the POSIX tour ends with status 0" python3 "$tests_dir/fops/posix_tour.py" "$T/mnt-tour" --acl
work prepare "$T/mnt-tour"
t_here "the volume of the tour is unmounted" mount_end "$T/mnt-tour"
t "both data bricks are equal" bricks_equal "${bricks[0]}" "${bricks[1]}"
t "the arbiter has all names" diff <(kind_listing "${bricks[0]}") <(kind_listing "${bricks[2]}")
is "$(content_bytes "${bricks[2]}")" "" "the arbiter has no contents"
t "no heal is pending" nothing_pending "${bricks[@]}"
volume_stop tour

for away in 1 2; do
    for client in kiln stock; do
        vol=v$away-$client mnt=$T/mnt-$away-$client
        arbiter_volume "$vol"
        if [[ $client == kiln ]]; then
            mount_kiln "$vol" "$mnt" --attribute-timeout=0 --entry-timeout=0
        else
            # shellcheck disable=SC2046
            volfile_id=${volume_id[$vol]} volfile_bare "$vol" $(volume_specs "$vol") >"$T/$vol-stock.vol"
            mount_launch "$mnt" -f "$T/$vol-stock.vol" --attribute-timeout=0 --entry-timeout=0
            mount_arrive "$vol" "$mnt"
        fi
        wait_for 240 "$mnt to answer" answers "$mnt"
        work prepare "$mnt"
        wait_for 240 "the marks of the first files to go" is_settled
        daemon_kill "${brick_daemon[${bricks[$away]}]}"
        wait_for 240 "$mnt to answer again" answers "$mnt"
        t "brick $away down, $client: all changes succeed" work change "$mnt"
        wait_for 240 "the marks of what was changed" is_settled
        work marks "${bricks[@]}" >"$T/marks-$away-$client"
    done
    t "brick $away down: pending marks are left" test "$(grep -c " about $away " "$T/marks-$away-kiln")" -gt 10
    t "brick $away down: both clients leave the same marks" diff "$T/marks-$away-stock" "$T/marks-$away-kiln"
    mount_end "$T/mnt-$away-stock"
    volume_stop "v$away-stock"
done

# Brick 1 has missed changes. With brick 0 down, no live data brick has these changes.
vol=v1-kiln mnt=$T/mnt-1-kiln
read -ra bricks <<<"${volume_bricks[$vol]}"
daemon_start "${brick_daemon[${bricks[1]}]}"
is_the_new_one() {
    [[ $(head -c 3 "$mnt/over") == new ]]
}
t "reads use the data brick that was not down" wait_for 240 "the new contents" is_the_new_one
daemon_kill "${brick_daemon[${bricks[0]}]}"
refuses_to_read() {
    ! cat "$mnt/over" >"$T/over" 2>/dev/null && [[ ! -s $T/over ]]
}
t "the arbiter and a stale brick refuse reads" wait_for 240 "an error" refuses_to_read
t_not "the arbiter and a stale brick refuse writes" bash -c "echo more >>'$mnt/over'"
daemon_start "${brick_daemon[${bricks[0]}]}"
shd_start "$vol"
t "all three bricks are healed" wait_for 240 "heal" nothing_pending "${bricks[@]}"
t "the data bricks are equal" bricks_get_equal "${bricks[0]}" "${bricks[1]}"
t_here "the volume is unmounted" mount_end "$mnt"
mount_end "$T/mnt-2-kiln"

# A mount empties a file while a brick is away, and dies. The good copy is shorter than the stale one: stock's daemon does not
# heal such a file if it is dirty, too.
arbiter_volume cut
mount_kiln cut "$T/mnt-cut"
head -c 5000 /dev/urandom >"$T/mnt-cut/file"
sync -f "$T/mnt-cut"
daemon_kill "${brick_daemon[${bricks[1]}]}"
t "the file can be written while a brick is away" wait_for 240 "a write" bash -c "echo text >'$T/mnt-cut/other'"
exec 7>"$T/mnt-cut/file" # as the mount does it: the hold lasts
is "$(stat -c %s "${bricks[0]}/file")" 0 "the file is empty on the brick that is there"
mount_kill "$T/mnt-cut"
exec 7>&-
is "$(work marks "${bricks[0]}" | grep ' file ' | grep -c dirty || true)" 0 "the file is accused on the other brick, and not dirty"
daemon_start "${brick_daemon[${bricks[1]}]}"
shd_start cut
is_emptied() { [[ ! -s ${bricks[1]}/file ]]; }
t "stock's daemon empties the file on the returned brick" wait_for 120 "the heal" is_emptied
t "the last volume is healed" wait_for 120 "heal" nothing_pending "${bricks[@]}"
