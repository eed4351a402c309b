#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# No self-heal daemon runs. One of two replicas was down while files were changed in every way. kiln-mount heals only
# the names of its LOOKUPs, as the stock client does. With the volume's self-heal options on, kiln-mount heals every
# object of a LOOKUP: the replicas become equal, no marks are left, and data read during the heal is right.
# Covers: xlators/cluster/replicate/heal.c, xlators/cluster/replicate/heal-name.c,
# xlators/cluster/replicate/heal-data.c, xlators/cluster/replicate/heal-metadata.c,
# xlators/cluster/replicate/heal-entry.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

work() {
    python3 "$(dirname "$0")/replica_work.py" "$@"
}

marks() {
    work marks "${bricks[@]}"
}

marks_have_settled() {
    ! marks | grep ': .*trusted.afr.dirty' >/dev/null
}

answers() {
    ls "$mnt" >/dev/null 2>&1
}

# Names, kinds and targets.
listing() {
    (cd "$1" && find . -path ./.glusterfs -prune -o -name . -o -printf '%P %y %l\n' | sort)
}

# Compares the bricks without the folder in which healers park objects that have lost their name. That folder is
# never removed.
are_equal() {
    diff <(brick_listing "${bricks[0]}") <(brick_listing "${bricks[1]}" | grep -v '^.glusterfs-anonymous-inode-[^/]* d ')
}

walk() {
    (cd "$mnt" && find . -type f -exec sha1sum {} + | sort -k 2; find . -printf '%P %m %U:%G %s\n' | grep -v '^ ' | sort)
}

# Each walk heals the objects that it finds. Objects that a heal has made are found by the next walk.
walk_heals() {
    walk >/dev/null
    nothing_pending "${bricks[@]}"
}

volume_split=brick
volume_new v 1x2
volume_start v
read -ra bricks <<<"${volume_bricks[v]}"
mnt=$T/mnt
mkdir "$T/dumps"
mount_kiln v "$mnt" --attribute-timeout=0 --entry-timeout=0 --statedump-dir "$T/dumps"
wait_for 240 "both children" children_up 2
work prepare "$mnt"
echo other >"$mnt/changed-twice"
wait_for 240 "the marks of the first files to go" marks_have_settled
daemon_kill "${brick_daemon[${bricks[1]}]}"
wait_for 240 "$mnt to answer again" answers
work change "$mnt"
wait_for 240 "the marks of what was changed" marks_have_settled
walk >"$T/right"
daemon_start "${brick_daemon[${bricks[1]}]}"
wait_for 240 "both children" children_up 2

# ---- by default: names
walk >"$T/read" 2>&1
t "reads return the contents of the good copy" diff "$T/right" "$T/read"
t_not "a removed name does not exist" stat "$mnt/gone"
t_not "a name removed from another directory does not exist" stat "$mnt/emptied"
t_not "a renamed file's old name does not exist" stat "$mnt/moved"
t_not "a renamed directory's old name does not exist" stat "$mnt/moved-folder"
walk >/dev/null
t "every name that was looked up is healed" diff <(listing "${bricks[0]}") \
    <(listing "${bricks[1]}" | grep -v '^.glusterfs-anonymous-inode-[^/]* d ')
t_not "contents are not healed" cmp "${bricks[0]}/over" "${bricks[1]}/over"
t "the changed contents wait for heal" grep '^brick 0: over about 1 1 0 0' <(marks)
t_here "the mount without heal options is unmounted" mount_end "$mnt"

# ---- with the options: everything
volfile_heal=heal
mount_kiln v "$mnt" --attribute-timeout=0 --entry-timeout=0 --statedump-dir "$T/dumps"
wait_for 240 "both children" children_up 2
walk >"$T/read" 2>&1
t "reads return the contents of the good copy during the heal" diff "$T/right" "$T/read"
t "every object that is looked up is healed" wait_for 240 "heal" walk_heals
is "$(marks | grep -v entry-changes)" "" "no pending marks are left"
t "the replicas are equal, and no object is parked" are_equal
walk >"$T/read" 2>&1
t "the healed contents are right" diff "$T/right" "$T/read"

# ---- objects that a heal makes are healed without a look-up of their names
look_at_folder_heals() {
    stat "$mnt/later" >/dev/null
    nothing_pending "${bricks[@]}"
}

daemon_kill "${brick_daemon[${bricks[1]}]}"
wait_for 240 "$mnt to answer without the second replica" answers
mkdir -p "$mnt/later/deeper"
for i in 1 2 3; do
    head -c 100000 /dev/urandom >"$mnt/later/f$i"
    head -c 100000 /dev/urandom >"$mnt/later/deeper/f$i"
done
wait_for 240 "the marks of the later files" marks_have_settled
daemon_start "${brick_daemon[${bricks[1]}]}"
wait_for 240 "both children once more" children_up 2
t "a look at a new folder heals the tree below it" wait_for 60 "heal of the new tree" look_at_folder_heals
t "the healed tree is equal on both replicas" diff -r "${bricks[0]}/later" "${bricks[1]}/later"
t_here "the healing mount is unmounted" mount_end "$mnt"
