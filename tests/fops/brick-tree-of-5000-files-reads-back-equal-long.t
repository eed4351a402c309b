#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A stock client copies 5,000 files of many sizes in 125 directories into a 2x2 volume. Another client reads the
# files, copies them out again and deletes them.
# Covers: xlators/protocol/server, xlators/storage/posix

. "$(dirname "$0")/../lib/kiln.sh"

volume_new v 2x2
volume_start v
mount_volume v "$T/m1"
mount_volume v "$T/m2"

python3 - "$T/tree" <<'EOF'
import os, random, sys
dice = random.Random(5000)
for folder in range(125):
    path = os.path.join(sys.argv[1], "d%02d" % (folder // 25), "e%02d" % (folder % 25))
    os.makedirs(path)
    for number in range(40):
        with open(os.path.join(path, "file-%d-%d" % (folder, number)), "wb") as file:
            file.write(dice.randbytes(int(dice.paretovariate(0.6)) * 40 % 300000))
EOF
(cd "$T/tree" && find . -type f -print0 | sort -z | xargs -0 sha256sum) >"$T/sums"
is "$(wc -l <"$T/sums")" 5000 "the source tree has 5000 files"

t "a client copies the tree in" cp -a "$T/tree" "$T/m1/tree"
is "$(find "$T/m2/tree" -type f | wc -l)" 5000 "the other client lists all files"
t "the other client reads the right bytes" env -C "$T/m2/tree" sha256sum --quiet --check "$T/sums"
t "the other client copies the tree out" cp -a "$T/m2/tree" "$T/out"
t "the copied tree has the original modes and times" \
    diff <(cd "$T/tree" && find . -printf '%P %M %u %g %s %T@\n' | sed '/^ /d' | sort) \
    <(cd "$T/out" && find . -printf '%P %M %u %g %s %T@\n' | sed '/^ /d' | sort)
t "the copied tree has the original bytes" diff -r "$T/tree" "$T/out"
t "the tree is deleted" rm -r "$T/m1/tree"
is "$(find "$T/m2" -mindepth 1 | wc -l)" 0 "the volume is empty after the removal"
# In each brick's store only the directories' own handles may stay.
left=0
for brick in ${volume_bricks[v]}; do
    left=$((left + $(find "$brick"/.glusterfs/[0-9a-f][0-9a-f] -type f 2>/dev/null | wc -l)))
done
is "$left" 0 "no handle of a file is left on the bricks"
