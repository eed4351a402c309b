#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A mount that caches attributes for ten minutes, because the bricks report changes, shows the sizes and the contents of files in
# blocks that another mount changes: an append into a later block, a truncate, and a write that changes neither size nor first block.
# Covers: xlators/features/shard/file.c, xlators/mount/fuse/news.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
volfile_shard=4MB
mount_graph=whole
told=(--xlator-option='*-md-cache.cache-invalidation=on' --xlator-option='*-md-cache.md-cache-timeout=600')
xlator_options=('*-upcall.cache-invalidation=on' '*-upcall.cache-invalidation-timeout=600')

size_is() {
    [[ $(stat -c %s "$1") == "$2" ]]
}

same() {
    cmp -s "$1" "$2"
}

for kind in kiln stock; do
    vol=v-$kind
    here=$T/here-$kind there=$T/there-$kind
    volume_new "$vol" 2x2
    volume_assign "$vol" "$kind"
    volume_start "$vol"
    mount_kiln "$vol" "$here" "${told[@]}" --entry-timeout=600
    mount_kiln "$vol" "$there" "${told[@]}" --entry-timeout=600
    head -c 9000000 /dev/urandom >"$T/data"
    cp "$T/data" "$there/f"
    cat "$here/f" >/dev/null
    is "$(stat -c %s "$here/f")" 9000000 "$kind bricks: the first size"
    echo more >>"$there/f"
    echo more >>"$T/data"
    wait_for 60 "the new size" size_is "$here/f" 9000005
    t "$kind bricks: the other mount shows the size after an append" size_is "$here/f" 9000005
    t "$kind bricks: and the appended bytes" same "$T/data" "$here/f"
    for file in "$there/f" "$T/data"; do
        echo changed | dd of="$file" bs=1 seek=5000000 conv=notrunc status=none
    done
    sync "$there/f"
    wait_for 60 "the new contents" same "$T/data" "$here/f"
    t "$kind bricks: the other mount shows a write into a later block" same "$T/data" "$here/f"
    truncate -s 6000000 "$there/f"
    truncate -s 6000000 "$T/data"
    wait_for 60 "the smaller size" size_is "$here/f" 6000000
    t "$kind bricks: the other mount shows the contents after a truncate" same "$T/data" "$here/f"
    mount_end "$here"
    mount_end "$there"
    volume_stop "$vol"
done
