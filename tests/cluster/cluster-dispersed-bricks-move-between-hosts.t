#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Hosts that share an etcd replace bricks of a dispersed volume: the brick of a dead host, a brick whose folder is new, and
# those of a host that is drained. A change is refused, and disturbs nothing, while the other bricks could not rebuild each
# object. A full heal is a job.
# Covers: volumes/cluster/cluster-bricks.c, volumes/bricks/fragments.c, volumes/cluster/job-drain.c, volumes/cluster/job-heal.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

work=$(dirname "$(readlink -f "$0")")/../disperse/disperse_work.py
cluster_net 4
etcd_start
for h in h1 h2 h3 h4; do
    mkdir "$T/$h/srv/root"
    host_start "$h" --brick-root /srv/root
done
is_healed() {
    [[ $(kiln_of h1 --json volume heal v info | grep -oE '"count": *0' | wc -l) -eq 3 ]]
}
job_is() { # KIND STATE
    kiln_of h1 job list | grep -qE "$1 .*$2 "
}
online() {
    kiln_of h2 volume status v | grep -c '^Brick .* Y '
}

kiln_of h1 volume create v disperse 3 redundancy 1 h1:/srv/v h2:/srv/v h3:/srv/v >/dev/null
kiln_of h1 volume start v >/dev/null
mkdir "$T/mnt" "$T/copies"
t "kiln-mount mounts the volume" cluster_mount v "$T/mnt"
t "files are changed" python3 "$work" random "$T/mnt" "$T/copies" 1 40

host_kill h3
t "files are changed without a host" python3 "$work" random "$T/mnt" "$T/copies" 2 40
t "a brick that is needed cannot be replaced" \
    fails_with "1 of the other bricks of the set of brick /srv/v are online" kiln_of h1 volume replace-brick v h2:/srv/v h4:/srv/v
is "$(online)" 2 "the brick that should have left is served"
t "no folder is left of the refused brick" test ! -e "$T/h4/srv/v"
t "the brick of the dead host is replaced by one on another host" \
    wait_for 60 "the replace" kiln_of h1 volume replace-brick v h3:/srv/v h4:/srv/v
t "files are changed meanwhile" python3 "$work" random "$T/mnt" "$T/copies" 3 40
t "the new brick is healed" wait_for 240 "the heal" is_healed
t_here "the dead host returns" host_start h3 --brick-root /srv/root
t "the returned host has the new list of bricks" wait_for 60 "h3 to know" host_says h3 'h4:/srv/v' volume info v

t "a brick is taken down for a new disk" kiln_of h3 volume reset-brick v h2:/srv/v start
t "a second brick of the set is not" fails_with "are online" kiln_of h3 volume reset-brick v h1:/srv/v start
rm -rf "$T/h2/srv/v"
mkdir "$T/h2/srv/v"
t "the folder of the new disk becomes the brick" kiln_of h3 volume reset-brick v h2:/srv/v h2:/srv/v commit
t "the new folder is healed" wait_for 240 "the heal" is_healed
is "$(online)" 3 "all bricks are online"

t "a full heal is a job" kiln_of h4 volume heal v full
t "the walk ends" wait_for 240 "the job to be done" job_is heal done

t "a host with a fragment is drained" kiln_of h1 host drain h1
t "the drain ends" wait_for 240 "the job to be done" job_is drain done
t "the drained host has no brick" bash -c "! '$KILN' --socket='$T/h2/socket' volume info v | grep -q h1:"
is "$(online)" 3 "all bricks are online after the drain"
t "the files have their contents" python3 "$work" same "$T/mnt" "$T/copies"
umount "$T/mnt"
t "the volume is stopped" kiln_of h4 volume stop v
# The bricks in the order of the volume: numbers of fragments.
mapfile -t bricks < <(kiln_of h2 volume info v | sed -n 's/^Brick[0-9]*: \(h.\):\(.*\)/\1\2/p' | awk '{ print $1 }')
fragments_are_right() {
    python3 "$work" fragments 1 "${bricks[@]/#/$T/}"
}
t "all fragments belong together" wait_for 60 "the bricks" fragments_are_right
