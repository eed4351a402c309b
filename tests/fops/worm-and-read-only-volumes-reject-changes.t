#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The script checks which calls of a mount's users succeed and which fail with EROFS on a read-only volume and on a
# write-once volume. With --stock the same script shows that stock bricks agree.
# Covers: xlators/features/read-only/read-only.c, xlators/features/worm/worm.c

. "$(dirname "$0")/../lib/kiln.sh"

mnt=$T/mnt

refused() {
    local out
    ! out=$("$@" 2>&1) && grep -q 'Read-only file system' <<<"$out" || { echo "$out"; return 1; }
}

restart_with() {
    mount_end "$mnt"
    volume_stop v
    xlator_options=("$@")
    volume_start v
    mount_volume v "$mnt"
}

volume_new v 1x2
volume_start v
mount_volume v "$mnt"
echo one >"$mnt/file"
mkdir "$mnt/dir"
setfattr -n user.a -v 1 "$mnt/file"

restart_with '*-read-only.read-only=on'
is "$(cat "$mnt/file")" one "read-only: a file is read"
is "$(getfattr --only-values -n user.a "$mnt/file" 2>/dev/null)" 1 "read-only: an xattr is read"
is "$(ls "$mnt")" $'dir\nfile' "read-only: a folder is listed"
t "read-only: no file is made" refused touch "$mnt/new"
t "read-only: no folder is made" refused mkdir "$mnt/newdir"
t "read-only: no symlink is made" refused ln -s file "$mnt/newlink"
t "read-only: no second name is made" refused ln "$mnt/file" "$mnt/second"
t "read-only: no data is written" refused bash -c "echo two >>'$mnt/file'"
t "read-only: no file is truncated" refused truncate -s 0 "$mnt/file"
t "read-only: no file is removed" refused rm "$mnt/file"
t "read-only: no folder is removed" refused rmdir "$mnt/dir"
t "read-only: no file is renamed" refused mv "$mnt/file" "$mnt/other"
t "read-only: no mode is changed" refused chmod 600 "$mnt/file"
t "read-only: no xattr is set" refused setfattr -n user.a -v 2 "$mnt/file"
t "read-only: no xattr is removed" refused setfattr -x user.a "$mnt/file"
is "$(cat "$mnt/file")" one "read-only: the file is unchanged"

restart_with '*-worm.worm=on'
t "worm: a file is made and written" bash -c "echo new >'$mnt/new'"
is "$(cat "$mnt/new")" new "worm: the written file is read"
t "worm: a folder is made" mkdir "$mnt/newdir"
t "worm: a mode is changed" chmod 600 "$mnt/new"
t "worm: an xattr is set" setfattr -n user.b -v 2 "$mnt/new"
t "worm: the file is not written again" refused bash -c "echo more >>'$mnt/new'"
t "worm: the file is not truncated" refused truncate -s 0 "$mnt/new"
t "worm: the file is not removed" refused rm "$mnt/new"
t "worm: the file is not renamed" refused mv "$mnt/new" "$mnt/newer"
t "worm: the file gets no second name" refused ln "$mnt/new" "$mnt/second"
t "worm: no folder is removed" refused rmdir "$mnt/newdir"
is "$(cat "$mnt/new")" new "worm: the file is unchanged"

restart_with
t "switched off: the file is removed" rm "$mnt/new"
