#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# cluster.server-quorum-type is `server` in a pool of three hosts. When a host loses both other hosts, its glusterd
# stops the host's bricks, and starts the bricks when the hosts are connected again. The other two hosts continue, and
# later changes are healed. The same is tested with one process per brick and with all bricks in one process; with
# multiplexing a brick that loses quorum is detached from a process that continues. With BRICKD=stock the same runs on
# stock bricks.
# Covers: bricks/management.c, bricks/bricks.c

. "$(dirname "$0")/../lib/kiln.sh"
# shellcheck source=tests/harness/hosts.sh
. "$source_dir/tests/harness/hosts.sh"

declare -A conf=([hosts]=3)
hosts_start 3
# By the kernel's default, unacknowledged data keeps glusterd's connections open for a quarter of an hour.
for h in 1 2 3; do
    host_run $h sh -c 'echo 3 >/proc/sys/net/ipv4/tcp_retries2'
done
echo 3 >/proc/sys/net/ipv4/tcp_retries2
mnt=$T/mnt

# The status of the brick on a host, as the host's own glusterd reports it. The host's view of the other bricks does
# not matter.
brick_status() {
    host_run "$2" gluster --mode=script volume status "$1" --xml | python3 -c '
import sys, xml.etree.ElementTree as xml
for node in xml.parse(sys.stdin).iter("node"):
    if node.findtext("path", "").startswith("/") and node.findtext("hostname") == sys.argv[1]:
        print(node.findtext("status"))' "$hosts_net.$2"
}
is_up() { [[ $(brick_status "$1" "$2") == 1 ]]; }
is_down() { [[ $(brick_status "$1" "$2") != 1 ]]; }
nobody_serves() {
    local pid
    for pid in $(pgrep -x glusterfsd); do
        [[ -z $(find "/proc/$pid/fd" -lname "$T/bricks/$1-2" 2>/dev/null) ]] || return 1
    done
}
all_up() { [[ $(bricks_online "$1") == "$2" ]]; }
healed() { [[ $(gl volume heal "$1" info | awk '/^Number of entries:/ { n += $4; k++ } END { print (k == 3) ? n : -1 }') == 0 ]] &&
    nothing_pending "$T/bricks/$1"-[012] && bricks_equal "$T/bricks/$1-0" "$T/bricks/$1-1" && bricks_equal "$T/bricks/$1-0" "$T/bricks/$1-2"; }

for mux in off on; do
    gl volume set all cluster.brick-multiplex $mux >/dev/null
    vol=with-$mux other=free-$mux
    for one in $vol $other; do
        t "$one: glusterd creates the volume" gl_create $one 1x3
        t "$one: glusterd starts the volume" gl volume start $one
        wait_for 240 "the bricks of $one" all_up $one 3
    done
    t "$vol: glusterd sets the server quorum" gl volume set $vol cluster.server-quorum-type server
    mkdir -p "$mnt"
    t "$vol: the volume is mounted" glusterfs --process-name fuse -s "$hosts_net.1" --volfile-id $vol -l "$T/log/mount-$vol.log" "$mnt"
    wait_for 240 "the mount" is_glusterfs_mount "$mnt"
    t "$vol: files are written" bash -c "for i in 1 2 3 4 5; do echo before >'$mnt/f'\$i || exit; done"

    host_cut 3
    # The other hosts consider the lost host connected until their pings time out.
    wait_for 240 "host 3 to stop the volume's brick" is_down $vol 3
    tap_ok "$vol: the lost host stops its brick"
    t "$vol: no process of the lost host holds the brick's folder" wait_for 120 "the folder to be let go" nobody_serves $vol
    t "$other: the brick of a volume without server quorum stays online there" is_up $other 3
    # Their glusterds answer when they have noticed the loss of the third host.
    for h in 1 2; do
        t "$vol: the brick of host $h stays online" wait_for 240 "host $h to answer" is_up $vol $h
    done
    t "$vol: files are written on two bricks" timeout 240 bash -c "for i in 3 4 5 6 7; do echo after >'$mnt/f'\$i || exit; done"

    host_join 3
    wait_for 240 "host 3 to start the volume's brick" is_up $vol 3
    tap_ok "$vol: the returned host starts its brick"
    wait_for 240 "all bricks to be online" all_up $vol 3
    t "$vol: the missed changes are healed" wait_for 240 "the replicas to be equal" healed $vol
    is "$(cat "$T"/bricks/$vol-2/f[1-7] | sort | uniq -c | xargs)" "5 after 2 before" "$vol: the brick has all written files"

    umount "$mnt"
    for one in $vol $other; do
        t "$one: glusterd stops the volume" gl volume stop $one
        t "$one: glusterd deletes the volume" gl volume delete $one
        rm -rf "$T/bricks/$one"-*
    done
done
if [[ $BRICKD == kiln ]]; then
    for h in 1 2 3; do
        host_run $h sh -c 'cat /var/log/glusterfs/bricks/*.log' >"$T/log/bricks-$h.log"
    done
    is "$(cat "$T"/log/bricks-?.log | grep -cE 'graph-audit')" 0 "kilnd keeps nothing of any detached brick"
fi
