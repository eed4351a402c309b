#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount spreads files over three bricks as the stock client does. The same few hundred steps, with every file
# operation on few names, run on one volume through the stock client and on another through kiln-mount. Afterwards the
# bricks of both volumes hold the same, including layouts, linkto files and xattrs, and each step had the same result.
# A stock mount on the same volume sees the changes of kiln-mount, and the other way round.
# Covers: xlators/cluster/distribute/hash.c, xlators/cluster/distribute/layout.c, xlators/cluster/distribute/create.c,
# xlators/cluster/distribute/rename.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

here=$tests_dir/distribute
no_cache=(--attribute-timeout=0 --entry-timeout=0)
steps=${KILN_STEPS:-350}

# NAME MOUNT SEED: the work, then the mount ends, then the bricks are looked at.
work() {
    python3 "$here/distribute_work.py" "$2" "$steps" "$3" >"$T/$1.steps" || return 1
    mount_end "$2" || return 1
    # shellcheck disable=SC2086
    python3 "$here/brick_trees.py" ${volume_bricks[$1]} >"$T/$1.trees"
    # shellcheck disable=SC2086
    python3 "$here/brick_trees.py" --no-names ${volume_bricks[$1]} >"$T/$1.bare-trees"
}

same_as_stock() {
    diff "$T/stock-stock.$2" "$T/$1.$2"
}

bytes_of() {
    local blocks size
    read -r blocks size < <(stat -f -c '%b %S' "$1") && echo $((blocks * size))
}

# Succeeds when all bricks are connected: the size of the mount is the sum of their sizes, and each brick has the size
# of $T.
all_are_there() {
    local bytes
    bytes=$(bytes_of "$1" 2>/dev/null) && [[ $bytes -eq $((3 * $(bytes_of "$T"))) ]]
}

mount_kiln_whole() {
    mount_kiln "$1" "$2" "${no_cache[@]}"
    wait_for 240 "all bricks of $2" all_are_there "$2"
}

listings_equal() {
    diff <(cd "$1" && ls -lRn --time-style=+) <(cd "$2" && ls -lRn --time-style=+)
}

# A user can remove a folder without permission to read the folder. The check for entries leaves no trace on a folder
# that stays.
remove_unread() {
    mkdir -m 777 "$1/unread" && mkdir "$1/unread/d" "$1/unread/e" && chmod 0 "$1"/unread/? && chown 21001 "$1"/unread/?
    setpriv --reuid 21001 --regid 21001 --clear-groups bash -c 'cd "$1" && rmdir d && mkdir new && mv -T new e' -- "$1/unread"
}

remove_in_vain() {
    local before
    mkdir "$1/full" && touch "$1/full/file" && before=$(stat -c %.Z "$1/full") || return 1
    ! rmdir "$1/full" && [[ $(stat -c %.Z "$1/full") == "$before" ]]
}

seed=${KILN_SEED:-1}
volume_new stock-stock 3x1
volume_assign stock-stock stock
volume_start stock-stock
mount_volume stock-stock "$T/mnt-stock" default "${no_cache[@]}"
t_here "the stock client works on stock bricks" work stock-stock "$T/mnt-stock" "$seed"
volume_stop stock-stock

for kind in kiln stock; do
    v=kiln-$kind
    volume_new "$v" 3x1
    volume_assign "$v" "$kind"
    volume_start "$v"
    mount_kiln_whole "$v" "$T/mnt-$v"
    t_here "$kind bricks: kiln-mount does the same steps" work "$v" "$T/mnt-$v" "$seed"
    t "$kind bricks: each step has the same result as with the stock client" same_as_stock "$v" steps
    t "$kind bricks: the bricks equal those of the stock client" same_as_stock "$v" "$([[ $kind == stock ]] || echo bare-)trees"
    volume_stop "$v"
done

# Both at once, on the bricks of the last.
volume_start kiln-stock
mount_kiln_whole kiln-stock "$T/one"
mount_volume kiln-stock "$T/two" default "${no_cache[@]}"
mkdir "$T/one/k" "$T/two/s"
t "kiln-mount works on a volume shared with a stock mount" python3 "$here/distribute_work.py" "$T/one/k" 150 "$seed"
t "the stock client works on a volume shared with kiln-mount" python3 "$here/distribute_work.py" "$T/two/s" 150 "$seed"
t "a user removes and replaces directories without read permission" remove_unread "$T/one"
t "a directory that could not be removed keeps its ctime" remove_in_vain "$T/one"
t "both mounts see the same tree" listings_equal "$T/one" "$T/two"
is "$(find "$T/two" | wc -l)" "$(find "$T/one" | wc -l)" "each mount lists every name once"
t "each mount removes the tree of the other" rm -r "$T/two/k" "$T/one/s"
t_here "the volume is unmounted" mount_end "$T/one"
