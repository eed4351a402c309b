#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A mount dies during a change of a name while a replica is down: the live brick is stopped in the system call of the
# change. The next mount removes and renames names of the same directory successfully. Then the replica returns. The
# stock self-heal daemon, and a healing mount, make the replica equal to the other replicas: removed names stay
# removed, a name has one file, and no heal is pending.
# Covers: xlators/cluster/replicate/entry.c, xlators/cluster/replicate/heal-entry.c,
# xlators/features/index/index-entry.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

volume_split=brick
mkdir "$T/dumps"

# A file is made; the mount is killed when brick 0 is in the system call.
dies_in_a_change() {
    local pid=${mount_pid[$mnt]} change hold
    rm -f "$T/held" "$T/release" "$T/log/hold.out" # else the wait below could find the text of the last round
    python3 "$tests_dir/replicate/hold_open.py" "${bricks[0]}/d" half "$T/held" "$T/release" >"$T/log/hold.out" &
    hold=$!
    wait_for 60 "the open to be watched" grep -q ready "$T/log/hold.out"
    touch "$mnt/d/half" 2>"$T/log/touch.out" &
    change=$!
    wait_for 60 "brick 0 to make the file" test -e "$T/held"
    unset "mount_pid[$mnt]" "mount_is_kiln[$mnt]"
    { kill -KILL "$pid" && wait "$pid"; } 2>/dev/null || true
    wait "$change" || true
    touch "$T/release"
    wait "$hold"
    umount -l "$mnt"
}

names_of() {
    (cd "$1/d" && for name in *; do echo "$name $(cat "$name")"; done)
}

heals() {
    [[ $healer == daemon ]] || find "$mnt" -ls >/dev/null 2>&1 || true
    nothing_pending "${bricks[@]}"
}

for count in 2 3; do
    for healer in daemon mount; do
        vol=v$count-$healer mnt=$T/mnt-$count-$healer-1 last=$((count - 1))
        volume_new "$vol" "1x$count"
        volume_start "$vol"
        read -ra bricks <<<"${volume_bricks[$vol]}"
        mount_kiln "$vol" "$mnt" --attribute-timeout=0 --entry-timeout=0 --statedump-dir "$T/dumps"
        mkdir "$mnt/d"
        for name in removed moved replaced chmod; do
            echo "$name" >"$mnt/d/$name"
        done
        daemon_kill "$(daemon_of "$last")"
        wait_for 60 "the mount to know it" children_up "$last"
        dies_in_a_change
        t_not "$vol: no dirty mark is left on the directory" bash -c "getfattr -d -m trusted.afr.dirty -e hex '${bricks[0]}/d' | grep -q '=0x.*[1-9a-f]'"

        mnt=$T/mnt-$count-$healer-2
        [[ $healer != mount ]] || volfile_heal=heal
        mount_kiln "$vol" "$mnt" --attribute-timeout=0 --entry-timeout=0 --statedump-dir "$T/dumps"
        volfile_heal=
        t "$vol: a name is removed" rm "$mnt/d/removed"
        t "$vol: a name replaces another" mv "$mnt/d/moved" "$mnt/d/replaced"
        t "$vol: a mode is changed" chmod 751 "$mnt/d/chmod"
        rm -f "$mnt/d/half"
        daemon_start "$(daemon_of "$last")"
        wait_for 60 "all bricks" children_up "$count"
        [[ $healer != daemon ]] || shd_start "$vol"
        t "$vol: the heal completes" wait_for 120 "heal" heals
        is "$(names_of "$mnt")" $'chmod chmod\nreplaced moved' "$vol: the mount shows the acknowledged names"
        for brick in "${bricks[@]:1}"; do
            t "$vol: ${brick##*/} equals the first brick" bricks_get_equal "${bricks[0]}" "$brick"
        done
        [[ $healer != daemon ]] || kill -TERM "$shd_pid"
        shd_pid=
        t_here "$vol: the volume is unmounted" mount_end "$mnt"
        volume_stop "$vol"
    done
done
