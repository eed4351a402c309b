#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Random writes, appends, truncates, punches and allocations on a file in blocks of 4 MB have the results that they have on a
# plain file: through one mount, and through two mounts in turns, on volumes that are distributed, also over replicas and
# dispersed sets, on kilnd's bricks and on stock's. A truncate to a block's end keeps the last block.
# Covers: xlators/features/shard

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
volfile_shard=4MB
mount_graph=whole
work=$tests_dir/shard/shard_work.py

# One mount keeps the lock of a block for a moment after a write, and the other removes the block meanwhile.
block_is_written_anew() {
    local i block=$T/$vol-b/again
    for i in 1 2 3 4; do
        dd if="$T/nine" of="$block" bs=1000000 seek=5 count=2 conv=notrunc,fsync status=none || return 1
        truncate -s "$((i % 2))" "$T/$vol-a/again" || return 1
    done
    dd if="$T/nine" of="$block" bs=1000000 seek=5 count=2 conv=notrunc,fsync status=none || return 1
    cmp <(tail -c 2000000 "$T/$vol-a/again") <(head -c 2000000 "$T/nine")
}

head -c 9437184 /dev/urandom >"$T/nine"
for what in "2x1 kiln" "2x2 kiln" "2x2 stock" "2x2+1 kiln"; do
    read -r layout kind <<<"$what"
    vol=v-${layout/+/-}-$kind
    volume_new "$vol" "$layout"
    volume_assign "$vol" "$kind"
    volume_start "$vol"
    for mnt in "$T/$vol-a" "$T/$vol-b"; do
        mount_kiln "$vol" "$mnt" --attribute-timeout=0 --entry-timeout=0
    done
    t "$layout, $kind bricks: changes through one mount" python3 "$work" model 1 40 "$T/plain" "$T/$vol-a/one"
    t "$layout, $kind bricks: changes through two mounts" python3 "$work" model 2 40 "$T/plain" "$T/$vol-a/two" "$T/$vol-b/two"
    t "$layout, $kind bricks: a block that the other mount has removed is written anew" block_is_written_anew
    mount_end "$T/$vol-b"
    t "$layout, $kind bricks: the other mount reads the same" python3 "$work" compare "$T/plain" "$T/$vol-a/two"
    for size in 4194304 8388608; do
        cp "$T/nine" "$T/$vol-a/cut"
        truncate -s "$size" "$T/$vol-a/cut"
        t "$layout, $kind bricks: a truncate to $size bytes keeps these bytes" cmp -n "$size" "$T/nine" "$T/$vol-a/cut"
        is "$(stat -c %s "$T/$vol-a/cut")" "$size" "$layout, $kind bricks: the size is $size then"
    done
    mount_end "$T/$vol-a"
    volume_stop "$vol"
done
