#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A dispersed volume of one set gets a second set. A rebalance moves files there, and remove-brick ... start empties the first set,
# each while files are changed on a kiln-mount. Contents, holes, modes, owners, ACLs, xattrs and links stay, fragments belong
# together, and the stock client reads the files.
# Covers: heal/rebalance-jobs.c, volumes/heal/rebalance.c, xlators/cluster/distribute/migrate.c

. "$(dirname "$0")/../lib/kiln.sh"

work=$(dirname "$(readlink -f "$0")")/disperse_work.py
mkdir -p "$T/b" "$T/copies" "$T/mnt" "$T/stock"
is_over() {
    kiln volume "$@" status | grep -qE '^Rebalance of .*: (completed|failed)$'
}
facts() {
    cd "$1"
    find . ! -type d ! -path './file*' -printf '%p %y %m %U %G %s %T@ %l\n' | sort
    find . -type f ! -path './file*' | sort | xargs md5sum
    find d -type f | sort | xargs getfattr -d -m user.
    find d -type f | sort | xargs getfacl -p -n
    cd /
}
is_unchanged() {
    facts "$1" >"$T/now" && diff "$T/before" "$T/now"
}

front_start
kiln volume create v disperse 3 redundancy 1 "$T"/b/{1,2,3}
kiln volume start v
t "kiln-mount mounts the volume" \
    "$KILN_MOUNT" --hard=0 --acl -l "$T/log/kiln-mount.log" localhost:/v "$T/mnt"
python3 "$work" random "$T/mnt" "$T/copies" 5 60 >"$T/log/work.out"
mkdir "$T/mnt/d"
for i in {0..40}; do
    head -c $((i * i * 100)) /dev/urandom >"$T/mnt/d/$i"
    setfattr -n user.a -v "$i" "$T/mnt/d/$i"
    setfacl -m u:3:r "$T/mnt/d/$i"
done
truncate -s 20M "$T/mnt/d/sparse"
echo x | dd of="$T/mnt/d/sparse" bs=1M seek=10 conv=notrunc 2>/dev/null
ln "$T/mnt/d/30" "$T/mnt/d/second"
ln -s target "$T/mnt/d/link"
chmod 4755 "$T"/mnt/d/1?
chown 7:8 "$T"/mnt/d/2?
facts "$T/mnt" >"$T/before"

t "a second set is added" kiln volume add-brick v "$T"/b/{4,5,6}
t "a rebalance starts" kiln volume rebalance v start
t "files are changed meanwhile" python3 "$work" random "$T/mnt" "$T/copies" 6 60
t "the rebalance ends" wait_for 240 "the end" is_over rebalance v
include "... as completed" grep completed <<<"$(kiln volume rebalance v status)"
t "files are on the second set" eval '[[ $(find "$T/b/4/d" -type f -size +0 | wc -l) -ge 5 ]]'
t "the changed files are right" python3 "$work" same "$T/mnt" "$T/copies"
t "the other files are unchanged" is_unchanged "$T/mnt"
t "remove-brick empties the first set" kiln volume remove-brick v "$T"/b/{1,2,3} start
t "files are changed meanwhile" python3 "$work" random "$T/mnt" "$T/copies" 7 60
t "the move ends" wait_for 240 "the end" is_over remove-brick v "$T"/b/{1,2,3}
t "the first set is removed" kiln volume remove-brick v "$T"/b/{1,2,3} commit
t "the changed files are right" python3 "$work" same "$T/mnt" "$T/copies"
t "the other files are unchanged" is_unchanged "$T/mnt"
umount "$T/mnt"
t "the stock client mounts the volume" \
    mount -t glusterfs -o "acl,log-file=$T/log/client.log" localhost:/v "$T/stock"
t "the stock client reads the changed files" python3 "$work" same "$T/stock" "$T/copies"
t "the stock client reads the other files" is_unchanged "$T/stock"
umount "$T/stock"
kiln volume stop v
t "all fragments belong together" python3 "$work" fragments 1 "$T"/b/{4,5,6}
