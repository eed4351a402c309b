#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Two hosts have different copies of a file, each written while the other host was dead. Every host shows the
# split-brain, although no host sees both bricks, and has the healing host resolve it.
# Covers: volumes/cluster/cluster-look.c, volumes/heal/heal-pending.c, volumes/verbs/verb-heal.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

cluster_net 3
etcd_start
for h in h1 h2 h3; do
    host_start "$h"
done
kiln_of h1 volume create v replica 2 h1:/srv/b h2:/srv/b >/dev/null
kiln_of h1 volume set v cluster.self-heal-daemon off >/dev/null
kiln_of h1 volume start v >/dev/null
mkdir "$T/mnt"
cluster_mount v "$T/mnt"
echo both >"$T/mnt/f"
write_to() { # HOST TEXT: the text reaches the brick of the host
    echo "$2" >"$T/mnt/f" && grep -q "$2" "$T/$1/srv/b/f"
}
host_kill h2
t "a write reaches the first host alone" wait_for 120 "the write" write_to h1 first
umount "$T/mnt"
host_kill h1
host_start h2
cluster_mount v "$T/mnt"
t "a write reaches the second host alone" wait_for 120 "the write" write_to h2 second
umount "$T/mnt"
host_start h1
for h in h1 h2 h3; do
    t "the host $h shows the split-brain on both bricks" \
        wait_for 60 "two entries" bash -c "[[ \$('$KILN' --socket='$T/$h/socket' volume heal v info split-brain | grep -c '^/f') -eq 2 ]]"
done
kiln_of h3 volume set v cluster.self-heal-daemon on >/dev/null
t "the third host has it resolved" \
    wait_for 120 "the heal" kiln_of h3 volume heal v split-brain source-brick h2:/srv/b /f
t "the first host has the chosen copy" wait_for 60 "the copy" grep -q second "$T/h1/srv/b/f"
is "$(kiln_of h1 volume heal v info split-brain | grep -c '^/f')" 0 "no entry is left"
