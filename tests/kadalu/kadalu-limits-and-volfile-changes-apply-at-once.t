#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The operations of kadalu on a pool in use, with kilnd as the brick: the calls of its provisioner give a PVC a limit
# of 1 MiB, the calls of its crawler are answered with quota on and off, probes cost no log line, a changed volfile
# takes effect within seconds of SIGHUP in kiln-mount and in the stock client, and mounts recover after a brick was
# killed.
# Covers: rpc/server/volfile-serve.c, bricks/volfiles.c, xlators/features/simple-quota, mount/spec.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$kiln_lib/kadalu.sh"

kadalu_programs
kadalu_layers="open-behind quick-read"
kadalu_pool pool Replica1
kadalu_brick_start pool 0
brick_log=$T/log/kadalu-pool-0.log
pvc=subvol/12/34/pvc-1

# ---- probes and volfiles ---------------------------------------------------------------------

lines() { wc -l <"$brick_log"; }
before=$(lines)
for i in 1 2 3 4 5; do
    kadalu_brick_answers 0
done
t "a probe of the port leaves no line in the log" test "$(lines)" -eq "$before"
getspec() { python3 "$kiln_lib/getspec.py" 127.0.0.10 24007 "$1"; }
is "$(getspec pool)" "$(wc -c <"$kadalu_volfiles/pool.vol") 0" "GETSPEC answers with the client volfile"
is "$(getspec /pool)" "$(wc -c <"$kadalu_volfiles/pool.vol") 0" "GETSPEC accepts a key with a slash in front"
is "$(getspec other)" "-1 2" "GETSPEC answers ENOENT for a missing volfile"
echo secret >"$kadalu_dir/outside.vol"
ln -s ../outside.vol "$kadalu_volfiles/link.vol"
is "$(getspec ../outside)" "-1 22" "GETSPEC answers EINVAL for a path out of the folder"
is "$(getspec link)" "-1 22" "GETSPEC answers EINVAL for a symlink out of the folder"
mkfifo "$kadalu_volfiles/pipe.vol"
is "$(getspec pipe)" "-1 22" "GETSPEC of a FIFO fails at once"

# ---- a PVC -----------------------------------------------------------------------------------

t "the provisioner mounts the pool" kadalu_mount pool "$T/provisioner" kiln --client-pid -14
t "the CSI driver mounts the pool" kadalu_mount pool "$T/kiln" kiln
t "a stock client mounts the pool" kadalu_mount pool "$T/stock" stock
is "$(grep -c 'mount-layers-left-out' "$T/log/mount-kiln.log")" 1 "kiln-mount names the left out layers in one log line"
t "the log line has the types of the layers" grep -q 'performance/open-behind.*performance/quick-read\|performance/quick-read.*performance/open-behind' "$T/log/mount-kiln.log"
mkdir -p "$T/provisioner/$pvc" "$T/provisioner/info/12/34"
t "the PVC is marked" setfattr -n trusted.glusterfs.namespace -v true "$T/provisioner/$pvc"
t "the PVC gets a limit" setfattr -n trusted.gfs.squota.limit -v 1048576 "$T/provisioner/$pvc"
size_of() { stat -f -c '%b %S' "$1" | awk '{ print $1 * $2 }'; }
is "$(size_of "$T/provisioner/$pvc")" 1048576 "statvfs shows the limit through the provisioner's mount"
is "$(size_of "$T/kiln/$pvc")" 1048576 "statvfs shows the limit through an ordinary kiln-mount"
is "$(size_of "$T/stock/$pvc")" 1048576 "statvfs shows the limit through a stock mount"
t "512 KiB are written" dd if=/dev/zero of="$T/kiln/$pvc/a" bs=64k count=8 conv=fsync status=none
t "a write of 1 MiB more is refused" fails_with "quota exceeded" dd if=/dev/zero of="$T/kiln/$pvc/b" bs=64k count=16 conv=fsync
crawl() {
    local used
    used=$(df -B1 --output=used "$T/provisioner/$pvc" | tail -n 1)
    setfattr -n glusterfs.quota.total-usage -v "$((used))" "$T/provisioner/$pvc" &&
        setfattr -n trusted.glusterfs.namespace -v true "$T/provisioner/$pvc"
}
t "the crawler's calls succeed" crawl
t "a total for an ordinary folder is EPERM" fails_with "not permitted" setfattr -n glusterfs.quota.total-usage -v 5 "$T/provisioner/info"
t "the PVC is expanded" setfattr -n trusted.gfs.squota.limit -v 2097152 "$T/provisioner/$pvc"
is "$(size_of "$T/kiln/$pvc")" 2097152 "statvfs shows the size of the expanded PVC"
t "the expanded PVC has room" dd if=/dev/zero of="$T/kiln/$pvc/c" bs=64k count=8 conv=fsync status=none

# ---- changed volfiles ------------------------------------------------------------------------

# The .meta of the stock client goes on showing the options that it was mounted with; its log tells of the change.
kiln_noatime() { cat "$T/kiln/.meta/graphs/active/pool-utime/options/noatime"; }
stock_noatime() { sed -n 's/.*option noatime using set value \([a-z]*\).*/\1/p' "$T/log/mount-stock.log" | tail -n 1; }
is "$(kiln_noatime)" "on" "noatime is on"
exec 7>>"$T/kiln/open"
kadalu_noatime=off kadalu_client_volfile pool >"$kadalu_volfiles/pool.vol"
kadalu_reload
has_off() { [[ $("$1_noatime") == off ]]; }
t "kiln-mount has the changed option after SIGHUP to the brick" wait_for 30 "the option" has_off kiln
t "the stock client has the changed option after SIGHUP to the brick" wait_for 30 "the option" has_off stock
t "an open file can be written after the change" eval 'echo text >&7'
kadalu_layers="open-behind quick-read md-cache"
kadalu_noatime=off kadalu_client_volfile pool >"$kadalu_volfiles/pool.vol"
kadalu_reload
log_has() { grep -q "$1" "$2"; }
t "kiln-mount follows a volfile with a further layer" wait_for 30 "the layer" log_has 'performance/md-cache' "$T/log/mount-kiln.log"
t "the stock client follows a volfile with a further layer" wait_for 30 "the layer" log_has 'type performance/md-cache' "$T/log/mount-stock.log"
t "the open file can be written after the change of layers" eval 'echo more >&7'
is "$(cat "$T/stock/open")" $'text\nmore' "both clients serve the file after the change of layers"
exec 7>&-

passes_through() { fails_with "not supported" setfattr -n "glusterfs.quota.$1" -v 5 "$T/provisioner/$pvc"; }
kadalu_pass_through=true kadalu_brick_volfile pool 0 >"$kadalu_volfiles/$(kadalu_brick_id pool 0).vol"
kadalu_reload
t "the brick has the changed option of its own volfile after SIGHUP" wait_for 30 "pass-through" passes_through total-usage
t "glusterfs.quota.reset is not supported with the quota off" passes_through reset
t "glusterfs.quota.disable-check is not supported with the quota off" passes_through disable-check
kadalu_brick_volfile pool 0 >"$kadalu_volfiles/$(kadalu_brick_id pool 0).vol"
kadalu_reload
t "the crawler's calls succeed with the quota on again" wait_for 30 "the layer" crawl
echo "volume" >"$kadalu_volfiles/$(kadalu_brick_id pool 0).vol"
kadalu_reload
t "the log names a broken volfile" wait_for 30 "the line" grep -q 'pool.*volfile-reread-failed' "$brick_log"
t "the brick serves after a broken volfile" ls "$T/kiln/$pvc"
kadalu_brick_volfile pool 0 | awk '{ sub(/subvolumes pool-simple-quota$/, "subvolumes pool-worm") } /^volume pool-upcall/ {
    print "volume pool-worm\n    type features/worm\n    subvolumes pool-simple-quota\nend-volume\n" } { print }' \
    >"$kadalu_volfiles/$(kadalu_brick_id pool 0).vol"
kadalu_reload
t "the log says when a further layer of the brick comes" wait_for 30 "the line" grep -q 'pool-worm (features/worm) comes when the brick starts again' "$brick_log"
kadalu_brick_volfile pool 0 >"$kadalu_volfiles/$(kadalu_brick_id pool 0).vol"

# ---- a brick that is killed ------------------------------------------------------------------

kadalu_brick_kill pool 0
kadalu_brick_start pool 0
t "kiln-mount recovers after a kill of the brick" wait_for 60 "the mount" stat "$T/kiln/$pvc/a"
t "the stock client recovers after a kill of the brick" wait_for 60 "the mount" stat "$T/stock/$pvc/a"
is "$(size_of "$T/kiln/$pvc")" 2097152 "the PVC has its limit after the kill"
t "the limit holds after the kill" fails_with "quota exceeded" dd if=/dev/zero of="$T/stock/$pvc/d" bs=64k count=32 conv=fsync
t "usage equals du after the kill" eval '[[ $(df -B1 --output=used "$T/provisioner/$pvc" | tail -n 1) -eq $(du -sB1 "$(kadalu_brick_path pool 0)/$pvc" | cut -f 1) ]]'
kadalu_noatime=on kadalu_client_volfile pool >"$kadalu_volfiles/pool.vol"
kadalu_reload
has_on() { [[ $("$1_noatime") == on ]]; }
t "a kiln-mount from before the kill gets a changed option" wait_for 30 "the option" has_on kiln
t "a stock client from before the kill gets a changed option" wait_for 30 "the option" has_on stock
umount "$T/kiln" "$T/stock" "$T/provisioner"
t_here "the brick ends with status 0 on SIGTERM" kadalu_bricks_stop
