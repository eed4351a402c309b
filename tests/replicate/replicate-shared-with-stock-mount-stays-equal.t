#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A kiln-mount and a stock mount use one set of three replicas at the same time. Random changes of each mount in its
# own directory and appends of both to one file succeed, each mount sees the changes of the other, and the replicas
# are equal afterwards with no heal pending. A mount that keeps a file's lock for an hour releases it when the other
# mount wants to write. A truncate by path returns after its pending mark is cleared.
# Covers: xlators/cluster/replicate/hold.c, xlators/cluster/replicate/transaction.c,
# xlators/features/locks/contention.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

work() {
    python3 "$(dirname "$0")/replica_work.py" "$@"
}

append() {
    local i
    for ((i = 0; i < 60; i++)); do
        echo "$2 $i" >>"$1/both" || return 1
    done
}

makes_and_removes() {
    local i
    for ((i = 0; i < 40; i++)); do
        mkdir "$1/contested" 2>/dev/null && rmdir "$1/contested"
        (set -o noclobber && : >"$1/fought-for") 2>/dev/null && rm "$1/fought-for"
    done
    return 0
}

volume_split=brick
volume_new v 1x3
volume_start v
read -ra bricks <<<"${volume_bricks[v]}"
kiln=$T/kiln stock=$T/stock
mount_kiln v "$kiln" --attribute-timeout=0 --entry-timeout=0
# shellcheck disable=SC2046
volfile_id=${volume_id[v]} volfile_bare v $(volume_specs v) >"$T/stock.vol"
mount_launch "$stock" -f "$T/stock.vol" --attribute-timeout=0 --entry-timeout=0 --direct-io-mode=enable
mount_arrive v "$stock"
wait_for 240 "the mounts to answer" ls "$kiln" "$stock"
declare -A pid
for mnt in kiln stock; do
    python3 "$(dirname "$0")/replica_work.py" random "${!mnt}/$mnt" 5 >"$T/$mnt.work" 2>"$T/log/$mnt.work.log" &
    pid[$mnt]=$!
    append "${!mnt}" "$mnt" &
    pid[append-$mnt]=$!
    makes_and_removes "${!mnt}" &
    pid[names-$mnt]=$!
done
for job in append-kiln append-stock names-kiln names-stock; do
    t_here "$job ends with status 0" wait "${pid[$job]}"
done
for mnt in kiln stock; do
    kill -TERM "${pid[$mnt]}"
    t_here "the random changes through $mnt end" wait "${pid[$mnt]}"
    is "$(tail -n 1 "$T/$mnt.work")" well "each random change through $mnt had its right result"
done
is "$(sort "$stock/both" | uniq -c | awk '$1 == 1' | wc -l)" 120 "each appended line is in the file once"
t "both mounts see the same tree" diff -r "$kiln" "$stock"

# Stock's client clears the mark of a write up to a second after the write, and an unmount before that keeps the mark. The client
# also answers a truncate by path before clearing the mark, so a file that is removed at once keeps its entry in a heal index until
# the self-heal daemon's next run. No daemon runs here.
no_marks() {
    work marks "$@" | grep -v ' None' >"$T/log/marks.log"
    [[ ! -s $T/log/marks.log ]]
}
t "no heal is pending" wait_for 240 "the last marks" no_marks "${bricks[@]}"
mount_end "$stock"
t_here "kiln-mount is unmounted" mount_end "$kiln"
for brick in "${bricks[@]:1}"; do
    t "the replicas are equal" bricks_equal "${bricks[0]}" "$brick"
done
t "the unmounted clients leave no mark" no_marks "${bricks[@]}"

# A file that was truncated by path may be removed next, while its mark is addressed by gfid.
mount_kiln v "$kiln"
wait_for 240 "the mount to answer" ls "$kiln"
is "$(work truncate "$kiln/both" "${bricks[0]}/both" 200)" "0 of 200" "a truncate by path returns after its pending mark is cleared"
mount_end "$kiln"

# The mount keeps the lock for an hour, unless another client waits for the lock.
kept=$T/kept other=$T/other
mount_kiln v "$kept" --xlator-option='*replicate*.post-op-delay-secs=3600'
mount_kiln v "$other"
wait_for 240 "the mounts to answer" ls "$kept" "$other"
exec 7>"$kept/kept"
echo one >&7
is_marked() {
    work marks "${bricks[0]}" | grep -q '^brick 0: kept trusted.afr.dirty'
}
t "the mount keeps the lock and its mark" is_marked
echo two >>"$other/both" & # another file is nobody's affair
t_here "another file is written" wait $!
t "the mount still keeps the lock" is_marked
bash -c "echo two >>'$other/kept'" 7>&- &
writer=$!
t_here "another mount gets the lock to write the file" wait_for 240 "the write" process_gone "$writer"
t_here "the write of the other mount succeeds" wait "$writer"
exec 7>&-
is "$(cat "$other/kept")" "$(printf 'one\ntwo')" "the lines of both mounts are in the file"
mount_end "$kept"
t_here "the other mount is unmounted" mount_end "$other"
