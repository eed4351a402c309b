#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Files vanish from a brick that no other brick accuses. A full heal of the volume is a job: it brings the files back, waits for
# a brick that is offline, and goes on when its owner, the healing host, or kiln-heal dies. A second full heal is refused while
# one runs, and a stopped one walks no further.
# Covers: volumes/cluster/job-heal.c, volumes/cluster/cluster-jobs.c, volumes/cluster/cluster-look.c, xlators/cluster/replicate/crawl.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

cluster_net 4
etcd_start
for h in h1 h2 h3 h4; do
    host_start "$h"
done
kiln_of h1 volume create v replica 3 h1:/srv/v h2:/srv/v h3:/srv/v >/dev/null
kiln_of h1 volume create d disperse 3 redundancy 1 h1:/srv/d h2:/srv/d h3:/srv/d >/dev/null
t "a full heal of a stopped volume is refused" fails_with "it is not started" kiln_of h4 volume heal v full
kiln_of h1 volume start v >/dev/null
kiln_of h1 volume start d >/dev/null
t "a full heal of a dispersed volume is refused" fails_with "d is dispersed" kiln_of h4 volume heal d full
kiln_of h1 volume set v cluster.self-heal-daemon off >/dev/null
t "a full heal without a self-heal daemon is refused" fails_with "it is switched off" kiln_of h4 volume heal v full
kiln_of h1 volume reset v cluster.self-heal-daemon >/dev/null
is "$(kiln_of h4 job list | tail -n 1)" "No jobs" "none of the refused heals is a job"

mkdir "$T/m"
t "kiln-mount mounts the volume" cluster_mount v "$T/m"
for d in 1 2 3 4 5 6 7 8; do
    mkdir -p "$T/m/d$d/e"
    for f in 1 2 3 4 5; do
        echo "$d $f" >"$T/m/d$d/e/f$f"
    done
done
umount "$T/m"
lose_files() { # HOST: the brick's files vanish, with their handles
    local f gfid
    for f in "$T/$1"/srv/v/d*/e/f*; do
        gfid=$(getfattr --absolute-names --only-values -n trusted.gfid "$f" | od -An -tx1 | tr -d ' \n')
        rm -f "$f" "$T/$1/srv/v/.glusterfs/${gfid:0:2}/${gfid:2:2}/${gfid:0:8}-${gfid:8:4}-${gfid:12:4}-${gfid:16:4}-${gfid:20}"
    done
}
files_of() {
    find "$T/$1/srv/v" -path '*/d*/e/f*' ! -path '*/.glusterfs/*' | wc -l
}
has_all_files() {
    [[ $(files_of "$1") -eq 40 ]]
}
state_of() { # the state of the newest job
    kiln_of "${1:-h4}" --json job list | python3 -c '
import json, sys
jobs = sorted(json.load(sys.stdin)["jobs"], key=lambda j: j["started"])
print(jobs[-1]["state"], jobs[-1].get("owner", "-"), jobs[-1]["id"], jobs[-1]["text"])'
}
is_state() {
    [[ $(state_of) == "$1 "* ]]
}
healer_host() { # the host whose kiln-heal answers for volume v
    kiln_of h4 --json job list | python3 -c '
import json, sys
print(sorted(json.load(sys.stdin)["jobs"], key=lambda j: j["started"])[-1].get("asked", {}).get("host", ""))'
}
has_healer() {
    [[ -n $(healer_host) ]]
}

lose_files h2
is "$(files_of h2)" 0 "the second brick has lost its files"
t "a full heal begins" kiln_of h4 volume heal v full
t "the job is done" wait_for 240 "the job to be done" is_state done
is "$(files_of h2)" 40 "the second brick has its files again"
echo "# $(state_of)"

lose_files h2
host_kill h3
t "h3 is down" wait_for 120 "h3 to be down" host_is h3 down h4
t "a full heal begins without the third brick" kiln_of h4 volume heal v full
t "the healing host is asked" wait_for 120 "the healing host" has_healer
t "a second one is refused" fails_with "volume v is being healed in full" kiln_of h1 volume heal v full
t "the job waits for the brick" wait_for 60 "the text" eval '[[ $(state_of) == running*bricks* ]]'
read -r _ owner id _ <<<"$(state_of)"
t "the job is stopped" kiln_of h1 job stop "$id"
t_here "h3 returns" host_start h3
t "a heal of the index ends" wait_for 240 "the heal" kiln_of h4 volume heal v
is "$(files_of h2)" 0 "the stopped job has not walked"

# The healing host, and the owner if that is another one, die while the job waits for h3.
host_kill h3
wait_for 120 "h3 to be down" host_is h3 down h4
t "another full heal begins" kiln_of h4 volume heal v full
t "the healing host is asked" wait_for 120 "the healing host" has_healer
read -r _ owner id _ <<<"$(state_of)"
healer=$(healer_host)
dead=$(printf '%s\n' "$owner" "$healer" h3 | sort -u | grep -v h4)
for h in $dead; do
    [[ $h == h3 ]] || host_kill "$h"
done
if [[ $owner == h4 ]]; then # the host that the script asks
    host_kill h4
    host_start h4
fi
for h in $dead; do
    wait_for 120 "$h to be down" host_is "$h" down h4
done
is "$(state_of | cut -d' ' -f1)" running "the job runs without its owner ($owner) and the healing host ($healer)"
for h in $dead; do
    t_here "$h returns" host_start "$h"
done
t "the job is done" wait_for 240 "the job to be done" is_state done
is "$(files_of h2)" 40 "the second brick has its files again"

# kiln-heal dies after the question: the walk cannot begin, since h3's brick hangs.
lose_files h2
kill -STOP "${host_pid[h3]}"
if [[ $healer != h3 ]]; then
    t "a full heal begins while a brick hangs" kiln_of h4 volume heal v full
    t "the healing host is asked" wait_for 120 "the healing host" has_healer
    if [[ $(healer_host) != h3 ]]; then
        kill -KILL "$(pgrep -P "${host_pid[$(healer_host)]}" -x kiln-heal)"
    fi
fi
kill -CONT "${host_pid[h3]}"
t "all hosts are up" wait_for 120 "h3 to be up" host_is h3 up h4
[[ $healer != h3 ]] || t "a full heal begins" kiln_of h4 volume heal v full
t "the job is done after the death of kiln-heal" wait_for 240 "the job to be done" is_state done
t "the second brick has its files again" has_all_files h2
