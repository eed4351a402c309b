#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A kiln-mount and a stock mount use the same volume, on a kilnd brick and on a stock one. Each sees what the other
# has created, changed and removed; both copy a tree of several hundred files unchanged; a lock of one mount blocks
# the other. An open file can be read and changed through kiln-mount after its name was removed.
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
    # Someone holds the file through the mount $1; asked through $2.
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
    t "$kind: a tree made through Kiln's mount" make_tree "$kiln/a"
    t "$kind: and one through the stock mount" make_tree "$stock/b"
    t "$kind: the stock mount sees the first as it is" trees_equal "$kiln/a" "$stock/a"
    t "$kind: Kiln's mount sees the second as it is" trees_equal "$kiln/b" "$stock/b"
    t "$kind: and both are alike" trees_equal "$kiln/a" "$kiln/b"
    echo one >"$kiln/shared"
    echo two >>"$stock/shared"
    echo three >>"$kiln/shared"
    is "$(tr '\n' ' ' <"$stock/shared")" "one two three " "$kind: they append in turn"
    mv "$stock/shared" "$stock/moved"
    t_not "$kind: what the other has moved is not there any more" test -e "$kiln/shared"
    t "$kind: but where it is now" test -e "$kiln/moved"
    setfattr -n user.colour -v blue "$kiln/moved"
    is "$(getfattr --only-values -n user.colour "$stock/moved")" blue "$kind: xattrs are shared"
    touch "$kiln/locked"
    t "$kind: a lock of Kiln's mount holds off the stock one" lock_refused "$kiln" "$stock"
    t "$kind: and the other way round" lock_refused "$stock" "$kiln"
    mkdir "$kiln/nameless"
    t "$kind: an open file without a name is asked and changed" python3 "$tests_dir/mount/matrix_work.py" nameless "$kiln/nameless"
    rm -r "$kiln/nameless"
    t "$kind: a tree removed through Kiln's mount" rm -r "$kiln/b"
    t "$kind: and one through the stock mount" rm -r "$stock/a"
    is "$(ls "$kiln") / $(ls "$stock")" "$(printf 'locked\nmoved / locked\nmoved')" "$kind: both see what is left"
    mount_end "$stock"
    t_here "$kind: unmounted" mount_end "$kiln"
    volume_stop "v-$kind"
    t "$kind: every object of the brick has its handle" brick_handles_hold "${volume_bricks[v-$kind]}"
done
