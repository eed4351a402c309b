#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# For KILN_CLUSTER_MINUTES (3), at most two at a time: hosts and the members of an etcd of three are killed, hosts are cut off
# from all others or from one other, and kiln-heal and mounts are killed, while three mounts write and hosts change options. Bricks
# go away in turn without a heal between. KILN_CLUSTER_FAULTS names the kinds of faults. No acknowledged call is lost: files that
# are made, overwritten, renamed and removed, and options. All bricks are equal in the end.
# Covers: volumes/cluster/cluster.c, volumes/cluster/cluster-change.c, volumes/cluster/store-etcd.c, volumes/heal/heal-watch.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

work=$(dirname "$(readlink -f "$0")")/faults_work.py
: "${KILN_CLUSTER_MINUTES:=3}"
RANDOM=${KILN_SEED:=$((10#${EPOCHREALTIME: -5} % 32768))}
diag "KILN_SEED=$KILN_SEED"

cluster_net 3
cluster_store=etcd://10.9.0.11:2379,10.9.0.12:2379,10.9.0.13:2379
declare -A member_pid=()
member_start() { # HOST: the member of etcd on this host
    local n=${1#h}
    (GOMAXPROCS=1 host_exec "$1" etcd --name "e$n" --data-dir "$T/$1/etcd" --listen-client-urls "http://10.9.0.1$n:2379" \
        --advertise-client-urls "http://10.9.0.1$n:2379" --listen-peer-urls "http://10.9.0.1$n:2380" \
        --initial-advertise-peer-urls "http://10.9.0.1$n:2380" --unsafe-no-fsync --pre-vote \
        --initial-cluster e1=http://10.9.0.11:2380,e2=http://10.9.0.12:2380,e3=http://10.9.0.13:2380 \
        >>"$T/log/etcd$n.out" 2>&1 </dev/null) &
    member_pid[$1]=$!
}
member_kill() {
    { kill -KILL "${member_pid[$1]}" && wait "${member_pid[$1]}"; } 2>/dev/null || true
}
members_end() {
    local h
    for h in "${!member_pid[@]}"; do
        member_kill "$h"
    done
}
store() {
    ETCDCTL_API=3 etcdctl --endpoints http://10.9.0.11:2379,http://10.9.0.12:2379,http://10.9.0.13:2379 "$@"
}
pair() { # add|del HOST HOST
    ip -n "$2" route "$1" blackhole "10.9.0.1${3#h}/32"
    ip -n "$3" route "$1" blackhole "10.9.0.1${2#h}/32"
}
mount_start() { # HOST: the mount of this host's network, in the mount namespace of the script
    local mnt=$T/mnt-$1
    umount -l "$mnt" 2>/dev/null || true
    nsenter --net="/run/netns/$1" "$KILN_MOUNT" -s h1 -s h2 -s h3 --volfile-id=v --log-file="$T/log/mount-$1.log" "$mnt"
}
mount_process() {
    pgrep -f "kiln-mount .*--log-file=$T/log/mount-$1.log"
}
remount() {
    { kill -KILL "$(mount_process "$1")"; } 2>/dev/null || true
    wait_for 240 "a mount at $1" mount_start "$1"
}

for h in h1 h2 h3; do
    member_start "$h"
done
wait_for 240 "etcd to answer" store get kiln
for h in h1 h2 h3; do
    host_start "$h"
done
kiln_of h1 volume create v replica 3 h1:/srv/b h2:/srv/b h3:/srv/b >/dev/null
kiln_of h1 volume start v >/dev/null
writers=()
for h in h1 h2 h3; do
    mkdir "$T/mnt-$h"
    mount_start "$h"
    mkdir -p "$T/mnt-$h/shared"
    python3 "$work" write "$T/mnt-$h" "$h" "$T/log-$h" "$T/stop" &
    writers+=($!)
done
changer() {
    local i=0 host
    until [[ -e $T/stop ]]; do
        i=$((i + 1))
        host=h$((RANDOM % 3 + 1))
        if timeout 60 "$KILN" --socket="$T/$host/socket" volume set v "user.change-$i" "$i" >/dev/null 2>&1; then
            echo "$i" >>"$T/set"
        fi
        sleep 0.5
    done
}
changer &
writers+=($!)
is_healed() {
    [[ $(kiln_of h1 volume heal v info | grep -c '^Number of entries: 0$') -eq 3 ]]
}
all_up() {
    host_is h1 up && host_is h2 up && host_is h3 up
}
files_of() {
    (cd "$T/$1/srv/b" && find . -name '.glusterfs*' -prune -o -printf '%P %y\n' -type f -exec md5sum {} + | sort)
}
same_bricks() {
    local h
    for h in h1 h2 h3; do
        files_of "$h" >"$T/files-$h"
    done
    diff "$T/files-h1" "$T/files-h2" >"$T/differ" && diff "$T/files-h1" "$T/files-h3" >"$T/differ"
}

# A fault: its kind and its hosts. The table has the second at which it ends.
declare -A ends=()
fault_begin() {
    case $1 in
    kill) host_kill "$2" ;;
    cut) host_cut "$2" ;;
    pair) pair add "$2" "$3" ;;
    etcd) member_kill "$2" ;;
    healer) pkill -KILL -P "${host_pid[$2]:-0}" -x kiln-heal || true ;;
    mount) remount "$2" ;;
    esac
}
fault_end() {
    case $1 in
    kill) host_start "$2" ;;
    cut) host_join "$2" ;;
    pair) pair del "$2" "$3" ;;
    etcd) member_start "$2" ;;
    esac
}
faults_end() { # SECOND: faults that end until then
    local fault
    for fault in "${!ends[@]}"; do
        if [[ ${ends[$fault]} -le $1 ]]; then
            # shellcheck disable=SC2086
            fault_end $fault
            unset "ends[$fault]"
            diag "$SECONDS: end of $fault"
        fi
    done
}
calm() { # the faults so far are over: everything has to be well
    local h
    faults_end 999999
    wait_for 240 "all hosts to be up" all_up
    wait_for 300 "the volume to be healed" is_healed
    for h in h1 h2 h3; do
        mount_process "$h" >/dev/null || remount "$h"
    done
}
read -ra kinds <<<"${KILN_CLUSTER_FAULTS:-kill cut pair pair etcd healer mount}"
end=$((SECONDS + KILN_CLUSTER_MINUTES * 60))
begun=0 calms=0
while [[ $SECONDS -lt $end ]]; do
    faults_end "$SECONDS"
    kind=${kinds[RANDOM % ${#kinds[@]}]}
    n=$((RANDOM % 3)) host=h$((RANDOM % 3 + 1))
    [[ $kind != pair ]] || host="$host h$(((${host#h} + RANDOM % 2) % 3 + 1))"
    if [[ $kind == kill || $kind == cut || $kind == pair ]] && [[ ${!ends[*]} =~ kill|cut|pair ]]; then
        n=$((n + 1))
    elif [[ ${#ends[@]} -lt 2 && -z ${ends["$kind $host"]-} && ($kind != pair || -z ${ends["pair ${host#* } ${host% *}"]-}) ]]; then
        diag "$SECONDS: $kind $host"
        # shellcheck disable=SC2086
        fault_begin $kind $host
        begun=$((begun + 1))
        [[ $kind == healer || $kind == mount ]] || ends["$kind $host"]=$((SECONDS + 1 + RANDOM % 25))
    fi
    sleep "$n"
    if [[ $begun -ge $((10 * (calms + 1))) ]]; then
        calms=$((calms + 1))
        diag "$SECONDS: calm $calms after $begun faults"
        calm
    fi
done
calm
touch "$T/stop"
wait "${writers[@]}"
t "the volume is healed" wait_for 300 "the heal" is_healed
mkdir "$T/mnt"
cluster_mount v "$T/mnt"
diag "$begun faults, $calms calms, $(cat "$T"/log-h? | grep -c '^ok') of $(cat "$T"/log-h? | grep -c '^try') calls acknowledged, $(wc -l <"$T/set") changes"
t "no acknowledged call is lost" python3 "$work" check "$T/mnt" "$T"/log-h?
for h in h1 h2 h3; do
    lost=0
    kiln_of "$h" volume info v >"$T/info"
    while read -r i; do
        grep -q "^user.change-$i: $i$" "$T/info" || lost=$((lost + 1))
    done <"$T/set"
    is "$lost" 0 "the host $h has all acknowledged changes"
done
umount "$T/mnt"
for h in h1 h2 h3; do
    umount "$T/mnt-$h"
done
t "the volume is healed after the last close" wait_for 300 "the heal" is_healed
t "the bricks are equal" wait_for 60 "equal bricks" same_bricks
head -n 20 "$T/differ" | sed 's/^/# /'
at_end+=(members_end)
