#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A client dies in a rename that replaces a file of another subvolume, after the LINK or after the RENAME. The new name then
# hides another file's name on a brick. kiln-mount settles the name when it is looked up or its folder is listed, also after
# a restart of the brick, and a mount that begins settles all such names: once the name is removed, it does not come back.
# Complete renames leave no notes on the bricks. Of a replicated subvolume, one brick with the note is enough.
#
# A client dies after it has renamed a folder on one subvolume only. The name that is looked up first becomes the folder's
# name on all subvolumes, and the folder has no second name.
# Covers: xlators/cluster/distribute/settle.c, xlators/cluster/distribute/rename.c, xlators/features/index/index-names.c,
# xlators/cluster/distribute/heal-place.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

mnt=$T/mnt
volume_split=brick
volume_new v 3x1
volume_start v
read -ra bricks <<<"${volume_bricks[v]}"
mount_kiln v "$mnt" --attribute-timeout=0 --entry-timeout=0
mkdir "$mnt/f"
serial=0

# Sets REPLY to a new name in the folder, hashed to brick $1; there is no file of that name.
name_on() {
    while :; do
        REPLY=n$((serial += 1))
        echo probe >"$mnt/f/$REPLY"
        rm_after=$REPLY
        if [[ -e ${bricks[$1]}/f/$REPLY ]]; then
            rm "$mnt/f/$rm_after"
            return
        fi
        rm "$mnt/f/$rm_after"
    done
}

# Makes f/$1 with the text $2, on brick $3, for any hash of the name.
make_on() {
    local name=$1
    name_on "$3"
    echo "$2" >"$mnt/f/$REPLY"
    [[ $REPLY == "$name" ]] || mv "$mnt/f/$REPLY" "$mnt/f/$name"
}

at() { # BRICK
    echo "${daemon_port[${brick_daemon[${bricks[$1]}]}]}:${bricks[$1]}"
}

subvolume= # of the renamed file; v-client-$source if empty
dead_rename() { # STEP
    PYTHONPATH=$tests_dir/wire python3 -B "$tests_dir/distribute/dead_rename.py" "${subvolume:-v-client-$source}" "$1" f "$old" "$new" \
        "$(at "$source")" "$(at "$hashed")"
}

# A file on brick 0 or, in place, on brick 1; a replaced file on brick $1; the new name is hashed to brick 1.
begin() {
    hashed=1
    name_on "$source"
    old=$REPLY
    echo renamed >"$mnt/f/$old"
    name_on 1
    new=$REPLY
    if [[ $1 == 1 ]]; then
        echo replaced >"$mnt/f/$new"
    elif [[ $1 != none ]]; then
        make_on "$new" replaced "$1"
    fi
}

notes() {
    local brick
    for brick in "${bricks[@]}"; do
        ls "$brick/.glusterfs/indices/kiln-names" 2>/dev/null || true
    done
}

has_no_name() { # NAME
    ! stat "$mnt/f/$1" 2>/dev/null || return 1
    ! ls "$mnt/f" | grep -qx "$1" || return 1
    ! ls -d "${bricks[0]}/f/$1" "${bricks[1]}/f/$1" "${bricks[2]}/f/$1" 2>/dev/null
}

# ---- complete renames
source=0
for target in none 1 2 0; do
    begin "$target"
    mv -f "$mnt/f/$old" "$mnt/f/$new"
    is "$(cat "$mnt/f/$new")" renamed "a file is renamed over: $target"
    rm "$mnt/f/$new"
done
source=1
begin 2
mv -f "$mnt/f/$old" "$mnt/f/$new"
is "$(cat "$mnt/f/$new")" renamed "a file is renamed on its brick, over a file of another brick"
rm "$mnt/f/$new"
notes_are_gone() { [[ -z $(notes) ]]; }
wait_for 60 "the notes to go" notes_are_gone
t "complete renames leave no notes" notes_are_gone

# ---- a client dies after the LINK
source=0
for target in 1 2; do
    begin "$target"
    dead_rename link
    is "$(notes | wc -l)" 2 "the LINK leaves two notes (the replaced file is on brick $target)"
    is "$(cat "$mnt/f/$new")" replaced "the new name still leads to the replaced file"
    rm "$mnt/f/$new"
    t "the removed name does not come back" has_no_name "$new"
    is "$(cat "$mnt/f/$old")" renamed "the file has its old name"
    is "$(stat -c %h "$mnt/f/$old")" 1 "the file has no other name"
    t "the notes are gone" notes_are_gone
done

begin 1
dead_rename link
t "the name is listed once" test "$(ls -U "$mnt/f" | grep -cx "$new")" -eq 1
t "the listing removes the notes" notes_are_gone

begin 1
dead_rename link
daemon_stop "${brick_daemon[${bricks[0]}]}"
daemon_start "${brick_daemon[${bricks[0]}]}"
wait_for 120 "the brick to be back" test -e "$mnt/f/$old"
rm "$mnt/f/$old"
is "$(cat "$mnt/f/$new")" replaced "after a restart of the brick and the removal of the old name, the new name leads to the replaced file"
rm "$mnt/f/$new"
t "neither name comes back" has_no_name "$new"
t "the notes are gone" notes_are_gone

begin 1
dead_rename link
mount_kiln v "$T/next"
t "a mount that begins settles the name without a LOOKUP" wait_for 60 "the notes to go" notes_are_gone
t_not "the second name is gone from the file's brick" test -e "${bricks[0]}/f/$new"
is "$(cat "$mnt/f/$new" "$mnt/f/$old")" $'replaced\nrenamed' "both names lead to their own files"
mount_end "$T/next"

begin none
dead_rename link
echo another >"$mnt/f/$new"
is "$(cat "$mnt/f/$new")" another "a new file takes the name of a dead rename that replaces no file"
rm "$mnt/f/$new"
t "the removed name does not come back" has_no_name "$new"

# ---- a client dies after the RENAME
for target in 1 2; do
    begin "$target"
    dead_rename rename
    is "$(cat "$mnt/f/$new")" renamed "after the RENAME the new name leads to the renamed file (replaced file on brick $target)"
    rm "$mnt/f/$new"
    t "the removed name does not come back" has_no_name "$new"
    is "$(cat "$mnt/f/$old")" renamed "the file still has its old name"
    t "the notes are gone" notes_are_gone
done
source=1
begin 2
dead_rename inplace
is "$(notes | wc -l)" 1 "a RENAME in place leaves a note"
is "$(cat "$mnt/f/$new")" renamed "the new name leads to the renamed file"
rm "$mnt/f/$new"
t "the removed name does not come back" has_no_name "$new"
t "the notes are gone" notes_are_gone

# ---- a client dies in the rename of a folder
places() { # GFID: the names of the folder on each brick
    local brick
    for brick in "${bricks[@]}"; do
        find "$brick/f" -type d -exec getfattr -h --absolute-names -n trusted.gfid -e hex {} + 2>/dev/null |
            awk -v gfid="trusted.gfid=$1" '/^# file: / { file = $3 } $0 == gfid { sub(".*/", "", file); print file }'
    done | xargs
}

for first in old new; do
    for replaced in none empty; do
        case="the $first name is looked up first, replaced folder: $replaced"
        old=from-$first-$replaced new=to-$first-$replaced source=0
        touch "$mnt/f/$new" # its brick is the hashed one, which a rename changes first
        for hashed in 0 1 2; do
            [[ ! -e ${bricks[hashed]}/f/$new ]] || break
        done
        rm "$mnt/f/$new"
        mkdir "$mnt/f/$old"
        echo text >"$mnt/f/$old/file"
        [[ $replaced == none ]] || mkdir "$mnt/f/$new"
        gfid=$(getfattr --absolute-names -n trusted.gfid -e hex "${bricks[0]}/f/$old" | sed -n 's/^trusted.gfid=//p')
        dead_rename folder
        look=${!first}
        if [[ $replaced == empty ]]; then # of two folders of one name the hashed subvolume's is right, which may be either
            look=$old
        fi
        is "$(cat "$mnt/f/$look/file")" text "$case: the folder has its file"
        is "$(places "$gfid")" "$look $look $look" "$case: all bricks have the folder under this name alone"
        if [[ $replaced == empty ]]; then
            is "$(ls -A "$mnt/f/$new")" "" "$case: the folder that was to be replaced is empty"
            t "$case: the replaced folder is on all bricks" test -d "${bricks[0]}/f/$new" -a -d "${bricks[1]}/f/$new" -a -d "${bricks[2]}/f/$new"
            t "$case: the rename can be repeated" mv -T "$mnt/f/$old" "$mnt/f/$new"
            look=$new
        fi
        t "$case: the folder can be removed" rm -r "$mnt/f/$look"
    done
done
t_here "the volume is unmounted" mount_end "$mnt"

# ---- a brick of a replicated subvolume is down when the next mount begins
volume_new w 2x2
volume_start w
read -ra bricks <<<"${volume_bricks[w]}"
mount_kiln w "$mnt" --attribute-timeout=0 --entry-timeout=0
mkdir "$mnt/f"
source=1 hashed=2 subvolume=w-replicate-0
name_on "$source"
old=$REPLY
name_on "$hashed"
new=$REPLY
echo renamed >"$mnt/f/$old"
echo replaced >"$mnt/f/$new"
t_here "replicated: unmounted before the rename" mount_end "$mnt"
daemon_kill "${brick_daemon[${bricks[0]}]}"
dead_rename link
is "$(notes | wc -l)" 2 "replicated: the live brick has the two notes"
mount_kiln w "$mnt" --attribute-timeout=0 --entry-timeout=0
t "replicated: a mount without the dead brick settles the name" wait_for 60 "the notes to go" notes_are_gone
t_not "replicated: the second name is gone from the live brick" test -e "${bricks[1]}/f/$new"
mv "$mnt/f/$old" "$mnt/f/later"
daemon_start "${brick_daemon[${bricks[0]}]}"
is "$(cat "$mnt/f/$new")" replaced "replicated: the new name leads to the replaced file"
rm "$mnt/f/$new"
t "replicated: the removed name does not come back" has_no_name "$new"
is "$(stat -c %h "$mnt/f/later")" 1 "replicated: the file has one name"
t_here "the replicated volume is unmounted" mount_end "$mnt"
