#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Bricks of a replica set die and return under kiln-mount. With one of three bricks down, writes to an open file
# succeed. With two down, reads and writes fail, and an open file works again when the bricks are back. Random changes
# continue while one brick after the other dies under load: each change has its right result, and the stock self-heal
# daemon makes all replicas equal, with the right contents. When each of two replicas was written without the other,
# the file is in split-brain and reads fail with EIO.
# Covers: xlators/cluster/replicate/view.c, xlators/cluster/replicate/transaction.c,
# xlators/cluster/replicate/open-files.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

answers() {
    ls "$mnt" >/dev/null 2>&1
}

is_away() {
    [[ $(ls "$mnt" 2>&1) == *"Transport endpoint is not connected"* ]]
}

said() {
    printf '%s\n' "$1" >&7 2>>"$T/said"
}

brick_of() {
    echo "${brick_daemon[${bricks[$1]}]}"
}

children_up() {
    local pid=${mount_pid[$mnt]} dump
    rm -f "$T"/dumps/*
    kill -USR1 "$pid"
    wait_for 240 "a statedump" bash -c "ls '$T'/dumps/*.dump.* 2>/dev/null"
    dump=$(ls "$T"/dumps/*.dump.*)
    [[ $(grep -c '^child_up\[.*=1$' "$dump") -eq $1 ]]
}

holds() {
    [[ $(cat "$1" 2>/dev/null) == "$2" ]]
}

mkdir "$T/dumps"
volume_split=brick

# ---- three
volume_new three 1x3
volume_start three
read -ra bricks <<<"${volume_bricks[three]}"
mnt=$T/mnt-three
mount_kiln three "$mnt" --attribute-timeout=0 --entry-timeout=0 --statedump-dir "$T/dumps"
wait_for 240 "three children" children_up 3
echo old >"$mnt/early"
exec 7>>"$mnt/open"
said one
daemon_kill "$(brick_of 1)" 7>&-
wait_for 240 "two children" children_up 2
t_here "one of three is away: an open file is written" said two
exec 8<>"$mnt/early"
daemon_kill "$(brick_of 0)" 7>&- 8>&-
wait_for 240 "one child" children_up 1
t "two of three are away: nothing is listed" is_away
t_not "nor written" said never
daemon_start "$(brick_of 0)" 7>&- 8>&-
wait_for 240 "two children" children_up 2
t_here "it is back: the open file is written again" said three
is "$(tr '\n' ' ' <"$mnt/open")" "one two three " "what was written is there"
daemon_start "$(brick_of 1)" 7>&- 8>&-
wait_for 240 "three children" children_up 3
printf 'new\n' >&8
exec 8>&-
for brick in "${bricks[@]}"; do
    t "a file that was opened while one was away is written there, too" wait_for 240 "the write" holds "$brick/early" new
done
exec 7>&-
shd_start three
t "nothing is left to heal" wait_for 240 "heal" nothing_pending "${bricks[@]}"
is "$(tr '\n' ' ' <"${bricks[1]}/open")" "one two three " "the one that was away has what it missed"

# ---- under load
python3 "$(dirname "$0")/replica_work.py" random "$mnt/random" 11 >"$T/work" 2>"$T/log/work.log" &
work_pid=$!
progress() {
    wc -l <"$T/work"
}
has_done() {
    [[ $(progress) -ge $1 ]] || process_gone "$work_pid"
}
for round in 0 1 2; do
    daemon_kill "$(brick_of "$round")"
    wait_for 240 "30 changes without brick $round" has_done $(($(progress) + 30))
    daemon_start "$(brick_of "$round")"
    wait_for 240 "all children" children_up 3
    kill -STOP "$work_pid"
    wait_for 240 "the heal of brick $round" nothing_pending "${bricks[@]}"
    for brick in "${bricks[@]:1}"; do
        t "brick $round was away and is healed: the replicas are the same" bricks_get_equal "${bricks[0]}" "$brick"
    done
    kill -CONT "$work_pid"
    wait_for 240 "5 changes with all there" has_done $(($(progress) + 5))
done
kill -TERM "$work_pid"
t_here "random changes go on while one brick after the other dies" wait_for 480 "the work's end" process_gone "$work_pid"
is "$(tail -n 1 "$T/work")" well "each of them did what it must"
t "nothing is left to heal" wait_for 240 "heal" nothing_pending "${bricks[@]}"
for brick in "${bricks[@]:1}"; do
    t "the replicas are the same" bricks_get_equal "${bricks[0]}" "$brick"
done
kill -TERM "$shd_pid"
shd_pid=
t_here "unmounted" mount_end "$mnt"
volume_stop three

# ---- two
volume_new two 1x2
volume_start two
read -ra bricks <<<"${volume_bricks[two]}"
mnt=$T/mnt-two
mount_kiln two "$mnt" --attribute-timeout=0 --entry-timeout=0 --statedump-dir "$T/dumps"
wait_for 240 "two children" children_up 2
echo both >"$mnt/split"
marks_are_settled() {
    ! python3 "$(dirname "$0")/replica_work.py" marks "$1" | grep -q dirty
}
daemon_kill "$(brick_of 1)"
wait_for 240 "one child" children_up 1
t "one of two is away: a file is written" bash -c "echo first >'$mnt/split'"
wait_for 240 "its marks" marks_are_settled "${bricks[0]}"
daemon_kill "$(brick_of 0)"
wait_for 240 "no child" children_up 0
daemon_start "$(brick_of 1)"
wait_for 240 "the other child" children_up 1
is "$(cat "$mnt/split")" both "the other alone has what it knows of"
t "and is written" bash -c "echo second >'$mnt/split'"
wait_for 240 "its marks" marks_are_settled "${bricks[1]}"
daemon_start "$(brick_of 0)"
wait_for 240 "both children" children_up 2
t "with both there, none is known to be good" grep -q "Input/output error" <(cat "$mnt/split" 2>&1)
t "nor is it written" grep -q "Input/output error" <(bash -c "echo third >>'$mnt/split'" 2>&1)
t "but its name and attributes are seen" test -f "$mnt/split"
echo new >"$mnt/other"
is "$(cat "$mnt/other")" new "other files are as always"
t_here "unmounted" mount_end "$mnt"
