#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Stock glusterd and the gluster CLI use kilnd as the brick process, with multiplexing on. Volumes are created,
# started, mounted, monitored, changed while they serve, stopped and deleted. All bricks live in one process, which
# ends with the last one. With --stock the same script runs stock bricks, as the oracle.
# Covers: bricks/management.c, bricks/bricks.c, bricks/brick-ops.c

. "$(dirname "$0")/../lib/kiln.sh"

mnt=$T/mnt
glusterd_bricks_start
gl volume set all cluster.brick-multiplex on >/dev/null

all_online() { [[ $(bricks_online "$1") == 4 ]]; }
refused_write() { ! { echo more >>"$mnt/file"; } 2>/dev/null; }
writes() { { echo more >>"$mnt/file"; } 2>/dev/null; }

for v in a b c; do
    t "volume $v is created" gl_create $v 2x2
    t "volume $v is started" gl volume start $v
    wait_for 60 "the bricks of $v to be online" all_online $v
done
is "$(bricks_online a) $(bricks_online b) $(bricks_online c)" "4 4 4" "all bricks are online"
is "$(glusterd_brick_pids | wc -l)" 1 "one process serves all bricks"
brick_pid=$(glusterd_brick_pids)

mkdir "$mnt"
t "a volume is mounted by name" glusterfs --process-name fuse -s "$glusterd_host" --volfile-id b -l "$T/log/mnt.log" "$mnt"
wait_for 60 "the mount" is_glusterfs_mount "$mnt"
t "a file is written" bash -c "seq 1000 >'$mnt/file' && mkdir '$mnt/d' && cp '$mnt/file' '$mnt/d/copy'"
t "the file is read" cmp "$mnt/file" "$mnt/d/copy"

t "status clients shows four bricks" bash -c "gluster --mode=script volume status b clients | grep -c 'Clients connected' | grep -x 4"
t "status client-list shows the mount" bash -c "gluster --mode=script volume status b client-list | grep -q '^fuse '"
t "status mem shows four bricks" bash -c "gluster --mode=script volume status b mem | grep -c '^Keepcost' | grep -x 4"
t "status inode shows active inodes" bash -c "gluster --mode=script volume status b inode | grep -q 'Active Inodes'"
t "status fd shows four bricks" bash -c "gluster --mode=script volume status b fd | grep -c '^Brick' | grep -x 4"
t "status detail shows four bricks online" bash -c "gluster --mode=script volume status b detail | grep -c '^Online *: Y' | grep -x 4"
for flavour in mem clients inode fd; do
    t "status $flavour as XML tells of bricks" bash -c "gluster --mode=script volume status b $flavour --xml | grep -q '<path>$T'"
done

t "profile start succeeds" gl volume profile b start
# The options reach the bricks by way of the volfile.
sees_profile() { ls -l "$mnt/d" >/dev/null; gl volume profile b info | grep -qE ' LOOKUP$'; }
wait_for 60 "calls in the profile" sees_profile
t "profile info has latencies" bash -c "gluster --mode=script volume profile b info | grep -E '[0-9] [un]s .*(LOOKUP|OPENDIR|READDIRP)'"
t "profile stop succeeds" gl volume profile b stop
cat "$mnt/file" >/dev/null
t "top open shows the file" bash -c "gluster --mode=script volume top b open | grep -q '/file'"
t "top write shows the file" bash -c "gluster --mode=script volume top b write | grep -q '/file'"

t "glusterd sets an option that forbids writing" gl volume set b features.read-only on
wait_for 60 "the bricks to be read-only" refused_write
t "glusterd sets an option that allows writing" gl volume set b features.read-only off
wait_for 60 "the bricks to take writes" writes
is "$(glusterd_brick_pids)" "$brick_pid" "no brick was restarted for the options"

nothing_to_heal() {
    [[ $(gluster volume heal b info | grep -c '^Number of entries: 0') -eq 4 ]]
}
t "heal info finds nothing to heal" wait_for 60 "nothing to heal" nothing_to_heal
gl volume statedump b >/dev/null
has_dump() { compgen -G "/run/gluster/*.$brick_pid.dump.*" >/dev/null; }
wait_for 60 "a statedump" has_dump
t "glusterd enables the barrier" gl volume barrier b enable
t_not "glusterd refuses to enable an enabled barrier" gl volume barrier b enable
t "glusterd disables the barrier" gl volume barrier b disable

t "a volume is stopped" gl volume stop a
t "the mount of another volume serves" bash -c "cat '$mnt/file' >/dev/null && echo x >'$mnt/after-stop'"
is "$(glusterd_brick_pids)" "$brick_pid" "the same process serves the other volumes"
# glusterd keeps the stopped volume's options, so the volume joins the process again.
t "the stopped volume is started at once" gl volume start a
wait_for 60 "its bricks to be online again" all_online a
is "$(glusterd_brick_pids)" "$brick_pid" "the same process serves the started volume"
for round in 1 2 3; do
    t "a volume stops and starts, round $round" bash -c "gluster --mode=script volume stop c && gluster --mode=script volume start c"
    wait_for 60 "the bricks of c" all_online c
done
t "a volume is stopped" gl volume stop c
t "the volume is deleted" gl volume delete c
rm -rf "$T"/bricks/c-*
t "the volume is created again on the same path" gl_create c 2x2
t "the volume is started again" gl volume start c
wait_for 60 "the bricks of the new volume" all_online c

umount "$mnt"
for v in a b c; do
    t "$v is stopped" gl volume stop $v
done
wait_for 60 "the process to end" process_gone "$brick_pid"
is "$(glusterd_brick_pids)" "" "no brick process is left"
for v in a b c; do
    t "$v is deleted" gl volume delete $v
done
if [[ $BRICKD == kiln ]]; then
    cat /var/log/glusterfs/bricks/*.log >"$T/log/bricks.log"
    is "$(grep -cE '^\[[^]]*\] [CE] |graph-audit' "$T/log/bricks.log")" 0 "the bricks logged no error"
fi
