#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount chooses the locks of a rename by its cached state of both names, and looks the names up again under the
# locks. So kiln-mount notices the changes that another client made in the meantime: the right file moves, or the
# right error is returned, and no stray name is left on any brick. Two such mounts leave no stray name either.
# Covers: xlators/cluster/distribute/rename.c, xlators/cluster/distribute/names.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/measure.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

here=$(dirname "$(readlink -f "$0")")
volume_new v 3x2
volume_start v
kiln=$T/kiln
stock=$T/stock
mount_kiln v "$kiln" --entry-timeout=600 --attribute-timeout=600
mount_volume v "$stock" plain --attribute-timeout=0 --entry-timeout=0
mkdir "$kiln"/d "$kiln"/e

is "$(python3 "$here/rename_work.py" "$kiln/d" "$stock/d" 12)" "" "renames move the files that the names have at that moment"

# The files on the bricks: names with data, each on one set of replicas; linkto files beside some of these names.
mapfile -t bricks < <(tr ' ' '\n' <<<"${volume_bricks[v]}")
on_bricks() {
    local brick
    for brick in "${bricks[0]}" "${bricks[2]}" "${bricks[4]}"; do
        find "$brick/d" -type f ! -perm 1000 -printf '%f\n'
    done | sort
}
is "$(on_bricks)" "$(find "$stock/d" -type f -printf '%f\n' | sort)" "each name is on one subvolume, and no stray name is left"
leads_nowhere() {
    local brick link
    for brick in "${bricks[0]}" "${bricks[2]}" "${bricks[4]}"; do
        while read -r link; do
            [[ -f $stock/d/$link ]] || echo "$link"
        done < <(find "$brick/d" -type f -perm 1000 -size 0 -printf '%f\n')
    done
}
is "$(leads_nowhere)" "" "every linkto file leads to a file"
for i in 0 2 4; do
    is "$(cd "${bricks[i]}/d" && find . -printf '%P %m %s\n' | sort)" "$(cd "${bricks[i + 1]}/d" && find . -printf '%P %m %s\n' | sort)" "the replicas of set $i are equal"
done

# Of these names the mount only knows that they existed: a rename needs a LOOKUP of each name under the locks, on
# both replicas.
files=30
touch "$kiln"/e/f$(seq -s " $kiln/e/f" $files)
calls_take "${mount_pid[$kiln]}" "$T/before"
for ((i = 1; i <= files; i++)); do
    mv "$kiln/e/f$i" "$kiln/e/g$i"
done
calls_take "${mount_pid[$kiln]}" "$T/after"
lookups=$(($(awk '$1 == "lookup" { print $2 }' "$T/after") - $(awk '$1 == "lookup" { print $2 }' "$T/before")))
diag "$lookups LOOKUPs for $files renames"
t "the mount sends less than 14 LOOKUPs for each rename" test "$lookups" -lt $((14 * files))

# A user's symlinks: the user becomes the owner of the linkto files with their gfids.
mkdir "$kiln/l"
for ((i = 1; i <= files; i++)); do
    ln -s away "$kiln/l/f$i"
    chown -h 4711:4712 "$kiln/l/f$i"
    mv "$kiln/l/f$i" "$kiln/l/g$i"
done
linktos_of() {
    find "${bricks[@]/%//l}" -type f -perm 1000 "$@" | wc -l
}
t "renamed symlinks have linkto files" test "$(linktos_of)" -gt 0
is "$(linktos_of ! \( -uid 4711 -gid 4712 \))" 0 "linkto files of symlinks belong to the owner of the symlink"
t_not "the mount logs no invalid linkto file" grep -h object-cannot-be "$T"/log/kiln-mount-*.log

# Twelve processes on two such mounts, names renamed onto themselves too.
kiln2=$T/kiln2
mount_kiln v "$kiln2"
mount_end "$kiln"
mount_kiln v "$kiln"
for i in 1 2; do
    mkdir "$kiln/s$i"
    t "storm $i: twelve processes rename names of one directory on two mounts" python3 "$tests_dir/mount/matrix_work.py" storm "$kiln/s$i" "$kiln2/s$i"
    rm -r "$kiln/s$i"
    t_not "storm $i: a stock mount finds no removed directory" test -e "$stock/s$i"
done
