#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The brick of a dead host is replaced by one on another host while the volume is mounted; the new brick is healed, and
# the dead host drops its brick when it returns. Bricks are added and removed over several hosts. A change that a host
# refuses is undone on all hosts.
# Covers: volumes/cluster/cluster-bricks.c, volumes/volumes-coming.c, volumes/bricks/brick-plan.c, volumes/brick-host.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

cluster_net 4
etcd_start
for h in h1 h2 h3 h4; do
    host_start "$h"
done
kiln_of h1 volume create v replica 3 h1:/srv/b h2:/srv/b h3:/srv/b >/dev/null
kiln_of h1 volume start v >/dev/null
mkdir "$T/mnt"
t "kiln-mount mounts the volume" cluster_mount v "$T/mnt"
for i in 1 2 3 4 5; do
    echo "file $i" >"$T/mnt/f$i"
done

t "a folder that a host refuses changes nothing" \
    fails_with "cannot become a brick" kiln_of h1 volume replace-brick v h3:/srv/b h4:/none/b
t "the brick that should have left is served" host_says h1 '^Brick h3:/srv/b .* Y ' volume status v

host_kill h3
t "the brick of the dead host is replaced by one on another host" \
    wait_for 60 "the replace" kiln_of h1 volume replace-brick v h3:/srv/b h4:/srv/b
t "a file can be written meanwhile" bash -c "echo new >'$T/mnt/f6'"
for i in 1 5; do
    t "file $i is healed to the new brick" wait_for 240 "the heal" grep -q "file $i" "$T/h4/srv/b/f$i"
done
t_here "the dead host returns" host_start h3
t "the returned host has the new list of bricks" wait_for 60 "h3 to know" host_says h3 'h4:/srv/b' volume info v
is "$(kiln_of h2 volume status v | grep -c '^Brick h[124]:/srv/b .* Y ')" 3 "the volume has the bricks of three hosts"

t "bricks of three hosts are added as a set" kiln_of h2 volume add-brick v h1:/srv/c h2:/srv/c h3:/srv/c
is "$(kiln_of h3 volume status v | grep -c '^Brick .* Y ')" 6 "six bricks are online"
t "the set is removed again, without files" kiln_of h4 volume remove-brick v h1:/srv/c h2:/srv/c h3:/srv/c
t "a copy is removed" kiln_of h4 --yes volume remove-brick v replica 2 h2:/srv/b
is "$(kiln_of h1 volume info v | grep -c '^Brick[0-9]')" 2 "two bricks are left"
is "$(cat "$T"/mnt/f? | tr '\n' ' ')" "file 1 file 2 file 3 file 4 file 5 new " "the mount reads all files"
