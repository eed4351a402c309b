#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# After add-brick a rebalance gives all folders a layout over all sets and moves files there; remove-brick ... start
# moves all files away from a set, which commit then removes. Contents, modes, owners, times, ACLs, xattrs, holes, links,
# and pipes stay, and each file is on the hashed brick of its name, without linkto files.
# Covers: xlators/cluster/distribute/migrate.c, xlators/cluster/distribute/migrate-names.c,
# Covers: xlators/cluster/distribute/rebalance.c, heal/rebalance-jobs.c,
# Covers: volumes/heal/rebalance.c, volumes/verbs/verb-rebalance.c, volumes/volume-task.c

. "$(dirname "$0")/../lib/kiln.sh"

mkdir -p "$T/b" "$T/mnt"
is_over() {
    kiln volume "$@" status | grep -qE '^Rebalance of .*: (completed|failed)$'
}
# The files below bricks that are no folders; linkto files with -perm 1000.
entries() {
    local brick=$1
    shift
    find "$brick" -path "$brick/.glusterfs" -prune -o ! -type d "$@" -print
}
facts() {
    cd "$T/mnt"
    find . ! -type d -printf '%p %y %m %U %G %s %T@ %l\n' | sort
    find . -type f | sort | xargs md5sum
    find . -type f | sort | xargs getfattr -d -m user.
    find . -type f | sort | xargs getfacl -p -n
    cd /
}
blocks() {
    stat -c %b "$T/mnt/d/sparse"
}

front_start
kiln volume create v replica 2 "$T"/b/{1,2,3,4}
kiln volume set v performance.stat-prefetch off
t_not "a volume that is not started is not rebalanced" kiln volume rebalance v start
kiln volume start v
mount -t glusterfs -o "acl,log-file=$T/log/client.log" localhost:/v "$T/mnt"
mkdir -p "$T/mnt/d/e"
for i in {1..60}; do
    echo "text $i" >"$T/mnt/d/$i"
    echo "e $i" >"$T/mnt/d/e/$i"
done
for i in {1..8}; do
    ln -s "target $i" "$T/mnt/d/link$i"
    mkfifo "$T/mnt/d/fifo$i"
done
head -c 5000000 /dev/urandom >"$T/mnt/d/big"
truncate -s 100M "$T/mnt/d/sparse"
echo x | dd of="$T/mnt/d/sparse" bs=1M seek=50 conv=notrunc 2>/dev/null
for i in {1..60}; do
    setfattr -n user.a -v "$i" "$T/mnt/d/$i"
    setfacl -m u:3:r "$T/mnt/d/$i"
done
chmod 4755 "$T"/mnt/d/e/1?
chown 7:8 "$T"/mnt/d/e/2?
chmod 2755 "$T"/mnt/d/e/3?
chmod 1644 "$T"/mnt/d/e/4?
facts >"$T/before"

kiln volume add-brick v "$T"/b/{5,6}
t "rebalance fix-layout starts" kiln volume rebalance v fix-layout start
t "rebalance fix-layout ends" wait_for 240 "the end" is_over rebalance v
include "... as completed" grep completed <<<"$(kiln volume rebalance v status)"
is "$(entries "$T/b/5")" "" "fix-layout moves no file"
layout_of() {
    getfattr -n trusted.glusterfs.dht -e hex --only-values "$T/b/$1/d" 2>/dev/null | od -An -tx1 | tr -d ' \n'
}
t_not "the added bricks have a range of an existing folder" test "$(layout_of 5 | tail -c 16)" = 0000000000000000

t "rebalance starts" kiln volume rebalance v start
t "rebalance ends" wait_for 240 "the end" is_over rebalance v
kiln volume rebalance v status
t "no file failed" grep -q 'skipped: 0, failed: 0' <<<"$(kiln volume rebalance v status)"
t "the added bricks have files" test "$(entries "$T/b/5" ! -perm 1000 | wc -l)" -gt 10
is "$(entries "$T/b/5" | wc -l)" "$(entries "$T/b/6" | wc -l)" "both added replicas have the same number of files"
is "$(for b in 1 3 5; do entries "$T/b/$b" -type f -perm 1000; done)" "" "no linkto file is left"
facts >"$T/after"
t "contents, attributes, xattrs and ACLs are as before" diff "$T/before" "$T/after"
t "the sparse file has its holes" test "$(blocks)" -lt 100
t "no mark of a migration is left on a file" bash -c \
    "! getfattr -R -h -d -m 'dht.linkto|kiln|protect' '$T'/b/{1,3,5} 2>/dev/null | grep -E 'linkto|kiln|protect'"

for i in {1..12}; do
    echo "linked $i" >"$T/mnt/d/linked$i"
    ln "$T/mnt/d/linked$i" "$T/mnt/d/e/second$i"
    [[ $((i % 3)) -gt 0 ]] || ln "$T/mnt/d/linked$i" "$T/mnt/d/third$i"
done
facts >"$T/before"
links() {
    (cd "$T/mnt" && find . -type f -links +1 -printf '%i %n %p\n' | sort)
}
links >"$T/links-before"

t_here "kilnd stops" front_stop
t_here "kilnd starts again" front_start
include "kilnd has kept the result" grep completed <<<"$(kiln volume rebalance v status)"
t_not "bricks that were not drained are not committed" kiln volume remove-brick v "$T"/b/{1,2} commit
t "remove-brick start succeeds" kiln volume remove-brick v "$T"/b/{1,2} start
t_not "another set cannot be drained meanwhile" kiln volume remove-brick v "$T"/b/{3,4} start
t "the drain ends" wait_for 240 "the end" is_over remove-brick v "$T"/b/{1,2}
is "$(entries "$T/b/1")" "" "no file is left on the drained bricks"
t_not "bricks cannot be added before the removal" kiln volume add-brick v "$T"/b/{7,8}
t "the client has found the bricks again" wait_for 240 "the client" touch "$T/mnt/d/100"
for i in {100..130}; do echo "new $i" >"$T/mnt/d/$i"; done
is "$(entries "$T/b/1")" "" "no new file is made on the drained bricks"
rm "$T"/mnt/d/1[0-3]?
t "remove-brick commit succeeds" kiln volume remove-brick v "$T"/b/{1,2} commit
is "$(kiln_json info v | grep -o '"path"' | wc -l)" 4 "the volume has four bricks"
same_links() {
    links >"$T/links-after" && diff "$T/links-before" "$T/links-after"
}
same_facts() {
    facts >"$T/after" && diff "$T/before" "$T/after"
}
t "contents, attributes, xattrs and ACLs are as before the removal" wait_for 240 "the client" same_facts
t "hard links are as before the removal" same_links
linked=$(find "$T"/b/{3,5}/d -type f ! -perm 1000 -links +2 -printf '%n\n' | sort | uniq -c | tr -s ' ' | paste -sd,)
is "$linked" " 16 3, 12 4" "each file has all its names on one brick"
umount "$T/mnt"
