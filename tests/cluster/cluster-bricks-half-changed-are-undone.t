#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A host dies while it adds a brick of another host to a volume. The other host undoes the brick that it has made when
# the lease of the dead host ends, and the volume is as before.
# Covers: volumes/cluster/cluster-bricks.c, volumes/volumes-coming.c, volumes/cluster/cluster.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

cluster_net 4
etcd_start
for h in h1 h2 h3 h4; do
    host_start "$h"
done
kiln_of h1 volume create v replica 3 h1:/srv/b h2:/srv/b h3:/srv/b >/dev/null
kiln_of h1 volume start v >/dev/null

# The fourth host makes its brick, the second does not answer, and the changing host dies.
kill -STOP "${host_pid[h2]}"
kiln_of h1 volume add-brick v replica 4 h4:/srv/half >/dev/null 2>&1 &
changer=$!
t "the fourth host has made its brick" wait_for 60 "the brick of h4" test -d "$T/h4/srv/half/.glusterfs"
host_kill h1
wait "$changer" || true
t "the fourth host undoes its brick when the lease of the changing host ends" \
    wait_for 120 "the brick to go" test ! -e "$T/h4/srv/half"
kill -CONT "${host_pid[h2]}"
host_start h1
wait_for 120 "h2 to be up" host_is h2 up
is "$(kiln_of h4 volume info v | grep -c '^Brick[0-9]')" 3 "the volume has its three bricks"
t "the brick can be added again" wait_for 60 "the add" kiln_of h1 volume add-brick v replica 4 h4:/srv/half
