# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# hosts: several hosts in one sandbox. Each has a network namespace, with a veth on one bridge, and a mount namespace, with a /run, a
# /var/lib/glusterd and a /var/log/glusterfs of its own: glusterd's socket for the CLI is /run/glusterd.socket. The sandbox itself is
# the client's host.
#
#   hosts_start N        makes the hosts and puts their glusterds into a pool; afterwards gl speaks to the first host, and
#                        gl_create puts a volume's bricks on the hosts in turn. BRICKD as for glusterd_bricks_start
#   host_run H CMD...    runs CMD on host H
#   host_cut H, host_join H      takes the host's veth off the bridge, and puts the veth back

hosts_net=10.99.1
declare -A host_pid=()

host_run() {
    nsenter -t "${host_pid[$1]}" --mount --net -- "${@:2}"
}

hosts_start() {
    local n=$1 h
    if [[ $BRICKD == kiln ]]; then
        system_cover
        use_kiln on
    fi
    ip link add bridge0 type bridge
    ip addr add "$hosts_net.254/24" dev bridge0
    ip link set bridge0 up
    for ((h = 1; h <= n; h++)); do
        host_make "$h"
    done
    gl() { host_run 1 gluster --mode=script "$@"; }
    gl_brick_host() { echo "$hosts_net.$(($1 % conf[hosts] + 1))"; }
    for ((h = 2; h <= n; h++)); do
        gl peer probe "$hosts_net.$h" >/dev/null
    done
    wait_for 120 "the hosts to be peers" hosts_are_peers "$n"
}

host_make() {
    local h=$1
    ip netns add "h$h"
    ip link add "veth$h" type veth peer name eth0 netns "h$h"
    host_join "$h"
    ip -n "h$h" addr add "$hosts_net.$h/24" dev eth0
    ip -n "h$h" link set eth0 up
    ip -n "h$h" link set lo up
    # This process holds the namespaces; processes that host_run starts there are children of the sandbox's shell.
    ip netns exec "h$h" unshare --mount --propagation private -- \
        bash -c "$(declare -f sandbox_cover); sandbox_cover; touch '$T/h$h.ready'; exec sleep infinity" >>"$T/log/h$h.out" 2>&1 &
    host_pid[$h]=$!
    wait_for 60 "host $h" test -e "$T/h$h.ready"
    host_run "$h" glusterd -N -l "$T/log/glusterd-$h.log" -p "$T/glusterd-$h.pid" >>"$T/log/glusterd-$h.out" 2>&1 </dev/null &
    wait_for 240 "glusterd of host $h to answer" host_run "$h" gluster --mode=script volume list
}

hosts_are_peers() {
    local h
    for ((h = 1; h <= $1; h++)); do
        [[ $(host_run "$h" gluster --mode=script peer status | grep -c 'Peer in Cluster (Connected)') -eq $(($1 - 1)) ]] || return 1
    done
}

host_cut() {
    ip link set "veth$1" down
}

host_join() {
    ip link set "veth$1" master bridge0 up
}
