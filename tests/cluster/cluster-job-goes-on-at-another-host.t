#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The host that owns a job dies in the middle of a step, while another host does not answer. Another host takes the job
# over and ends it. A job can be stopped.
# Covers: volumes/cluster/cluster-jobs.c, volumes/cluster/cluster.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

cluster_net 4
etcd_start
for h in h1 h2 h3 h4; do
    mkdir "$T/$h/srv/root"
    host_start "$h" --brick-root /srv/root
done
kiln_of h4 volume create v replica 2 h1:/srv/root/v h2:/srv/root/v >/dev/null
kiln_of h4 volume start v >/dev/null
owner_of() {
    kiln_of h4 job list | sed -nE 's/.* running +(h[1-4]) .*/\1/p'
}
has_owner() {
    [[ -n $(owner_of) ]]
}

# The step needs an answer of h1, which keeps the other brick.
kill -STOP "${host_pid[h1]}"
t "a drain of the second host begins" kiln_of h4 host drain h2
t "a host takes the job" wait_for 60 "an owner" has_owner
owner=$(owner_of)
if [[ $owner == h4 ]]; then
    asked=h3
else
    asked=h4
fi
host_kill "$owner"
t "the owner is seen to be down" wait_for 120 "the owner to be down" host_is "$owner" down "$asked"
kill -CONT "${host_pid[h1]}"
t "another host ends the job" wait_for 240 "the job to be done" host_says "$asked" ' done ' job list
is "$(kiln_of "$asked" volume info v | grep -c 'Brick[0-9]: h2')" 0 "the second host has no brick"

t_here "the owner returns" host_start "$owner" --brick-root /srv/root
kill -STOP "${host_pid[h1]}"
t "a drain begins" kiln_of "$asked" host drain h1
job=$(kiln_of "$asked" job list | awk '/ running /{ print $1 }')
t "the job is stopped" kiln_of "$asked" job stop "$job"
t "a stopped job is not stopped again" fails_with "is not running" kiln_of "$asked" job stop "$job"
kill -CONT "${host_pid[h1]}"
