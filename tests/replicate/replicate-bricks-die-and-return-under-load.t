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
daemon_kill "$(daemon_of 1)" 7>&-
wait_for 240 "two children" children_up 2
t_here "with one of three bricks down an open file is written" said two
exec 8<>"$mnt/early"
daemon_kill "$(daemon_of 0)" 7>&- 8>&-
wait_for 240 "one child" children_up 1
t "with two of three bricks down listing fails" is_away
t_not "with two of three bricks down a write fails" said never
daemon_start "$(daemon_of 0)" 7>&- 8>&-
wait_for 240 "two children" children_up 2
t_here "the open file is written again after a brick returned" said three
is "$(tr '\n' ' ' <"$mnt/open")" "one two three " "all written lines are in the file"
daemon_start "$(daemon_of 1)" 7>&- 8>&-
wait_for 240 "three children" children_up 3
printf 'new\n' >&8
exec 8>&-
for brick in "${bricks[@]}"; do
    t "writes to a file opened while a brick was down reach that brick" wait_for 240 "the write" holds "$brick/early" new
done
exec 7>&-
shd_start three
t "no heal is pending" wait_for 240 "heal" nothing_pending "${bricks[@]}"
is "$(tr '\n' ' ' <"${bricks[1]}/open")" "one two three " "the returned brick has the lines that it missed"

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
    daemon_kill "$(daemon_of "$round")"
    wait_for 240 "30 changes without brick $round" has_done $(($(progress) + 30))
    daemon_start "$(daemon_of "$round")"
    wait_for 240 "all children" children_up 3
    kill -STOP "$work_pid"
    wait_for 240 "the heal of brick $round" nothing_pending "${bricks[@]}"
    for brick in "${bricks[@]:1}"; do
        t "brick $round is healed: the replicas are equal" bricks_get_equal "${bricks[0]}" "$brick"
    done
    kill -CONT "$work_pid"
    wait_for 240 "5 changes with all there" has_done $(($(progress) + 5))
done
kill -TERM "$work_pid"
t_here "random changes continue while one brick after the other dies" wait_for 480 "the work's end" process_gone "$work_pid"
is "$(tail -n 1 "$T/work")" well "each random change had its right result"
t "no heal is pending after the random changes" wait_for 240 "heal" nothing_pending "${bricks[@]}"
for brick in "${bricks[@]:1}"; do
    t "the replicas are equal after the random changes" bricks_get_equal "${bricks[0]}" "$brick"
done
kill -TERM "$shd_pid"
shd_pid=
t_here "the volume of three replicas is unmounted" mount_end "$mnt"
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
for brick in "${bricks[@]}"; do # else a killed brick keeps the mark of the first write
    wait_for 240 "its marks" marks_are_settled "$brick"
done
daemon_kill "$(daemon_of 1)"
wait_for 240 "one child" children_up 1
t "with one of two bricks down a file is written" bash -c "echo first >'$mnt/split'"
wait_for 240 "its marks" marks_are_settled "${bricks[0]}"
daemon_kill "$(daemon_of 0)"
wait_for 240 "no child" children_up 0
daemon_start "$(daemon_of 1)"
wait_for 240 "the other child" children_up 1
is "$(cat "$mnt/split")" both "with the other brick down the file has the older contents"
t "with the other brick down the file is written" bash -c "echo second >'$mnt/split'"
wait_for 240 "its marks" marks_are_settled "${bricks[1]}"
daemon_start "$(daemon_of 0)"
wait_for 240 "both children" children_up 2
t "with both bricks up a read of the file fails with EIO" grep -q "Input/output error" <(cat "$mnt/split" 2>&1)
t "with both bricks up a write to the file fails with EIO" grep -q "Input/output error" <(bash -c "echo third >>'$mnt/split'" 2>&1)
t "the name and attributes of the file are visible" test -f "$mnt/split"
echo new >"$mnt/other"
is "$(cat "$mnt/other")" new "other files are readable"
t_here "the volume of two replicas is unmounted" mount_end "$mnt"
