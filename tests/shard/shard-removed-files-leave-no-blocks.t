#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The blocks of a removed file are removed: in the background, after the last close, also those that were written after the
# removal, and by another mount if the mount dies at any moment of a removal. A file keeps its blocks as long as it has a name or is
# open in some mount.
# Covers: xlators/features/shard/sweep.c, xlators/features/shard/names.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
volfile_shard=4MB
mount_graph=whole
volume_new v 2x2
volume_start v
a=$T/a b=$T/b

blocks() {
    find ${volume_bricks[v]} -path '*/.shard/*' ! -name .remove_me | wc -l
}

blocks_are() {
    [[ $(blocks) == "$1" ]]
}

no_block_left() {
    wait_for 240 "the blocks to be removed" blocks_are 0
    t "$1" blocks_are 0
}

mount_kiln v "$a" --entry-timeout=0 --attribute-timeout=0
mount_kiln v "$b" --entry-timeout=0 --attribute-timeout=0
head -c 10000000 /dev/urandom >"$T/data"
cp "$T/data" "$a/f"
is "$(blocks)" 4 "a file of 10 MB has two blocks beside the first, on two replicas each"
rm "$a/f"
no_block_left "a removed file leaves no block"

cp "$T/data" "$a/f"
ln "$a/f" "$a/g"
rm "$a/f"
t "a file that keeps a second name is whole" cmp "$T/data" "$b/g"
cp "$T/data" "$a/h"
mv "$b/h" "$b/g"
t "a file that was renamed over it is whole" cmp "$T/data" "$a/g"
wait_for 240 "the blocks of the replaced file to be removed" blocks_are 4
is "$(blocks)" 4 "the replaced file leaves no block"
t "a file that fits into one block is removed" bash -c "echo small >$a/small && rm $b/small"

# Open in the mount that does not remove it, and written there afterwards, far behind its end.
exec 7<>"$b/g"
rm "$a/g"
t "an open file without a name is whole" cmp "$T/data" "/dev/fd/7"
python3 -c 'import os; os.pwrite(7, b"x" * 5000, 40000000); os.fsync(7)'
is "$(stat -L -c %s /dev/fd/7)" 40005000 "an open file without a name grows"
wait_for 240 "the new block" blocks_are 8
is "$(blocks)" 8 "its blocks stay as long as it is open, with those of the marker" # 3 x 2, and the marker x 2
exec 7>&-
no_block_left "blocks that were written after the removal are removed after the close"

# The mount dies in the middle of removals, and the other one finishes them.
for i in 1 2 3; do
    mkdir "$a/d"
    python3 - "$a/d" <<'EOS'
import os, sys
for n in range(1, 7):
    fd = os.open("%s/%d" % (sys.argv[1], n), os.O_RDWR | os.O_CREAT)
    for k in range(1, 8):
        os.pwrite(fd, b"data", k * 4194304 - 2)
    os.close(fd)
EOS
    rm -r "$a/d" 2>/dev/null &
    remover=$!
    while [[ -e $b/d/$i ]]; do
        :
    done
    mount_kill "$a"
    wait "$remover" || true # a mount that is gone fails it
    mount_kiln v "$a" --entry-timeout=0 --attribute-timeout=0
    for n in 1 2 3 4 5 6; do
        [[ ! -e $a/d/$n ]] ||
            is "$(head -c 4194306 "$a/d/$n" | tail -c 4)" data "round $i: a file that has its name still has its blocks"
    done
    rm -rf "$a/d"
    no_block_left "round $i: a mount that died while it removed files leaves no block"
done

# Both mounts die while one of them has a removed file open. A new mount sweeps although no name is left to look up.
cp "$T/data" "$a/f"
exec 7<>"$b/f"
rm "$a/f"
mount_kill "$a"
mount_kill "$b"
is "$(blocks)" 6 "the blocks and the marker of a removed file stay when all mounts die"
mount_kiln v "$a"
no_block_left "a new mount removes them before its first call"
