#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# quickstart-hosts.sh: three hosts with a shared volume, on one machine. extras/quickstart.sh --hosts 3 runs it.
#
#   extras/quickstart-hosts.sh [--mount PATH]
#   extras/quickstart-hosts.sh --down
#
# Installs missing packages and builds. Then three network namespaces get a kilnd each, with a ramdisk as its disk, and
# this machine an etcd that they share. `kiln volume create ... replica 3` makes a volume of a brick on each host, which
# kiln-mount mounts on PATH (default /mnt/kiln). The script writes files, kills one host, writes on, starts the host
# again, and waits until its brick is healed. All stays up. --down ends it and removes the volume with all files.
#
# The names of the hosts are the addresses 10.98.7.11 to 10.98.7.13; the etcd is at 10.98.7.1:23798.
set -euo pipefail

source_dir=$(dirname "$(dirname "$(readlink -f "$0")")")
build_dir=$source_dir/build
state=/run/kiln-quickstart-hosts
mount_dir=/mnt/kiln
subnet=10.98.7
etcd_url=http://$subnet.1:23798
started=$SECONDS

say() {
    printf '[%3d s] %s\n' $((SECONDS - started)) "$*"
}

die() {
    echo "quickstart-hosts.sh: $*" >&2
    exit 1
}

wait_until() {
    local seconds=$1 what=$2 until=$((SECONDS + $1))
    shift 2
    while [[ $SECONDS -lt $until ]]; do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.1
    done
    tail -n 5 "$state"/*.log >&2 || true
    die "$what: not within $seconds s; the logs are in $state"
}

# ---- processes -----------------------------------------------------------------------------------------------

# pid_of NAME PROGRAM: the pid in NAME.pid, if that process is the program.
pid_of() {
    local pid
    [[ -s $state/$1.pid ]] || return 1
    pid=$(<"$state/$1.pid")
    [[ $(cat "/proc/$pid/comm" 2>/dev/null) == "$2" ]] || return 1
    echo "$pid"
}

is_gone() {
    ! pid_of "$1" "$2" >/dev/null
}

end_process() { # NAME PROGRAM SIGNAL
    local pid
    pid=$(pid_of "$1" "$2") || return 0
    kill "-$3" "$pid"
    wait_until 120 "the end of $1" is_gone "$1" "$2"
}

kiln_of() {
    local i=$1
    shift
    "$build_dir/kiln" --socket="$state/h$i/socket" "$@"
}

# Shows a command of the first host, and runs it.
show_and_run() {
    echo "         # kiln $*"
    kiln_of 1 "$@" 9>&- | sed 's/^/           /'
}

start_etcd() {
    setsid etcd --name quickstart --data-dir "$state/etcd" --listen-client-urls "$etcd_url" \
        --advertise-client-urls "$etcd_url" --listen-peer-urls http://127.0.0.1:23799 \
        --initial-advertise-peer-urls http://127.0.0.1:23799 --initial-cluster quickstart=http://127.0.0.1:23799 \
        --auto-compaction-retention=1h >>"$state/etcd.log" 2>&1 </dev/null 9>&- &
    echo $! >"$state/etcd.pid"
    wait_until 120 "an answer of etcd" curl -sf "$etcd_url/health"
}

start_host() {
    local i=$1
    setsid ip netns exec "kilnq$i" "$build_dir/kilnd" -N --store="etcd://$subnet.1:23798" --host="$subnet.1$i" \
        --state="$state/h$i/state" --management-socket="$state/h$i/socket" --brick-root="$state/h$i/disk" \
        -p "$state/h$i.pid" -l "$state/h$i.log" --statedump-dir="$state/h$i" >>"$state/h$i.out" 2>&1 </dev/null 9>&- &
    wait_until 120 "an answer of host $i" kiln_of "$i" host list
}

# ---- down ----------------------------------------------------------------------------------------------------

down() {
    local i
    [[ -e $state/mount ]] || { echo "nothing to take down"; return; }
    mount_dir=$(<"$state/mount")
    if mountpoint -q "$mount_dir"; then
        umount "$mount_dir" || die "$mount_dir is in use: leave it and run --down again"
    fi
    for i in 1 2 3; do
        end_process "h$i" kilnd TERM
        ! mountpoint -q "$state/h$i/disk" || umount "$state/h$i/disk"
        [[ ! -e /run/netns/kilnq$i ]] || ip netns delete "kilnq$i"
    done
    end_process etcd etcd TERM
    ! ip link show kilnq >/dev/null 2>&1 || ip link delete kilnq
    rmdir "$mount_dir" 2>/dev/null || true
    rm -rf "$state"
    echo "all is down"
}

# ---- up ------------------------------------------------------------------------------------------------------

make_network() {
    local i
    ip link add kilnq type bridge
    ip address add "$subnet.1/24" dev kilnq
    ip link set kilnq up
    for i in 1 2 3; do
        ip netns add "kilnq$i"
        ip link add "kilnq-$i" type veth peer name eth0 netns "kilnq$i"
        ip link set "kilnq-$i" master kilnq up
        ip -n "kilnq$i" address add "$subnet.1$i/24" dev eth0
        ip -n "kilnq$i" link set eth0 up
        ip -n "kilnq$i" link set lo up
        mkdir -p "$state/h$i/disk"
        mount -t tmpfs -o size=1g,mode=755 kiln-quickstart "$state/h$i/disk"
    done
}

is_healed() {
    [[ $(kiln_of 1 volume heal quick info | grep -c '^Number of entries: 0$') -eq 3 ]]
}

all_bricks_online() {
    [[ $(kiln_of 1 volume status quick | grep -c '^Brick .* Y ') -eq 3 ]]
}

try_it() {
    local i
    for i in {1..20}; do
        echo "file $i" >"$mount_dir/file$i"
    done
    say "the third host is killed, and the mount writes on"
    end_process h3 kilnd KILL
    for i in {11..40}; do
        echo "file $i, written while a host is down" >"$mount_dir/file$i"
    done
    say "the third host returns and is healed"
    start_host 3
    wait_until 120 "all bricks to be online" all_bricks_online
    wait_until 120 "the heal" is_healed
    for i in {11..40}; do
        cmp -s "$mount_dir/file$i" "$state/h3/disk/quick/file$i" || die "file$i differs on the third host"
    done
    show_and_run volume status quick
    show_and_run host list
}

up() {
    [[ ! -e $state/mount ]] || die "it is up already: $0 --down"
    say "packages"
    "$source_dir/extras/install-deps.sh" build test
    say "building in $build_dir"
    "$source_dir/extras/build.sh" "$build_dir"
    modprobe fuse 2>/dev/null || true
    [[ -c /dev/fuse ]] || die "this machine has no /dev/fuse"
    mkdir -p "$mount_dir" "$state"
    [[ -z $(ls -A "$mount_dir") ]] || die "$mount_dir is not empty: choose another place with --mount PATH"
    echo "$mount_dir" >"$state/mount"
    say "three hosts and an etcd in network namespaces"
    make_network
    start_etcd
    for i in 1 2 3; do
        start_host "$i"
    done
    show_and_run host list
    say "the volume quick"
    make_volume
    try_it
    echo
    echo "look at it: $build_dir/kiln --socket=$state/h1/socket host list"
    echo "the network of a host: ip netns exec kilnq1 COMMAND"
    echo "stop and remove everything: $source_dir/extras/quickstart.sh --hosts 3 --down"
    echo "mounted at $mount_dir"
}

make_volume() {
    show_and_run volume create quick replica 3 "$subnet.11:$state/h1/disk/quick" "$subnet.12:$state/h2/disk/quick" \
        "$subnet.13:$state/h3/disk/quick"
    show_and_run volume start quick
    "$build_dir/kiln-mount" -s "$subnet.11" -s "$subnet.12" -s "$subnet.13" --volfile-id=quick \
        --log-file="$state/client.log" "$mount_dir" 9>&-
    wait_until 120 "the mount" mountpoint -q "$mount_dir"
}

action=up
while [[ $# -gt 0 ]]; do
    case $1 in
    --down) action=down; shift ;;
    --mount) mount_dir=$(realpath -m "${2:?}"); shift 2 ;;
    -h | --help) sed -n '4,15s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) die "no option $1; see --help" ;;
    esac
done
[[ $EUID -eq 0 ]] || die "has to run as root: it makes network namespaces and mounts file systems"
exec 9>/run/kiln-quickstart-hosts.lock
flock -n 9 || die "another quickstart-hosts.sh is at work"
"$action"
