#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln chooses hosts and folders for a new volume by free space, never two bricks of a set on one host. A host is
# drained by a job: its bricks are replaced by bricks on other hosts and healed. A drained host can be removed.
# Covers: volumes/cluster/cluster-jobs.c, volumes/cluster/cluster-place.c, volumes/verbs/verb-host.c, cli/host.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

cluster_net 4
etcd_start
for h in h1 h2 h3 h4; do
    mkdir "$T/$h/srv/root"
done
mount -t tmpfs -o size=64m kiln-test "$T/h4/srv/root"
for h in h1 h2 h3 h4; do
    host_start "$h" --brick-root /srv/root
done
bricks_of() { # HOST: the number of its bricks in the list of hosts
    kiln_of h1 host list | awk -v host="$1" '$1 == host { print $3 }'
}
job_is() { # STATE
    kiln_of h1 job list | grep -qE "h1 +$1 |h2 +$1 |h3 +$1 |h4 +$1 "
}

t "more copies than hosts are refused" fails_with "no live host is left for brick 5" \
    kiln_of h1 volume create v replica 5
t "a size that no host has is refused" fails_with "enough free space" kiln_of h1 volume create v replica 3 size 900T
t "kiln chooses three hosts" kiln_of h1 volume create v replica 3 size 100M
is "$(bricks_of h4)" 0 "the host with too little space has no brick"
t "kiln chooses hosts for two sets" kiln_of h2 volume create w replica 3 sets 2 size 100M
is "$(kiln_of h1 volume info w | sed -n 's/^Brick[1-3]: \(h.\):.*/\1/p' | sort -u | wc -l)" 3 \
    "the bricks of a set are on three hosts"
kiln_of h1 volume start v >/dev/null
kiln_of h1 volume start w >/dev/null
mkdir "$T/mnt"
t "kiln-mount mounts a volume" cluster_mount v "$T/mnt"
for i in 1 2 3 4 5; do
    echo "file $i" >"$T/mnt/f$i"
done

t "a drain of the third host begins" kiln_of h1 host drain h3
t "a second drain of that host is refused" fails_with "host h3 is being drained" kiln_of h2 host drain h3
t "the job ends" wait_for 240 "the job to be done" job_is done
is "$(bricks_of h3)" 0 "the drained host has no brick"
is "$(kiln_of h1 volume status | grep -c '^Brick .* Y ')" 9 "all bricks are online"
is "$(cat "$T"/mnt/f? | tr '\n' ' ')" "file 1 file 2 file 3 file 4 file 5 " "the mount reads all files"
is "$(cat "$T"/h4/srv/root/v-*/f? | tr '\n' ' ')" "file 1 file 2 file 3 file 4 file 5 " "the new brick has all files"
t_here "the drained host ends" host_stop h3
t "the drained host is removed" wait_for 60 "the removal" kiln_of h1 host remove h3
t "a drain without a place is refused at once and says why" fails_with "no live host is left" kiln_of h1 host drain h4
is "$(bricks_of h4)" "$(kiln_of h1 volume info | grep -c '^Brick[0-9]*: h4:')" "the host keeps its bricks"
