#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Bricks are added to a volume, removed from it and replaced while clients have it mounted. The stock client and
# kiln-mount follow, new copies are healed, and a command that would lose files is refused and changes nothing.
# Covers: volumes/volumes-bricks.c, volumes/bricks/brick-plan.c, volumes/bricks/brick-jobs.c, volumes/bricks/brick-marks.c

. "$(dirname "$0")/../lib/kiln.sh"

mkdir -p "$T/b/full/folder"
# MNT: files in a new folder reach more than one set
spreads() {
    rm -rf "$1/spread"
    mkdir "$1/spread" && touch "$1"/spread/{1..30} || return 1
    [[ $(ls "$T/b/5/spread" | wc -l) -gt 0 && $(ls "$T/b/5/spread" | wc -l) -lt 30 ]]
}
same_on() {
    cmp "$T/b/$1/$3" "$T/b/$2/$3"
}
nothing_is_pending() {
    [[ $(kiln_json heal v info | grep -o '"count":0' | wc -l) -eq $(kiln_json info v | grep -o '"path"' | wc -l) ]]
}
refused() {
    local before pattern=$1 said status=0
    shift
    before=$(front_state)
    said=$(kiln "$@" 2>&1) || status=$?
    t "refused: kiln ${*//"$T"/}" grep -qE -- "$pattern" <<<"$said"
    [[ $status -ne 0 && $(front_state) == "$before" ]] || is "$status $(front_state)" "1 $before" "... and nothing has changed"
}

front_start
kiln volume create v "$T/b/1"
kiln volume start v
front_mount v "$T/stock"
mkdir "$T/kiln"
"$KILN_MOUNT" -N -l "$T/log/kiln-mount.log" localhost:/v "$T/kiln" >"$T/log/kiln-mount.out" 2>&1 </dev/null &
wait_for 240 "kiln-mount" mountpoint -q "$T/kiln"
mkdir "$T/stock/dir"
for i in {1..20}; do echo "text $i" >"$T/stock/dir/$i"; done

t "add-brick adds a second copy" kiln volume add-brick v replica 2 "$T/b/2"
t "the second copy is healed" wait_for 240 "the heal" same_on 1 2 dir/20
t "no object waits for heal" wait_for 240 "nothing to be pending" nothing_is_pending
t "the copies are equal" bricks_get_equal "$T/b/1" "$T/b/2"
t "the stock client writes to both copies" wait_for 240 "the stock client" bash -c "echo stock >'$T/stock/new-stock' && cmp '$T/b/1/new-stock' '$T/b/2/new-stock'"
t "kiln-mount writes to both copies" wait_for 240 "kiln-mount" bash -c "echo kiln >'$T/kiln/new-kiln' && cmp '$T/b/1/new-kiln' '$T/b/2/new-kiln'"

refused 'multiple of 2' add-brick v "$T/b/3"
refused '1 bricks to go from replica 2 to 4' add-brick v replica 4 "$T/b/3"
refused 'twice' add-brick v "$T/b/1" "$T/b/3"
refused 'not empty' replace-brick v "$T/b/1" "$T/b/full"
refused 'is no brick' replace-brick v "$T/b/9" "$T/b/10"
refused 'volume id|id' reset-brick v "$T/b/1" "$T/b/1" commit

kiln volume stop v
refused 'not started' replace-brick v "$T/b/1" "$T/b/3"
kiln volume start v
rm -r "$T/b/2"
t "reset-brick stops a brick whose folder is gone" kiln volume reset-brick v "$T/b/2" start
t "files are written without the brick" wait_for 240 "a write" bash -c "echo more >'$T/stock/dir/more'"
t "replace-brick puts another folder in the brick's place" kiln volume replace-brick v "$T/b/2" "$T/b/3" commit force
t "the new folder is healed" wait_for 240 "the heal" same_on 1 3 dir/more
t "no object waits for heal" wait_for 240 "nothing to be pending" nothing_is_pending
t "both copies are equal after the replacement" bricks_get_equal "$T/b/1" "$T/b/3"
t "the stock client writes to both copies after the replacement" wait_for 240 "the stock client" bash -c "echo stock >'$T/stock/second' && cmp '$T/b/1/second' '$T/b/3/second'"
t "kiln-mount writes to both copies after the replacement" wait_for 240 "kiln-mount" bash -c "echo kiln >'$T/kiln/third' && cmp '$T/b/1/third' '$T/b/3/third'"

t "add-brick adds a second set, and says that new folders use the set" grep -q 'made from now on use them' <<<"$(kiln volume add-brick v "$T/b/4" "$T/b/5")"
t "new folders of the stock client use the second set" wait_for 240 "the stock client" spreads "$T/stock"
t "new folders of kiln-mount use the second set" wait_for 240 "kiln-mount" spreads "$T/kiln"
refused 'holds files' remove-brick v "$T/b/4" "$T/b/5"
refused 'whole sets' remove-brick v "$T/b/4"
refused 'has not drained' remove-brick v "$T/b/4" "$T/b/5" commit
rm -r "$T/stock/spread"
t "remove-brick removes a set without files" kiln volume remove-brick v "$T/b/4" "$T/b/5" force
t "the stock client makes files afterwards" wait_for 240 "the stock client" bash -c "mkdir -p '$T/stock/after' && touch '$T'/stock/after/{1..30}"
t "kiln-mount makes files afterwards" wait_for 240 "kiln-mount" bash -c "mkdir -p '$T/kiln/later' && touch '$T'/kiln/later/{1..30} '$T'/kiln/dir/{100..130}"
t "remove-brick removes a copy" kiln volume remove-brick v replica 1 "$T/b/3" force
t "the files are present after the removal" wait_for 240 "the file" bash -c "[[ \$(cat '$T/stock/dir/7') == 'text 7' ]]"
t "new files are written after the removal" wait_for 240 "a write" bash -c "echo last >'$T/stock/last' && grep -qx last '$T/b/1/last'"
t_here "kilnd stops" front_stop
t_here "kilnd starts again" front_start
is "$(kiln_json info v | grep -oE '"path":"[^"]*"')" "\"path\":\"$T/b/1\"" "kilnd keeps the volume with one brick"
t "the brick serves the volume" wait_for 240 "the file" grep -qx last "$T/stock/last"
