#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount and stock's client use the same files in blocks of 4 MB: each reads the other's writes, in turns and side by
# side, on kilnd's bricks and on stock's, from the first small file on. Each of them removes the blocks of files that the other has made, and finishes the
# removals that the other has begun.
# Covers: xlators/features/shard

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
volfile_shard=4MB
mount_graph=whole
work=$tests_dir/shard/shard_work.py

blocks_are_gone() {
    [[ -z $(find ${volume_bricks[$1]} -path '*/.shard/*' ! -name .remove_me) ]]
}

# Stock's client gives the removal up if a block has gone already, and leaves the marker. kiln-mount looks at the markers of all
# clients after each removal of its own.
blocks_are_swept() {
    blocks_are_gone "$1" || { head -c 5000000 /dev/zero >"$kiln/more" && rm "$kiln/more" && sleep 1 && blocks_are_gone "$1"; }
}

for kind in kiln stock; do
    vol=v-$kind
    kiln=$T/kiln-$kind stock=$T/stock-$kind
    volume_new "$vol" 2x2
    volume_assign "$vol" "$kind"
    volume_start "$vol"
    mount_kiln "$vol" "$kiln" --attribute-timeout=0 --entry-timeout=0
    # Stock's clients read zeros while the volume has no folder /.shard.
    mount_volume "$vol" "$stock-first" utime --attribute-timeout=0 --entry-timeout=0 --direct-io-mode=enable
    echo small >"$kiln/small"
    is "$(tr '\0' z <"$stock-first/small")" small "$kind bricks: stock's client reads the first small file of the volume"
    mount_end "$stock-first"
    rm "$kiln/small"
    t "$kind bricks: kiln-mount changes a file" python3 "$work" model 3 40 "$T/plain" "$kiln/k"
    mount_volume "$vol" "$stock" utime --attribute-timeout=0 --entry-timeout=0 --direct-io-mode=enable
    t "$kind bricks: stock's client reads the file" python3 "$work" compare "$T/plain" "$stock/k"
    head -c 13000000 /dev/urandom >"$T/data"
    cp "$T/data" "$stock/s"
    truncate -s 9000000 "$stock/s"
    truncate -s 9000000 "$T/data"
    t "$kind bricks: kiln-mount reads a file that stock's client has written and cut" cmp "$T/data" "$kiln/s"
    is "$(ls -lA "$kiln" | awk 'NR > 1 {print $1, $3, $5, $9}')" \
        "$(ls -lA "$stock" | awk 'NR > 1 {print $1, $3, $5, $9}')" "$kind bricks: both mounts list the same"
    t "$kind bricks: both change one file in turns" python3 "$work" beside 4 16 "$T/plain" "$kiln/both" "$stock/both"
    rm "$kiln/s" "$stock/k"
    mv "$kiln/both" "$kiln/moved"
    cp "$T/data" "$kiln/over"
    cp "$T/data" "$stock/under"
    mv "$kiln/over" "$kiln/moved"
    mv "$stock/moved" "$stock/under"
    t "$kind bricks: a file that was renamed over others is whole" cmp "$T/data" "$kiln/under"
    rm "$stock/under"
    wait_for 120 "the blocks to be removed" blocks_are_swept "$vol"
    t "$kind bricks: no block of a removed file is left" blocks_are_gone "$vol"
    mount_end "$stock"
    mount_end "$kiln"
    volume_stop "$vol"
done
