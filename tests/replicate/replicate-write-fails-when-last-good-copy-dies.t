#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Of two replicas, of three and of two with an arbiter only one replica has a good copy; the other replicas are up,
# accused by pending marks and not healed. The good brick dies during a change, or refuses the change. The other
# bricks have executed the change, but the change fails for the caller, at the latest in fsync or close, and these
# bricks accuse no brick: the file is not in split-brain, and a heal makes all copies equal to the good copy. Changes
# of names fail likewise with quorum. Of two replicas without quorum they succeed, and so they do if the arbiter, whose
# names are good, makes them.
# Covers: xlators/cluster/replicate/transaction.c, xlators/cluster/replicate/hold.c,
# xlators/cluster/replicate/changelog.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

data="write fsync close truncate fallocate" attributes="chmod chown utime setxattr" names="create mkdir unlink rename"

one() {
    timeout 100 python3 "$tests_dir/replicate/one_change.py" "$@"
}

marks_of() {
    python3 "$tests_dir/replicate/replica_work.py" marks "$@"
}

answers() {
    ls "$mnt" >/dev/null 2>&1
}

no_dirty_mark() {
    ! marks_of "${bricks[@]}" | grep -v arbiter | grep dirty >/dev/null
}

# A data brick is away while everything is changed.
misses() {
    local kind
    daemon_kill "$(daemon_of "$1")"
    wait_for 240 "the others" children_up $((${#bricks[@]} - 1))
    wait_for 240 "$mnt to answer" answers
    for kind in $data $attributes; do
        echo "without $1" >"$mnt/$kind"
        chmod "60$1" "$mnt/$kind"
    done
    for kind in $names; do
        echo new >"$mnt/$kind/without-$1"
    done
    wait_for 240 "the last marks" no_dirty_mark
    daemon_start "$(daemon_of "$1")"
    wait_for 240 "all" children_up ${#bricks[@]}
}

# No brick accuses brick 0, except for names.
is_accused() {
    local counter
    counter=$(marks_of "${bricks[@]}" | grep -E "^brick [12]: $1 about 0 ")
    [[ -n $counter ]]
}

goes_in_the_middle() {
    local kind=$1 pid said
    pid=${daemon_pid[$(daemon_of 0)]}
    disown "$pid" # bash would report that it was killed
    said=$(one "$kind" "$mnt/$kind" "$pid" "${bricks[1]}/$kind")
    is "$said" ENOTCONN "$vol: $kind fails when the good copy dies during it"
    wait_for 60 "the killed daemon to release its pid file" process_gone "$pid"
    unset "daemon_pid[$(daemon_of 0)]"
    wait_for 240 "the others" children_up $((${#bricks[@]} - 1))
    daemon_start "$(daemon_of 0)"
    wait_for 240 "all" children_up ${#bricks[@]}
    wait_for 240 "$mnt to answer" answers
    t_not "$vol: no brick accuses the good copy after $kind" is_accused "$kind"
    t "$vol: the good copy is readable after $kind" grep -q '^first' "$mnt/$kind"
}

refuses() {
    local kind=$1 said
    chattr +i "${bricks[0]}/$kind"
    said=$(one "$kind" "$mnt/$kind")
    chattr -i "${bricks[0]}/$kind"
    is "$said" "$2" "$vol: $kind fails with $2 when the good copy refuses it"
}

place_xfs "$T/disk" 1g
mkdir "$T/dumps"
volume_split=brick
export volfile_arbiter

for vol in two early three arbiter; do
    volfile_arbiter= mount_graph=bare layout=1x3
    [[ $vol == three || $vol == arbiter ]] || layout=1x2
    [[ $vol != early ]] || mount_graph=whole # writes are answered before they are done
    [[ $vol != arbiter ]] || volfile_arbiter=yes
    volume_new "$vol" "$layout" "$T/disk/$vol"
    read -ra bricks <<<"${volume_bricks[$vol]}"
    [[ $vol != arbiter ]] || BRICK_IS_ARBITER=yes volfile_brick "$vol" "${bricks[2]}" "${volume_id[$vol]}" >"${brick_volfile[${bricks[2]}]}"
    volume_start "$vol"
    mnt=$T/mnt-$vol
    mount_kiln "$vol" "$mnt" --attribute-timeout=0 --entry-timeout=0 --statedump-dir "$T/dumps" \
        --xlator-option='*replicate*.post-op-delay-secs=2'
    wait_for 240 "all" children_up ${#bricks[@]}
    for kind in $data $attributes; do
        echo before >"$mnt/$kind"
    done
    for kind in $names; do
        mkdir "$mnt/$kind"
        touch "$mnt/$kind/gone" "$mnt/$kind/moved"
    done
    wait_for 240 "the last marks" no_dirty_mark
    [[ $vol != three ]] || misses 2
    misses 1
    cat "$mnt/write" >/dev/null
    kinds=$data
    [[ $vol != early ]] || kinds="fsync close"
    for kind in $kinds; do
        goes_in_the_middle "$kind"
    done
    # The arbiter's attributes are good.
    for kind in $attributes; do
        if [[ $vol == arbiter ]]; then
            refuses "$kind" done
        else
            refuses "$kind" EPERM
            t_not "$vol: no brick accuses the good copy after it refused $kind" is_accused "$kind"
        fi
    done
    for kind in $names; do
        [[ $vol == three ]] || refuses "$kind" done
        [[ $vol != three ]] || refuses "$kind" EPERM
        [[ $vol != three ]] || t_not "$vol: no brick accuses the good copy of $kind" is_accused "$kind"
    done
    shd_start "$vol"
    t "$vol: the heal completes" wait_for 240 "heal" nothing_pending "${bricks[@]}"
    t "$vol: the first two bricks are equal" bricks_get_equal "${bricks[0]}" "${bricks[1]}"
    [[ $vol != three ]] || t "$vol: the first and third brick are equal" bricks_get_equal "${bricks[0]}" "${bricks[2]}"
    for kind in $kinds; do
        t "$vol: $kind: the healed file has the contents of the good copy" grep -q '^first' "${bricks[1]}/$kind"
    done
    want="601 0"
    [[ $vol != arbiter ]] || want="640 1000"
    is "$(stat -c %a "${bricks[1]}/chmod") $(stat -c %u "${bricks[1]}/chown")" "$want" "$vol: the healed files have the attributes of the good copy"
    kill -TERM "$shd_pid"
    shd_pid=
    t_here "$vol: the volume is unmounted" mount_end "$mnt"
    volume_stop "$vol"
done
