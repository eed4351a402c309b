#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# features.trash: removed files lie in .trashcan under the same names and with the same modes as with a stock brick,
# with each option set while the bricks serve. Then the script checks behaviour that only Kiln has: no user can read
# through the trash a file that the user could not read before, files removed in the same second do not replace each
# other, and a full disk does not prevent removal. Stock bricks and Kiln's bricks can use each other's trash.
# Covers: xlators/features/trash/trash.c, xlators/storage/posix/entry/trash.c

. "$(dirname "$0")/../lib/kiln.sh"

as_user() { setpriv --reuid 1234 --regid 1234 --clear-groups -- "$@"; }
# The contents of a brick, with masked times.
tree() {
    (cd "$1" && find . -mindepth 1 -path ./.glusterfs -prune -o -printf '%p %M %U:%G %y%s\n') |
        sed -E 's/_2[0-9]{3}-[0-9]{2}-[0-9]{2}_[0-9]{6}_\+0000/_TIME/; s/ d[0-9]+$/ d/' | sort
}
same_trees() { diff <(tree "$T/bricks/twin-a-0") <(tree "$T/bricks/twin-b-0"); }
# The bricks have the option when a removed file ends up in the expected folder.
set_both() { twins_run gl volume set VOL "$@" >/dev/null; }
acts() {
    local vol
    for vol in twin-a twin-b; do
        wait_for 60 "$vol to act" in_trash_of "$vol" "$1"
    done
}
# Removes a new file and succeeds when the file is in the folder $2. A file that was removed before the brick had a new name of the
# folder is there, too.
in_trash_of() {
    local probe=probe$((++probes))
    echo probe >"${twin_mnt[$1]}/$probe"
    rm "${twin_mnt[$1]}/$probe"
    compgen -G "$T/bricks/$1-0/$2/${probe}_*" || return 1
    rm -f "$T/bricks/$1-0/$2"/probe*_*
}
probes=0

twins_start 1x1
twins_mount
# A stock brick acknowledges the removal of a file from before without removing the file, until the file is looked
# up again.
echo "from before" >"$T/mnt-b/before"
set_both features.trash on
acts .trashcan
t "the trash folder exists and is empty" diff <(tree "$T/bricks/twin-a-0") <(tree "$T/bricks/twin-b-0" | grep -v before)
rm "$T/mnt-b/before"
if [[ $BRICKD == kiln ]]; then
    is "$(cat "$T"/bricks/twin-b-0/.trashcan/before_*)" "from before" "a removed file from before is kept"
fi
rm -f "$T"/bricks/twin-b-0/{,.trashcan/}before*
twins_run bash -c 'cd MNT && mkdir -p d/e shut/in other && chmod 700 shut && chown 1234:1234 shut && for i in {1..9}; do echo text$i >d/e/f$i; done &&
    echo x >shut/in/x && echo root >top && cp top other/o && chmod 640 d/e/f1 && chown 77:78 d/e/f1'
# Names counted in each folder, which stock bricks go by.
counts() {
    (cd "$T/bricks/$1-0" && find . -path ./.glusterfs -prune -o -not -type d -print | sort | while read -r file; do
        echo "$file $(getfattr -h -d -m trusted.pgfid -e hex "$file" 2>/dev/null | grep -o '=.*' | sort | xargs)"
    done)
}
twins_run bash -c 'cd MNT && echo 1 >c1 && ln c1 c2 && ln c1 d/c3 && ln c1 d/c4 && mv c2 other/c2 && rm d/c4 && ln -s x d/cs && mv d/cs cs'
is "$(counts twin-b)" "$(counts twin-a)" "removed names are counted as with stock"
twins_run bash -c 'cd MNT && rm d/e/f1 d/e/f2 shut/in/x top other/o && ln d/e/f3 d/e/l3 && rm d/e/l3 && ln -s nowhere s && rm s && mkfifo p && rm p &&
    touch empty && rm empty && truncate -s 2 d/e/f4 && echo new >d/e/f5 && echo 1 >n1 && echo 2 >n2 && mv n1 n2'
t "the trash of both bricks has the same files" same_trees
t "the trash has eight files" test "$(tree "$T/bricks/twin-b-0" | grep -c _TIME)" -eq 8
gfids() { getfattr -n trusted.gfid -e hex "$T/bricks/$1-0/.trashcan" 2>/dev/null | tail -2; }
is "$(gfids twin-b)" "$(gfids twin-a)" "the trash folder has stock's gfid"
for command in "rmdir .trashcan" "mv .trashcan x" "mkdir .trashcan" "mv -T other .trashcan"; do
    t_not "stock refuses: $command" bash -c "cd '$T/mnt-a' && $command"
    t_not "Kiln refuses: $command" bash -c "cd '$T/mnt-b' && $command"
done
t "a removal inside of the trash succeeds" twins_run bash -c 'cd MNT && mkdir .trashcan/mine && touch .trashcan/mine/a && rm .trashcan/mine/a && rmdir .trashcan/mine'
t "the file removed inside of the trash is gone" same_trees

set_both features.trash-eliminate-path d/e,/other/
set_both features.trash-max-filesize 1MB
set_both features.trash-dir bin
acts bin
twins_run bash -c 'cd MNT && mkdir -p d/ex other/deep && rm d/e/f3 && touch other/deep/x d/ex/x && rm other/deep/x d/ex/x &&
    head -c 1048576 /dev/zero >fits && head -c 1048577 /dev/zero >large && rm fits large'
t "both bricks act alike on another folder, a limit and excluded folders" same_trees
is "$(ls "$T/bricks/twin-b-0/bin/d")" "$(printf 'e\nex')" "the trash has only the expected folders"
set_both features.trash-dir .trashcan
set_both features.trash-internal-op on
acts .trashcan
twins_run gl volume stop VOL >/dev/null
twins_run gl volume start VOL >/dev/null
for vol in twin-a twin-b; do
    wait_for 120 "the bricks" bricks_all_online "$vol" 1
    wait_for 120 "the mount" gl_mount_reaches "${twin_mnt[$vol]}" "$vol" 1x1
done
acts .trashcan
t "both bricks have a folder for removals by heals after a restart" same_trees
t_not "the folder for removals by heals cannot be removed" twins_run rmdir MNT/.trashcan/internal_op
twins_run gl volume reset VOL features.trash-eliminate-path >/dev/null

if [[ $BRICKD == kiln ]]; then
    b=$T/bricks/twin-b-0 m=$T/mnt-b
    acts .trashcan
    # -- who may see it
    mkdir "$m/open" && echo a >"$m/open/a" && rm "$m/open/a"
    chmod 700 "$m/open" && echo secret >"$m/open/secret" && rm "$m/open/secret"
    t "a file removed from a closed folder is in the trash" compgen -G "$b/.trashcan/open/secret_*"
    t_not "a user cannot read the file of a closed folder" as_user cat "$(echo "$b"/.trashcan/open/secret_*)"
    seen_in() { as_user ls "$m/.trashcan/$1"; }
    # A folder of the trash has no gfid for its first second; clients do not see it.
    t "root reads the file of a closed folder through the mount" wait_for 60 "the folder" bash -c "cat '$m'/.trashcan/open/secret_*"
    t_not "a user cannot read the file of a closed folder through the mount" seen_in open
    mkdir "$m/all" && chmod 1777 "$m/all" && as_user bash -c "echo mine >'$m/all/mine' && rm '$m/all/mine'"
    t "a user reads the file of a readable folder" wait_for 60 "the folder" bash -c "cat '$m'/.trashcan/all/mine_*"
    t_not "a user cannot make a file in the trash" as_user touch "$m/.trashcan/all/new"
    t_not "a user cannot remove a file from the trash" as_user bash -c "rm -f '$m'/.trashcan/all/mine_*"
    # -- the same name again and again
    for i in 1 2 3 4; do
        echo "$i" >"$m/again"
        rm "$m/again"
    done
    is "$(cat "$b"/.trashcan/again_* | sort | xargs)" "1 2 3 4" "all removed files of one name are kept"
    name=$(printf 'n%.0s' {1..255})
    echo long >"$m/$name"
    t "a file with a name of 255 bytes is removed" rm "$m/$name"
    is "$(cat "$b"/.trashcan/nnn*)" long "the file with a name of 255 bytes is kept"
    # -- kiln-mount
    mkdir "$T/mnt-k"
    t "kiln-mount mounts the volume" "$KILN_MOUNT" -s "$glusterd_host" --volfile-id twin-b -l "$T/log/kiln-mount.log" "$T/mnt-k"
    echo k >"$T/mnt-k/by-kiln" && rm "$T/mnt-k/by-kiln"
    is "$(cat "$T"/mnt-k/.trashcan/by-kiln_*)" k "a file removed through kiln-mount is kept"
    t_not "kiln-mount cannot remove the trash folder" rmdir "$T/mnt-k/.trashcan"
    umount "$T/mnt-k"
    # -- off, at once
    gl volume set twin-b features.trash off >/dev/null
    is_gone() { ! in_trash_of twin-b .trashcan; }
    t_here "the brick keeps no files with the option off, without a restart" wait_for 60 "the brick to be told" is_gone
    gl volume set twin-b features.trash on >/dev/null
    t_here "the brick keeps files with the option on again" wait_for 60 "the brick to be told" in_trash_of twin-b .trashcan
    # -- a full disk
    mkdir -p "$T/bricks/full-0"
    mount -t tmpfs -o nr_inodes=400,size=64m kiln-test "$T/bricks/full-0"
    gl_create full 1x1 >/dev/null
    gl volume set full features.trash on >/dev/null
    gl volume start full >/dev/null
    wait_for 120 "the brick" bricks_all_online full 1
    gl_mount full "$T/mnt-full"
    mkdir "$T/mnt-full/d" && echo x >"$T/mnt-full/d/x"
    i=0
    while touch "$T/bricks/full-0/filler$((++i))" 2>/dev/null; do :; done
    t "a file is removed when the disk has no inode left" rm "$T/mnt-full/d/x"
    t_not "the file is gone from the disk without inodes" compgen -G "$T/bricks/full-0/d/x"
    t "the log says that the file cannot be kept" grep -q 'cannot be kept.*No space' /var/log/glusterfs/bricks/*-full-0.log
    umount "$T/mnt-full"
    gl volume stop full >/dev/null
    umount "$T/bricks/full-0"
    # -- a folder that a user has made before
    gl_create u 1x1 >/dev/null
    gl volume start u >/dev/null
    wait_for 120 "the brick" bricks_all_online u 1
    chmod 1777 "$T/bricks/u-0"
    gl_mount u "$T/mnt-u"
    as_user bash -c "mkdir '$T/mnt-u/.trashcan' '$T/mnt-u/.trashcan/d' && chmod 777 '$T/mnt-u/.trashcan'"
    mkdir "$T/mnt-u/d"
    gl volume set u features.trash on >/dev/null
    is_roots() { [[ $(stat -c '%u %a' "$T/bricks/u-0/.trashcan") == "0 755" ]]; }
    t_here "a user's folder in the place of the trash becomes root's" wait_for 60 "the brick to be told" is_roots
    echo x >"$T/mnt-u/d/x" && echo y >"$T/mnt-u/y" && rm "$T/mnt-u/d/x" "$T/mnt-u/y"
    is "$(ls "$T/bricks/u-0/.trashcan/d")" "" "the brick does not use the user's folder inside of the trash"
    t "the brick uses the trash folder" compgen -G "$T/bricks/u-0/.trashcan/y_*"
    umount "$T/mnt-u"
    gl volume stop u >/dev/null
    # -- replicas agree
    gl_create r 1x2 >/dev/null
    gl volume set r features.trash on >/dev/null
    gl volume start r >/dev/null
    wait_for 120 "the bricks" bricks_all_online r 2
    gl_mount r "$T/mnt-r"
    wait_for 120 "the mount" gl_mount_reaches "$T/mnt-r" r 1x2
    mkdir "$T/mnt-r/d"
    for i in {1..20}; do echo "$i" >"$T/mnt-r/d/$i"; done
    rm "$T"/mnt-r/d/*
    is "$(ls "$T/bricks/r-1/.trashcan/d")" "$(ls "$T/bricks/r-0/.trashcan/d")" "both replicas keep the same names"
    is "$(ls "$T/bricks/r-0/.trashcan/d" | wc -l)" 20 "both replicas keep all names"
    is "$(gl volume heal r info | grep -c 'Number of entries: 0')" 2 "no heal is pending"
    umount "$T/mnt-r"
    gl volume stop r >/dev/null
    # -- stock goes on with it, and back
    umount "$T/mnt-a"
    gl volume stop twin-a >/dev/null
    none_is_up() { [[ -z $(glusterd_brick_pids) ]]; }
    for kind in stock kilnd; do
        gl volume stop twin-b >/dev/null
        wait_for 60 "its brick to end" none_is_up
        use_kiln "$([[ $kind == stock ]] && echo off || echo on)" >/dev/null
        gl volume start twin-b >/dev/null
        wait_for 120 "the brick" bricks_all_online twin-b 1
        wait_for 120 "the mount" gl_mount_reaches "$m" twin-b 1x1
        is "$(glusterd_brick_kinds)" "$kind" "twin-b's brick is served by $kind"
        echo "$kind" >"$m/open/$kind" && rm "$m/open/$kind"
        is "$(cat "$b"/.trashcan/open/"${kind}"_*)" "$kind" "$kind keeps files beside older files"
        t "$kind serves the files that the other program has kept" bash -c "cat '$m'/.trashcan/open/secret_* '$m'/.trashcan/all/mine_*"
    done
    t "the trash can be emptied" rm -rf "$m/.trashcan/open" "$m/.trashcan/all"
fi
umount "$T/mnt-b"
gl volume stop twin-b >/dev/null
