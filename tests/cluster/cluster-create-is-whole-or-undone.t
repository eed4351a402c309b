#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A volume over several hosts exists whole, or not at all: when a host refuses its brick, when the creating host dies
# while another host does not answer, and when a host dies while it makes bricks. The hosts undo the bricks that they
# have made, the stopped host too when it goes on.
# Covers: volumes/cluster/cluster-change.c, volumes/cluster/cluster-ask.c, volumes/cluster/cluster.c, volumes/volumes-take.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

cluster_net 3
etcd_start
for h in h1 h2 h3; do
    host_start "$h"
done
bricks() {
    (cd "$T" && ls -d h?/srv/* 2>/dev/null | tr '\n' ' ') || true
}
no_bricks() {
    [[ -z $(bricks) ]]
}
keys() {
    store get --prefix /kiln/volumes --keys-only | grep -c volumes || true
}

t "a brick that a host refuses fails the create" \
    fails_with "host h3: /none/b cannot become a brick" kiln_of h1 volume create v h1:/srv/a h2:/srv/a h3:/none/b
t "the bricks of the other hosts are undone" wait_for 60 "no bricks" no_bricks
is "$(keys)" 0 "the store has no volume"
t "a brick on an unknown host is refused" fails_with "host h9 is not registered" kiln_of h1 volume create v h9:/srv/a

# The third host does not answer, and the first dies while it waits.
kill -STOP "${host_pid[h3]}"
kiln_of h1 volume create v h1:/srv/b h2:/srv/b h3:/srv/b >/dev/null 2>&1 &
creator=$!
t "the second host has made its brick" wait_for 60 "the brick of h2" test -d "$T/h2/srv/b/.glusterfs"
host_kill h1
wait "$creator" || true
t "the second host undoes its brick when the creator's lease has ended" \
    wait_for 120 "the brick of h2 to go" test ! -e "$T/h2/srv/b"
is "$(keys)" 0 "the volume has left the store with the lease"
kill -CONT "${host_pid[h3]}"
t "the third host answers again" wait_for 120 "h3 to be up" host_is h3 up h2
t_here "the creator returns" host_start h1
t "no host has a brick of the volume" wait_for 60 "no bricks" no_bricks
is "$(kiln_of h1 volume list)$(kiln_of h2 volume list)$(kiln_of h3 volume list)" "" "no host lists a volume"

# Changes at the same time: none is lost.
t "a volume can be created with the same bricks" kiln_of h2 volume create v h1:/srv/b h2:/srv/b h3:/srv/b
racers=()
for i in 1 2 3 4 5 6 7 8; do
    for h in h1 h2 h3; do
        kiln_of "$h" volume set v "user.$h-$i" "$i" >/dev/null &
        racers+=($!)
    done
done
failed=0
for pid in "${racers[@]}"; do
    wait "$pid" || failed=$((failed + 1))
done
is "$failed" 0 "changes of three hosts at the same time all succeed"
is "$(kiln_of h1 volume info v | grep -c '^user.h')" 24 "no change is lost"
for h in h1 h2 h3; do
    kiln_of "$h" volume create "w$h" "h1:/srv/w" >/dev/null 2>&1 &
    racers+=($!)
done
for pid in "${racers[@]: -3}"; do
    wait "$pid" || true
done
is "$(kiln_of h1 volume list | grep -c w)" 1 "of three creates with the same brick one succeeds"
