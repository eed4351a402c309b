# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# volume: volumes of bricks, the daemons that serve them, and mounts by the stock client.
#
#   volume_new   VOL LAYOUT [DIR]   brick folders DIR/b0 ... (DIR: $T/VOL), their volfiles, the daemon of each brick
#   volume_assign VOL KIND          gives the bricks of a volume that is stopped to daemons of the other kind
#   volume_start VOL                starts the daemons and waits until they listen
#   volumes_start                   starts the daemons of all volumes side by side
#   volume_stop  VOL                SIGTERM; kilnd has to end with status 0
#   mount_volume VOL MNT [FEATURES [ARG...]]     FEATURES as in extras/volfile.sh; ARG: for glusterfs(8)
#   mount_launch MNT ARG...         starts a client, whose volume ARG for glusterfs(8) names; mount_arrive VOL MNT waits for the
#                                   mount
#   mount_settle MNT                waits until the client is connected to all bricks whose daemons run, and has noticed the loss
#                                   of the other bricks. Call it after each start of a daemon that the mount's client used before
#   mount_kiln   VOL MNT [ARG...]   the same by kiln-mount; ARG: for kiln-mount(8). A volume of one subvolume has no distribute in
#                                   the mount's graph, except with mount_graph=whole, as with glusterd
#   mount_end    MNT                unmounts; the client process has to end, kiln-mount with status 0
#   shd_start    VOL                a stock self-heal daemon for the volume
#   kiln_heal_start VOL             kiln-heal for the volume, as kilnd --state starts it
#
#   daemon_start NAME | daemon_kill NAME (-9) | daemon_stop NAME       one daemon; NAME from ${brick_daemon[PATH]}
#   daemon_of N                     prints the daemon of ${bricks[N]}, an array of the script
#   bricks_at PATH...               prints PORT:PATH of each brick, one a line
#
# LAYOUT DxR or DxK+M is that of extras/volfile.sh. BRICKD names the daemon of the bricks: `kiln`, or `stock` to prove the tests.
# Stock runs a process for each brick. kilnd serves all bricks of a volume from one process. With volume_split=yes a process
# serves each replica (or part of a dispersed file), so that a replica can die alone; with volume_split=brick a process serves
# each brick. volume_daemon=NAME puts the bricks of several volumes into a single kilnd of that name; make all these volumes
# before the first start.
#
# xlator_options: an array of PATTERN.KEY=VALUE for the daemons that are started next. kilnd_options: further words for kilnd.
#
# Arrays of bricks are indexed by the brick's path, arrays of daemons by the daemon's name.

: "${BRICKD:=kiln}"
: "${KILND:=${KILN_BUILD:-$source_dir/build}/kilnd}"
: "${KILN_MOUNT:=${KILN_BUILD:-$source_dir/build}/kiln-mount}"

declare -A volume_layout volume_id volume_dir volume_bricks
declare -A brick_daemon brick_volfile
declare -A daemon_kind daemon_bricks daemon_port daemon_pid
declare -A mount_pid mount_vol mount_is_kiln
volume_split=no
volume_daemon=
mount_graph=bare
xlator_options=()
kilnd_options=()

daemon_of() {
    echo "${brick_daemon[${bricks[$1]}]}"
}
next_port=${KILN_FIRST_PORT:-49152}

volume_brick_count() {
    echo $((${1%x*} * (${1#*x})))
}

volume_new() {
    local vol=$1 layout=$2 dir=${3:-$T/$1} i brick
    volume_layout[$vol]=$layout
    volume_id[$vol]=$(cat /proc/sys/kernel/random/uuid)
    volume_dir[$vol]=$dir
    volume_bricks[$vol]=
    for ((i = 0; i < $(volume_brick_count "$layout"); i++)); do
        brick=$dir/b$i
        brick_make "$brick" "${volume_id[$vol]}"
        volume_bricks[$vol]+="${volume_bricks[$vol]:+ }$brick"
    done
    volume_assign "$vol" "$BRICKD"
}

volume_assign() {
    local vol=$1 kind=$2 size=$((${volume_layout[$1]#*x})) i=0 brick daemon
    for brick in ${volume_bricks[$vol]}; do
        [[ -z ${brick_daemon[$brick]:-} ]] || unset "daemon_kind[${brick_daemon[$brick]}]"
    done
    for brick in ${volume_bricks[$vol]}; do
        daemon=${volume_daemon:-$vol-$kind}
        if [[ $kind == stock ]]; then
            daemon=$vol-b$i
        elif [[ $volume_split == yes ]]; then
            daemon=$vol-r$((i % size))
        elif [[ $volume_split == brick ]]; then
            daemon=$vol-b$i
        fi
        daemon_define "$daemon" "$kind"
        daemon_serves "$daemon" "$vol" "$brick"
        i=$((i + 1))
    done
}

# Makes a folder a brick, as glusterd does.
brick_make() {
    mkdir -p "$1/.glusterfs"
    chmod 600 "$1/.glusterfs"
    setfattr -n trusted.glusterfs.volume-id -v "0x${2//-/}" "$1"
}

daemon_define() {
    [[ -z ${daemon_kind[$1]:-} ]] || return 0
    daemon_kind[$1]=$2
    daemon_bricks[$1]=
    daemon_port[$1]=$next_port
    next_port=$((next_port + 1))
}

daemon_serves() {
    local daemon=$1 vol=$2 brick=$3 port=
    [[ ${daemon_kind[$daemon]} == kiln ]] || port=${daemon_port[$daemon]}
    daemon_bricks[$daemon]+="${daemon_bricks[$daemon]:+ }$brick"
    brick_daemon[$brick]=$daemon
    brick_volfile[$brick]=$T/${brick//\//-}.brick.vol
    local BRICK_IS_DISPERSED=
    [[ ${volume_layout[$vol]} != *+* ]] || BRICK_IS_DISPERSED=yes
    volfile_brick "$vol" "$brick" "${volume_id[$vol]}" "$port" >"${brick_volfile[$brick]}"
}

bricks_at() {
    local brick
    for brick in "$@"; do
        echo "${daemon_port[${brick_daemon[$brick]}]}:$brick"
    done
}

# The daemon's command line, one word a line, so that a test can change the words.
daemon_command() {
    local daemon=$1 brick first=${daemon_bricks[$1]%% *}
    if [[ ${daemon_kind[$daemon]} == stock ]]; then
        printf '%s\n' glusterfsd -N -f "${brick_volfile[$first]}"
    else
        printf '%s\n' "$KILND" -N
        for brick in ${daemon_bricks[$daemon]}; do
            printf '%s\n' -f "${brick_volfile[$brick]}"
        done
        printf '%s\n' --port-file "$T/$daemon.port" --statedump-dir "$T" -L "${KILN_LOG_LEVEL:-INFO}" "${kilnd_options[@]}"
    fi
    printf '%s\n' -p "$T/$daemon.pid" -l "$T/log/$daemon.log" --brick-name "$first" \
        --brick-port "${daemon_port[$daemon]}"
    local option
    for option in "${xlator_options[@]}"; do
        printf '%s\n' --xlator-option "$option"
    done
}

daemon_start() {
    daemon_launch "$1"
    daemon_arrive "$1"
}

daemon_launch() {
    local daemon=$1
    local -a command
    mapfile -t command < <(daemon_command "$daemon")
    rm -f "$T/$daemon.port"
    "${command[@]}" >>"$T/log/$daemon.out" 2>&1 </dev/null &
    daemon_pid[$daemon]=$!
}

daemon_arrive() {
    local daemon=$1
    wait_for 240 "$daemon to listen" daemon_listens_or_ended "$daemon"
    daemon_listens "$daemon" || { echo "$daemon did not start" >&2; return 1; }
}

daemon_listens() {
    if [[ ${daemon_kind[$1]} == stock ]]; then
        port_answers "${daemon_port[$1]}"
    else
        [[ -s $T/$1.port ]]
    fi
}

daemon_listens_or_ended() {
    process_gone "${daemon_pid[$1]}" || daemon_listens "$1"
}

daemon_kill() {
    local pid=${daemon_pid[$1]}
    unset "daemon_pid[$1]"
    # Bash reports the killed job on standard error.
    { kill -KILL "$pid" && wait "$pid"; } 2>/dev/null || true
}

daemon_stop() {
    local daemon=$1 pid=${daemon_pid[$1]} status=0
    unset "daemon_pid[$daemon]"
    kill -TERM "$pid"
    wait_for 240 "$daemon to end" process_gone "$pid"
    wait "$pid" || status=$?
    # Stock ends with the number of the signal.
    [[ ${daemon_kind[$daemon]} == stock || $status -eq 0 ]] ||
        { echo "$daemon ended with status $status" >&2; return 1; }
}

volume_daemons() {
    local brick
    for brick in ${volume_bricks[$1]}; do
        echo "${brick_daemon[$brick]}"
    done | sort -u
}

volume_start() {
    local daemon
    for daemon in $(volume_daemons "$1"); do
        [[ -n ${daemon_pid[$daemon]:-} ]] || daemon_start "$daemon"
    done
}

volumes_start() {
    local daemon
    for daemon in "${!daemon_kind[@]}"; do
        daemon_launch "$daemon"
    done
    for daemon in "${!daemon_kind[@]}"; do
        daemon_arrive "$daemon"
    done
}

volume_stop() {
    local daemon
    for daemon in $(volume_daemons "$1"); do
        [[ -z ${daemon_pid[$daemon]:-} ]] || daemon_stop "$daemon"
    done
}

# HOST:PORT:PATH of each brick.
volume_specs() {
    local brick
    for brick in ${volume_bricks[$1]}; do
        echo "127.0.0.1:${daemon_port[${brick_daemon[$brick]}]}:$brick"
    done
}

volume_client_volfile() {
    local -a specs
    mapfile -t specs < <(volume_specs "$1")
    volfile_id=${volume_id[$1]} volfile_client "$1" "${volume_layout[$1]}" "$2" "${specs[@]}"
}

is_glusterfs_mount() {
    [[ $(stat -f -c %T "$1") == fuseblk || $(findmnt -n -o FSTYPE --mountpoint "$1") == fuse.glusterfs ]] &&
        stat -t "$1"
}

mount_is_up_or_ended() {
    process_gone "$2" || is_glusterfs_mount "$1"
}

mount_volume() {
    local vol=$1 mnt=$2 features=${3:-default} volfile
    shift $(($# > 3 ? 3 : $#))
    volfile=$T/$vol-$(basename "$mnt").client.vol
    volume_client_volfile "$vol" "$features" >"$volfile"
    mount_launch "$mnt" -f "$volfile" "$@"
    mount_arrive "$vol" "$mnt"
    mount_settle "$mnt"
}

mount_launch() {
    local mnt=$1 log
    shift
    log=$T/log/client-$(basename "$mnt")
    mkdir -p "$mnt"
    glusterfs -N --process-name fuse -l "$log.log" "$@" "$mnt" >>"$log.out" 2>&1 </dev/null &
    mount_pid[$mnt]=$!
}

mount_arrive() {
    local vol=$1 mnt=$2
    mount_vol[$mnt]=$vol
    wait_for 240 "$mnt to be mounted" mount_is_up_or_ended "$mnt" "${mount_pid[$mnt]}"
    is_glusterfs_mount "$mnt" >/dev/null || { echo "$vol could not be mounted" >&2; return 1; }
}

# A brick that is away is no reason to wait: the mount is there, and answers ENOTCONN.
mount_kiln() {
    local vol=$1 mnt=$2 volfile name
    shift 2
    mkdir -p "$mnt"
    name=$(basename "$mnt")
    volfile=$T/$vol-$name.kiln.vol
    if [[ ${volume_layout[$vol]} == 1x* && ${volume_layout[$vol]} != *+* && $mount_graph == bare ]]; then
        # shellcheck disable=SC2046
        volfile_id=${volume_id[$vol]} volfile_bare "$vol" $(volume_specs "$vol") >"$volfile"
    else
        volume_client_volfile "$vol" default >"$volfile"
    fi
    "$KILN_MOUNT" -N -f "$volfile" --hard=0 -l "$T/log/kiln-mount-$name.log" "$@" "$mnt" >>"$T/log/kiln-mount-$name.out" 2>&1 \
        </dev/null &
    mount_pid[$mnt]=$!
    mount_vol[$mnt]=$vol
    mount_is_kiln[$mnt]=yes
    wait_for 240 "$mnt to be mounted" mount_is_listed_or_ended "$mnt" "${mount_pid[$mnt]}"
    mount_is_listed "$mnt" || { echo "$vol could not be mounted" >&2; return 1; }
}

# Asks the mount table and not the mount, which may hang without its brick.
mount_is_listed() {
    [[ $(findmnt -n -o FSTYPE --mountpoint "$1") == fuse.glusterfs ]]
}

mount_is_listed_or_ended() {
    process_gone "$2" || mount_is_listed "$1"
}

mount_settle() {
    wait_for 240 "the client of $1 to be connected to its bricks" mount_is_settled "$1"
}

mount_is_settled() {
    local mnt=$1 vol=${mount_vol[$1]} brick i=0 down=
    for brick in ${volume_bricks[$vol]}; do
        [[ -n ${daemon_pid[${brick_daemon[$brick]}]:-} ]] || down+=" $i"
        i=$((i + 1))
    done
    client_is_settled "$mnt" "$vol" "${volume_layout[$vol]}" "${mount_pid[$mnt]}" "$down"
}

mount_end() {
    local pid=${mount_pid[$1]}
    unset "mount_pid[$1]"
    umount "$1" || umount -l "$1"
    wait_for 240 "the client of $1 to end" process_gone "$pid"
    [[ -z ${mount_is_kiln[$1]:-} ]] || mount_ended_well "$1" "$pid"
}

mount_ended_well() {
    local status=0
    unset "mount_is_kiln[$1]"
    wait "$2" || status=$?
    [[ $status -eq 0 ]] || { echo "kiln-mount of $1 ended with status $status" >&2; return 1; }
    ! grep -E 'graph-audit|graph-inodes-left|fuse-audit' "$T/log/kiln-mount-$(basename "$1").log" || return 1
}

mount_kill() {
    local pid=${mount_pid[$1]}
    unset "mount_pid[$1]"
    # Bash reports the killed job on standard error.
    { kill -KILL "$pid" && wait "$pid"; } 2>/dev/null || true
    umount -l "$1"
}

shd_start() {
    local -a specs
    mapfile -t specs < <(volume_specs "$1")
    volfile_id=${volume_id[$1]} volfile_shd "$1" "${volume_layout[$1]}" "${specs[@]}" >"$T/$1.shd.vol"
    glusterfs -N -f "$T/$1.shd.vol" -l "$T/log/shd-$1.log" --process-name glustershd --client-pid=-6 \
        --xlator-option "*replicate*.node-uuid=$(cat /proc/sys/kernel/random/uuid)" \
        >>"$T/log/shd-$1.out" 2>&1 </dev/null &
    shd_pid=$!
}

kiln_heal_start() {
    local -a specs
    mapfile -t specs < <(volume_specs "$1")
    volfile_id=${volume_id[$1]} volfile_shd "$1" "${volume_layout[$1]}" "${specs[@]}" >"$T/$1.shd.vol"
    python3 "$source_dir/tests/replicate/healer_kiln.py" "${KILN_MOUNT%/*}/kiln-heal" "$1" "$T/$1.shd.vol" \
        "$T/log/kiln-heal-$1.log" >>"$T/log/kiln-heal-$1.out" 2>&1 </dev/null &
    shd_pid=$!
}

# The end of every script: the mounts go, then each daemon that still runs has to end well, and nothing that a
# sanitizer said may be overlooked.
volumes_end() {
    local mnt daemon
    cd /
    [[ -z ${shd_pid:-} ]] || kill -TERM "$shd_pid" || true
    for mnt in "${!mount_pid[@]}"; do
        t_here "unmount ${mnt#"$T"/}" mount_end "$mnt"
    done
    for daemon in "${!daemon_pid[@]}"; do
        [[ ${daemon_kind[$daemon]} == kiln ]] || continue
        t_here "$daemon ends with status 0 on SIGTERM" daemon_stop "$daemon"
    done
    if grep -lE 'ERROR: (Address|Leak|Thread)Sanitizer|WARNING: ThreadSanitizer|runtime error:' "$T"/log/*.out \
        >/dev/null 2>&1; then
        tap_not_ok "no sanitizer complains"
    fi
}
at_end+=(volumes_end)
