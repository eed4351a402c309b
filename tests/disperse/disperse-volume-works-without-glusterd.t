#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Without a glusterd, kiln creates dispersed volumes, and Kiln's and stock's clients mount them by name. A brick
# whose disk fails misses changes; kiln-heal heals the brick after its return, and heal info names the objects in
# between. A full heal makes objects that a brick has lost without an entry in any index. Verbs that are not built for
# dispersed volumes are refused by name.
# Covers: volumes/volume.c, volumes/volfile-text.c, heal/heal-volume.c, cli/volume.c

. "$(dirname "$0")/../lib/kiln.sh"

work=$(dirname "$(readlink -f "$0")")/disperse_work.py
mkdir -p "$T/b" "$T/copies"

# A folder where the health check writes its file; the check may put the file back in between.
break_disk() {
    until mkdir "$1/.glusterfs/health_check" 2>/dev/null; do
        rm -f "$1/.glusterfs/health_check"
    done
}
is_offline() {
    kiln_json status d | grep -qE "\"online\":false,\"path\":\"$1\""
}
pending_counts() {
    kiln_json heal d info | grep -o '"count":[0-9]*' | tr '\n' ' '
}
nothing_is_pending() {
    [[ $(pending_counts) == '"count":0 "count":0 "count":0 ' ]]
}
something_is_pending() {
    [[ $(pending_counts) == *'"count":'[1-9]* ]]
}

front_start
t "a dispersed volume is created" kiln volume create d disperse 3 redundancy 1 "$T"/b/{1,2,3}
t "info names the type" bash -c "'$KILN' volume info d | grep -w Disperse"
kiln volume create six disperse 6 "$T"/b/six{1,2,3,4,5,6}
t "a third of six bricks is redundant" bash -c "'$KILN' --json volume info six | tr -d ' \n' | grep '\"redundancy\":2'"
t "half of the bricks cannot be redundant" fails_with "redundancy of less than half" \
    kiln volume create no disperse 4 redundancy 2 "$T"/b/no{1,2,3,4}
t "disperse-data counts the other bricks" kiln volume create data disperse-data 2 redundancy 1 "$T"/b/data{1,2,3}
t "two sets are distributed" kiln volume create two disperse 3 redundancy 1 "$T"/b/two{1,2,3,4,5,6}
t "another number of bricks in a set is refused" fails_with "d is dispersed" \
    kiln volume add-brick d replica 4 "$T/b/new"

kiln volume set d storage.health-check-interval 1
t "the volume is started" kiln volume start d
mkdir "$T/mnt"
t "kiln-mount mounts the volume by name" "$KILN_MOUNT" --hard=0 -l "$T/log/kiln-mount.log" localhost:/d "$T/mnt"
python3 "$work" random "$T/mnt" "$T/copies" 5 60 >"$T/log/work.out"
break_disk "$T/b/2"
# kilnd detaches the brick 30 s after the failure, and status shows it offline before.
t "the brick with the failed disk is offline" wait_for 25 "the brick to be offline" is_offline "$T/b/2"
t "changes go on without the brick" python3 "$work" random "$T/mnt" "$T/copies" 6 60
t "heal info counts objects that wait" wait_for 120 "pending objects" something_is_pending
rmdir "$T/b/2/.glusterfs/health_check"
t "the brick comes back" kiln volume start d force
t "a heal is asked for" wait_for 120 "the heal to begin" kiln volume heal d
t "kiln-heal heals all objects" wait_for 240 "no pending object" nothing_is_pending

# ---- a full heal -----------------------------------------------------------------------------

# A brick loses objects that no index names, as after an exchange of its disk while its process runs.
mkdir -p "$T/mnt/deep/er"
echo text >"$T/mnt/deep/er/file"
head -c 300000 /dev/urandom >"$T/mnt/deep/large"
ln -s file "$T/mnt/deep/er/link"
setfattr -n user.key -v value "$T/mnt/deep/large"
sync -f "$T/mnt"
nothing_is_pending || wait_for 120 "no pending object" nothing_is_pending
lose() {
    local gfid
    gfid=$(getfattr --absolute-names -h -n trusted.gfid -e hex "$1" | sed -n 's/.*=0x//p')
    rm -rf "$1" "$T/b/2/.glusterfs/${gfid:0:2}/${gfid:2:2}/${gfid:0:8}-${gfid:8:4}-${gfid:12:4}-${gfid:16:4}-${gfid:20}"
}
kiln volume stop d
cp -a "$T/b/2/deep" "$T/before"
while read -r path; do
    lose "$path"
done < <(find "$T/b/2/deep" -depth)
kiln volume start d
full_is_over() { [[ $(kiln_json heal d statistics) == *'"full_due":[false]'* ]]; }
is_back() { [[ -e $T/b/2/deep/large && -L $T/b/2/deep/er/link ]] && cmp -s "$T/before/large" "$T/b/2/deep/large" && cmp -s "$T/before/er/file" "$T/b/2/deep/er/file"; }
t "the brick has lost a folder" test ! -e "$T/b/2/deep"
t "nothing waits for a heal" nothing_is_pending
t "a full heal is asked for" wait_for 120 "all bricks" kiln volume heal d full
t "the full heal ends" wait_for 240 "the full heal" full_is_over
t "the brick has the same fragments as before" wait_for 120 "the fragments" is_back
is "$(getfattr --absolute-names --only-values -n user.key "$T/b/2/deep/large")" value "the brick has the file's xattr again"
t "nothing waits for a heal after it" wait_for 120 "no pending object" nothing_is_pending
t "statistics show the full heal" bash -c "'$KILN' volume heal d statistics | grep -i full"
rm -r "$T/mnt/deep"
t "the files have their contents" python3 "$work" same "$T/mnt" "$T/copies"
mkdir "$T/stock"
t "the stock client mounts the volume by name" mount -t glusterfs localhost:/d "$T/stock"
t "the stock client reads the files" python3 "$work" same "$T/stock" "$T/copies"
umount "$T/stock"
umount "$T/mnt"
kiln volume stop d
t "all fragments belong together" python3 "$work" fragments 1 "$T"/b/{1,2,3}
front_stop
front_start
t "a kilnd that starts again knows the volume" bash -c "'$KILN' --json volume info d | tr -d ' \n' | grep '\"redundancy\":1'"
