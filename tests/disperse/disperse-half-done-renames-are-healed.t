#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A mount dies in a rename that some bricks of a dispersed volume have done. 2+1: one brick, which has one of the two newest
# fragments, because another brick was away during a write. 4+2: three bricks, so that neither name has four. The script makes the
# rename with mounts that have one of these bricks alone. kiln-heal heals; then files and folders have the old or the new
# name, and the newest contents. A program has the target of such a rename open. A write fails with EIO if
# only two bricks would have its bytes, and the first of the two keeps a fragment no longer than the file is open.
#
# KILN_HEALER=daemon KILN_KINDS=stock: the stock daemon on stock bricks removes both names of 4+2 on all bricks.
# Covers: xlators/cluster/disperse/heal-entry.c, xlators/cluster/disperse/heal-move.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

volume_split=brick
mkdir "$T/dumps"

begin() {
    mount_kiln "$vol" "$mnt" --attribute-timeout=0 --entry-timeout=0 --statedump-dir "$T/dumps"
    wait_for 60 "$1 bricks" children_up "$1"
}

# A mount of brick $1 alone renames.
rename_on() {
    local brick=$1 specs mnt=$T/one
    mapfile -t specs < <(volume_specs "$vol")
    mkdir -p "$mnt"
    volfile_bare "$vol" "${specs[brick]}" >"$T/one.vol"
    "$KILN_MOUNT" -N -f "$T/one.vol" -l "$T/log/kiln-mount-one.log" --attribute-timeout=0 --entry-timeout=0 "$mnt" \
        >>"$T/log/kiln-mount-one.out" 2>&1 </dev/null &
    mount_pid[$mnt]=$! mount_vol[$mnt]=$vol mount_is_kiln[$mnt]=yes
    wait_for 60 "$mnt to be mounted" mount_is_listed "$mnt"
    wait_for 60 "$mnt to have its brick" stat "$mnt/from"
    [[ ! -e $mnt/from/file ]] || mv -T "$mnt/from/file" "$mnt/to/file-moved"
    mv -T "$mnt/from/over" "$mnt/to/target"
    [[ ! -e $mnt/from/folder ]] || mv -T "$mnt/from/folder" "$mnt/to/folder-moved"
    mount_end "$mnt"
}

content() {
    printf "$1 %.0s" {1..900}
}

# The contents of the one or two names.
contents_of() {
    local name
    for name in "$@"; do
        [[ ! -e $mnt/$name ]] || cut -c -12 "$mnt/$name" 2>&1
    done | sort -u
}

# The bricks that have each name.
names_left() {
    local name
    for name in from/file to/file-moved from/over to/target from/folder to/folder-moved to/folder-moved/inside; do
        printf '%s:' "$name"
        for brick in "${bricks[@]}"; do
            [[ ! -e $brick/$name ]] || printf ' %s' "${brick##*/}"
        done
        echo
    done
}

healer_begin() {
    if [[ ${KILN_HEALER:-kiln} == daemon ]]; then shd_start "$vol"; else kiln_heal_start "$vol"; fi
}

half() {
    local count=$1 away=$2 i
    shift 2
    volume_start "$vol"
    read -ra bricks <<<"${volume_bricks[$vol]}"
    begin "$count"
    mkdir -p "$mnt"/{from/folder,to}
    for name in from/file from/over from/folder/inside to/target; do
        content old >"$mnt/$name"
    done
    mount_end "$mnt"
    daemon_kill "$(daemon_of "$away")"
    begin $((count - 1))
    touch "$mnt/from/marks" "$mnt/to/marks"
    for name in from/file from/over from/folder/inside; do
        content new >"$mnt/$name"
    done
    mount_end "$mnt"
    for i in "$@"; do
        rename_on "$i"
    done
    diag "before the heal:" "$(names_left)"
    daemon_start "$(daemon_of "$away")"
    healer_begin
    t "$vol: the heal ends" wait_for 60 "empty indices" nothing_pending "${bricks[@]}"
    { kill -TERM "$shd_pid" && wait "$shd_pid"; } 2>/dev/null || true
    shd_pid=
    diag "after the heal:" "$(names_left)"
    begin "$count"
    is "$(contents_of from/file to/file-moved)" "new new new " "$vol: the file has its newest contents"
    is "$(contents_of from/over to/target | head -n 1)" "new new new " "$vol: the file that replaces another has its newest contents"
    is "$(contents_of from/folder/inside to/folder-moved/inside)" "new new new " "$vol: the file in the folder has its newest contents"
    t "$vol: the target of the rename is readable" grep -c "new\|old" "$mnt/to/target"
    is "$(find "$mnt" -name 'folder*' | wc -l) $(find "$mnt" -name '.kiln*' | wc -l)" "1 0" "$vol: the folder has one name"
    t_here "$vol: the volume is unmounted" mount_end "$mnt"
    t "$vol: all fragments belong together" python3 "$tests_dir/disperse/disperse_work.py" fragments "$((count / 3))" "${bricks[@]}"
    for i in "${!bricks[@]}"; do
        t "$vol: the handles of brick $i are right" brick_handles_hold "${bricks[i]}"
    done
    volume_stop "$vol"
}

for kind in ${KILN_KINDS:-kiln}; do
    vol=v3-$kind mnt=$T/mnt-$vol
    volume_new "$vol" 1x2+1
    volume_assign "$vol" "$kind"
    half 3 1 0
    vol=v6-$kind mnt=$T/mnt-$vol
    volume_new "$vol" 1x4+2
    volume_assign "$vol" "$kind"
    half 6 5 0 1 2
done

# Writes 5 bytes by the open file 9, and prints the errno of the write or its FSYNC, or 0.
write_open() {
    python3 -c 'import os, sys
try:
    os.pwrite(9, sys.argv[1].encode(), 0)
    os.fsync(9)
    print(0)
except OSError as e:
    print(e.errno)' "$1"
}

vol=v-open mnt=$T/mnt-v-open
volume_new "$vol" 1x2+1
volume_assign "$vol" kiln
volume_start "$vol"
read -ra bricks <<<"${volume_bricks[$vol]}"
begin 3
mkdir "$mnt"/{from,to}
for name in from/over to/target; do
    content "$name" >"$mnt/$name"
done
exec 9<>"$mnt/to/target"
is "$(write_open first)" 0 "$vol: a file is open and written"
sleep 2 # until the mount has released the lock
rename_on 0 9<&-
is "$(write_open third)" 0 "$vol: a write succeeds where two bricks have the name"
sleep 2
daemon_kill "$(daemon_of 1)"
wait_for 60 "two bricks" children_up 2
touch "$mnt/from/marks" "$mnt/to/marks"
is "$(write_open lost.)" 5 "$vol: a write fails with EIO where one brick has the name"
daemon_start "$(daemon_of 1)" 9<&-
wait_for 60 "three bricks" children_up 3
is "$(write_open fifth)" 0 "$vol: a write succeeds when the brick is back"
exec 9<&-
diag "before the heal:" "$(names_left)"
kiln_heal_start "$vol"
t "$vol: the heal ends" wait_for 60 "empty indices" nothing_pending "${bricks[@]}"
{ kill -TERM "$shd_pid" && wait "$shd_pid"; } 2>/dev/null || true
shd_pid=
diag "after the heal:" "$(names_left)"
t "$vol: the name has the last write, or the file that replaced the other" grep -E "^(fifth|from/over)" "$mnt/to/target"
t_here "$vol: the volume is unmounted" mount_end "$mnt"
t "$vol: all fragments belong together" python3 "$tests_dir/disperse/disperse_work.py" fragments 1 "${bricks[@]}"
volume_stop "$vol"
