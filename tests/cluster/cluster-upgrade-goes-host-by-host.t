#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln upgrade --rolling has the kilnd of three hosts run its program anew, host by host, also the owner of the job,
# while a mount writes. The job waits for bricks that are offline, can be stopped, and ends at the first host that
# refuses its program.
# Covers: volumes/cluster/job-upgrade.c, volumes/cluster/cluster-jobs.c, cli/upgrade.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

cluster_net 3
etcd_start
mkdir "$T/m"
for h in h1 h2 h3; do
    host_start "$h"
done
job_says() { # REGEX [HOST]
    kiln_of "${2:-h1}" job list | grep -qE -- "$1"
}
upgrades() { curl -s --unix-socket "$T/$1/socket" -d '{}' http://localhost/v1/version | python3 -c 'import json, sys; print(json.load(sys.stdin)["upgrades"])'; }

kiln_of h1 volume create v replica 3 h1:/srv/v h2:/srv/v h3:/srv/v >/dev/null
kiln_of h1 volume start v >/dev/null
t "kiln-mount mounts the volume" cluster_mount v "$T/m" --hard=60
echo before >"$T/m/before"
t "the upgrade begins" kiln_of h2 upgrade --rolling
t_not "a second one is refused" kiln_of h3 upgrade --rolling
i=0
until job_says ' upgrade .* (done|failed|stopped) '; do
    echo "line $i" >"$T/m/f$((i++))"
    [[ $SECONDS -lt 240 ]] || break
    sleep 0.2
done
kiln_of h1 job list
t "the job is done" job_says ' upgrade .* done .* 3 of 3'
for h in h1 h2 h3; do
    t "host $h runs its program anew" test "$(upgrades "$h")" -ge 1
done
n=0
for ((k = 0; k < i; k++)); do
    [[ $(cat "$T/m/f$k") == "line $k" ]] && n=$((n + 1))
done
is "$n" "$i" "each file that was written meanwhile is there"
is "$(kiln_of h1 volume status v | grep -c '^Brick .* Y ')" 3 "all bricks are online"

t "an upgrade to a program that does not start on the asked host is refused" \
    fails_with "/bin/false does not start as kilnd" kiln_of h1 upgrade --rolling /bin/false
ln -s /bin/false "$T/h1/srv/kilnd"
ln -s "$(readlink -f "$KILND")" "$T/h3/srv/kilnd"
t "an upgrade to a program that starts only there begins" kiln_of h3 upgrade --rolling /srv/kilnd
t "the job fails at the first host" wait_for 60 "the failure" job_says ' failed .* 0 of 3 .*host h[1-3]: '
t "kilnd serves on" kiln_of h1 volume list

kiln_of h1 volume reset-brick v h3:/srv/v start >/dev/null
t "an upgrade begins, a brick is offline" kiln_of h1 upgrade --rolling
t "the job names the brick and waits" wait_for 60 "the wait" job_says ' running .*brick h3:/srv/v is offline'
t "the job is stopped" kiln_of h2 job stop "$(kiln_of h1 job list | awk '/ running /{ print $1 }')"
t "no host is upgraded" job_says ' stopped .* 0 of 3'
t_here "the third host ends" host_stop h3
t "a host that is down is named" fails_with "host h3 is down" kiln_of h1 upgrade --rolling
