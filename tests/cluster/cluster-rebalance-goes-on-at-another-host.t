#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A rebalance of a volume on three hosts is a job: bricks that were added on another host get files, a rebalance whose
# owner is killed ends at another host, remove-brick ... start empties bricks, which commit then removes while a mount
# is in use, and job stop ends a rebalance.
# Covers: volumes/cluster/job-rebalance.c, volumes/heal/rebalance.c, volumes/cluster/cluster-jobs.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

cluster_net 3
etcd_start
mkdir "$T/m"
for h in h1 h2 h3; do
    host_start "$h"
done
rebalance_is() { # STATE [HOST]
    kiln_of "${2:-h1}" volume rebalance v status | grep -qE "^Rebalance of v .*: ($1)$"
}
drain_is() { # STATE BRICK...
    local state=$1
    shift
    kiln_of h1 volume remove-brick v "$@" status | grep -q "^Rebalance of v .*: $state$"
}
job_is() { # STATE [HOST]: the job that began last
    [[ $(kiln_of "${2:-h1}" --json job list | python3 -c 'import json, sys
print(max(json.load(sys.stdin)["jobs"], key=lambda j: j["started"])["state"])') == "$1" ]]
}
owner() { kiln_of "${1:-h1}" job list | sed -nE 's/.* rebalance +v +running +(h[1-3]) .*/\1/p'; }
has_owner() { [[ -n $(owner "$@") ]]; }
files_of() { find "$T/$1/srv/$2" -path '*/.glusterfs' -prune -o -type f ! -perm 1000 -print | wc -l; }
sums() { (cd "$T/m" && find . -type f | sort | xargs md5sum); }
moved() { [[ $(files_of h3 v3) -gt 10 ]]; }

kiln_of h1 volume create v h1:/srv/v1 h2:/srv/v2 >/dev/null
kiln_of h1 volume start v >/dev/null
t "kiln-mount mounts the volume" cluster_mount v "$T/m"
mkdir "$T/m/d"
for i in {1..90}; do
    echo "text $i" >"$T/m/d/$i"
done
sums >"$T/before"
t_not "a rebalance cannot be stopped before it has begun" kiln_of h2 volume rebalance v stop
t "a brick of the third host is added" kiln_of h2 volume add-brick v h3:/srv/v3
t "a rebalance begins" kiln_of h3 volume rebalance v start
t "the rebalance completes" wait_for 120 "the end" rebalance_is completed
t "the job is done" wait_for 30 "the job" job_is done h2
t "the third host has files" moved
t "the mount reads all files" diff "$T/before" <(sums)

# The walk waits for the bricks of a host that is down.
t "a brick is added" kiln_of h1 volume add-brick v h1:/srv/v4
t_here "the second host ends" host_stop h2
t "the next rebalance begins" kiln_of h1 volume rebalance v start
t "a host takes the job" wait_for 60 "an owner" has_owner h1
first=$(owner h1)
if [[ $first == h1 ]]; then
    asked=h3
else
    asked=h1
fi
host_kill "$first"
t "the owner is seen to be down" wait_for 120 "the owner to be down" host_is "$first" down "$asked"
t "another host takes the job" wait_for 60 "an owner" has_owner "$asked"
t_not "it is another owner" test "$(owner "$asked")" = "$first"
t_here "the killed host returns" host_start "$first"
t_here "the second host returns" host_start h2
t "the rebalance ends" wait_for 120 "the end" rebalance_is completed
same() { diff "$T/before" <(sums); }
t "the mount reads all files" wait_for 60 "the files" same

t_not "bricks that were not drained are not committed" kiln_of h1 volume remove-brick v h2:/srv/v2 commit
t "the brick of the second host is drained" kiln_of h1 volume remove-brick v h2:/srv/v2 start
t_not "no brick is added meanwhile" kiln_of h3 volume add-brick v h3:/srv/v5
t "the drain ends" wait_for 120 "the end" drain_is completed h2:/srv/v2
is "$(files_of h2 v2)" 0 "no file is left on the brick"
t_not "a brick of the same path on another host is not drained" kiln_of h1 volume remove-brick v h1:/srv/v2 commit
t "the brick is removed" kiln_of h3 volume remove-brick v h2:/srv/v2 commit
is "$(kiln_of h2 volume info v | grep -c '^Brick[0-9]: h2')" 0 "the second host has no brick of the volume"
t "the mount reads all files" wait_for 60 "the files" same

kiln_of h1 volume add-brick v h2:/srv/v6 >/dev/null
t_not "no job is left" host_says h1 ' running ' job list
t "the job of the drain is done" job_is done
t_here "the third host ends" host_stop h3
t "a rebalance begins" kiln_of h1 volume rebalance v start
t "the rebalance has an owner" wait_for 60 "an owner" has_owner h1
job=$(kiln_of h1 job list | awk '/ running /{ print $1 }')
t "its job is stopped" kiln_of h1 job stop "$job"
t "the task of the volume is stopped" rebalance_is stopped h2
t "another rebalance begins" kiln_of h2 volume rebalance v start
t_here "the third host returns" host_start h3
t "the rebalance completes" wait_for 120 "the end" rebalance_is completed
