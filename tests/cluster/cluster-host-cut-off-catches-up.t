#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A host that is cut off from the network loses its lease. The other hosts go on changing volumes, also one that has
# its bricks, and heal in its place. The host takes over the changes when it is back. A host with bricks cannot be
# removed, nor can a host that is up; an empty host that is down can. A second machine cannot take a name.
# Covers: volumes/cluster/cluster.c, volumes/cluster/cluster-change.c, volumes/verbs/verb-host.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

cluster_net 3
etcd_start
for h in h1 h2 h3; do
    host_start "$h"
done
kiln_of h1 volume create v replica 2 h1:/srv/b h2:/srv/b >/dev/null
kiln_of h1 volume start v >/dev/null
t "a host that is up is not removed" fails_with "host h3 is up" kiln_of h1 host remove h3
t_here "an empty host ends" host_stop h3
t "its lease ends with its kilnd" wait_for 120 "h3 to be down" host_is h3 down
t_not "another machine cannot take its name" timeout 60 nsenter --net=/run/netns/h3 "$KILND" --store "$cluster_store" \
    --host h3 --state "$T/other" -N -l "$T/log/other.log" --management-socket "$T/other.socket"
t "the log of that machine says why" grep -q "host h3 is another machine of this store" "$T/log/other.log"
host_cut h2
t "the other host sees that the host is down" wait_for 120 "h2 to be down" host_is h2 down
t "a host with bricks is not removed" fails_with "host h2 has bricks of volume v" kiln_of h1 host remove h2
t "the empty host is removed" kiln_of h1 host remove h3
is "$(kiln_of h1 host list | grep -c h3)" 0 "the list is without that host"
t "a change works while a host is cut off" kiln_of h1 volume set v network.ping-timeout 19
host_join h2
t "the host that was cut off has a lease again" wait_for 120 "h2 to be up" host_is h2 up
t "the host that was cut off catches up" \
    wait_for 120 "h2 to have the option" host_says h2 "network.ping-timeout: 19" volume info v
