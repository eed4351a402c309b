#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount renames a directory on a volume of two subvolumes, and one subvolume cannot do it because its directory
# is a mount point on the brick. The rename fails, the directory has its old name on all bricks, and the target of the
# rename is unchanged. When two subvolumes have different directories under one name, as other clients may leave them,
# the name still is a directory: that of the hashed subvolume.
# Covers: xlators/cluster/distribute/rename.c, xlators/cluster/distribute/lookup.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

volume_new v 2x1
volume_start v
read -ra bricks <<<"${volume_bricks[v]}"
kiln=$T/kiln
mount_kiln v "$kiln" --entry-timeout=0 --attribute-timeout=0

# owner, mode, gfid
on_brick() {
    stat -c '%u %g %a' "$1" && getfattr -n trusted.gfid -e hex --only-values --absolute-names "$1" | od -An -tx1
}

# DESC PATH: the path is the same on both bricks; sets $is_now
same_on_both() {
    is_now=$(on_brick "${bricks[0]}/$2" 2>&1)
    is "$(on_brick "${bricks[1]}/$2" 2>&1)" "$is_now" "$1"
}

for target in none empty; do
    for name in a b c d; do
        for at in 0 1; do
            case="$target, $name, brick $at"
            mkdir "$kiln/$name" "$kiln/$name/inner"
            chmod 2750 "$kiln/$name" && chown 12:34 "$kiln/$name"
            echo text >"$kiln/$name/file"
            if [[ $target == empty ]]; then
                mkdir "$kiln/to-$name"
                chmod 1731 "$kiln/to-$name" && chown 56:78 "$kiln/to-$name"
                target_was=$(on_brick "${bricks[0]}/to-$name")
            fi
            source_was=$(on_brick "${bricks[0]}/$name")
            mount --bind "${bricks[at]}/$name" "${bricks[at]}/$name"
            told=$(python3 -c 'import os, sys; os.rename(*sys.argv[1:])' "$kiln/$name" "$kiln/to-$name" 2>&1 || true)
            umount "${bricks[at]}/$name"
            t "$case: the rename returns an error" grep -q "Errno" <<<"$told"
            same_on_both "$case: the folder is the same on both" "$name"
            is "$is_now" "$source_was" "$case: the source is unchanged"
            if [[ $target == empty ]]; then
                same_on_both "$case: so is what would have been replaced" "to-$name"
                is "$is_now" "$target_was" "$case: the target is unchanged"
                t "$case: files are created in the new directory" touch "$kiln/to-$name"/{1,2,3,4,5,6}
                rm "$kiln/to-$name"/?
            else
                is "$(ls -d "${bricks[@]/%//to-$name}" 2>/dev/null)" "" "$case: no object has the new name"
            fi
            is "$(cat "$kiln/$name/file")" "text" "$case: the contents of the directory are unchanged"
            t "$case: the rename succeeds later" python3 -c 'import os, sys; os.rename(*sys.argv[1:])' "$kiln/$name" "$kiln/to-$name"
            same_on_both "$case: on both" "to-$name"
            is "$is_now" "$source_was" "$case: the renamed directory has all of its contents"
            rm -r "$kiln/to-$name"
        done
    done
done

# One name, two folders.
mkdir "$kiln/one" "$kiln/two"
mv -T "${bricks[1]}/one" "${bricks[1]}/three"
mv -T "${bricks[1]}/two" "${bricks[1]}/one"
mv -T "${bricks[1]}/three" "${bricks[1]}/two"
mount_end "$kiln"
mount_kiln v "$kiln" --entry-timeout=0 --attribute-timeout=0
t "a name with two directories is a directory" test -d "$kiln/one" -a -d "$kiln/two"
t "a name with two directories can be removed" rmdir "$kiln/one" "$kiln/two"
is "$(ls "${bricks[@]/%//one}" "${bricks[@]/%//two}" 2>/dev/null)" "" "the removed name is gone from both bricks"
t_here "the volume is unmounted" mount_end "$kiln"
volume_stop v
