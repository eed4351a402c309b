#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# An ordinary user works through a stock mount of each kind of volume, and once more with root-squash. The user makes
# files, writes them, renames them over others and onto other bricks, sets xattrs and ACLs, and removes the files, in
# a directory of the user and in a sticky directory of root. The layers of the mount do part of that work in their own
# name, and no permission check of the brick may refuse it. With one brick down, the mount heals the files that the
# user uses. A squashed root has the rights of nobody.
# Covers: xlators/features/access-control, xlators/protocol/server/squash.c, xlators/protocol/server/resolve.c

. "$(dirname "$0")/../lib/kiln.sh"

user=1234
as_user() {
    setpriv --reuid "$user" --regid "$user" --clear-groups -- "$@"
}

# The user's work in the folder $1, which is writable for the user.
cat >"$T/work.sh" <<'EOS'
set -eu
cd "$1"
mkdir -p tree/a/b tree/c
for i in {1..40}; do echo "text $i" >"tree/a/$i"; done
for i in {1..40}; do mv "tree/a/$i" "tree/a/renamed$i"; done
for i in {1..20}; do echo "old $i" >"tree/c/over$i"; done
for i in {1..20}; do mv "tree/a/renamed$i" "tree/c/over$i"; done
for i in {21..30}; do ln "tree/a/renamed$i" "tree/c/link$i"; ln -s "renamed$i" "tree/a/symlink$i"; done
for i in {1..20}; do setfattr -n user.colour -v "blue $i" "tree/c/over$i"; chmod 640 "tree/c/over$i"; done
for i in {1..10}; do truncate -s 3 "tree/c/over$i"; echo more >>"tree/c/over$i"; done
setfattr -n user.colour -v green tree tree/a
mv tree/c tree/moved
mkdir tree/c
for i in {1..5}; do rm "tree/a/renamed$((i + 30))"; done
for i in {1..5}; do mkdir "tree/c/d$i"; mv "tree/c/d$i" "tree/a/b/d$i"; done
rmdir tree/c
touch tree/a/renamed36 && chmod 4755 tree/a/renamed36
EOS
cat >"$T/verify.sh" <<'EOS'
set -eu
cd "$1"
[[ $(find tree -type f | wc -l) -eq 45 && $(find tree -type d | wc -l) -eq 9 && $(find tree -type l | wc -l) -eq 10 ]]
for i in {11..20}; do [[ $(cat "tree/moved/over$i") == "text $i" ]]; done
for i in {1..10}; do [[ $(cat "tree/moved/over$i") == "texmore" ]]; done
for i in {1..20}; do [[ $(getfattr --only-values -n user.colour "tree/moved/over$i") == "blue $i" ]]; done
for i in {21..30}; do [[ $(cat "tree/moved/link$i") == "text $i" && $(cat "tree/a/symlink$i") == "text $i" ]]; done
[[ -z $(find tree -not -uid 1234) && $(getfattr --only-values -n user.colour tree/a) == green ]]
EOS

for layout in 2x1 2x2 2x2+1; do
    for squash in off on; do
        vol=v$layout$squash
        mnt=$T/$vol-mnt
        BRICK_SERVER_OPTIONS="root-squash $squash"
        volume_new "$vol" "$layout"
        # The brick's root belongs to root and holds the users' folders, which a squashed root could not make through a mount.
        for brick in ${volume_bricks[$vol]}; do
            chmod 1777 "$brick"
        done
        volume_start "$vol"
        mount_volume "$vol" "$mnt" default --acl
        as_user mkdir "$mnt/home"
        t "$layout, root-squash $squash: the user works in their own directory" as_user bash "$T/work.sh" "$mnt/home"
        t "$layout, root-squash $squash: the user works in a sticky directory of root" as_user bash "$T/work.sh" "$mnt"
        t "$layout, root-squash $squash: the user may set an ACL" as_user setfacl -m u:77:r "$mnt/home/tree/a/renamed36"
        mount_volume "$vol" "$mnt-fresh" plain
        t "$layout, root-squash $squash: another mount sees the user's directory" as_user bash "$T/verify.sh" "$mnt-fresh/home"
        t "$layout, root-squash $squash: another mount sees the sticky directory" as_user bash "$T/verify.sh" "$mnt-fresh"
        if [[ $squash == on ]]; then
            t_not "$layout: a squashed root cannot remove a user's file" rm -f "$mnt/tree/a/renamed40"
            t_not "$layout: a squashed root cannot write a user's file" bash -c "echo x >>'$mnt/home/tree/a/renamed40'"
        fi
        t "$layout, root-squash $squash: the user removes the files" as_user rm -rf "$mnt/home/tree" "$mnt/tree"
        mount_end "$mnt-fresh"
        mount_end "$mnt"
        volume_stop "$vol"
    done
done

# The mount's own heal, in the middle of a user's work.
BRICK_SERVER_OPTIONS=
volume_split=yes
volume_new h 2x2
volume_start h
chmod 1777 $(printf '%s ' ${volume_bricks[h]})
volfile_heal=heal mount_volume h "$T/h-mnt" default
as_user mkdir "$T/h-mnt/home"
as_user touch "$T/h-mnt/home/before"
gone=(h-r1)
[[ $BRICKD == kiln ]] || gone=(h-b1 h-b3)
for daemon in "${gone[@]}"; do
    daemon_kill "$daemon"
done
t "the user works while half of the replicas are down" as_user bash "$T/work.sh" "$T/h-mnt/home"
for daemon in "${gone[@]}"; do
    daemon_start "$daemon"
done
mount_settle "$T/h-mnt"
t "the user works while the replicas return" as_user bash -c "mkdir '$T/h-mnt/again' && bash '$T/work.sh' '$T/h-mnt/again'"
t "the files made meanwhile are complete" as_user bash "$T/verify.sh" "$T/h-mnt/home"
healed() {
    local i
    as_user find "$T/h-mnt/home" -exec stat {} + >/dev/null
    for i in 1 3; do
        [[ $(cd "$T/h/b$i" && find home -type d | sort) == "$(cd "$T/h/b$((i - 1))" && find home -type d | sort)" ]] || return 1
    done
}
t "lookups by the user heal directories onto the replicas that were down" wait_for 120 "the same folders" healed
