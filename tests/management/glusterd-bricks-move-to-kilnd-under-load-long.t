#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A replicated volume moves from stock bricks to kilnd's, brick by brick, while a client works. A brick's process is
# killed with SIGKILL, the other program takes its place by `volume start force`, and the next brick follows when
# `heal info` is at 0. Then the volume moves back. The client never sees an error, all acknowledged data exists, and
# the replicas are equal. With --stock, stock bricks are replaced by stock bricks.
# Covers: glusterfsd/hand-over.c, xlators/features/index, xlators/storage/posix

. "$(dirname "$0")/../lib/kiln.sh"

system_cover
glusterd_start
layout=2x2
t "a volume is created" gl_create v $layout
t "stock bricks start" gl volume start v
wait_for 240 "the bricks" bricks_all_online v 4
bricks=("$T"/bricks/v-{0,1,2,3})
gl_mount v "$T/mnt"
wait_for 240 "the mount to reach all bricks" gl_mount_reaches "$T/mnt" v $layout
mkdir "$T/mnt/load"

python3 "$tests_dir/faults/load.py" run "$T/mnt/load" "$T/progress" "$T/stop" "$T/state" 2>"$T/log/load.out" &
load=$!
: >"$T/progress"
went_on() { [[ $(stat -c %s "$T/progress") -ge $1 ]] || process_gone "$load"; }
work_on() { wait_for 600 "the load to go on" went_on $(($(stat -c %s "$T/progress") + $1)) && ! process_gone "$load"; }
no_entries() {
    local text
    text=$(gl volume heal v info) && [[ $(grep -c '^Number of entries: 0$' <<<"$text") == 4 ]]
}
brick_pid() { cat /run/gluster/vols/v/*"-v-$1.pid"; }
kind_of() { readlink "/proc/$(brick_pid "$1")/exe" | grep -q /kilnd && echo kilnd || echo stock; }

# NUMBER KIND: kills the brick's process, and starts a process of that kind.
replace() {
    local number=$1 kind=$2
    kill -KILL "$(brick_pid "$number")"
    t "$kind for brick $number: the load continues without the brick" work_on 10
    t "$kind for brick $number: start force succeeds" gl volume start v force
    wait_for 240 "all bricks" bricks_all_online v 4
    is "$(kind_of "$number")" "$kind" "$kind for brick $number: the new program serves"
    wait_for 240 "the mount to reach all bricks" gl_mount_reaches "$T/mnt" v $layout
    t "$kind for brick $number: heal info reaches 0 under load" wait_for 600 "heal info at 0" no_entries
}

new=kilnd
[[ $BRICKD == kiln ]] || new=stock
rounds=(0 1 2 3)
[[ $BRICKD == stock ]] || use_kiln on
for number in "${rounds[@]}"; do
    replace "$number" $new
done
t "the load continues with all bricks replaced" work_on 20
[[ $BRICKD == stock ]] || use_kiln off
for number in "${rounds[@]}"; do
    replace "$number" stock
done
t "the load continues with all bricks back" work_on 20
touch "$T/stop"
status=0
wait "$load" || status=$?
is "$status" 0 "the load saw no error: $(tail -n 1 "$T/log/load.out")"

t "heal info reaches 0" wait_for 600 "heal info at 0" no_entries
# The listing without leftovers of the stock self-heal daemon, which stock bricks have as well: a file that was moved aside and
# then got another name keeps its link in the hidden folder on one replica, and so has an additional link there.
named_listing() {
    brick_listing "$1" | awk '/^[.]glusterfs-anonymous-inode-/ { next } $2 == "f" { $5 = "-" } { print }'
}
named_equal() { diff <(named_listing "$1") <(named_listing "$2"); }
leftovers() { find "$1"/.glusterfs-anonymous-inode-* -type f -printf '%n\n' 2>/dev/null | sort | uniq -c | xargs; }
all_have_names() {
    local file
    while read -r file; do
        [[ -n $(find "$1" -path "$1/.glusterfs*" -prune -o -samefile "$file" -print -quit) ]] || { echo "$file has no name"; return 1; }
    done < <(find "$1"/.glusterfs-anonymous-inode-* -type f)
}
for pair in 0 2; do
    t "bricks $pair and $((pair + 1)) are equal" wait_for 240 "equal replicas" named_equal "${bricks[pair]}" "${bricks[pair + 1]}"
done
for brick in "${bricks[@]}"; do
    t "every leftover in the hidden folder of $(basename "$brick") has a name, too (links, files: $(leftovers "$brick"))" all_have_names "$brick"
done
for brick in "${bricks[@]}"; do
    t "the handles of $(basename "$brick") are right" brick_handles_hold "$brick"
done
gl_mount v "$T/fresh"
wait_for 240 "the new mount to reach all bricks" gl_mount_reaches "$T/fresh" v $layout
t "every acknowledged change is present" python3 "$tests_dir/faults/load.py" verify "$T/fresh/load" "$T/state"
