#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Three stock glusterds with replicated, arbitrated, dispersed and distributed volumes are stopped, and three kilnds with
# an etcd take their volumes over: the same files, ids and options, on the same bricks. Then kiln export glusterd and the
# steps that it prints give the volumes back to the three glusterds, with the files that were written meanwhile.
# Covers: cli/import.c, cli/export.c, volumes/verbs/verb-store.c

. "$(dirname "$0")/../lib/kiln.sh"
BRICKD=stock
. "$source_dir/tests/harness/hosts.sh"
declare -A conf=([hosts]=3)

hosts_start 3
b=$T/b
mkdir -p "$b" "$T/m"
h1=10.99.1.1 h2=10.99.1.2 h3=10.99.1.3
gl volume create r replica 3 $h1:$b/r1 $h2:$b/r2 $h3:$b/r3 $h1:$b/r4 $h2:$b/r5 $h3:$b/r6 force >/dev/null
gl volume create a replica 3 arbiter 1 $h1:$b/a1 $h2:$b/a2 $h3:$b/a3 force >/dev/null
gl volume create e disperse 3 redundancy 1 $h1:$b/e1 $h2:$b/e2 $h3:$b/e3 force >/dev/null
gl volume create d $h1:$b/d1 $h2:$b/d2 $h3:$b/d3 force >/dev/null
volumes=(r a e d)
gl volume set r network.ping-timeout 21 >/dev/null
gl volume set r features.shard off >/dev/null
gl volume set d performance.io-thread-count 24 >/dev/null
declare -A ids=()
stock_mount() {
    glusterfs --process-name fuse -s $h1 --volfile-id "$1" -l "$T/log/mount-$1.log" "$T/m"
    wait_for 60 "volume $1 to be reached" gl_mount_whole
}
gl_mount_whole() {
    stat "$T/m" && df "$T/m"
}
sums() { (cd "$T/m" && find . -type f -exec sha256sum {} + | sort); }
for v in "${volumes[@]}"; do
    gl volume start "$v" >/dev/null
    wait_for 60 "the bricks of $v" eval '[[ $(bricks_online "$v") -ge 3 ]]'
    ids[$v]=$(gl volume info "$v" | sed -n 's/^Volume ID: //p')
    stock_mount "$v"
    mkdir "$T/m/dir"
    for i in 1 2 3 4 5 6 7 8; do
        head -c $((i * 50000)) /dev/urandom >"$T/m/dir/f$i"
    done
    setfattr -n user.note -v "of $v" "$T/m/dir"
    sums >"$T/sums-$v"
    umount "$T/m"
done
glusterds_end() {
    local h pid
    for v in "${volumes[@]}"; do
        gl volume stop "$v" force >/dev/null
    done
    for h in 1 2 3; do
        kill "$(<"$T/glusterd-$h.pid")"
    done
    wait_for 60 "the glusterds to end" eval '! pgrep -x "glusterd|glusterfsd|glusterfs"'
}
t_here "the glusterds end" glusterds_end

# kilnd of each host
GOMAXPROCS=1 etcd --name e1 --data-dir "$T/etcd" --listen-client-urls http://10.99.1.254:2379 \
    --advertise-client-urls http://10.99.1.254:2379 --listen-peer-urls http://127.0.0.1:2380 \
    --initial-advertise-peer-urls http://127.0.0.1:2380 --initial-cluster e1=http://127.0.0.1:2380 --unsafe-no-fsync \
    >>"$T/log/etcd.out" 2>&1 </dev/null &
etcd_pid=$!
wait_for 60 "etcd" etcdctl --endpoints http://10.99.1.254:2379 endpoint health
declare -A kilnd_pid=()
kiln_of() { host_run "$1" "$KILN" --socket="$T/$1.socket" "${@:2}"; }
for h in 1 2 3; do
    mkdir -p "$T/state$h"
    host_run $h "$KILND" -p "$T/kilnd-$h.pid" --store etcd://10.99.1.254:2379 --host 10.99.1.$h --state "$T/state$h" -N -l "$T/log/kilnd-$h.log" \
        --management-socket "$T/$h.socket" --statedump-dir "$T" >>"$T/log/kilnd-$h.out" 2>&1 </dev/null &
    kilnd_pid[$h]=$!
    wait_for 120 "kilnd of host $h" kiln_of $h host list
done
wait_for 60 "three hosts" eval '[[ $(kiln_of 1 host list | grep -c " up ") -eq 3 ]]'
t "the volumes of the glusterds are taken over" kiln_of 1 import glusterd
for v in "${volumes[@]}"; do
    is "$(kiln_of 2 volume info "$v" | sed -n 's/^Volume ID: //p')" "${ids[$v]}" "volume $v keeps its id"
    t "volume $v starts" kiln_of 3 volume start "$v"
    t "volume $v is mounted by kiln-mount" "$KILN_MOUNT" -s $h1 -s $h2 -s $h3 --volfile-id "$v" -l "$T/log/kiln-mount-$v.log" "$T/m"
    is "$(sums)" "$(<"$T/sums-$v")" "volume $v has its files"
    is "$(getfattr --only-values -n user.note "$T/m/dir" 2>/dev/null)" "of $v" "volume $v has its xattrs"
    t "a file is written to volume $v" eval 'echo "by kiln" >"$T/m/dir/new-$v"'
    sums >"$T/sums-$v"
    umount "$T/m"
done
t "an option is kept" eval 'kiln_of 1 volume info r | grep -q "^network.ping-timeout: 21"'
t "an option of Kiln is set" kiln_of 1 volume limit r 1G
t "a stock option is changed" kiln_of 1 volume set d performance.io-thread-count 20

t "the volumes are written for glusterd" eval 'kiln_of 1 export glusterd "$T/back" >"$T/steps"'
t "the option of Kiln is named" grep -q "left out: r kiln.limit" "$T/steps"
is "$(stat -c %a "$T/back/vols/r/info")" 600 "only root may read the passwords"
t "a folder that exists is refused" fails_with "File exists" kiln_of 1 export glusterd "$T/back"
for v in "${volumes[@]}"; do
    kiln_of 1 --yes volume stop "$v" >/dev/null
done
kilnds_end() { # host_run's shells end with the status of their kilnds
    local h status=0
    for h in 1 2 3; do
        kill "$(<"$T/kilnd-$h.pid")"
        wait "${kilnd_pid[$h]}" || status=$?
    done
    return "$status"
}
t_here "the kilnds end" kilnds_end

# The steps that kiln export has printed; the hosts are peers still.
for h in 1 2 3; do
    host_run $h rm -rf /var/lib/glusterd/vols
    host_run $h cp -r "$T/back/vols" /var/lib/glusterd/
    host_run $h glusterd --xlator-option '*.upgrade=on' -N -l "$T/log/glusterd-upgrade-$h.log" || true # ends by SIGTERM
    host_run $h test -s "/var/lib/glusterd/vols/r/cksum" || tap_not_ok "glusterd of host $h has made its files"
done
for h in 1 2 3; do
    host_run $h glusterd -N -l "$T/log/glusterd-$h.log" -p "$T/glusterd-$h.pid" >>"$T/log/glusterd-$h.out" 2>&1 </dev/null &
done
for h in 1 2 3; do
    wait_for 60 "glusterd of host $h to answer" host_run $h gluster --mode=script volume list
done
t_here "the glusterds are peers" wait_for 120 "the peers" hosts_are_peers 3
for v in "${volumes[@]}"; do
    is "$(gl volume info "$v" | sed -n 's/^Volume ID: //p')" "${ids[$v]}" "volume $v has its id under glusterd"
    t "glusterd starts volume $v" gl volume start "$v"
    wait_for 60 "the bricks of $v" eval '[[ $(bricks_online "$v") -ge 3 ]]'
    stock_mount "$v"
    t "volume $v has all files" wait_for 60 "the files" eval '[[ $(sums) == "$(<"$T/sums-$v")" ]]'
    is "$(cat "$T/m/dir/new-$v")" "by kiln" "volume $v has the file that was written under Kiln"
    umount "$T/m"
done
is "$(gl volume get d performance.io-thread-count | awk '/io-thread-count/ { print $2 }')" 20 "glusterd has the changed option"
t "glusterd changes an option" gl volume set r network.ping-timeout 25
t_here "the glusterds end" glusterds_end
kill "$etcd_pid"
