#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount takes the lock and the pending mark for the first write of a new file right after the reply to the
# CREATE, if the previous new file was written before its close (lock-new-files). The early lock costs no calls when
# files are written, and stops soon when files stay empty. A stock mount does not wait for the lock. A killed mount
# leaves nothing that the self-heal daemon does not clean up. With a brick that dies and returns meanwhile the
# replicas are equal in the end.
# Covers: xlators/cluster/replicate/new-files.c, xlators/cluster/replicate/hold.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/measure.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

files=40
work=$(dirname "$0")/attributes_work.py
kiln=$T/kiln stock=$T/stock
volume_split=brick
volume_new v 1x2
volume_start v
read -ra bricks <<<"${volume_bricks[v]}"
mount_graph=default
mount_volume v "$stock" plain --attribute-timeout=0 --entry-timeout=0

# Sets `locks`: of what CMD does.
count_locks() {
    local before
    before=$(locks_of)
    "$@"
    sleep 0.2 # the last ones are given back
    locks=$(($(locks_of) - before))
}

locks_of() {
    calls_take "${mount_pid[$kiln]}" "$T/calls"
    awk '$1 ~ /inodelk/ { n += $2 } END { print n + 0 }' "$T/calls"
}

make_empty() {
    local i
    for ((i = 0; i < files; i++)); do
        : >"$kiln/empty$i"
    done
}

is_marked() {
    getfattr -n trusted.afr.dirty -e hex "${bricks[0]}/$1" 2>/dev/null | grep -q 0x00000001
}

# ---- calls
mount_kiln v "$kiln" --attribute-timeout=0 --entry-timeout=0 --xlator-option='*.metadata-lock-kept-ms=2000'
mkdir "$kiln/a" "$kiln/b" "$kiln/k"
count_locks python3 "$work" unpack "$kiln/a" "$files"
is "$locks" $((8 * files)) "a new file that is written costs two locks and unlocks on both replicas"
exec 7>"$kiln/k/open"
t "the next new file is locked and marked before it is written" wait_for 240 "the mark" is_marked k/open
exec 7>&-
not_marked() {
    ! is_marked "$1"
}
t "closing the file clears the mark" wait_for 240 "no mark" not_marked k/open
count_locks make_empty
t "files that are not written soon cost no locks ($locks)" test "$locks" -lt "$files"

# ---- others
soon() {
    local start=$SECONDS
    "$@" && [[ $((SECONDS - start)) -lt 40 ]]
}
write_one() {
    echo x >"$1"
}

mount_end "$kiln"
mount_kiln v "$kiln" --attribute-timeout=0 --entry-timeout=0 --xlator-option='*.post-op-delay-secs=3600'
write_one "$kiln/k/first"
exec 7>"$kiln/k/contested" 8>"$kiln/k/removed"
t "the lock of the contested file is kept" wait_for 240 "the mark" is_marked k/contested
t "a stock mount writes the contested file without waiting" soon write_one "$stock/k/contested"
is "$(cat "$kiln/k/contested")" x "kiln-mount sees what the stock mount wrote"
t "a stock mount removes a locked file without waiting" soon rm "$stock/k/removed"
exec 7>&- 8>&-
write_one "$kiln/k/again"
exec 7>"$kiln/k/killed"
t "the lock of the killed mount's file is kept" wait_for 240 "the mark" is_marked k/killed
mount_kill "$kiln" 7>&-
exec 7>&- || true
t "a stock mount writes a file that a killed mount had locked" soon write_one "$stock/k/killed"
shd_start v
t "the self-heal daemon clears the killed mount's mark" wait_for 240 "heal" nothing_pending "${bricks[@]}"

# ---- a brick that dies and comes back
mount_kiln v "$kiln" --attribute-timeout=0 --entry-timeout=0
mkdir "$kiln/s"
python3 "$work" unpack "$kiln/s" 100000 >"$T/log/unpack" 2>&1 &
unpack_pid=$!
sleep 0.3
daemon_kill "${brick_daemon[${bricks[1]}]}"
sleep 0.3
t_not "files are created while a brick is down" process_gone "$unpack_pid"
daemon_start "${brick_daemon[${bricks[1]}]}"
wait_for 240 "all children" children_up 2 "$kiln" /run/gluster
sleep 0.3
t_not "files are created after the brick returned" process_gone "$unpack_pid"
kill -TERM "$unpack_pid"
wait_for 240 "the end of it" process_gone "$unpack_pid"
t "the self-heal daemon heals all files" wait_for 240 "heal" nothing_pending "${bricks[@]}"
t "the replicas are equal" bricks_get_equal "${bricks[@]}"

# ---- without
mount_end "$kiln"
mount_kiln v "$kiln" --xlator-option='*.lock-new-files=off'
write_one "$kiln/k/written"
exec 7>"$kiln/k/late"
sleep 0.2
t_not "with the option off a file is not marked before it is written" is_marked k/late
exec 7>&-
mount_end "$stock"
t_here "the volume is unmounted" mount_end "$kiln"
