#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A stock mount with client-side heal repairs the names and attributes on kilnd's bricks that the mount uses, without
# a self-heal daemon. (The mount leaves data to the daemon, and also the hidden directory in which replicate keeps
# files whose name was just removed: a daemon that starts afterwards heals both.)
# Covers: xlators/features/index, xlators/storage/posix/xattr/xattrop.c, xlators/features/locks

. "$(dirname "$0")/../lib/kiln.sh"

volume_split=yes
volume_new v 1x2
volume_start v
volfile_heal=heal mount_volume v "$T/mnt" plain
second=v-r1
[[ $BRICKD == kiln ]] || second=v-b1
mkdir "$T/mnt/dir"
for i in 1 2 3 4 5; do
    echo "old $i" >"$T/mnt/dir/file$i"
done
daemon_kill "$second"
for i in 1 2 3; do
    echo "new $i, which the dead replica does not have" >"$T/mnt/dir/file$i"
done
rm "$T/mnt/dir/file4"
mv "$T/mnt/dir/file5" "$T/mnt/dir/renamed"
chmod 600 "$T/mnt/dir/file1"
ln -s target "$T/mnt/dir/link"
mkdir "$T/mnt/dir/sub"
setfattr -n user.late -v yes "$T/mnt/dir/file2"
echo inside >"$T/mnt/dir/sub/file"
t "the changes that a brick missed are in the survivor's index" test -n "$(brick_pending "$T/v/b0")"
t_not "the replicas differ before the heal" bricks_equal "$T/v/b0" "$T/v/b1"

daemon_start "$second"
mount_settle "$T/mnt"
names_and_attributes() {
    (cd "$1" && find . -name '.glusterfs*' -prune -o -printf '%P %y %m %U:%G %l\n' | sort)
}
use_it_all() {
    ls -lR "$T/mnt" && cat "$T/mnt/dir/file1" "$T/mnt/dir/file2" "$T/mnt/dir/file3" "$T/mnt/dir/sub/file" &&
        diff <(names_and_attributes "$T/v/b0") <(names_and_attributes "$T/v/b1") &&
        getfattr -n user.late "$T/v/b1/dir/file2"
}
t "using the objects makes names and attributes equal" wait_for 240 "equal replicas" use_it_all
t "every object of the healed brick has its handle" brick_handles_hold "$T/v/b1"
shd_start v
t "the self-heal daemon heals the remaining data" wait_for 240 "empty indices" nothing_pending "$T/v/b0" "$T/v/b1"
t "the replicas are equal after the heal" bricks_get_equal "$T/v/b0" "$T/v/b1"
is "$(cat "$T/v/b1/dir/file1")" "new 1, which the dead replica does not have" "the healed brick has the new data"
t "every object of the healed brick still has its handle" brick_handles_hold "$T/v/b1"
