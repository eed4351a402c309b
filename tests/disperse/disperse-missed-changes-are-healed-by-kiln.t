#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# One brick of a dispersed volume (2+1) is down while files are created, changed, renamed and removed through
# kiln-mount, and their owners, modes and xattrs change. Without any daemon of stock, a kiln-mount with the option
# iam-self-heal-daemon brings all changes to the brick: the indices are empty in the end, all fragments belong together,
# and any two bricks are enough to read the contents. A mount without the option heals the files that it meets. On kilnd's
# bricks and on stock's.
# Covers: xlators/cluster/disperse/heal.c, xlators/cluster/disperse/heal-data.c, xlators/cluster/disperse/heal-entry.c,
# xlators/cluster/disperse/crawl.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

files=${KILN_HEAL_FILES:-36}
work=$(dirname "$(readlink -f "$0")")/disperse_work.py
mnt=$T/mnt
mkdir "$T/dumps"
volume_split=yes

# WORD NUMBER: the same text for the same arguments, whose length is no multiple of the stripe.
content() {
    printf "$1 $2 %.0s" {1..300}
}

change() {
    local i
    mkdir "$mnt/new"
    rmdir "$mnt/old/gone"
    ln -s nowhere "$mnt/new/symlink"
    for ((i = 0; i < files; i++)); do
        content new "$i" >"$mnt/new/$i"
        case $((i % 6)) in
        0) content changed "$i" >"$mnt/old/$i" ;;
        1) content more "$i" >>"$mnt/old/$i" ;;
        2) chmod 640 "$mnt/old/$i" && chown 12:34 "$mnt/old/$i" ;;
        3) setfattr -n user.colour -v "blue $i" "$mnt/old/$i" ;;
        4) mv "$mnt/old/$i" "$mnt/old/moved$i" ;;
        5) rm "$mnt/old/$i" ;;
        esac
    done
    ln "$mnt/new/0" "$mnt/old/link"
}

# Everything a client can see, in one text.
view() {
    (cd "$1" && find old new | sort | while read -r path; do
        stat -c '%n %f %u:%g' "$path"
        getfattr -h -d "$path"
        [[ ! -f $path ]] || sha256sum "$path"
    done)
}

# The brick has the file of the time before, and the mount heals the file when it is read.
counters() {
    getfattr -d -m trusted.ec -e hex "$1/old/0" | grep -v '^#'
}

is_healed() {
    cat "$mnt/old/0" >/dev/null && [[ $(counters "${bricks[0]}") == "$(counters "${bricks[1]}")" ]]
}

for BRICKD in kiln stock; do
    vol=v$BRICKD parts=()
    volume_new "$vol" 1x2+1
    volume_start "$vol"
    mount_kiln "$vol" "$mnt" --statedump-dir="$T/dumps"
    read -r -a bricks <<<"${volume_bricks[$vol]}"
    for brick in "${bricks[@]}"; do
        parts+=("${brick_daemon[$brick]}")
    done
    mkdir "$mnt/old" "$mnt/old/gone"
    for ((i = 0; i < files; i++)); do
        content old "$i" >"$mnt/old/$i"
    done
    daemon_kill "${parts[1]}"
    t_here "$BRICKD: with a brick down $files files are made and $files changed" change
    view "$mnt" >"$T/want"
    t "$BRICKD: more than $files objects wait for heal" test "$(brick_pending "${bricks[0]}" | wc -l)" -gt "$files"
    daemon_start "${parts[1]}"
    t "$BRICKD: the mount finds the brick" wait_for 240 "all bricks" children_up 3
    t "$BRICKD: a read of a file heals the file" wait_for 240 "equal counters" is_healed
    mount_kiln "$vol" "$T/healer" --xlator-option='*disperse*.iam-self-heal-daemon=yes'
    t "$BRICKD: the heal ends" wait_for 240 "empty indices" nothing_pending "${bricks[@]}"
    t_here "$BRICKD: the healing mount is unmounted" mount_end "$T/healer"
    t_here "$BRICKD: the mount is unmounted" mount_end "$mnt"
    t "$BRICKD: all fragments belong together" python3 "$work" fragments 1 "${bricks[@]}"
    for brick in "${bricks[@]}"; do
        t "$BRICKD: the handles of $(basename "$brick") are right" brick_handles_hold "$brick"
    done
    # The healed brick has to carry its third now.
    for away in 0 2; do
        daemon_kill "${parts[$away]}"
        mount_volume "$vol" "$T/without$away"
        view "$T/without$away" >"$T/got$away"
        t "$BRICKD: without brick $away the stock client sees every file with the written contents" diff "$T/want" "$T/got$away"
        mount_end "$T/without$away"
        daemon_start "${parts[$away]}"
    done
    volume_stop "$vol"
done
