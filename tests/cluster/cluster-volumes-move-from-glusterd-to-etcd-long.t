#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The volume of a stopped glusterd becomes a volume of a kilnd of one machine, moves to an etcd and back by kiln store
# move, also after a death in the move, and by an exported file, each time with its files, id, options and bricks, while
# a mount stays. A glusterd that runs, a damaged folder, a second import and a store with other volumes change nothing.
# Covers: cli/import.c, cli/store.c, volumes/verbs/verb-store.c, volumes/verbs/verb-move.c, volumes/cluster/cluster-change.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

cluster_net 0
glusterd_start
gl volume create v replica 2 "$glusterd_host:$T/b1" "$glusterd_host:$T/b2" "$glusterd_host:$T/b3" \
    "$glusterd_host:$T/b4" force >/dev/null
gl volume set v network.ping-timeout 21 >/dev/null
gl volume set v cluster.read-hash-mode 2 >/dev/null
gl volume start v >/dev/null
mkdir "$T/mnt"
gl_mount v "$T/mnt"
for i in 1 2 3 4 5 6; do
    echo "file $i" >"$T/mnt/f$i"
done
umount "$T/mnt"
id=$(gl volume info v | sed -n 's/^Volume ID: //p')
t "an import while glusterd runs is refused" fails_with "glusterd or its bricks run" kiln import glusterd
glusterd_gone() {
    ! pgrep -x 'glusterd|glusterfsd' >/dev/null
}
gl volume stop v force >/dev/null
pkill -x glusterd
wait_for 60 "glusterd to end" glusterd_gone
(cd /var/lib/glusterd && find vols -type f -exec sha256sum {} + | sort) >"$T/before"

volume_is_whole() {
    cat "$T"/mnt/f? | tr '\n' ' '
}
t_here "kilnd starts" front_start
cp -r /var/lib/glusterd "$T/damaged"
sed -i '/^brick-1=/d' "$T/damaged/vols/v/info"
t "a folder that lacks a brick is refused" fails_with "names no file of a brick" kiln import glusterd "$T/damaged"
is "$(kiln list)" "" "the refused import made no volume"
t "the volume of glusterd is taken over" kiln import glusterd
is "$(kiln info v | sed -n 's/^Volume ID: //p')" "$id" "the volume keeps its id"
is "$(kiln info v | grep -c '^network.ping-timeout: 21')" 1 "the volume keeps its options"
t "a second import is refused" fails_with "volume v exists already" kiln import glusterd
t "the volume starts" kiln start v
t "the volume is mounted" front_mount v "$T/mnt"
is "$(volume_is_whole)" "file 1 file 2 file 3 file 4 file 5 file 6 " "the files are there"
umount "$T/mnt"
is "$(cd /var/lib/glusterd && find vols -type f -exec sha256sum {} + | sort)" "$(<"$T/before")" \
    "the folder of glusterd is unchanged"

t "the volumes are exported" kiln store export "$T/volumes.json"
is "$(stat -c %a "$T/volumes.json")" 600 "only root may read the exported file"
etcd_start
"$KILN_MOUNT" -s localhost --volfile-id v -l "$T/log/kiln-mount.log" --hard=60 "$T/mnt"
store put /kiln/volumes/v '{}' >/dev/null
t "a move to a store with another volume of the name is refused" fails_with "has another volume v" \
    kiln store move "$cluster_store" "$glusterd_host"
store del /kiln/volumes/v >/dev/null
t "a move to a port without an etcd is refused" fails_with "does not answer" \
    kiln store move etcd://10.9.0.1:2 "$glusterd_host"
t "a location of another kind is refused" fails_with "neither etcd" kiln store move etc://10.9.0.1:2379 "$glusterd_host"
t "kilnd takes changes after a refused move" kiln volume set v user.before-move 1
t "the volumes move to the store" kiln store move "$cluster_store" "$glusterd_host"
t "kilnd takes no change after the move" fails_with "takes no changes" kiln volume set v network.ping-timeout 9
is "$(cat "$T/mnt/f1")" "file 1" "the mount reads"
t_here "kilnd ends" front_stop
t_not "the state folder is no longer one of a kilnd without a store" timeout 60 "$KILND" --state "$T/state" -N -l "$T/log/refused.log"
t "the log says whose copy it is" grep -q "is the copy that host $glusterd_host keeps" "$T/log/refused.log"

# As if kilnd had died before its last step
mkdir "$T/state/moving"
mv "$T/state/host.json" "$T/state/moving/"
t_here "a kilnd of one machine starts after a death in the move" front_start
t "the move is repeated" kiln store move "$cluster_store" "$glusterd_host"
t_here "kilnd ends" front_stop
t_here "kilnd starts with the store" front_start --store "$cluster_store" --host "$glusterd_host"
is "$(kiln volume status v | grep -c '^Brick .* Y ')" 4 "the bricks are online"
t "the mount from before the move has the files" wait_for 60 "the files" \
    eval '[[ $(volume_is_whole) == "file 1 file 2 file 3 file 4 file 5 file 6 " ]]'
t "the volume can be changed" kiln volume set v network.ping-timeout 23
is "$(store get --print-value-only /kiln/volumes/v | grep -c ping-timeout)" 1 "the store has the change"

t "the exported volumes are not taken over twice" fails_with "volume v exists already" kiln store import "$T/volumes.json"
t "the volume is stopped" kiln --yes volume stop v
t "the volume is deleted" kiln --yes volume delete v
t "the exported volumes are taken over into the store" kiln store import "$T/volumes.json"
is "$(store get --prefix /kiln/volumes --keys-only | grep -c /v)" 1 "the store has the volume"
is "$(kiln info v | sed -n 's/^Volume ID: //p')" "$id" "the volume has its id"
t "the volume starts" kiln start v

store put /kiln/hosts/other '{"id": "x"}' >/dev/null
t "a move back is refused while the store has another host" fails_with "another host, other" kiln store move "$T/back"
store del /kiln/hosts/other >/dev/null
t "the volumes move back to a folder" kiln store move "$T/back"
is "$(store get --prefix /kiln/volumes --keys-only)" "" "the store no longer has the volume"
t_here "kilnd ends" front_stop
t_here "kilnd starts without the store" front_start --state "$T/back"
is "$(kiln info v | sed -n 's/^Volume ID: //p')" "$id" "the volume has its id"
is "$(kiln volume status v | grep -c '^Brick .* Y ')" 4 "the bricks are online"
# the mount has found all bricks again
t "the mount has the files" wait_for 60 "the files" eval '[[ $(volume_is_whole) == "file 1 file 2 file 3 file 4 file 5 file 6 " ]]'
t "the mount writes" eval 'echo new >"$T/mnt/new"'
umount "$T/mnt"
