#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# `kiln volume check` finds no fault in bricks of a stopped volume that clients have used. It names a gfid or a handle
# that is missing or wrong, and changes nothing.
# Covers: volumes/bricks/brick-check.c

. "$(dirname "$0")/../lib/kiln.sh"

mkdir -p "$T/b"
handle_of() {
    local gfid
    gfid=$(getfattr --absolute-names -n trusted.gfid -e hex "$1" | sed -n 's/^trusted.gfid=0x//p')
    echo "$T/b/1/.glusterfs/${gfid:0:2}/${gfid:2:2}/${gfid:0:8}-${gfid:8:4}-${gfid:12:4}-${gfid:16:4}-${gfid:20}"
}
names() {
    grep -qxF "  $1" <<<"$(kiln volume check v || true)"
}

front_start
kiln volume create v "$T/b/1"
kiln volume start v
front_mount v "$T/mnt"
mkdir -p "$T"/mnt/a/b/c "$T/mnt/d" "$T/mnt/e"
echo text | tee "$T"/mnt/{file,other,third,a/deep} >/dev/null
ln "$T/mnt/file" "$T/mnt/link"
ln -s file "$T/mnt/symlink"
mkfifo "$T/mnt/fifo"
mv "$T/mnt/a/b" "$T/mnt/moved"
umount "$T/mnt"
t_not "check refuses a started volume" kiln volume check v
kiln volume stop v
t "check finds no fault in used bricks" kiln volume check v
is "$(kiln_json volume check v | grep -oE '"(bad|objects)":[0-9]+' | tr '\n' ' ')" '"bad":0 "objects":12 ' "check has examined every object"

setfattr -x trusted.gfid "$T/b/1/other"
rm "$(handle_of "$T/b/1/third")"
rm "$(handle_of "$T/b/1/moved/c")"
ln -sfn "$(readlink "$(handle_of "$T/b/1/d")")" "$(handle_of "$T/b/1/e")"
echo alien >"$T/b/1/a/alien"
before=$(find "$T/b/1" -printf '%p %i %m %s %C@\n' | sort)
t_not "check fails for damaged bricks" kiln volume check v
t "check names a file without a gfid" names "/other: it has no gfid"
t "check names a file without a handle" names "/third: it has no handle"
t "check names a folder without a handle" names "/moved/c: it has no handle"
t "check names a folder with a wrong handle" names "/e: its handle leads to another folder"
t "check names a file that no client has made" names "/a/alien: it has no gfid"
is "$(kiln_json volume check v | grep -oE '"bad":[0-9]+')" '"bad":5' "check reports no other object"
is "$(find "$T/b/1" -printf '%p %i %m %s %C@\n' | sort)" "$before" "check changes nothing"
