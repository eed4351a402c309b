#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# While etcd is dead, mounts read and write, hosts give volfiles, and changes are refused with the reason. A host
# that starts meanwhile serves its bricks from its copy but gives no volfile. When etcd is back, the hosts follow
# changes again.
# Covers: volumes/cluster/cluster.c, volumes/cluster/cluster-change.c, volumes/cluster/store-etcd.c, volumes/volfile-server.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

cluster_net 2
etcd_start
for h in h1 h2; do
    host_start "$h"
done
kiln_of h1 volume create v replica 2 h1:/srv/b h2:/srv/b >/dev/null
kiln_of h1 volume start v >/dev/null
mkdir "$T/mnt" "$T/late" "$T/old"
t "kiln-mount mounts the volume" cluster_mount v "$T/mnt"
store_is() {
    kiln_of "$1" --json host list | grep -q "\"state\": \"$2\""
}

etcd_stop
t "the first host notices that the store is away" wait_for 120 "the store to be away" store_is h1 away
t "a file can be written without the store" bash -c "echo data >'$T/mnt/f'"
t "a new mount gets its volfile without the store" cluster_mount v "$T/late"
is "$(cat "$T/late/f")" data "the new mount reads the file"
t "a change is refused and the reason given" \
    fails_with "the store etcd://10.9.0.1:2379 does not answer" kiln_of h1 volume set v network.ping-timeout 9
t "the create of a volume is refused" fails_with "does not answer" kiln_of h1 volume create w h1:/srv/w
is "$(ls "$T/h1/srv")" b "the refused create made no folder"
t "the status shows the own brick and says why the other is unknown" \
    host_says h1 "unknown: the store etcd://10.9.0.1:2379 does not answer" volume status v

host_kill h2
t_here "a host starts without the store" host_start h2
t "a host without the store serves its brick from its copy" host_says h2 '^Brick h2:/srv/b .* Y ' volume status v
t "a host without the store gives no volfile, which may be old" fails_with "" \
    "$KILN_MOUNT" -s h2 --volfile-id=v --log-file="$T/log/old.log" "$T/old"
t "its log says why" grep -q "this host has not reached its store yet" "$T/log/kilnd-h2.log"
t "the mount writes to both bricks again" wait_for 120 "a write to reach the brick of h2" \
    bash -c "echo more >>'$T/mnt/f' && grep -q more '$T/h2/srv/b/f'"

etcd_start
t "the first host finds the store again" wait_for 120 "the store to answer" store_is h1 answers
t "the second host finds the store" wait_for 120 "the store to answer" store_is h2 answers
t "a change works again" kiln_of h1 volume set v network.ping-timeout 9
