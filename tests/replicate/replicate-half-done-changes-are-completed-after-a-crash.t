#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A mount and its bricks die together while all bricks were up, so a change is done on one replica only and no pending
# mark records it. The script makes such a change with a mount that has that brick alone. The next mount never returns
# EIO. That mount completes a rename over another object on all replicas, or undoes the rename on all replicas if a
# mount has changed the replaced object since. Owner, mode and extended attributes become equal on all replicas.
# Covers: xlators/cluster/replicate/heal-name.c, xlators/cluster/replicate/heal-metadata.c,
# xlators/cluster/replicate/lookup.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

volume_split=brick
mkdir "$T/dumps"

begin() {
    mount_kiln "$vol" "$mnt" --attribute-timeout=0 --entry-timeout=0 --statedump-dir "$T/dumps"
    wait_for 60 "$1 bricks" children_up "$1"
}

# A mount of brick $1 alone runs the rest as a command.
on_one_brick() {
    local brick=$1 all=$mnt specs mnt=$mnt-one
    shift
    mapfile -t specs < <(volume_specs "$vol")
    mkdir -p "$mnt"
    volfile_bare "$vol" "${specs[brick]}" >"$T/one.vol"
    "$KILN_MOUNT" -N -f "$T/one.vol" -l "$T/log/kiln-mount-$(basename "$mnt").log" --attribute-timeout=0 --entry-timeout=0 "$mnt" \
        >>"$T/log/kiln-mount-one.out" 2>&1 </dev/null &
    mount_pid[$mnt]=$! mount_vol[$mnt]=$vol mount_is_kiln[$mnt]=yes
    wait_for 60 "$mnt to be mounted" mount_is_listed "$mnt"
    wait_for 60 "$mnt to have its brick" stat "$mnt/d"
    "$@"
    mount_end "$mnt"
}

half_a_change() {
    mv -T "$mnt/d/moved" "$mnt/d/replaced"
    mv -T "$mnt/d/moved2" "$mnt/d/linked"
    mv -T "$mnt/d/moved3" "$mnt/d/changed-since"
    mv -T "$mnt/d/folder" "$mnt/d/empty"
    mv -T "$mnt/d/folder2" "$mnt/d/folder-moved"
    chmod 741 "$mnt/d/mode"
    chown 12:34 "$mnt/d/owner"
    setfattr -n user.new -v new "$mnt/d/xattr"
    setfattr -x user.old "$mnt/d/xattr-gone"
}

reads() {
    cat "$mnt/d/$1" 2>&1
}

folder_of() {
    local name
    for name in "$@"; do
        [[ ! -e $mnt/d/$name/inside ]] || reads "$name/inside"
    done
}

attributes() {
    (cd "$1/d" && stat -c '%n %a %u:%g' mode owner && getfattr -d -m '^user\.' xattr xattr-gone)
}

names() {
    (cd "$1/d" && find . | sort && getfattr -h -R -n trusted.gfid -e hex .)
}

equal() {
    ls -lR "$mnt" >/dev/null || return 1
    local brick
    for brick in "${bricks[@]:1}"; do
        diff <(brick_listing "${bricks[0]}" | grep -v '^.glusterfs-anonymous-inode-[^/]* d') \
            <(brick_listing "$brick" | grep -v '^.glusterfs-anonymous-inode-[^/]* d') || return 1
        diff <(attributes "${bricks[0]}") <(attributes "$brick") || return 1
        diff <(names "${bricks[0]}" | sort) <(names "$brick" | sort) || return 1
    done
    nothing_pending "${bricks[@]}"
}

for count in 2 3; do
    for half in $([[ $count -eq 3 ]] || echo 0) $((count - 1)); do
        vol=v$count-$half mnt=$T/mnt-$count-$half
        volume_new "$vol" "1x$count"
        volume_start "$vol"
        read -ra bricks <<<"${volume_bricks[$vol]}"
        begin "$count"
        mkdir -p "$mnt"/d/{folder,folder2,empty}
        for name in moved replaced moved2 linked moved3 changed-since mode owner xattr xattr-gone folder/inside folder2/inside; do
            echo "$name" >"$mnt/d/$name"
        done
        ln "$mnt/d/linked" "$mnt/d/other-name"
        setfattr -n user.old -v old "$mnt/d/xattr-gone"
        mount_end "$mnt"
        on_one_brick "$half" half_a_change

        daemon_kill "$(daemon_of "$half")"
        begin $((count - 1))
        t "$vol: a mount without that brick changes a file" bash -c "echo since >'$mnt/d/changed-since'"
        daemon_start "$(daemon_of "$half")"
        wait_for 60 "all bricks" children_up "$count"
        is "$(reads replaced)" moved "$vol: the replaced name leads to the renamed file"
        t "$vol: a replaced file with another name leads to the renamed file, or is unchanged" grep -x 'moved2\|linked' <(reads linked)
        is "$(reads moved2) $(reads other-name)" "moved2 linked" "$vol: the renamed file and the other name are readable"
        is "$(reads changed-since)" since "$vol: a file changed since the rename is not replaced"
        is "$(reads moved3)" moved3 "$vol: the source of the undone rename keeps its name and contents"
        is "$(folder_of empty folder)" folder/inside "$vol: a directory renamed onto another exists once"
        is "$(folder_of folder2 folder-moved)" folder2/inside "$vol: a renamed directory exists once"
        shd_start "$vol"
        t "$vol: all replicas become equal" wait_for 60 "equal replicas" equal
        is "$(reads changed-since)" since "$vol: the changed file keeps its change"
        is "$(equal 2>&1)" "" "$vol: the replicas have no difference"
        { kill -TERM "$shd_pid" && wait "$shd_pid"; } 2>/dev/null || true
        shd_pid=
        t_here "$vol: the volume is unmounted" mount_end "$mnt"
        volume_stop "$vol"
    done
done
