#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kilnd starts and supervises one self-heal daemon for all replicated volumes. The daemon heals the changes that a
# brick missed while its disk had failed, is restarted when it dies, follows options, and never runs twice.
# Covers: volumes/heal/healer.c, volumes/heal/heal-pending.c, volumes/verbs/verb-heal.c, heal/kiln-heal.c

. "$(dirname "$0")/../lib/kiln.sh"

mkdir -p "$T/b"

healers() {
    pgrep -x kiln-heal || true
}
has_healer() {
    [[ $(healers | wc -l) -eq 1 ]]
}
has_new_healer() {
    has_healer && [[ $(healers) != "$1" ]]
}
has_no_healer() {
    [[ -z $(healers) ]]
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
t "a replicated volume has a self-heal daemon" wait_for 120 "the self-heal daemon" has_healer
pid=$(healers)
t "status shows the self-heal daemon" wait_for 120 "the status" status_is r running
front_mount r "$T/mnt"
echo one >"$T/mnt/file"

break_disk "$T/b/1"
t "a brick with a failed disk goes offline" wait_for 240 "the brick to go" is_offline "$T/b/1"
wait_for 240 "the brick to be detached" is_detached
t "files are written without the brick" bash -c "mkdir '$T/mnt/dir' && echo two >'$T/mnt/dir/new' && echo more >>'$T/mnt/file'"
t "heal info names the changed files" wait_for 120 "the names" bash -c "'$KILN' heal r info | grep -qx /file && '$KILN' heal r info | grep -qx /dir"
is "$(ready)" "503 not ready: bricks serving 1, attaching 0, failed 0, detaching 0, missing 1" "kilnd is not ready without the brick"
rmdir "$T/b/1/.glusterfs/health_check"
t "kiln starts the brick again" kiln volume start r force
is "$(ready)" "200 ready: bricks serving 2, attaching 0, failed 0, detaching 0, missing 0" "kilnd is ready with the brick"
t "kiln requests a heal" kiln volume heal r
t "the daemon heals all files" wait_for 240 "the heal" nothing_is_pending
t "the replicas are equal" bricks_get_equal "$T/b/1" "$T/b/2"
is "$(kiln_json heal r statistics | grep -o '"type":"INDEX"' | sort -u)" '"type":"INDEX"' "the statistics have the crawl of the index"

# The removal on the disk leaves no entry in an index.
rm "$T/b/1/dir/new" "$(handle_of "$T/b/1" "$T/b/2/dir/new")"
t "kiln requests a full heal" kiln volume heal r full
t "the daemon brings back a file that vanished from a brick" wait_for 240 "the file" test -s "$T/b/1/dir/new"
is "$(cat "$T/b/1/dir/new")" two "the file has its old contents"
is "$(healers)" "$pid" "a single daemon has done all heals"

# Each replica accuses the other replica. The daemon heals nothing meanwhile, but judges.
kiln volume set r cluster.self-heal-daemon off
for i in 1 2; do
    setfattr -n "trusted.afr.r-client-$((2 - i))" -v 0x000000010000000000000000 "$T/b/$i/file"
    touch "$T/b/$i/.glusterfs/indices/xattrop/$(basename "$(handle_of "" "$T/b/$i/file")")"
done
t "heal info marks a file in split-brain" grep -A1 -x '/file - Is in split-brain' <<<"$(kiln heal r info)"
is "$(kiln heal r info split-brain | grep -cx /file)" 2 "heal info split-brain lists the file"
is "$(kiln heal r info summary | grep -cx 'Number of entries in split-brain: 1')" 2 "heal info summary counts the file"

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
t "heal info marks a name with two files" grep -qx '/dir/twice - Is in split-brain' <<<"$(kiln heal r info)"
is "$(kiln heal r info split-brain | grep -cx /dir/twice)" 2 "heal info split-brain lists the name"
t_not "heal info split-brain lists no other name" grep -q '/dir/new' <<<"$(kiln heal r info split-brain)"
is "$(kiln heal r info summary | grep -cx 'Number of entries in split-brain: 2')" 2 "heal info summary counts the name"

t_not "a heal is refused while the option is off" kiln volume heal r
t "the option is reset" kiln volume reset r cluster.self-heal-daemon

t "the file's copy of brick 1 is chosen" kiln volume heal r split-brain source-brick "$(hostname):$T/b/1" /file
t "the name's object of brick 2 is chosen" kiln volume heal r split-brain source-brick "$(hostname):$T/b/2" /dir/twice
t_not "an entry without split-brain is refused" kiln volume heal r split-brain bigger-file /dir/new
t "nothing is pending any more" wait_for 240 "the heal" nothing_is_pending
is "$(cat "$T/b/1/dir/twice")" 2 "the name leads to that object on brick 1"
t "the replicas are equal again" bricks_get_equal "$T/b/1" "$T/b/2"

pid=$(healers)
kill -KILL "$pid"
t "kilnd restarts a daemon that has died" wait_for 240 "another one" has_new_healer "$pid"
pid=$(healers)
front_kill
t "the daemon ends when kilnd is killed" wait_for 60 "the end" has_no_healer
front_start
t "the next kilnd starts a new daemon" wait_for 240 "another one" has_healer
kiln volume create s replica 2 "$T"/b/{3,4}
pid=$(healers)
t "kiln starts a second volume" kiln volume start s
is "$(healers)" "$pid" "the same process heals the second volume"
t "kiln stops the first volume" kiln volume stop r
is "$(healers)" "$pid" "the process stays for the second volume"
t "kiln stops the second volume" kiln volume stop s
is "$(healers)" "" "the process ends with the last volume"
t_not "kiln refuses the heal of an unknown volume" kiln volume heal nosuch
