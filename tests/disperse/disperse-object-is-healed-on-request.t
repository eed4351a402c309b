#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A program that reads the name trusted.ec.heal of an object on a dispersed volume heals the object. kiln-mount, which heals nothing
# else here, gives the answers of the stock client: the good and the bad bricks, or an error while too few bricks are there to heal.
# Covers: xlators/cluster/disperse/metadata.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

work=$(dirname "$(readlink -f "$0")")/disperse_work.py
volume_split=brick
mnt=$T/mnt

heal_of() {
    getfattr --absolute-names -h -n trusted.ec.heal --only-values "$mnt/$1" 2>&1 | tr -d '\0' | sed 's/.*: trusted.ec.heal: //'
}
mount_by() {
    if [[ $1 == kiln ]]; then
        mount_kiln "$vol" "$mnt" --xlator-option='*disperse*.background-heals=0'
    else
        mount_volume "$vol" "$mnt" plain --xlator-option='*disperse*.background-heals=0'
    fi
}
answers() {
    local name
    for name in . file dir dir/new link fifo; do
        echo "$name: $(heal_of "$name")"
    done
}

for client in stock kiln; do
    vol=v$client
    volume_new "$vol" 1x2+1
    volume_start "$vol"
    read -ra bricks <<<"${volume_bricks[$vol]}"
    mount_by "$client"
    echo text >"$mnt/file"
    mkdir "$mnt/dir"
    ln -s target "$mnt/link"
    mkfifo "$mnt/fifo"
    {
        answers
        mount_end "$mnt"
        daemon_kill "${brick_daemon[${bricks[1]}]}"
        mount_by "$client"
        echo more >>"$mnt/file"
        chmod 600 "$mnt/file" "$mnt/fifo"
        head -c 5000 /dev/urandom >"$mnt/dir/new"
        answers
        mount_end "$mnt"
        daemon_start "${brick_daemon[${bricks[1]}]}"
        mount_by "$client"
        answers
        mount_end "$mnt"
    } >"$T/answers.$client"
done
t "all answers are those of the stock client" diff "$T/answers.stock" "$T/answers.kiln"
t "... and name the bricks" grep -q 'file: Good: 111, Bad: 000' "$T/answers.kiln"
t "no object waits for heal" nothing_pending "${bricks[@]}"
t "all fragments belong together" python3 "$work" fragments 1 "${bricks[@]}"
