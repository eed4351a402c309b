#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Bricks of a dispersed volume are replaced by empty folders, and reset, while files are changed on a kiln-mount. kiln-heal fills the
# new bricks, fragments belong together, and the stock client reads the files. A command that would leave an object with fewer
# than K newest fragments is refused, and the brick that it names stays online.
# Covers: volumes/bricks/fragments.c, volumes/volumes-bricks.c, volumes/bricks/brick-marks.c

. "$(dirname "$0")/../lib/kiln.sh"

work=$(dirname "$(readlink -f "$0")")/disperse_work.py
mkdir -p "$T/b" "$T/copies" "$T/mnt" "$T/stock"
worker=
pending_counts() {
    kiln_json heal v info | grep -o '"count":[0-9]*' | tr '\n' ' '
}
nothing_is_pending() {
    [[ $(pending_counts) == '"count":0 "count":0 "count":0 ' ]]
}
something_is_pending() {
    [[ $(pending_counts) == *'"count":'[1-9]* ]]
}
work_begin() {
    python3 "$work" random "$T/mnt" "$T/copies" "$1" 0 >"$T/log/work$1.out" 2>&1 &
    worker=$!
}
# SEED
work_end() {
    kill -TERM "$worker"
    wait "$worker"
    grep -q '^well' "$T/log/work$1.out" || { tail -5 "$T/log/work$1.out" >&2; return 1; }
}
online() {
    kiln_json status v | grep -oE '"online":(true|false)' | sort | uniq -c | tr -s ' \n' ' '
}
# The number of names in the new brick's folder.
has_names() {
    [[ $(ls "$1/d" 2>/dev/null | wc -l) -eq 40 ]]
}

front_start
kiln volume create v disperse 3 redundancy 1 "$T"/b/{1,2,3}
kiln volume start v
t "kiln-mount mounts the volume" "$KILN_MOUNT" --hard=0 -l "$T/log/kiln-mount.log" localhost:/v "$T/mnt"
mkdir "$T/mnt/d"
for i in {1..40}; do head -c $((i * 700)) /dev/urandom >"$T/mnt/d/$i"; done
md5sum "$T"/mnt/d/* | sed "s, $T/mnt/, ," >"$T/sums"

now=(1 2 3)
for round in 0 1 2; do
    fresh=new$round
    work_begin "$round"
    t "replace-brick puts an empty folder in the place of brick ${now[round]} while files are changed" \
        kiln volume replace-brick v "$T/b/${now[round]}" "$T/b/$fresh" commit force
    now[round]=$fresh
    t "the names are made on the new brick" wait_for 60 "the names" has_names "$T/b/$fresh"
    t_here "the changes went on" work_end "$round"
    t "the heal ends" wait_for 60 "no pending object" nothing_is_pending
    t "the changed files are right" python3 "$work" same "$T/mnt" "$T/copies"
done
t "the other files are right" bash -c "cd '$T/mnt' && md5sum --quiet -c '$T/sums'"

work_begin 3
t "reset-brick takes a brick down" kiln volume reset-brick v "$T/b/new1" start
rm -r "$T/b/new1"
t "another brick of the set stays: too few would be online" fails_with "1 of the other bricks" \
    kiln volume reset-brick v "$T/b/new2" start
is "$(online)" ' 1 "online":false 2 "online":true ' "the brick that was not reset is online"
t "reset-brick takes the new folder of the same path" kiln volume reset-brick v "$T/b/new1" "$T/b/new1" commit force
t "the names are made on the brick" wait_for 60 "the names" has_names "$T/b/new1"
t_here "the changes went on" work_end 3
t "the heal ends" wait_for 60 "no pending object" nothing_is_pending

kiln volume set v cluster.self-heal-daemon off
t "a brick misses changes" kiln volume reset-brick v "$T/b/new0" start
python3 "$work" random "$T/mnt" "$T/copies" 4 40 >"$T/log/work4.out"
t "the brick comes back stale" kiln volume start v force
is "$(online)" ' 3 "online":true ' "all bricks are online"
t "a brick with newest fragments is not replaced" fails_with "fewer than 2 bricks have the newest fragments" \
    kiln volume replace-brick v "$T/b/new1" "$T/b/other"
is "$(online)" ' 3 "online":true ' "all bricks are online after the refused replacement"
t "reset-brick does not take it down" fails_with "fewer than 2 bricks" kiln volume reset-brick v "$T/b/new1" start
t "the files are right" python3 "$work" same "$T/mnt" "$T/copies"
t "the stale brick is replaced" kiln volume replace-brick v "$T/b/new0" "$T/b/last"
kiln volume reset v cluster.self-heal-daemon
t "objects wait, or the heal has ended" wait_for 60 "the names" has_names "$T/b/last"
t "the heal ends" wait_for 60 "no pending object" nothing_is_pending

umount "$T/mnt"
t "the stock client mounts the volume" mount -t glusterfs -o "log-file=$T/log/client.log" localhost:/v "$T/stock"
t "the stock client reads the changed files" python3 "$work" same "$T/stock" "$T/copies"
t "the stock client reads the other files" bash -c "cd '$T/stock' && md5sum --quiet -c '$T/sums'"
umount "$T/stock"
kiln volume stop v
t "all fragments belong together" python3 "$work" fragments 1 "$T"/b/{last,new1,new2}
