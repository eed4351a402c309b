#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# With multiplexing off, glusterd starts a kilnd for each brick and ends it with SIGTERM. A killed brick returns by
# `start force` and is healed; glusterd may restart while bricks serve; bricks are added, replaced and reset; a brick
# that cannot start reports why. With --stock the same script runs stock bricks.
# Covers: glusterfsd/kilnd.c, bricks/management.c

. "$(dirname "$0")/../lib/kiln.sh"

mnt=$T/mnt
glusterd_bricks_start

none_run() { [[ -z $(glusterd_brick_pids) ]]; }
all_online() { [[ $(bricks_online "$1") == "$2" ]]; }
heal_is_done() { [[ $(gluster volume heal v info 2>/dev/null | awk '/^Number of entries:/ { n += $4 } END { print n + 0 }') == 0 ]]; }
pid_of_brick() { cat /run/gluster/vols/v/*"${1##*/}.pid"; }

t "a volume is created" gl_create v 1x2
t "the volume is started" gl volume start v
wait_for 60 "its bricks to be online" all_online v 2
is "$(glusterd_brick_pids | wc -l)" 2 "each brick has a process"
mkdir "$mnt"
glusterfs --process-name fuse -s "$glusterd_host" --volfile-id v -l "$T/log/mnt.log" "$mnt"
wait_for 60 "the mount" is_glusterfs_mount "$mnt"
t "files are made" bash -c "for i in {1..20}; do echo \$i >'$mnt/f'\$i; done"

for round in 1 2; do
    t "the volume stops, round $round" gl volume stop v
    wait_for 30 "the processes to end" none_run
    t "the volume starts at once" gl volume start v
    wait_for 60 "the bricks to be online" all_online v 2
done
# The mount is connected to both bricks when both bricks get a new file.
reaches_both() {
    local name=probe-$RANDOM
    touch "$mnt/$name" && [[ -e $T/bricks/v-0/$name && -e $T/bricks/v-1/$name && $(cat "$mnt/f7") == 7 ]]
}
wait_for 120 "the mount to be connected to both bricks" reaches_both

pid=$(pid_of_brick "$T/bricks/v-1")
kill -KILL "$pid"
one_online() { all_online v 1; }
wait_for 60 "glusterd to see that a brick was killed" one_online
t "files are changed while a brick is down" bash -c "for i in {1..20}; do echo new-\$i >'$mnt/f'\$i; done"
t "start force succeeds" gl volume start v force
wait_for 60 "the brick to be online again" all_online v 2
gl volume heal v >/dev/null || true
wait_for 120 "the heal" heal_is_done
is "$(cat "$T/bricks/v-1/f7")" new-7 "the brick has the missed change"
wait_for 120 "the mount to be connected to both bricks" eval 'touch "$mnt/again" && [[ -e $T/bricks/v-1/again ]] || { rm -f "$mnt/again"; false; }'

t "gluster get-state succeeds" gl get-state odir "$T" file state
t "get-state shows that the bricks have started" grep -q "Volume1.Brick2.status: Started" "$T/state"
t "get-state detail succeeds" gl get-state odir "$T" file state2 detail

kill "$glusterd_pid"
wait_for 60 "glusterd to end" process_gone "$glusterd_pid"
t "files are written while glusterd is down" bash -c "echo away >'$mnt/away'"
pids=$(glusterd_brick_pids | sort)
glusterd -N -l "$T/log/glusterd2.log" -p "$T/glusterd.pid" >>"$T/log/glusterd2.out" 2>&1 </dev/null &
glusterd_pid=$!
wait_for 120 "glusterd to answer" gluster --mode=script volume list
wait_for 60 "the bricks to be online for the new glusterd" all_online v 2
is "$(glusterd_brick_pids | sort)" "$pids" "the same processes serve after the restart of glusterd"

t "a replica set is added" gl volume add-brick v "$glusterd_host:$T/bricks/v-2" "$glusterd_host:$T/bricks/v-3" force
wait_for 60 "four bricks to be online" all_online v 4
t "gluster volume rebalance succeeds" gl volume rebalance v start
rebalanced() { gl volume rebalance v status | grep -q completed; }
wait_for 120 "the rebalance" rebalanced
t "all files are present" bash -c "for i in {1..20}; do [[ \$(cat '$mnt/f'\$i) == new-\$i ]] || exit 1; done"
t "a brick is replaced" gl volume replace-brick v "$glusterd_host:$T/bricks/v-3" "$glusterd_host:$T/bricks/v-4" commit force
wait_for 60 "its bricks to be online" all_online v 4
t "reset-brick start succeeds" gl volume reset-brick v "$glusterd_host:$T/bricks/v-0" start
wait_for 60 "three bricks" all_online v 3
t "reset-brick commit succeeds" gl volume reset-brick v "$glusterd_host:$T/bricks/v-0" "$glusterd_host:$T/bricks/v-0" commit force
wait_for 60 "four bricks again" all_online v 4
gl volume heal v full >/dev/null || true
wait_for 120 "the heal" heal_is_done

t "gluster volume clear-locks succeeds" gl volume clear-locks v / kind all inode
t "log rotate succeeds" gl volume log v rotate

umount "$mnt"
t "gluster volume stop succeeds" gl volume stop v
wait_for 60 "all bricks to end" none_run
setfattr -n trusted.glusterfs.volume-id -v 0x00112233445566778899aabbccddeeff "$T/bricks/v-2"
t_not "the brick folder of another volume is refused" gl volume start v
if [[ $BRICKD == kiln ]]; then
    cat /var/log/glusterfs/bricks/*.log >"$T/log/bricks.log"
    is "$(grep -c 'graph-audit' "$T/log/bricks.log")" 0 "kilnd keeps nothing of any detached brick"
fi
