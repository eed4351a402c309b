#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Three hosts that share an etcd serve one replicated volume with the same brick path on each host. Every host
# creates, starts, sets and shows the volume and answers mounts, also while another host is dead. The host that
# returns takes over the changes, and its brick is healed. A host that hangs is a row of kiln top, status, heal info and
# profile that says so.
# Covers: volumes/cluster/cluster.c, volumes/cluster/cluster-ask.c, volumes/cluster/cluster-change.c, volumes/cluster/cluster-look.c, volumes/verbs/verb-top.c,
# volumes/volumes-take.c, volumes/brick-host.c, volumes/cluster/store-etcd.c, cli/host.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

cluster_net 3
etcd_start
for h in h1 h2 h3; do
    t_here "kilnd of $h registers itself" host_start "$h"
done
is "$(kiln_of h1 host list | grep -c ' up ')" 3 "the first host sees three hosts"

t "the second host creates a volume with a brick on each host" \
    kiln_of h2 volume create v replica 3 h1:/srv/b h2:/srv/b h3:/srv/b
t "the third host starts the volume" kiln_of h3 volume start v
is "$(kiln_of h1 volume status v | grep -c '^Brick h[123]:/srv/b .* Y ')" 3 \
    "the status at the first host shows the bricks of all hosts"

mkdir "$T/kiln" "$T/stock"
t "kiln-mount mounts the volume" cluster_mount v "$T/kiln"
host_kill h1
t "a stock client with backup-volfile-servers mounts the volume without the first host" \
    mount -t glusterfs -o "backup-volfile-servers=h2:h3,log-file=$T/log/client.log" h1:/v "$T/stock"
t "a file can be written without the first host" bash -c "echo hello >'$T/kiln/f'"
is "$(cat "$T/stock/f")" hello "the stock client reads the file"
t "the second host sees that the first is down" wait_for 120 "h1 to be down" host_is h1 down h2
t "the status says which host does not answer" host_says h2 "unknown: host h1 is down" volume status v
t "an option is set without the first host" kiln_of h3 volume set v network.ping-timeout 17
t "the second host has the option" host_says h2 "network.ping-timeout: 17" volume info v

t_here "the first host returns" host_start h1
t "the host that returned has the option" \
    wait_for 120 "h1 to have the option" host_says h1 "network.ping-timeout: 17" volume info v
t "the brick of that host is healed" wait_for 240 "the heal" grep -q hello "$T/h1/srv/b/f"
for h in h1 h2 h3; do
    t "the host $h has the healing host heal" kiln_of "$h" volume heal v
done
is "$(kiln_of h1 volume heal v statistics | grep -c '^Brick h[123]:/srv/b')" 3 \
    "the statistics list the bricks of all hosts"

# The second host hangs, and has its lease still.
looks=("top --once" "volume status v" "volume heal v info" "volume profile v info")
kill -STOP "${host_pid[h2]}"
pids=()
for i in "${!looks[@]}"; do
    # shellcheck disable=SC2086
    kiln_of h1 ${looks[$i]} >"$T/look$i" 2>&1 &
    pids+=($!)
done
for i in "${!looks[@]}"; do
    t_here "kiln ${looks[$i]} ends while a host hangs" wait "${pids[$i]}"
    t "kiln ${looks[$i]} says that the host does not answer" grep -E "host h2 has not answered within [0-9]+ s" "$T/look$i"
done
kill -CONT "${host_pid[h2]}"
t "kiln top shows the other two hosts" eval '[[ $(grep -cE "^h[13] .* answers" "$T/look0") -eq 2 ]]'
t "kiln top shows the bricks of both" grep -q "^v:h3:b " "$T/look0"
all_answer() { [[ $(kiln_of h3 top --once | grep -cE "^h[123] .* answers") -eq 3 ]]; }
t "all three hosts answer again" wait_for 120 "three hosts" all_answer

umount "$T/kiln" "$T/stock"
t "the first host stops the volume" kiln_of h1 volume stop v
t "the second host deletes the volume" kiln_of h2 volume delete v
is "$(kiln_of h3 volume list)" "" "the third host no longer has the volume"
