#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A pool of two hosts, one with glusterd 10.3 and one with glusterd 11.1, whose bricks are all kilnd's: volumes work from both hosts
# with the stock clients of both versions and with kiln-mount. The stock heal daemons of both heal, and replace-brick, add-brick and
# rebalance over both hosts lose no file. This is the state of a cluster in the middle of an upgrade.
# Covers: bricks/management.c, bricks/brick-ops.c, xlators/protocol/server/handshake.c, xlators/features/simple-quota
. "$(dirname "$0")/../lib/kiln.sh"

[[ -z ${KILN_STOCK_VERSION:-} ]] || skip_all "the script runs both versions itself"
eleven=$("$tests_dir/lib/stock-root.sh" 11) || skip_all "there is no root with GlusterFS 11"

ip link add bridge0 type bridge
ip addr add 10.99.1.254/24 dev bridge0
ip link set bridge0 up
declare -A host_pid=()

# Host 1 is the machine's Debian, host 2 the Debian with 11.1. Each has a network and a mount namespace.
host_new() {
    local h=$1
    local -a enter=()
    [[ $h -eq 1 ]] || enter=(env KILN_ENTER_BIND="$T" "$kiln_lib/enter-root.sh" "$eleven")
    ip netns add "h$h"
    ip link add "veth$h" type veth peer name eth0 netns "h$h"
    ip link set "veth$h" master bridge0 up
    ip -n "h$h" addr add "10.99.1.$h/24" dev eth0
    ip -n "h$h" link set eth0 up
    ip -n "h$h" link set lo up
    mkdir "$T/host$h"
    ip netns exec "h$h" unshare --mount --propagation private -- "${enter[@]}" bash -c "
        set -e
        T=$T/host$h KILND=$KILND source_dir=$source_dir
        $(declare -f sandbox_cover system_cover use_kiln)
        sandbox_cover
        system_cover
        [[ $BRICKD != kiln ]] || use_kiln on
        touch '$T/h$h.ready'
        exec sleep infinity" >"$T/log/h$h.out" 2>&1 &
    host_pid[$h]=$!
    wait_for 120 "host $h" test -e "$T/h$h.ready"
    on "$h" glusterd -N -l "$T/log/glusterd-$h.log" -p "$T/glusterd-$h.pid" >"$T/log/glusterd-$h.out" 2>&1 </dev/null &
    wait_for 240 "glusterd of host $h" on "$h" gluster --mode=script volume list
}

on() { # HOST COMMAND...
    nsenter -t "${host_pid[$1]}" --mount --net --root --wd=/ -- "${@:2}"
}
gl() { on 1 gluster --mode=script "$@"; }
gl2() { on 2 gluster --mode=script "$@"; }
peers() { gl peer status | grep -q 'Peer in Cluster (Connected)' && gl2 peer status | grep -q 'Peer in Cluster (Connected)'; }
online() { [[ $(gl volume status v detail | grep -c '^Online.*: Y') -eq $1 ]]; }
pending() { "gl$1" volume heal v info | awk '/^Number of entries:/ { n += $4; seen = 1 } END { print seen ? n + 0 : "none" }'; }
healed() { [[ $(pending "") == 0 && $(pending 2) == 0 ]]; }
task_done() { gl volume "$@" status | grep -q completed && ! gl volume "$@" status | grep -q 'in progress'; }
brick() { echo "10.99.1.$1:$T/host$1/$2"; }
sum() { (cd "$1" && find . -maxdepth 1 -type f -name 'f*' | sort | xargs sha256sum | sha256sum); }
same() { [[ $(sum "$1") == "$want" ]]; }

host_new 1
host_new 2
t "host 1 has version 10" bash -c "nsenter -t ${host_pid[1]} --mount --root -- glusterd --version | head -n 1 | grep -q ' 10\.'"
t "host 2 has version 11" bash -c "nsenter -t ${host_pid[2]} --mount --root -- glusterd --version | head -n 1 | grep -q ' 11\.'"
t "host 1 takes host 2 into its pool" gl peer probe 10.99.1.2
t_here "both hosts are peers" wait_for 120 "the peers" peers
t "a volume of one brick on each host is created" gl volume create v replica 2 "$(brick 1 a)" "$(brick 2 a)" force
t "host 2 starts the volume" gl2 volume start v
t_here "both bricks are online after the start" wait_for 120 "the bricks" online 2
if [[ $BRICKD == kiln ]]; then
    t "kilnd serves the brick of host 1" bash -c "tr '\0' ' ' </proc/$(cat "$(on 1 sh -c "cd /; echo /run/gluster/vols/v/*.pid" | sed "s#^#/proc/${host_pid[1]}/root#")")/maps | grep -q kilnd"
    t "kilnd serves the brick of host 2" bash -c "tr '\0' ' ' </proc/$(cat "$(on 2 sh -c "cd /; echo /run/gluster/vols/v/*.pid" | sed "s#^#/proc/${host_pid[2]}/root#")")/maps | grep -q kilnd"
fi

# The client of 10.3 runs on host 1, that of 11.1 on host 2; each mount point is seen in its host's namespace only.
for h in 1 2; do
    mkdir "$T/mnt$h"
    on "$h" glusterfs --process-name fuse -s "10.99.1.$((3 - h))" --volfile-id v -l "$T/log/mount$h.log" "$T/mnt$h"
    wait_for 120 "the mount of host $h" on "$h" mountpoint -q "$T/mnt$h"
done
m1=/proc/${host_pid[1]}/root$T/mnt1
m2=/proc/${host_pid[2]}/root$T/mnt2
for i in {1..30}; do echo "ten $i" >"$m1/f-ten-$i"; echo "eleven $i" >"$m2/f-eleven-$i"; done
want=$(sum "$m1")
t "the client of 11.1 reads the files of both clients" same "$m2"
mkdir "$T/kiln"
on 1 "$KILN_MOUNT" -s 10.99.1.2 --volfile-id v -l "$T/log/kiln-mount.log" "$T/kiln"
k=/proc/${host_pid[1]}/root$T/kiln
wait_for 120 "kiln-mount" on 1 mountpoint -q "$T/kiln"
t "kiln-mount, from the glusterd of 11.1, reads the files of both clients" same "$k"
t "volume status from 11.1 shows both bricks" bash -c "nsenter -t ${host_pid[2]} --mount --net --root --wd=/ -- gluster --mode=script volume status v detail | grep -c 'Online.*Y' | grep -qx 2"
t "an option set on 10.3 is live" gl volume set v performance.client-io-threads off
t "an option set on 11.1 is live" gl2 volume set v storage.health-check-interval 20

for h in 1 2; do
    pidfile=/proc/${host_pid[$h]}/root$(on "$h" sh -c "cd /; echo /run/gluster/vols/v/*.pid")
    kill -9 "$(cat "$pidfile")"
    wait_for 120 "the brick of host $h to be gone" online 1
    for i in {1..10}; do echo "while $h was away $i" >"$m1/f-away$h-$i"; echo "again $i" >"$k/f-ten-$i"; done
    want=$(sum "$k")
    t "start force brings the brick of host $h back" gl volume start v force
    t_here "both bricks are online again" wait_for 120 "the bricks" online 2
    t_here "the stock heal daemons heal the brick of host $h" wait_for 240 "heal of host $h" healed
    t_here "both replicas have the same files" same "/proc/${host_pid[$h]}/root$T/host$h/a"
done

t "replace-brick moves the replica of host 2" gl2 volume replace-brick v "$(brick 2 a)" "$(brick 2 b)" commit force
t_here "the new brick is online" wait_for 120 "the bricks" online 2
filled() { same "/proc/${host_pid[2]}/root$T/host2/b"; }
t_here "the new brick is filled" wait_for 240 "the new brick to be filled" filled
t_here "no heal is pending" wait_for 240 "heal" healed
t "add-brick adds a second pair" gl volume add-brick v "$(brick 1 c)" "$(brick 2 c)" force
t_here "four bricks are online" wait_for 120 "the bricks" online 4
t "rebalance starts" gl2 volume rebalance v start force
t_here "rebalance ends" wait_for 240 "the rebalance" task_done rebalance v
for m in "$m1" "$m2" "$k"; do
    t_here "all files are read through $m after the rebalance" wait_for 120 "all files" same "$m"
done
t "the new pair has files" test -n "$(find "/proc/${host_pid[1]}/root$T/host1/c" -maxdepth 1 -name 'f*' -size +0)"
on 1 umount "$T/kiln"
on 1 umount "$T/mnt1"
on 2 umount "$T/mnt2"
t "the volume is stopped" gl volume stop v
for h in 1 2; do kill "$(cat "$T/glusterd-$h.pid")"; done
