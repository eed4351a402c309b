#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# `kiln volume set NAME features.shard on` turns blocks on for mounts by name, of Kiln and of stock, and for a mount that is there
# already: its open files stay usable, and files that are created from then on have blocks. A block size that stock refuses is
# refused.
# Covers: volumes/volume-options.c, volumes/volfile-text.c, xlators/features/shard

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

mkdir -p "$T/b"
front_start --brick-port 24107
kiln volume create v replica 2 "$T/b/0" "$T/b/1" "$T/b/2" "$T/b/3" >/dev/null
kiln volume start v >/dev/null
mnt=$T/mnt
mkdir "$mnt"
t "the volume is mounted" "$KILN_MOUNT" -l "$T/log/mount.log" -p "$T/mount.pid" localhost:/v "$mnt"
head -c 9000000 /dev/urandom >"$T/data"
cp "$T/data" "$mnt/before"
exec 7<>"$mnt/before"
t "a block size below 4 MB is refused" fails_with "shard-block-size" kiln volume set v features.shard-block-size 1MB
t "a block size of 4 MB is set" kiln volume set v features.shard-block-size 4MB
t "blocks are turned on" kiln volume set v features.shard on
has_blocks() {
    rm -f "$mnt/try"
    cp "$T/data" "$mnt/try"
    [[ -n $(find "$T"/b/*/.shard -name '*.1' 2>/dev/null) ]]
}
wait_for 120 "the mount to follow" has_blocks
t "a file that is created then has blocks" has_blocks
t "the file in blocks is whole" cmp "$T/data" "$mnt/try"
echo more >&7
exec 7>&-
t "a file that was open is usable" bash -c "cmp <(tail -c +6 '$mnt/before') <(tail -c +6 '$T/data')"
front_mount v "$T/stock"
t "a stock mount by name reads the file in blocks" cmp "$T/data" "$T/stock/try"
cp "$T/data" "$T/stock/theirs"
t "kiln-mount reads the file that the stock mount has written" cmp "$T/data" "$mnt/theirs"
is "$(stat -c %s "$mnt/theirs" "$T/stock/before" | tr '\n' ' ')" "9000000 9000000 " "both show the sizes"
umount "$T/stock"
pid=$(<"$T/mount.pid")
umount "$mnt"
wait_for 120 "kiln-mount to end" process_gone "$pid"
front_stop
