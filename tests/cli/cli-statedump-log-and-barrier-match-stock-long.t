#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# `volume statedump` (whole, of some parts, into another directory), `volume log rotate`, `volume barrier` and
# `get-state` do and print the same with kilnd's bricks as with stock ones.
# Covers: daemon/statedump.c, daemon/statedump-options.c, xlators/features/barrier/barrier.c

. "$(dirname "$0")/../lib/kiln.sh"

twins_start 2x1
twins_mount
brick_log() { echo /var/log/glusterfs/bricks/"$(tr / - <<<"${T#/}")-bricks-$1.log"; }

# A complete statedump is renamed into place.
dumps_are() { [[ $(find "$2" -maxdepth 1 -name "*bricks-$1-[01].*.dump.*" | wc -l) == "$3" ]]; }
dumps_come() {
    local vol
    for vol in twin-a twin-b; do
        t_here "$vol: a dump of each brick is in $1" wait_for 120 "the dumps of $vol" dumps_are $vol "$1" 2
    done
}
t_twins "statedump" statedump VOL
dumps_come /run/gluster
for dump in /run/gluster/*bricks-twin-b-*.dump.*; do
    is "$(head -n 1 "$dump" | cut -d: -f1) $(tail -n 1 "$dump" | cut -d: -f1)" "DUMP-START-TIME DUMP-END-TIME" "the statedump is complete"
    is "$(stat -c %a "$dump")" 600 "only root may read the statedump"
done
rm -f /run/gluster/*.dump.*
t_twins "statedump of some parts" statedump VOL mem inode
dumps_come /run/gluster
t_twins "statedump of an unknown part" statedump VOL colours
mkdir "$T/dumps"
twins_run gluster --mode=script volume set VOL server.statedump-path "$T/dumps" >/dev/null
# The option comes with the volfile, so some dumps may still go to the first folder.
goes_there() {
    gl volume statedump "$1" >/dev/null
    [[ $(find "$T/dumps" -name "*bricks-$1-[01].*.dump.*" | wc -l) -ge 2 ]]
}
for vol in twin-a twin-b; do
    t_here "$vol: dumps go to server.statedump-path" wait_for 240 "the dumps" goes_there $vol
done

t_twins "log rotate" log VOL rotate
log_anew() {
    kill -HUP "$(cat /run/gluster/vols/"$1"/*"$1-0.pid")"
    [[ -e $(brick_log "$1-0") ]]
}
for vol in twin-a twin-b; do
    is "$(find /var/log/glusterfs/bricks -name "*$vol-?.log.[0-9]*" | wc -l)" 2 "$vol: the rotated logs have new names"
    t_here "$vol: the bricks write to new logs" wait_for 120 "the new log" log_anew $vol
done
t_twins "log rotate of one brick" log VOL rotate "$glusterd_host:BRICK-1"
t_twins "log rotate of an unknown brick" log VOL rotate "$glusterd_host:/nowhere"

t_twins "barrier disable of a disabled barrier" barrier VOL disable
t_twins "barrier enable" barrier VOL enable
t_twins "barrier enable of an enabled barrier" barrier VOL enable
# The brick executes a removal behind the barrier, and sends the reply at the barrier's end.
declare -A removal
for vol in twin-a twin-b; do
    touch "${twin_mnt[$vol]}/file"
    rm "${twin_mnt[$vol]}/file" &
    removal[$vol]=$!
done
gone() { [[ ! -e $T/bricks/$1-0/file && ! -e $T/bricks/$1-1/file ]]; }
for vol in twin-a twin-b; do
    wait_for 120 "the file to be gone from the bricks of $vol" gone $vol
    t "$vol: the brick executes the removal and holds back the reply" kill -0 "${removal[$vol]}"
done
t_twins "barrier disable" barrier VOL disable
for vol in twin-a twin-b; do
    t_here "$vol: the reply comes when the barrier is disabled" wait "${removal[$vol]}"
done
t_not "glusterd refuses a barrier that is neither on nor off" gl volume barrier twin-b perhaps

volume_part() {
    awk -F': ' -v name="$2" '
        /^Volume[0-9]+.Name: / { in_it = $2 == name; sub(/\..*/, "", $1); prefix = $1 }
        in_it && index($0, prefix ".") == 1' "$1" |
        python3 "$kiln_lib/cli_shape.py" | sed -E 's/^Volume[0-9]+\.//; s/: .*//' | grep -vE '^Brick[0-9]+\.(client[0-9]+|.*[Cc]lients)'
}
for what in "" detail; do
    t "get-state $what succeeds" gl get-state odir "$T" file "state$what" $what
    is "$(volume_part "$T/state$what" twin-b)" "$(volume_part "$T/state$what" twin-a)" "get-state $what prints the same for both volumes"
done
is "$(grep -cE 'Brick[12].status: Started' "$T/state")" 4 "get-state shows that the bricks have started"
