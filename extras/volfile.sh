# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# volfile: writes volfiles as stock glusterd generates them.
#
#   volfile_brick VOL BRICK_PATH VOLUME_ID [PORT]     the whole stack of a brick
#   volfile_client VOL LAYOUT FEATURES BRICK...       a mount's graph; BRICK is HOST:PORT:PATH
#   volfile_bare VOL BRICK...                         a mount's graph of one brick, or of several that are replicas: protocol/client,
#                                                     cluster/replicate, features/utime and io-stats alone
#   volfile_shd VOL LAYOUT BRICK...                   the self-heal daemon's
#
# LAYOUT is DxR: D distribute subvolumes, each of R replicas; 1x1 is a single brick. DxK+M: D subvolumes, each dispersed over
# K + M bricks, of which any M may be missing.
# FEATURES is `plain` (nothing above distribute), `utime` (consistent time stamps), or `default` (the default of a volume: those
# and four performance layers). A mount without them does not see that one with them has changed a file: its times stay.
# volfile_shard, if not empty: new files are kept in blocks of this size.
# volfile_dispersed, if not empty: a further option of cluster/disperse, `KEY VALUE`.
# volfile_id is the volume's id; volfile_heal=heal lets the mount itself heal replicas; with volfile_arbiter=yes the last of each three
# replicas is an arbiter (its brick has BRICK_IS_ARBITER=yes).
# BRICK_SERVER_OPTIONS, BRICK_POSIX_OPTIONS: further lines for these two layers, `option KEY VALUE`. BRICK_IS_DISPERSED, if not empty:
# a brick of a dispersed volume. BRICK_IS_ARBITER: one that keeps no contents. BRICK_QUOTA_OPTIONS, if not empty: the brick has the layer
# features/simple-quota, as glusterd 11 writes it, with these options.

volfile_layer() {
    local name=$1 type=$2 below=$3
    shift 3
    echo "volume $name"
    echo "    type $type"
    local option
    for option in "$@"; do
        echo "    option $option"
    done
    [[ -z $below ]] || echo "    subvolumes $below"
    printf 'end-volume\n\n'
}

volfile_brick() {
    local vol=$1 path=$2 id=$3 port=${4:-}
    local -a listen=() more_server=() more_posix=()
    [[ -z $port ]] || listen=("transport.socket.listen-port $port")
    [[ -z ${BRICK_SERVER_OPTIONS:-} ]] || mapfile -t more_server <<<"$BRICK_SERVER_OPTIONS"
    [[ -z ${BRICK_POSIX_OPTIONS:-} ]] || mapfile -t more_posix <<<"$BRICK_POSIX_OPTIONS"

    volfile_layer "$vol-posix" storage/posix "" \
        "shared-brick-count 1" "fips-mode-rchecksum on" "volume-id $id" "directory $path" "${more_posix[@]}"
    local storage=$vol-posix
    if [[ -n ${BRICK_IS_ARBITER:-} ]]; then
        volfile_layer "$vol-arbiter" features/arbiter "$storage"
        storage=$vol-arbiter
    fi
    volfile_layer "$vol-trash" features/trash "$storage" \
        "trash-internal-op off" "brick-path $path" "trash-dir .trashcan"
    volfile_layer "$vol-changelog" features/changelog "$vol-trash" \
        "changelog-barrier-timeout 120" "changelog-dir $path/.glusterfs/changelogs" "changelog-brick $path" \
        "changelog-notification off"
    volfile_layer "$vol-bitrot-stub" features/bitrot-stub "$vol-changelog" \
        "bitrot disable" "export $path"
    volfile_layer "$vol-access-control" features/access-control "$vol-bitrot-stub"
    volfile_layer "$vol-locks" features/locks "$vol-access-control" "enforce-mandatory-lock off"
    local locks=$vol-locks
    local -a quota=()
    if [[ -n ${BRICK_QUOTA_OPTIONS:-} ]]; then
        mapfile -t quota <<<"$BRICK_QUOTA_OPTIONS"
        volfile_layer "$vol-simple-quota" features/simple-quota "$locks" "${quota[@]}"
        locks=$vol-simple-quota
    fi
    volfile_layer "$vol-worm" features/worm "$locks" \
        "worm-files-deletable on" "worm-file-level off" "worm off"
    volfile_layer "$vol-read-only" features/read-only "$vol-worm" "read-only off"
    volfile_layer "$vol-leases" features/leases "$vol-read-only" "leases off"
    volfile_layer "$vol-upcall" features/upcall "$vol-leases" "cache-invalidation off"
    volfile_layer "$vol-io-threads" performance/io-threads "$vol-upcall"
    volfile_layer "$vol-selinux" features/selinux "$vol-io-threads" "selinux on"
    volfile_layer "$vol-marker" features/marker "$vol-selinux" \
        "inode-quota off" "quota off" "gsync-force-xtime off" "xtime off" "quota-version 0" \
        "timestamp-file /var/lib/glusterd/vols/$vol/marker.tstamp" "volume-uuid $id"
    volfile_layer "$vol-barrier" features/barrier "$vol-marker" "barrier-timeout 120" "barrier disable"
    local -a watched=("xattrop-pending-watchlist trusted.afr.$vol-" "xattrop-dirty-watchlist trusted.afr.dirty")
    [[ -z ${BRICK_IS_DISPERSED:-} ]] || watched=("xattrop64-watchlist trusted.ec.dirty")
    volfile_layer "$vol-index" features/index "$vol-barrier" "${watched[@]}" "index-base $path/.glusterfs/indices"
    volfile_layer "$vol-quota" features/quota "$vol-index" \
        "deem-statfs off" "server-quota off" "volume-uuid $vol"
    volfile_layer "$path" debug/io-stats "$vol-quota" \
        "global-threading off" "count-fop-hits off" "latency-measurement off" "threads 16" "log-level INFO" \
        "volume-id $id" "unique-id $path"
    volfile_layer "$vol-server" protocol/server "$path" \
        "transport.socket.keepalive-count 9" "transport.socket.keepalive-interval 2" \
        "transport.socket.keepalive-time 20" "transport.socket.keepalive 1" \
        "transport.listen-backlog 1024" "transport.address-family inet" "transport.socket.ssl-enabled off" \
        "auth.addr.$path.allow *" "auth-path $path" "transport-type tcp" "${listen[@]}" "${more_server[@]}"
}

# The protocol/client layers and, when there are several bricks to a subvolume, the replicate or disperse layers over them. Leaves
# the names of the topmost ones in volfile_tops.
volfile_groups() {
    local vol=$1 layout=$2 kind=$3 size=$((${2#*x})) i=0 spec host port path
    local -a options group=()
    shift 3
    volfile_tops=()
    for spec in "$@"; do
        IFS=: read -r host port path <<<"$spec"
        options=("remote-host $host" "remote-port $port" "remote-subvolume $path" "transport-type tcp"
            "transport.address-family inet" "ping-timeout 42" "transport.socket.ssl-enabled off"
            "transport.tcp-user-timeout 0" "transport.socket.keepalive-time 20"
            "transport.socket.keepalive-interval 2" "transport.socket.keepalive-count 9" "strict-locks off")
        [[ $kind == shd ]] || options+=("send-gids true")
        volfile_layer "$vol-client-$i" protocol/client "" "${options[@]}"
        group+=("$vol-client-$i")
        i=$((i + 1))
        [[ ${#group[@]} -eq $size ]] || continue
        if [[ $size -eq 1 ]]; then
            volfile_tops+=("${group[0]}")
        elif [[ $layout == *+* ]]; then
            volfile_disperse "$vol" "$((i / size - 1))" "$kind" "${layout#*+}" "${group[@]}"
        else
            volfile_replicate "$vol" "$((i / size - 1))" "$kind" "${group[@]}"
        fi
        group=()
    done
}

volfile_replicate() {
    local name=$1-replicate-$2 kind=$3 pending
    shift 3
    pending=$(IFS=,; echo "$*")
    local -a options=("use-anonymous-inode yes" "use-compound-fops off" "granular-entry-heal on"
        "volume-id $volfile_id" "afr-pending-xattr $pending")
    [[ $kind == shd ]] && options+=("iam-self-heal-daemon yes" "self-heal-daemon enable"
        "data-self-heal on" "metadata-self-heal on" "entry-self-heal on"
        "background-self-heal-count 0" "heal-timeout 5")
    [[ -z ${volfile_arbiter:-} ]] || options+=("arbiter-count 1")
    [[ $kind == heal ]] && options+=("data-self-heal on" "metadata-self-heal on" "entry-self-heal on")
    volfile_layer "$name" cluster/replicate "$*" "${options[@]}"
    volfile_tops+=("$name")
}

# A mount of a dispersed volume always heals files that it meets. A minute is the shortest time between two walks of the daemon.
volfile_disperse() {
    local name=$1-disperse-$2 kind=$3 redundancy=$4
    shift 4
    local -a options=("redundancy $redundancy")
    [[ $kind == shd ]] && options+=("iam-self-heal-daemon yes" "self-heal-daemon enable" "heal-timeout 60")
    [[ -z ${volfile_dispersed:-} ]] || options+=("$volfile_dispersed")
    volfile_layer "$name" cluster/disperse "$*" "${options[@]}"
    volfile_tops+=("$name")
}

volfile_client() {
    local vol=$1 layout=$2 features=$3 layer below
    shift 3
    volfile_groups "$vol" "$layout" "${volfile_heal:-mount}" "$@"
    volfile_layer "$vol-dht" cluster/distribute "${volfile_tops[*]}" "force-migration off" "lock-migration off"
    below=$vol-dht
    if [[ -n ${volfile_shard:-} ]]; then
        volfile_layer "$vol-shard" features/shard "$below" "shard-block-size $volfile_shard"
        below=$vol-shard
    fi
    if [[ $features != plain ]]; then
        volfile_layer "$vol-utime" features/utime "$below" "noatime on"
        below=$vol-utime
    fi
    if [[ $features == default ]]; then
        for layer in write-behind open-behind quick-read md-cache; do
            volfile_layer "$vol-$layer" "performance/$layer" "$below"
            below=$vol-$layer
        done
    fi
    volfile_layer "$vol" debug/io-stats "$below" \
        "log-level INFO" "threads 16" "latency-measurement off" "count-fop-hits off" "global-threading off"
}

volfile_bare() {
    local vol=$1
    shift
    volfile_groups "$vol" "1x$#" "${volfile_heal:-mount}" "$@"
    volfile_layer "$vol-utime" features/utime "${volfile_tops[0]}" "noatime on"
    volfile_layer "$vol" debug/io-stats "$vol-utime" "log-level INFO" "latency-measurement off" "count-fop-hits off"
}

volfile_shd() {
    local vol=$1 layout=$2
    shift 2
    volfile_groups "$vol" "$layout" shd "$@"
    volfile_layer "$vol" debug/io-stats "${volfile_tops[*]}" "log-level INFO" "threads 16"
}
