# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kadalu: pools as kadalu's operator makes them, without Kubernetes (doc/protocol/gluster11.md, 3): volfiles of today's generator,
# command lines word by word. Each server pod has an address and a mount namespace of its own on this machine, where
# /opt/sbin/glusterfsd is kilnd, /opt/sbin/glusterfs is the mount program and /var/lib/kadalu/volfiles holds the volfiles.
#
#   kadalu_pool NAME TYPE          TYPE: Replica1 Replica2 Replica3 Arbiter Disperse. Brick folders, volume-id and volfiles
#   kadalu_bricks_start NAME       the server pods of the pool; kadalu_brick_start NAME N a single pod
#   kadalu_brick_kill NAME N       SIGKILL
#   kadalu_reload                  SIGHUP to all bricks
#   kadalu_mount NAME MNT CLIENT [ARG...]  CLIENT: kiln or stock; mounts as the CSI driver does
#
# Brick N of a pool is at address 127.0.0.$((10 + N)), port 24007.

kadalu_dir=$T/kadalu
kadalu_volfiles=$kadalu_dir/volfiles
declare -A kadalu_type kadalu_id kadalu_brick_pid

kadalu_brick_count() {
    case ${kadalu_type[$1]} in
    Replica1) echo 1 ;;
    Replica2) echo 2 ;;
    *) echo 3 ;;
    esac
}

kadalu_host() {
    echo "127.0.0.$((10 + $1))"
}

kadalu_brick_path() {
    echo "$kadalu_dir/bricks/$1/$2/data/brick"
}

# The volfile id of a brick, which is also the name of the volfile.
kadalu_brick_id() {
    local path
    path=$(kadalu_brick_path "$1" "$2")
    path=${path#/}
    echo "$1.$(kadalu_host "$2").${path//\//-}"
}

# A layer as the generator writes it: NAME TYPE BELOW OPTION...
kadalu_layer() {
    local option name=$1 type=$2 below=$3
    shift 3
    printf 'volume %s\n    type %s\n' "$name" "$type"
    for option in "$@"; do
        printf '    option %s\n' "$option"
    done
    [[ -z $below ]] || printf '    subvolumes %s\n' "$below"
    printf 'end-volume\n\n'
}

kadalu_brick_volfile() {
    local v=$1 n=$2 p below
    local -a watched=("xattrop64-watchlist trusted.ec.dirty" "xattrop-dirty-watchlist trusted.afr.dirty"
        "xattrop-pending-watchlist trusted.afr.$v")
    p=$(kadalu_brick_path "$v" "$n")
    kadalu_layer "$v-posix" storage/posix "" "volume-id ${kadalu_id[$v]}" "directory $p"
    below=$v-posix
    if [[ ${kadalu_type[$v]} == Arbiter && $n -eq 2 ]]; then
        kadalu_layer "$v-arbiter" features/arbiter "$below"
        below=$v-arbiter
    fi
    kadalu_layer "$v-changelog" features/changelog "$below" "changelog-brick $p" "changelog-dir $p/.glusterfs/changelogs" \
        "capture-del-path on"
    kadalu_layer "$v-access-control" features/access-control "$v-changelog" "super-uid 0"
    kadalu_layer "$v-locks" features/locks "$v-access-control"
    kadalu_layer "$v-simple-quota" features/simple-quota "$v-locks" "pass-through ${kadalu_pass_through:-false}" \
        "cmd-from-all-client true"
    kadalu_layer "$v-upcall" features/upcall "$v-simple-quota" "cache-invalidation off" "cache-invalidation-timeout 60"
    kadalu_layer "$v-io-threads" performance/io-threads "$v-upcall"
    kadalu_layer "$v-barrier" features/barrier "$v-io-threads" "barrier disable" "barrier-timeout 120"
    kadalu_layer "$v-index" features/index "$v-barrier" "${watched[@]}" "index-base $p/.glusterfs/indices"
    kadalu_layer "$p" debug/io-stats "$v-index" "unique-id /no/such/path"
    # The generator writes no newline behind the last line.
    kadalu_layer "$v-server" protocol/server "$p" "transport-type tcp" "transport.socket.read-fail-log false" \
        "auth-path $p" "auth.addr.$p.allow *" "auth.login.$p.ssl-allow *" "volspec-directory $kadalu_volfiles" \
        "listen-port 24007" | sed -z 's/\n*$//'
}

# The generator drops layers that a pool's options set to off: write-behind and utime are always there.
kadalu_client_volfile() {
    local v=$1 type=${kadalu_type[$1]} n tops= below
    local -a children=() options=()
    for ((n = 0; n < $(kadalu_brick_count "$v"); n++)); do
        kadalu_layer "$v-client-$n" protocol/client "" "transport.socket.read-fail-log false" "volfile-key /$v" \
            "remote-subvolume $(kadalu_brick_path "$v" "$n")" "remote-host $(kadalu_host "$n")" "remote-port 24007"
        children+=("$v-client-$n")
    done
    options=("data-self-heal on" "metadata-self-heal on" "entry-self-heal on" "granular-entry-heal on"
        "iam-self-heal-daemon off" "read-hash-mode 5" "afr-pending-xattr $(IFS=,; echo "${children[*]}")")
    tops=${children[*]}
    case $type in
    Replica1)
        kadalu_layer "$v-dht" cluster/distribute "$tops"
        below=$v-dht
        ;;
    Disperse)
        kadalu_layer "$v-disperse-0" cluster/disperse "$tops" "${options[@]}" "redundancy 1"
        below=$v-disperse-0
        ;;
    *)
        [[ $type != Arbiter ]] || options+=("arbiter-count 1")
        kadalu_layer "$v-replicate-0" cluster/replicate "$tops" "${options[@]}"
        below=$v-replicate-0
        ;;
    esac
    kadalu_layer "$v-utime" features/utime "$below" "noatime ${kadalu_noatime:-on}"
    kadalu_layer "$v-write-behind" performance/write-behind "$v-utime" "flush-behind on" "write-behind on"
    below=$v-write-behind
    for n in ${kadalu_layers:-}; do
        kadalu_layer "$v-$n" "performance/$n" "$below" "$n on"
        below=$v-$n
    done
    kadalu_layer "$v" debug/io-stats "$below" "volume-id ${kadalu_id[$v]}" | sed -z 's/\n*$//'
}

kadalu_pool() {
    local v=$1 n path
    kadalu_type[$v]=$2
    kadalu_id[$v]=$(cat /proc/sys/kernel/random/uuid)
    mkdir -p "$kadalu_volfiles" /var/run/gluster
    for ((n = 0; n < $(kadalu_brick_count "$v"); n++)); do
        path=$(kadalu_brick_path "$v" "$n")
        mkdir -p "$path/.glusterfs"
        setfattr -n trusted.glusterfs.volume-id -v "0x${kadalu_id[$v]//-/}" "$path"
        kadalu_brick_volfile "$v" "$n" >"$kadalu_volfiles/$(kadalu_brick_id "$v" "$n").vol"
    done
    kadalu_client_volfile "$v" >"$kadalu_volfiles/$v.vol"
}

# The paths of kadalu's images. A tmpfs covers the machine's /opt.
kadalu_programs() {
    mount -t tmpfs kiln-test /opt
    mkdir -p /opt/sbin
    cp "$KILND" /opt/sbin/glusterfsd
    cp "$KILN_MOUNT" /opt/sbin/glusterfs
}

# Each pod has an address for port 24007, because the bricks of one machine could not share the port.
kadalu_brick_command() {
    local v=$1 n=$2 p id
    p=$(kadalu_brick_path "$v" "$n")
    id=$(kadalu_brick_id "$v" "$n")
    local dashed=${p#/}
    dashed=${dashed//\//-}
    printf '%s\n' "${kadalu_glusterfsd:-/opt/sbin/glusterfsd}" -N --volfile-id "$id" -p "/var/run/gluster/glusterfsd-$dashed.pid" \
        -S "/var/run/gluster/brick-$v-$n.socket" --brick-name "$p" -l - \
        --xlator-option "*-posix.glusterd-uuid=$(cat /proc/sys/kernel/random/uuid)" --process-name brick --brick-port 24007 \
        --xlator-option "$v-server.listen-port=24007" -f "$kadalu_volfiles/$id.vol"
}

kadalu_brick_start() {
    local v=$1 n=$2 log=$T/log/kadalu-$1-$2
    local -a command
    mapfile -t command < <(kadalu_brick_command "$v" "$n")
    [[ $(kadalu_brick_count "$v") -eq 1 ]] ||
        command+=(--xlator-option "$v-server.transport.socket.bind-address=$(kadalu_host "$n")")
    "${command[@]}" >>"$log.log" 2>&1 </dev/null &
    kadalu_brick_pid[$v-$n]=$!
    wait_for 60 "brick $n of $v to listen" kadalu_brick_answers "$n"
}

kadalu_brick_answers() {
    (exec 3<>"/dev/tcp/$(kadalu_host "$1")/24007") 2>/dev/null
}

kadalu_bricks_start() {
    local n
    for ((n = 0; n < $(kadalu_brick_count "$1"); n++)); do
        kadalu_brick_start "$1" "$n"
    done
}

kadalu_brick_kill() {
    local pid=${kadalu_brick_pid[$1-$2]}
    unset "kadalu_brick_pid[$1-$2]"
    { kill -KILL "$pid" && wait "$pid"; } 2>/dev/null || true
}

# Does the work of a server pod's monitor after the operator has changed volfiles.
kadalu_reload() {
    kill -HUP "${kadalu_brick_pid[@]}"
}

kadalu_mount() {
    local v=$1 mnt=$2 who=$3 n program=/opt/sbin/glusterfs
    local -a servers=()
    shift 3
    [[ $who == kiln ]] || program=glusterfs
    for ((n = 0; n < $(kadalu_brick_count "$v"); n++)); do
        servers+=(--volfile-server "$(kadalu_host "$n")")
    done
    mkdir -p "$mnt"
    "$program" --process-name fuse -l "$T/log/mount-$(basename "$mnt").log" --volfile-id "$v" --fs-display-name "kadalu:$v" \
        "$mnt" "$@" "${servers[@]}" >>"$T/log/mount-$(basename "$mnt").out" 2>&1
}

# SIGTERM to all bricks, of which each has to end with status 0.
kadalu_bricks_stop() {
    local name status all=0
    for name in "${!kadalu_brick_pid[@]}"; do
        kill -TERM "${kadalu_brick_pid[$name]}"
        status=0
        wait "${kadalu_brick_pid[$name]}" || status=$?
        [[ $status -eq 0 ]] || { echo "brick $name ended with status $status"; all=1; }
    done
    kadalu_brick_pid=()
    return "$all"
}

kadalu_end() {
    t_here "the bricks end with status 0 on SIGTERM" kadalu_bricks_stop
}
