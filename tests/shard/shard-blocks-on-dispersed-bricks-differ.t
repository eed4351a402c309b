#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The bricks of a dispersed volume have allocated different numbers of blocks for the fragments of a shard, as file systems do that
# allocate ahead. A truncate that removes the shard succeeds, no brick falls behind, and the blocks that stat(2) shows are
# those of the whole file. Blocks that a brick has allocated ahead do not count: a file with data never has 0 blocks, as programs
# take such a file for a hole (tar --sparse).
# Covers: xlators/cluster/disperse/answers.c, xlators/features/shard/blocks.c, xlators/features/shard/length.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

work=$tests_dir/disperse/disperse_work.py
volfile_shard=4MB
place_xfs "$T/disk" 4g
volume_new v 1x4+2 "$T/disk/v"
volume_start v
read -ra bricks <<<"${volume_bricks[v]}"
mount_kiln v "$T/mnt"
for name in even uneven; do
    head -c 30000000 /dev/urandom >"$T/mnt/$name"
done
sync -f "$T/mnt"
uneven=$(getfattr --absolute-names -n trusted.gfid -e hex "${bricks[0]}/uneven" | sed -n 's/.*=0x//p')
for i in "${!bricks[@]}"; do
    for path in "${bricks[$i]}/.shard/${uneven:0:8}"*.[0-9]; do
        fallocate --keep-size --offset "$(stat -c %s "$path")" --length $(((i + 1) * 8 << 20)) "$path"
    done
done
is "$(stat -c %b "${bricks[@]/%//.shard/${uneven:0:8}-${uneven:8:4}-${uneven:12:4}-${uneven:16:4}-${uneven:20}.7}" | sort -u | wc -l)" 6 \
    "each brick has another number of blocks"

t "the file with uneven shards is cut" truncate -s 9000000 "$T/mnt/uneven"
t "the other file is cut" truncate -s 9000000 "$T/mnt/even"
blocks=$(stat -c %b "$T/mnt/even")
t "$blocks blocks are left of 9000000 bytes" [ "$blocks" -ge 17000 -a "$blocks" -le 24000 ]
t "the uneven file is removed" rm "$T/mnt/uneven"
mount_end "$T/mnt"
volume_new one 1x1 "$T/disk/one"
volume_start one
mount_graph=whole
mount_kiln one "$T/one"
head -c 30000000 /dev/urandom >"$T/one/file"
sync -f "$T/one"
for path in "$T"/disk/one/b0/.shard/*.[0-9]; do
    fallocate --keep-size --offset "$(stat -c %s "$path")" --length 8M "$path"
done
t "a file on one brick is cut" truncate -s 9000000 "$T/one/file"
blocks=$(stat -c %b "$T/one/file")
t "$blocks blocks are left of it" [ "$blocks" -gt 0 ]
mount_end "$T/one"
t "no object waits for heal" nothing_pending "${bricks[@]}"
t "all fragments belong together" python3 "$work" fragments 2 "${bricks[@]}"
