#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# `mount -t kiln` mounts a volume of stock bricks under a stock glusterd. kiln-mount takes glusterd's volfile as it
# is, follows options that `gluster volume set` changes, and after add-brick creates files on the new brick, while a
# file stays open. A stock mount of the same volume sees the same. When the bricks are set to send invalidations, the
# mount caches attributes longer at once. An unknown volume and a missing subdirectory are refused.
# Covers: mount/spec.c, mount/volume.c, xlators/mount/fuse/switch.c, mount/helper.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/measure.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

system_cover
ln -s "$KILN_MOUNT" /usr/sbin/mount.kiln
glusterd_start
gl_create v 2x1 >/dev/null
gl volume start v >/dev/null
wait_for 240 "the bricks of v" bash -c "$(declare -f bricks_online gl); [[ \$(bricks_online v) == 2 ]]"
mnt=$T/mnt
log=$T/log/kiln-mount.log
mkdir "$mnt"

status=0
mount -t kiln -o "log-file=$log,attribute-timeout=0,entry-timeout=0" "$glusterd_host:/v" "$mnt" 2>"$T/mounted.out" || status=$?
if grep -q "cluster/distribute is not built" "$T/mounted.out"; then
    skip_all "glusterd's volumes have cluster/distribute, which is not built"
fi
is "$status" 0 "the volume is mounted"
is "$(findmnt -n -o FSTYPE,SOURCE --mountpoint "$mnt" | tr -s ' ')" "fuse.glusterfs $glusterd_host:/v" "the mount table shows the volume"
mkdir "$mnt/before"
for i in {1..40}; do
    echo "$i" >"$mnt/before/f$i"
done
exec 5>>"$mnt/open"
echo one >&5

said() {
    [[ $(grep -c "\[$1\]" "$log") -ge $2 ]]
}

gl volume set v network.ping-timeout 30 >/dev/null
t "an option that is set reaches the mount" wait_for 240 "the options" said mount-options 1
gl volume add-brick v "$glusterd_host:$T/bricks/v-2" force >/dev/null
t "the mount switches to a graph with the added brick" wait_for 240 "the switch" said mount-switched 1
echo two >&5
exec 5>&-
is "$(tr '\n' ' ' <"$mnt/open")" "one two " "an open file is usable after the switch"
mkdir "$mnt/after"
for i in {1..60}; do
    echo "$i" >"$mnt/after/f$i"
done
t "new files are created on the added brick" test "$(find "$T/bricks/v-2/after" -type f -size +0 | wc -l)" -gt 0
gl_mount v "$T/stock"
is "$(cat "$T"/stock/{before,after}/f* | sort | md5sum)" "$(cat "$mnt"/{before,after}/f* | sort | md5sum)" \
    "a stock mount reads what Kiln's reads"
is "$(ls "$mnt/before" | wc -l) $(ls "$mnt/after" | wc -l)" "40 60" "the mount lists every file once"
is "$(ls "$T/stock/before" | wc -l) $(ls "$T/stock/after" | wc -l)" "40 60" "the stock mount lists every file once"
umount "$T/stock"
umount "$mnt"
t "a subdirectory is mounted" mount -t kiln -o "log-file=$log" "$glusterd_host:/v/after" "$mnt"
is "$(cat "$mnt/f7")" 7 "the subdirectory is the root of the mount"
umount "$mnt"

# The mount caches attributes longer as soon as the bricks send invalidations.
t "the volume is mounted with a long entry timeout" mount -t kiln -o "log-file=$log,entry-timeout=600" "$glusterd_host:/v" "$mnt"
for option in features.cache-invalidation=on features.cache-invalidation-timeout=600 performance.cache-invalidation=on \
    performance.md-cache-timeout=600; do
    gl volume set v "${option%=*}" "${option#*=}" >/dev/null
done
stats_sent() {
    calls_take "$(pgrep -nx mount.kiln)" "$T/sent"
    awk '$1 == "stat" || $1 == "fstat" { n += $2 } END { print n + 0 }' "$T/sent"
}
asks_nobody() {
    local before
    stat "$mnt"/before/* >/dev/null
    before=$(stats_sent)
    grep -q '^lookup ' "$T/sent" || return 1
    sleep 1.5
    stat "$mnt"/before/* >/dev/null
    [[ $(stats_sent) -eq $before ]]
}
t_here "attributes are cached for longer than a second" wait_for 60 "cached attributes" asks_nobody
gl_mount v "$T/stock"
chmod 700 "$T/stock/before/f1"
t "a change by a stock mount is seen" wait_for 5 "the new mode" bash -c "[[ \$(stat -c %a '$mnt/before/f1') == 700 ]]"
umount "$T/stock"
umount "$mnt"
status=0
mount -t kiln "$glusterd_host:/none" "$mnt" 2>"$T/refused.out" || status=$?
t "a volume unknown to glusterd is refused ($status)" test "$status" -ne 0
t_not "the unknown volume is not mounted" mount_is_listed "$mnt"
status=0
mount -t kiln "$glusterd_host:/v/none" "$mnt" 2>"$T/refused.out" || status=$?
t "a missing subdirectory is refused ($status)" test "$status" -ne 0
t_not "the missing subdirectory is not mounted" mount_is_listed "$mnt"
t_not "the mounts leaked no object" grep -E 'graph-audit|graph-inodes-left|fuse-audit' "$log"
gl volume stop v >/dev/null
kill "$glusterd_pid"
