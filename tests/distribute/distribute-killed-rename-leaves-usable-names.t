#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A client that is killed during a rename to a name of another subvolume leaves the file under both names, without a
# linkto file for the new name. A listing shows both names. After the listing both names can be looked up, with the
# stock client and with kiln-mount, which then makes the linkto file. The directory and its contents can be removed.
# Without the listing both clients answer ENOENT for the new name. Names that such a rename has left are not in the way
# of renames of other files.
# Covers: xlators/cluster/distribute/lookup.c, xlators/cluster/distribute/rename.c, xlators/cluster/distribute/linkto.c,
# xlators/cluster/distribute/readdir.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

kiln=$T/kiln stock=$T/stock
volume_split=brick
volume_new v 2x1
volume_start v
read -ra bricks <<<"${volume_bricks[v]}"
mount_volume v "$stock" plain --attribute-timeout=0 --entry-timeout=0
mount_kiln v "$kiln" --attribute-timeout=0 --entry-timeout=0

# The first letter that is hashed to brick $2, as a name in $1; kept: with a file.
name_on() {
    local letter
    for letter in {a..z}; do
        [[ ! -e $stock/$1/$letter ]] || continue
        echo text >"$stock/$1/$letter"
        if [[ -e ${bricks[$2]}/$1/$letter ]]; then
            [[ $3 == keep ]] || rm "$stock/$1/$letter"
            echo "$letter"
            return
        fi
        rm "$stock/$1/$letter"
    done
    return 1
}

# Sets old and new.
begin_rename() {
    mkdir "$stock/$1"
    old=$(name_on "$1" 0 keep)
    new=$(name_on "$1" 1 remove)
    ln "${bricks[0]}/$1/$old" "${bricks[0]}/$1/$new"
}

lists_both() {
    [[ $(ls -U "$1" | sort) == "$(printf '%s\n' "$old" "$new" | sort)" ]]
}

begin_rename d
t_not "the stock client answers ENOENT for the new name before a listing" stat "$stock/d/$new"
t_not "kiln-mount answers ENOENT for the new name before a listing" stat "$kiln/d/$new"
t "the stock client lists both names" lists_both "$stock/d"
is "$(cat "$stock/d/$new")" text "the stock client finds the new name after the listing"
t_not "the stock client makes no linkto file" test -e "${bricks[1]}/d/$new"
t "kiln-mount lists both names" lists_both "$kiln/d"
is "$(cat "$kiln/d/$new")" text "kiln-mount finds the new name after the listing"
t "kiln-mount makes the linkto file of the new name" getfattr -n trusted.glusterfs.dht.linkto "${bricks[1]}/d/$new"
is "$(cat "$stock/d/$new")" text "the stock client follows the linkto file"

begin_rename e
t "rm -r removes a directory with both names" rm -r "$kiln/e"
for brick in "${bricks[@]}"; do
    t_not "the removed directory is on no brick" test -e "$brick/e"
done
begin_rename f
t "kiln-mount lists both names in another directory" lists_both "$kiln/f"
t "the rename can be repeated" mv "$kiln/f/$new" "$kiln/f/$old-again"
is "$(cat "$kiln/f/$old-again")" text "the repeated rename moved the file"

# ---- names that a rename has left where no lookup uses them, in the way of other renames
mkdir "$stock/g"
old=$(name_on g 0 keep)
new=$(name_on g 1 remove)
dead=$(name_on g 1 keep)
ln "${bricks[1]}/g/$dead" "${bricks[1]}/g/$old" # of a rename of the dead name to the old name
rm "$kiln/g/$dead"
echo own >"$kiln/g/$old"
t "a file is renamed although another file has the old name on the new name's brick" mv "$kiln/g/$old" "$kiln/g/$new"
is "$(cat "$kiln/g/$new")" own "the new name leads to the renamed file"
t_not "the old name is gone" test -e "$kiln/g/$old"
t_not "the other file is gone from the brick" test -e "${bricks[1]}/g/$old"
mv "$kiln/g/$new" "$kiln/g/$new-again"

old=$(name_on g 0 keep)
new=$(name_on g 1 keep)
dead=$(name_on g 0 keep)
ln "${bricks[0]}/g/$dead" "${bricks[0]}/g/$new" # of a rename of the dead name to the new name
rm "$kiln/g/$dead"
echo own >"$kiln/g/$old"
t "a file replaces another one although a third file has the new name on the file's brick" mv "$kiln/g/$old" "$kiln/g/$new"
is "$(cat "$kiln/g/$new")" own "the new name leads to the renamed file"
t_not "the old name is gone" test -e "$kiln/g/$old"
t "the directory and its contents can be removed" rm -r "$kiln/g"
for brick in "${bricks[@]}"; do
    t_not "the removed directory is on no brick" test -e "$brick/g"
done
mount_end "$stock"
t_here "the volume is unmounted" mount_end "$kiln"
