#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The volume of a stopped glusterd becomes a volume of a kilnd of one machine, and by an exported file one of a kilnd
# with an etcd, each time with its files, id, options and bricks. A glusterd that runs, a damaged folder and a second
# import change nothing.
# Covers: cli/import.c, cli/store.c, volumes/verb-store.c, volumes/cluster-change.c

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
t_here "the kilnd of one machine ends" front_stop
etcd_start
KILND_HOST=$glusterd_host
mkdir -p "$T/host/srv"
"$KILND" --store "$cluster_store" --host "$KILND_HOST" --state "$T/host/state" -N -l "$T/log/kilnd-host.log" \
    --statedump-dir "$T" >>"$T/log/kilnd-host.out" 2>&1 </dev/null &
host_pid[host]=$!
wait_for 60 "kilnd to answer" kiln host list
t "the exported volumes are taken over into the store" kiln store import "$T/volumes.json"
is "$(store get --prefix /kiln/volumes --keys-only | grep -c /v)" 1 "the store has the volume"
t "the volume starts" kiln start v
t "the volume is mounted" front_mount v "$T/mnt"
is "$(volume_is_whole)" "file 1 file 2 file 3 file 4 file 5 file 6 " "the files are there"
umount "$T/mnt"
