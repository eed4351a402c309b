#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The script reads the commands of "Three machines" from README and runs the commands unchanged. The commands make a
# volume of three hosts: an etcd of three members, a kilnd on each host with the default files, a mount by kiln-mount, and
# a stock mount while the first host and the etcd of the first host are dead.
# Covers: README.md, volumes/front.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

build=${KILN_BUILD:-$source_dir/build}
mapfile -t commands < <(sed -n '/^## Three machines/,/^`extras/{s/^    //p}' "$source_dir/README.md")
is "${#commands[@]}" 6 "README has six commands"

cluster_net 3
system_cover
mkdir -p /var/lib/kiln /var/log/kiln "$T/mnt"
ln -s "$build/kiln-mount" /usr/sbin/mount.kiln
for program in kilnd kiln kiln-mount; do
    ln -sf "$build/$program" "/usr/sbin/$program"
done
mount --bind "$T/mnt" /mnt
for h in h1 h2 h3; do
    mkdir -p "$T/$h/run" "$T/$h/var/lib/kiln" "$T/$h/var/log/kiln"
done
members=h1=http://h1:2380,h2=http://h2:2380,h3=http://h3:2380
etcd_member() { # HOST
    local ip=10.9.0.1${1#h}
    host_exec "$1" env GOMAXPROCS=1 etcd --name "$1" --data-dir "$T/$1/etcd" --listen-client-urls "http://$ip:2379" \
        --advertise-client-urls "http://$1:2379" --listen-peer-urls "http://$ip:2380" \
        --initial-advertise-peer-urls "http://$1:2380" --initial-cluster "$members" --unsafe-no-fsync \
        >>"$T/log/etcd-$1.out" 2>&1 </dev/null &
}
host_ends() { # HOST SIGNAL: all processes of the host
    local p
    for p in $(ip netns pids "$1"); do
        kill "-$2" "$p" || true
    done
    wait_for 60 "the processes of $1 to end" eval '[[ -z $(ip netns pids $1) ]]'
}

t "the first command installs the etcd of Debian" eval '[[ "${commands[0]}" == "apt install etcd-server "* ]] && dpkg -s etcd-server'
for h in h1 h2 h3; do
    etcd_member "$h"
done
healthy() { etcdctl --endpoints http://10.9.0.11:2379,http://10.9.0.12:2379,http://10.9.0.13:2379 endpoint health; }
export ETCDCTL_API=3
t "the etcd has three members" wait_for 120 "etcd" healthy
for h in h1 h2 h3; do
    t "on $h: ${commands[1]/--host=h1 */--host=$h}" on "$h" bash -c "${commands[1]/--host=h1 */--host=$h}"
done
up() { [[ $(on h1 bash -c "${commands[2]}" | grep -c ' up ') -eq 3 ]]; }
t "on h1: ${commands[2]}" wait_for 60 "three hosts" up
t "on h2: ${commands[3]}" on h2 bash -c "${commands[3]}"
t "on h3: ${commands[4]}" on h3 bash -c "${commands[4]}"
t "${commands[5]}" bash -c "${commands[5]}"
echo data >/mnt/f
is "$(cat "$T"/h?/srv/b/f | xargs)" "data data data" "all three hosts have the file"

host_ends h1 KILL
t "a file is written without the first host and its etcd" eval 'echo more >/mnt/g'
umount /mnt
mount --bind "$T/mnt" /mnt
stock=${commands[5]##*or: }
t "$stock" bash -c "$stock"
is "$(cat /mnt/g)" more "the stock client reads the file without the first host"
umount /mnt
t "a volume is changed without the first host" wait_for 60 "the change" on h2 kiln volume set v network.ping-timeout 20
for h in h2 h3; do
    t_here "the processes of $h end" host_ends "$h" TERM
done
