#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount keeps the lock on an object's attributes for some milliseconds, for the next attribute change (client
# 3.22), so unpacking an archive takes one lock for times, owner and mode. Another client that changes the attributes
# or removes the object does not wait for the end of that time, nor does a client that comes after kiln-mount was
# killed. An object that kiln-mount removes itself leaves no lock on the bricks. Concurrent changes by both clients,
# with a brick that dies and comes back meanwhile, leave all replicas equal.
# Covers: xlators/cluster/replicate/hold.c, xlators/cluster/replicate/metadata.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/measure.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

files=40
work=$(dirname "$0")/attributes_work.py
kiln=$T/kiln stock=$T/stock
volume_split=brick
volume_new v 2x2
volume_start v
read -ra bricks <<<"${volume_bricks[v]}"
mount_volume v "$stock" plain --attribute-timeout=0 --entry-timeout=0

# ---- how many locks
# With --compound=off: else the lock on the data of a new file goes by gfid, in the message of its CREATE, and counts, too.
locks_of() {
    calls_take "${mount_pid[$kiln]}" "$T/calls"
    awk '$1 == "inodelk" { print $2 }' "$T/calls"
}

# Stock bricks write their dumps elsewhere.
dumps=$T
[[ $BRICKD == kiln ]] || dumps=/run/gluster
locks_kept() {
    local name
    for name in $(volume_daemons v); do
        cat "$(dump_take "${daemon_pid[$name]}" "$dumps")"
    done | grep -c 'inodelk.*ACTIVE'
}

has_no_locks() {
    [[ $(locks_kept) -eq 0 ]]
}

# Sets `locks` to the number of calls so far, when the bricks have no lock: the client sends unlocks after its reply.
locks_settle() {
    wait_for 240 "the end of all locks" has_no_locks
    locks=$(locks_of)
    : "${locks:=0}"
}

# Sets `locks`: the lock calls for the changes of COUNT files in a new folder.
rounds=0
unpack() {
    local before
    rounds=$((rounds + 1))
    mkdir "$kiln/d$rounds"
    locks_settle
    before=$locks
    python3 "$work" unpack "$kiln/d$rounds" "$files"
    locks_settle
    locks=$((locks - before))
}

shares() {
    unpack && [[ $locks -le $((6 * files)) ]]
}

mount_kiln v "$kiln" --compound=off
# On a machine with much to do the lock may be given back before the next change comes.
t_here "three changes of a file's attributes share a lock" wait_for 240 "changes to share a lock" shares
diag "$locks INODELKs and unlocks for $files files"
is "$(python3 "$work" show "$kiln/d$rounds")" "$(python3 "$work" show "$stock/d$rounds")" "the stock mount sees the same attributes"
mount_end "$kiln"
mount_kiln v "$kiln" --compound=off --xlator-option='*.metadata-lock-kept-ms=0'
unpack
# A lock that reaches a brick before the unlock of the last change is refused there, and asked for again.
t "with the option off each change locks and unlocks on both replicas" test "$locks" -ge $((12 * files))
mount_end "$kiln"

# ---- who waits
mount_kiln v "$kiln" --compound=off --attribute-timeout=0 --entry-timeout=0 --xlator-option='*.metadata-lock-kept-ms=60000'
mkdir "$kiln/k" "$kiln/k/folder"
touch "$kiln/k/"{mode,gone,over,other,killed}

# Succeeds when a command that must not take a minute takes less than 40 s. SECONDS counts whole seconds.
soon() {
    local start=$SECONDS
    "$@" && [[ $((SECONDS - start)) -lt 40 ]]
}

chmod 600 "$kiln/k/"*
t "a stock mount changes a mode whose lock is kept without waiting" soon chmod 611 "$stock/k/mode"
is "$(stat -c %a "$kiln/k/mode")" 611 "kiln-mount sees the new mode"
t "a stock mount removes a file whose lock is kept without waiting" soon rm "$stock/k/gone"
t "a stock mount renames one such file over another without waiting" soon mv "$stock/k/other" "$stock/k/over"
t "a stock mount removes a directory whose lock is kept without waiting" soon rmdir "$stock/k/folder"
chmod 644 "$kiln/k/killed"
mount_kill "$kiln"
t "a killed mount leaves no lock" soon chmod 655 "$stock/k/killed"
# The bricks mark the object dirty, because the dead client held its lock (features/locks/unfinished.c).
accusations() { getfattr --absolute-names -d -m 'trusted.afr.*-client' -e hex "${bricks[@]/%//k/killed}" 2>/dev/null; }
is "$(accusations | grep -cE '=0x0*[1-9a-f]')" 0 "a killed mount leaves no accusation"
mount_kiln v "$kiln" --compound=off --attribute-timeout=0 --entry-timeout=0 --xlator-option='*.metadata-self-heal=on'
healed_by_lookup() { ls -l "$kiln/k" >/dev/null && nothing_pending "${bricks[@]}"; }
t_here "the next lookup of each object by a mount that heals leaves no heal pending" wait_for 60 "the heal" healed_by_lookup
mount_end "$kiln"

mount_kiln v "$kiln" --compound=off --attribute-timeout=0 --entry-timeout=0 --xlator-option='*.metadata-lock-kept-ms=6000'
touch "$kiln/k/"{mine,new}
mkdir "$kiln/k/folder"
chmod 700 "$kiln/k/"{mine,over,folder}
rm "$kiln/k/mine"
mv "$kiln/k/new" "$kiln/k/over"
rmdir "$kiln/k/folder"
t_not "locks of removed objects are kept for some time" has_no_locks
t "locks of removed objects are released" wait_for 240 "no locks" has_no_locks
mount_end "$kiln"

# ---- both at once
mount_kiln v "$kiln" --compound=off --attribute-timeout=0 --entry-timeout=0
mkdir "$kiln/s" "$kiln/s/folder"
touch "$kiln/s/"{one,two,three}

both_storm() {
    local pid status=0
    python3 "$work" storm "$stock/s" stock "$1" >"$T/log/storm.stock" 2>&1 &
    pid=$!
    python3 "$work" storm "$kiln/s" kiln "$1" >"$T/log/storm.kiln" 2>&1 || status=1
    wait "$pid" || status=1
    return "$status"
}

replicas_same() {
    local i
    for i in 0 2; do
        diff <(python3 "$work" show "${bricks[i]}/s") <(python3 "$work" show "${bricks[i + 1]}/s") || return 1
    done
}
t "both mounts change attributes of the same objects concurrently" both_storm 200
t "the replicas have the same attributes" replicas_same
is "$(python3 "$work" show "$kiln/s")" "$(python3 "$work" show "$stock/s")" "both mounts see the same attributes"

# ---- a brick that dies and comes back
storm_ends() {
    grep -q done "$T/storm" || process_gone "$storm_pid"
}
python3 "$work" storm "$kiln/s" kiln 100000 >"$T/storm" 2>&1 &
storm_pid=$!
sleep 0.3
daemon_kill "${brick_daemon[${bricks[1]}]}"
daemon_kill "${brick_daemon[${bricks[3]}]}"
sleep 0.3
t_not "changes continue without two bricks" storm_ends
daemon_start "${brick_daemon[${bricks[1]}]}"
daemon_start "${brick_daemon[${bricks[3]}]}"
wait_for 240 "all children" children_up 4 "$kiln" /run/gluster
t_not "changes continue after the bricks returned" storm_ends
kill -TERM "$storm_pid"
wait_for 240 "the storm's end" process_gone "$storm_pid"
shd_start v
t "the self-heal daemon heals all changes" wait_for 240 "heal" nothing_pending "${bricks[@]}"
t "the replicas have the same attributes after the heal" wait_for 240 "equal replicas" replicas_same
mount_end "$stock"
t_here "the volume is unmounted" mount_end "$kiln"
