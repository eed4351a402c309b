# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# cluster: hosts h1, h2, ... that share an etcd, each with its own network and its own /srv for bricks.
#
#   cluster_net N              networks of the hosts h1 to hN, 10.9.0.11 and so on; every process resolves their names
#   etcd_start                 an etcd of one member at 10.9.0.1 in the script's own network
#   etcd_stop                  SIGKILL; the next etcd_start finds its data
#   host_start H [ARG...]      kilnd of host H with state folder $T/H/state; waits for its first answer
#   host_stop H                SIGTERM; kilnd has to end with status 0
#   host_kill H                SIGKILL
#   host_cut H, host_join H    takes host H off the network, and back
#   on H CMD...                runs CMD with the network and /srv of host H, and its /usr/lib/ssl, /etc/ssl, /etc/kiln,
#                              /var/lib/kiln, /var/log/kiln and /run if these folders exist below $T/H
#   kiln_of H ARG...           kiln of host H
#   store ARG...               etcdctl
#   cluster_mount VOL MNT [ARG...]   mounts the volume by kiln-mount, with all hosts as servers
#   host_says H PATTERN ARG... kiln ARG... of host H prints a line that matches
#   host_is H STATE [ASKED]    STATE (up, down) of host H in kiln host list of host ASKED (default h1)

: "${KILN_MOUNT:=${KILN_BUILD:-$source_dir/build}/kiln-mount}"
: "${KILN:=${KILN_BUILD:-$source_dir/build}/kiln}"
declare -A host_pid=()
etcd_pid=
cluster_store=etcd://10.9.0.1:2379

cluster_net() {
    local n=$1 i
    cp /etc/hosts "$T/hosts"
    ip link add kiln0 type bridge
    ip address add 10.9.0.1/24 dev kiln0
    ip link set kiln0 up
    for ((i = 1; i <= n; i++)); do
        ip netns add "h$i"
        ip link add "veth$i" type veth peer name eth0 netns "h$i"
        ip link set "veth$i" master kiln0 up
        ip -n "h$i" address add "10.9.0.1$i/24" dev eth0
        ip -n "h$i" link set eth0 up
        ip -n "h$i" link set lo up
        mkdir -p "$T/h$i/srv"
        echo "10.9.0.1$i h$i" >>"$T/hosts"
    done
    mount --bind "$T/hosts" /etc/hosts
}

etcd_start() {
    GOMAXPROCS=1 etcd --name e1 --data-dir "$T/etcd" --listen-client-urls http://10.9.0.1:2379,http://127.0.0.1:2379 \
        --advertise-client-urls http://10.9.0.1:2379 --listen-peer-urls http://127.0.0.1:2380 \
        --initial-advertise-peer-urls http://127.0.0.1:2380 --initial-cluster e1=http://127.0.0.1:2380 \
        --unsafe-no-fsync >>"$T/log/etcd.out" 2>&1 </dev/null &
    etcd_pid=$!
    wait_for 240 "etcd to answer" store get kiln
}

etcd_stop() {
    local pid=$etcd_pid
    etcd_pid=
    { kill -KILL "$pid" && wait "$pid"; } 2>/dev/null || true
}

store() {
    ETCDCTL_API=3 etcdctl --endpoints http://127.0.0.1:2379 "$@"
}

# Replaces the calling subshell.
host_exec() {
    local host=$1
    shift
    # shellcheck disable=SC2016
    exec nsenter --net="/run/netns/$host" unshare --mount --propagation private \
        bash -c 'set -e; mount --rbind "$1/srv" /srv
            for dir in /usr/lib/ssl /etc/ssl /etc/kiln /var/lib/kiln /var/log/kiln /run; do [[ ! -d $1$dir ]] || { mkdir -p "$dir"; mount --bind "$1$dir" "$dir"; }; done
            shift; exec "$@"' bash "$T/$host" "$@"
}

on() {
    (host_exec "$@")
}

kiln_of() {
    local host=$1
    shift
    "$KILN" --socket="$T/$host/socket" "$@"
}

host_answers_or_ended() {
    process_gone "${host_pid[$1]}" || kiln_of "$1" host list
}

host_start() {
    local host=$1
    shift
    host_exec "$host" "$KILND" --store "$cluster_store" --host "$host" --state "$T/$host/state" -N -l "$T/log/kilnd-$host.log" \
        --management-socket "$T/$host/socket" --statedump-dir "$T" "$@" >>"$T/log/kilnd-$host.out" 2>&1 </dev/null &
    host_pid[$host]=$!
    wait_for 240 "kilnd of $host to answer" host_answers_or_ended "$host"
    kiln_of "$host" host list >/dev/null || { echo "kilnd of $host did not start" >&2; return 1; }
}

host_stop() {
    local host=$1 pid status=0
    pid=${host_pid[$host]}
    unset "host_pid[$host]"
    kill -TERM "$pid"
    wait_for 240 "kilnd of $host to end" process_gone "$pid"
    wait "$pid" || status=$?
    [[ $status -eq 0 ]] || { echo "kilnd of $host ended with status $status" >&2; return 1; }
}

host_kill() {
    local pid=${host_pid[$1]}
    unset "host_pid[$1]"
    { kill -KILL "$pid" && wait "$pid"; } 2>/dev/null || true
}

host_cut() {
    ip link set "veth${1#h}" down
}

host_join() {
    ip link set "veth${1#h}" up
}

cluster_mount() {
    local vol=$1 mnt=$2 host
    local -a servers=()
    shift 2
    for host in "$T"/h?; do
        servers+=(-s "$(basename "$host")")
    done
    "$KILN_MOUNT" "${servers[@]}" --volfile-id="$vol" --log-file="$T/log/mount-$(basename "$mnt").log" "$@" "$mnt"
}

host_says() {
    local host=$1 pattern=$2
    shift 2
    kiln_of "$host" "$@" | grep -E -- "$pattern"
}

host_is() {
    kiln_of "${3:-h1}" host list | grep -qE "^$1 +$2 "
}

cluster_end() {
    local host mnt
    cd /
    for mnt in $(findmnt -n -l -t fuse.glusterfs,fuse.kiln -o TARGET); do
        umount -l "$mnt" || true
    done
    for host in "${!host_pid[@]}"; do
        t_here "kilnd of $host ends with status 0 on SIGTERM" host_stop "$host"
    done
    [[ -z $etcd_pid ]] || etcd_stop
    if grep -lE 'ERROR: (Address|Leak|Thread)Sanitizer|WARNING: ThreadSanitizer|runtime error:' "$T"/log/*.out \
        >/dev/null 2>&1; then
        tap_not_ok "no sanitizer complains"
    fi
}
at_end+=(cluster_end)
