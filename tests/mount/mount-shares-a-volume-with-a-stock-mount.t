#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A kiln-mount and a stock mount use the same volume, on a kilnd brick and on a stock one. Each mount sees the
# changes of the other mount; both copy a tree of several hundred files unchanged; a lock of one mount blocks the
# other. An open file can be read and changed through kiln-mount after its name was removed.
# Covers: xlators/mount/fuse, xlators/protocol/client, xlators/features/locks/posixlk.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

make_tree() {
    python3 - "$1" <<'EOS'
import os, sys
root = sys.argv[1]
for i in range(300):
    folder = "%s/d%d" % (root, i % 20)
    os.makedirs(folder, exist_ok=True)
    with open("%s/f%d" % (folder, i), "wb") as file:
        file.write(bytes([65 + i % 26]) * (i * 50))
os.symlink("d1/f1", root + "/link")
os.link(root + "/d2/f2", root + "/hard")
os.chmod(root + "/d3/f3", 0o640)
EOS
}

tree_sums() {
    (cd "$1" && find . -printf '%P %y %m %n %l\n' | sort && find . -type f -print0 | sort -z | xargs -0 sha256sum)
}

trees_equal() {
    diff <(tree_sums "$1") <(tree_sums "$2")
}

lock_refused() {
    # A process holds a lock on the file through the mount $1; a second process tries the lock through $2.
    flock -x "$1/locked" -c "flock -n -x '$2/locked' true && exit 1; exit 0"
}

for kind in kiln stock; do
    volume_new "v-$kind" 1x1
    volume_assign "v-$kind" "$kind"
    volume_start "v-$kind"
    kiln=$T/kiln-$kind
    stock=$T/stock-$kind
    mount_kiln "v-$kind" "$kiln" --attribute-timeout=0 --entry-timeout=0
    mount_volume "v-$kind" "$stock" plain --attribute-timeout=0 --entry-timeout=0
    t "$kind: a tree is created through kiln-mount" make_tree "$kiln/a"
    t "$kind: a tree is created through the stock mount" make_tree "$stock/b"
    t "$kind: the stock mount sees the tree of kiln-mount unchanged" trees_equal "$kiln/a" "$stock/a"
    t "$kind: kiln-mount sees the tree of the stock mount unchanged" trees_equal "$kiln/b" "$stock/b"
    t "$kind: both trees are equal" trees_equal "$kiln/a" "$kiln/b"
    echo one >"$kiln/shared"
    echo two >>"$stock/shared"
    echo three >>"$kiln/shared"
    is "$(tr '\n' ' ' <"$stock/shared")" "one two three " "$kind: appends by both mounts in turn are in the file"
    mv "$stock/shared" "$stock/moved"
    t_not "$kind: the old name of a file that the other mount renamed is gone" test -e "$kiln/shared"
    t "$kind: the new name of a file that the other mount renamed exists" test -e "$kiln/moved"
    setfattr -n user.colour -v blue "$kiln/moved"
    is "$(getfattr --only-values -n user.colour "$stock/moved")" blue "$kind: xattrs are shared"
    touch "$kiln/locked"
    t "$kind: a lock of kiln-mount blocks the stock mount" lock_refused "$kiln" "$stock"
    t "$kind: a lock of the stock mount blocks kiln-mount" lock_refused "$stock" "$kiln"
    mkdir "$kiln/nameless"
    t "$kind: an open unlinked file can be read and changed" python3 "$tests_dir/mount/matrix_work.py" nameless "$kiln/nameless"
    rm -r "$kiln/nameless"
    t "$kind: a tree is removed through kiln-mount" rm -r "$kiln/b"
    t "$kind: a tree is removed through the stock mount" rm -r "$stock/a"
    is "$(ls "$kiln") / $(ls "$stock")" "$(printf 'locked\nmoved / locked\nmoved')" "$kind: both mounts list the remaining names"
    mount_end "$stock"
    t_here "$kind: kiln-mount is unmounted" mount_end "$kiln"
    volume_stop "v-$kind"
    t "$kind: every object of the brick has its handle" brick_handles_hold "${volume_bricks[v-$kind]}"
done
