#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Hosts and etcd are killed, and hosts cut off from the network, at random for KILN_CLUSTER_MINUTES (3), one host at a
# time, while a mount writes and hosts change options. No acknowledged write and no acknowledged change is lost, and
# all bricks are equal in the end.
# Covers: volumes/cluster.c, volumes/cluster-change.c, volumes/store-etcd.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

cluster_net 3
etcd_start
for h in h1 h2 h3; do
    host_start "$h"
done
kiln_of h1 volume create v replica 3 h1:/srv/b h2:/srv/b h3:/srv/b >/dev/null
kiln_of h1 volume start v >/dev/null
mkdir "$T/mnt"
cluster_mount v "$T/mnt"

writer() {
    local i=0
    until [[ -e $T/stop ]]; do
        i=$((i + 1))
        if echo "line $i" >"$T/mnt/f$i" 2>/dev/null && sync "$T/mnt/f$i" 2>/dev/null; then
            echo "$i" >>"$T/written"
        fi
    done
}
changer() {
    local i=0 host
    until [[ -e $T/stop ]]; do
        i=$((i + 1))
        host=h$((RANDOM % 3 + 1))
        if kiln_of "$host" volume set v "user.change-$i" "$i" >/dev/null 2>&1; then
            echo "$i" >>"$T/set"
        fi
        sleep 0.3
    done
}
writer &
writing=$!
changer &
changing=$!
is_healed() {
    [[ $(kiln_of h1 volume heal v info | grep -c '^Number of entries: 0$') -eq 3 ]]
}
all_up() {
    host_is h1 up && host_is h2 up && host_is h3 up
}

: "${KILN_CLUSTER_MINUTES:=3}"
RANDOM=${KILN_SEED:=$$}
diag "KILN_SEED=$KILN_SEED"
end=$((SECONDS + KILN_CLUSTER_MINUTES * 60))
rounds=0
while [[ $SECONDS -lt $end ]]; do
    host=h$((RANDOM % 3 + 1))
    case $((RANDOM % 4)) in
    0)
        diag "$SECONDS: $host is killed"
        host_kill "$host"
        sleep $((RANDOM % 20))
        host_start "$host"
        ;;
    1)
        diag "$SECONDS: $host is cut off"
        host_cut "$host"
        sleep $((RANDOM % 20))
        host_join "$host"
        ;;
    2)
        diag "$SECONDS: etcd is killed"
        etcd_stop
        sleep $((RANDOM % 10))
        etcd_start
        ;;
    3)
        diag "$SECONDS: etcd and $host are killed"
        etcd_stop
        host_kill "$host"
        host_start "$host"
        sleep $((RANDOM % 10))
        etcd_start
        ;;
    esac
    wait_for 240 "all hosts to be up" all_up
    wait_for 240 "the volume to be healed" is_healed
    rounds=$((rounds + 1))
done
touch "$T/stop"
wait "$writing" "$changing"
diag "$rounds rounds, $(wc -l <"$T/written") writes, $(wc -l <"$T/set") changes"
lost=0
while read -r i; do
    [[ $(cat "$T/mnt/f$i") == "line $i" ]] || lost=$((lost + 1))
done <"$T/written"
is "$lost" 0 "no acknowledged write is lost"
for h in h1 h2 h3; do
    lost=0
    kiln_of "$h" volume info v >"$T/info"
    while read -r i; do
        grep -q "^user.change-$i: $i$" "$T/info" || lost=$((lost + 1))
    done <"$T/set"
    is "$lost" 0 "the host $h has all acknowledged changes"
done
umount "$T/mnt"
wait_for 240 "the volume to be healed" is_healed
for h in h2 h3; do
    is "$(cd "$T/$h/srv/b" && find . -name '.glusterfs*' -prune -o -type f -exec md5sum {} + | sort | md5sum)" \
        "$(cd "$T/h1/srv/b" && find . -name '.glusterfs*' -prune -o -type f -exec md5sum {} + | sort | md5sum)" \
        "the brick of $h equals that of h1"
done
