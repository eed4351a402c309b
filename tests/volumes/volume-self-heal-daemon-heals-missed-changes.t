#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kilnd starts and supervises a stock self-heal daemon for a replicated volume. The daemon heals the changes that a
# brick missed while its disk had failed, is restarted when it dies, follows options, and never runs twice.
# Covers: volumes/heal-daemon.c, volumes/heal-pending.c

. "$(dirname "$0")/../lib/kiln.sh"

mkdir -p "$T/b"

healers() {
    pgrep -f -- "-f $T/state/heal/$1.vol" || true
}
has_healer() {
    [[ $(healers "$1" | wc -l) -eq 1 ]]
}
has_new_healer() {
    has_healer "$1" && [[ $(healers "$1") != "$2" ]]
}
# BRICK FILE: the handle of a file, as another brick says
handle_of() {
    local gfid
    gfid=$(getfattr --absolute-names -n trusted.gfid -e hex "$2" | sed -n 's/^trusted.gfid=0x//p')
    echo "$1/.glusterfs/${gfid:0:2}/${gfid:2:2}/${gfid:0:8}-${gfid:8:4}-${gfid:12:4}-${gfid:16:4}-${gfid:20}"
}
status_is() {
    kiln_json status "$1" | grep -q "\"state\":\"$2\""
}
# A folder where the health check writes its file; the check may put the file back in between.
break_disk() {
    until mkdir "$1/.glusterfs/health_check" 2>/dev/null; do
        rm -f "$1/.glusterfs/health_check"
    done
}
is_offline() {
    kiln_json status r | grep -qE "\"online\":false,\"path\":\"$1\""
}
ready() {
    curl -s -w '%{http_code} ' -o "$T/ready" --unix-socket /run/kiln/kilnd.socket http://kilnd/readyz
    cat "$T/ready"
}
is_detached() {
    ready | grep -q 'failed 0, detaching 0'
}
nothing_is_pending() {
    [[ $(kiln_json heal r info | grep -o '"count":0' | wc -l) -eq 2 ]]
}

front_start
kiln volume create r replica 2 "$T"/b/{1,2}
kiln volume set r storage.health-check-interval 1
kiln volume start r
t "a replicated volume has a self-heal daemon" wait_for 120 "the self-heal daemon" has_healer r
pid=$(healers r)
t "status shows it" wait_for 120 "the status" status_is r running
front_mount r "$T/mnt"
echo one >"$T/mnt/file"

break_disk "$T/b/1"
t "a brick whose disk fails goes" wait_for 240 "the brick to go" is_offline "$T/b/1"
wait_for 240 "the brick to be detached" is_detached
t "files are written without it" bash -c "mkdir '$T/mnt/dir' && echo two >'$T/mnt/dir/new' && echo more >>'$T/mnt/file'"
t "heal info names them" wait_for 120 "the names" bash -c "'$KILN' heal r info | grep -qx /file && '$KILN' heal r info | grep -qx /dir"
is "$(ready)" "503 not ready: bricks serving 1, attaching 0, failed 0, detaching 0, missing 1" "kilnd is not ready without it"
rmdir "$T/b/1/.glusterfs/health_check"
t "the brick is started again" kiln volume start r force
is "$(ready)" "200 ready: bricks serving 2, attaching 0, failed 0, detaching 0, missing 0" "and kilnd is ready"
t "heal is asked for" kiln volume heal r
t "all of it is healed" wait_for 240 "the heal" nothing_is_pending
t "the replicas are equal" bricks_get_equal "$T/b/1" "$T/b/2"
is "$(kiln_json heal r statistics | grep -o '"type":"INDEX"' | sort -u)" '"type":"INDEX"' "statistics tell when it has looked"

# The removal on the disk leaves no entry in an index.
rm "$T/b/1/dir/new" "$(handle_of "$T/b/1" "$T/b/2/dir/new")"
t "all of the volume can be compared" kiln volume heal r full
t "what has vanished from a brick comes back" wait_for 240 "the file" test -e "$T/b/1/dir/new"
is "$(cat "$T/b/1/dir/new")" two "as it was"
is "$(healers r)" "$pid" "and all this by one daemon, which was not started anew"

# Each replica accuses the other replica. The daemon is stopped meanwhile, because it would heal a file with only
# one of the two accusations.
kill -STOP "$pid"
for i in 1 2; do
    setfattr -n "trusted.afr.r-client-$((2 - i))" -v 0x000000010000000000000000 "$T/b/$i/file"
    touch "$T/b/$i/.glusterfs/indices/xattrop/$(basename "$(handle_of "" "$T/b/$i/file")")"
done
t "split-brain is marked" grep -A1 -x '/file - Is in split-brain' <<<"$(kiln heal r info)"
is "$(kiln heal r info split-brain | grep -cx /file)" 2 "and listed alone"
is "$(kiln heal r info summary | grep -cx 'Number of entries in split-brain: 1')" 2 "and counted"

# Two different files of one name, as bricks have them after each was alone.
for i in 1 2; do
    gfid=0000000$i-1111-4111-8111-111111111111
    echo "$i" >"$T/b/$i/dir/twice"
    setfattr -n trusted.gfid -v "0x${gfid//-/}" "$T/b/$i/dir/twice"
    mkdir -p "$T/b/$i/.glusterfs/00/00"
    ln "$T/b/$i/dir/twice" "$T/b/$i/.glusterfs/00/00/$gfid"
    setfattr -n "trusted.afr.r-client-$((2 - i))" -v 0x000000000000000000000001 "$T/b/$i/dir"
    touch "$T/b/$i/.glusterfs/indices/xattrop/$(basename "$(handle_of "" "$T/b/$i/dir")")"
done
t "so is a name of two files" grep -qx '/dir/twice - Is in split-brain' <<<"$(kiln heal r info)"
is "$(kiln heal r info split-brain | grep -cx /dir/twice)" 2 "it is listed with what has no good copy"
t_not "and not with other names" grep -q '/dir/new' <<<"$(kiln heal r info split-brain)"
is "$(kiln heal r info summary | grep -cx 'Number of entries in split-brain: 2')" 2 "and counted"

kill -KILL "$pid"
t "a daemon that dies is started again" wait_for 240 "another one" has_new_healer r "$pid"
t "an option ends it" kiln volume set r cluster.self-heal-daemon off
is "$(healers r)" "" "it has gone"
t "and brings it back" kiln volume reset r cluster.self-heal-daemon
t "it is there again" wait_for 240 "the self-heal daemon" has_healer r
pid=$(healers r)
front_kill
t "it outlives a kilnd that is killed" kill -0 "$pid"
front_start
t "the next kilnd has one of its own" wait_for 240 "another one" has_new_healer r "$pid"
is "$(healers r | wc -l)" 1 "and there is one alone"
t "with the volume it goes" kiln volume stop r
is "$(healers r)" "" "at once"
t_not "what is not replicated is not healed" kiln volume heal nosuch
