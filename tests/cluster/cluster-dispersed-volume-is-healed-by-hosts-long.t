#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Four hosts that share an etcd have dispersed volumes. kilnd places no two fragments of a file on one host, and refuses a volume
# with too few hosts. Files are written and read while a host is dead and while another host is cut off; the host that heals
# the volume gives the returned hosts their fragments, also when that host itself was the dead one.
# Covers: volumes/verbs/verbs-change.c, volumes/cluster/cluster-place.c, volumes/heal/heal-watch.c, heal/heal-volume.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

work=$(dirname "$(readlink -f "$0")")/../disperse/disperse_work.py
cluster_net 4
etcd_start
start_host() {
    host_start "$1" --brick-root /srv/root
}
for h in h1 h2 h3 h4; do
    mkdir "$T/$h/srv/root"
    start_host "$h"
done
hosts_of_set() { # VOLUME FIRST COUNT: the number of different hosts of these bricks
    kiln_of h1 --json volume info "$1" | python3 -c '
import json, sys
out = json.load(sys.stdin)
while isinstance(out, list) or "bricks" not in out:
    out = out[0] if isinstance(out, list) else next(iter(v for v in out.values() if isinstance(v, (list, dict))))
first, count = int(sys.argv[1]), int(sys.argv[2])
print(len({b["host"] for b in out["bricks"][first:first + count]}))' "$2" "$3"
}
is_healed() { # VOLUME BRICKS
    [[ $(kiln_of h2 --json volume heal "$1" info | grep -oE '"count": *0' | wc -l) -eq $2 ]]
}

t "a dispersed volume is created with a brick on each of three hosts" \
    kiln_of h2 volume create v disperse 3 redundancy 1 h1:/srv/v h2:/srv/v h3:/srv/v
t "another host shows its type" host_says h3 "Type: Disperse" volume info v
t "hosts are chosen for two sets of fragments" kiln_of h1 volume create w disperse 3 redundancy 1 sets 2 size 1M
is "$(hosts_of_set w 0 3) $(hosts_of_set w 3 3)" "3 3" "no two fragments of a set are on one host"
t "a set of more bricks than hosts is refused" \
    fails_with "no live host is left for brick 5" kiln_of h1 volume create n disperse 5 redundancy 2
t "a set without room is refused" fails_with "enough free space" kiln_of h1 volume create n disperse 3 redundancy 1 size 900T
t "a limit on named bricks is refused" fails_with "is dispersed" \
    kiln_of h1 volume create n disperse 3 redundancy 1 h1:/srv/n h2:/srv/n h3:/srv/n size 1G
t "half of the bricks cannot be redundant" fails_with "redundancy of less than half" \
    kiln_of h1 volume create n disperse 4 redundancy 2 h1:/srv/n h2:/srv/n h3:/srv/n h4:/srv/n
t "no folder is left of refused volumes" eval '[[ -z $(find "$T"/h?/srv -name "n*" ! -path "*/.glusterfs/*") && ! -e $T/h4/srv/v ]]'

for v in v w; do
    mkdir "$T/m$v" "$T/copies$v"
    t "the third host starts volume $v" kiln_of h3 volume start "$v"
    t "kiln-mount mounts volume $v" cluster_mount "$v" "$T/m$v"
    t "files are changed and read back" python3 "$work" random "$T/m$v" "$T/copies$v" 1 60
done
fragments_are_right() {
    python3 "$work" fragments 1 "$T"/h{1,2,3}/srv/v
}
seed=2
for h in h1 h2 h3; do
    host_kill "$h"
    t "files are changed without $h" python3 "$work" random "$T/mv" "$T/copiesv" $((seed++)) 60
    t "the files of the second volume, too" python3 "$work" random "$T/mw" "$T/copiesw" $((seed++)) 60
    start_host "$h"
    t "volume v is healed after $h has returned" wait_for 240 "the heal" is_healed v 3
    t "volume w is healed" wait_for 240 "the heal" is_healed w 6
done
host_cut h2
t "files are changed while h2 is cut off" python3 "$work" random "$T/mv" "$T/copiesv" $((seed++)) 60
host_join h2
t "h2 is up again" wait_for 240 "h2" host_is h2 up
t "volume v is healed after the cut" wait_for 240 "the heal" is_healed v 3
mkdir "$T/stock"
t "the stock client mounts the volume" \
    mount -t glusterfs -o "backup-volfile-servers=h2:h3,log-file=$T/log/client.log" h1:/v "$T/stock"
t "the stock client reads the files" python3 "$work" same "$T/stock" "$T/copiesv"
umount "$T/stock" "$T/mv"
t "the files of the second volume have their contents" python3 "$work" same "$T/mw" "$T/copiesw"
umount "$T/mw"
t "volume v is stopped" kiln_of h4 volume stop v
t "all fragments belong together" wait_for 60 "the bricks" fragments_are_right

t "add-brick adds a set of fragments" kiln_of h2 volume add-brick w h1:/srv/w1 h2:/srv/w2 h3:/srv/w3
is "$(kiln_of h4 volume info w | grep -c '^Brick[0-9]')" 9 "another host shows nine bricks"
