# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# serve: the volumes v1 ... of a row, managed by glusterd or started from volfiles, and their mounts $T/m1 ...
#
#   serve_begin          ramdisk, daemons, volumes; notes the number of bricks online. Sets brick_pids and bricks_are_online
#   serve_end            unmounts and stops; kilnd has to end, and must not report leftovers of any brick
#   mounts_begin         mounts all; sets client_pids
#   mounts_end
#   bricks_of VOL        the folders of a volume's bricks, in glusterd's order
#   find_brick_pids      sets brick_pids anew
#   rest [SECONDS]       waits until no operation is under way
#   logs_collect         copies the daemons' logs from their own places to $T/log

brick_pids=()
client_pids=()
bricks_are_online=no
shd=off # self-heal daemons are no part of what a workload measures

volumes_list() {
    local i
    for ((i = 1; i <= conf[volumes]; i++)); do
        echo "v$i"
    done
}

bricks_wanted() {
    echo $((conf[volumes] * $(volume_brick_count "${conf[layout]}")))
}

bricks_of() {
    local i
    if [[ ${conf[manager]} == files ]]; then
        echo "${volume_bricks[$1]}"
        return
    fi
    for ((i = 0; i < $(volume_brick_count "${conf[layout]}"); i++)); do
        gl_brick_path "$1" "$i"
    done
}

ramdisk_make() {
    local disk n=0
    case ${conf[ramdisk]} in
    tmpfs) place_tmpfs "$T/bricks" 8g ;;
    loop) place_xfs "$T/bricks" 8g ;;
    zram) place_zram "$T/bricks" "${conf[zram]}" ;;
    zram:*)
        mkdir -p "$T/bricks"
        for disk in ${conf[zram]}; do
            place_zram "$T/bricks/disk$((n++))" "$disk"
        done
        ;;
    esac
}

# With zram:N the number at the end of a volume's name selects one of the N disks.
brick_folder() {
    local number=${1##*[!0-9]}
    case ${conf[ramdisk]} in
    zram:*) echo "$T/bricks/disk$(((${number:-1} - 1) % ${conf[ramdisk]#zram:}))" ;;
    *) echo "$T/bricks" ;;
    esac
}

gl_brick_path() {
    echo "$(brick_folder "$1")/$1-$2"
}

serve_begin() {
    ramdisk_make
    [[ ${conf[mode]} == work || ${conf[layout]} == 1x1 ]] || shd=on
    if [[ ${conf[manager]} == files ]]; then
        serve_files
    elif [[ ${conf[hosts]} -gt 1 ]]; then
        hosts_start "${conf[hosts]}"
        serve_glusterd
    else
        glusterd_bricks_start
        serve_glusterd
    fi
    find_brick_pids
    note bricks "$(bricks_wanted)"
    note processes "${#brick_pids[@]}"
    [[ ${#brick_pids[@]} -eq 0 ]] || note fds_alone "$(proc_fds "${brick_pids[@]}")"
    say "$online of $(bricks_wanted) bricks online in ${#brick_pids[@]} process(es)"
}

serve_files() {
    local vol
    volume_split=no
    [[ ${conf[mux]} == on ]] && volume_daemon=kilnd || volume_split=brick
    for vol in $(volumes_list); do
        volume_new "$vol" "${conf[layout]}" "$(brick_folder "$vol")/$vol"
    done
    volumes_start
    online=$(bricks_wanted)
    note online "$online"
    bricks_are_online=yes
}

serve_glusterd() {
    local vol
    gl volume set all cluster.brick-multiplex "${conf[mux]}" >/dev/null
    for vol in $(volumes_list); do
        volume_make "$vol" || error "volume $vol was not started"
    done
    online=0
    if wait_for 90 "all bricks to be online" all_online; then
        bricks_are_online=yes
    fi
    online=$(bricks_online all)
    note online "$online"
    [[ $bricks_are_online == yes ]] || error "$online of $(bricks_wanted) bricks came online"
}

# Sets all options in one command, because each command costs glusterd a second. Outside of a workload the client must not
# acknowledge a write that the bricks do not have yet (write-behind), and heals have to end soon: the last step, clearing the
# hidden folder of files without a name, is done by a later walk of the daemon. A client drops a host that is silent for 10
# seconds, not for 42.
volume_make() {
    local -a options=()
    gl_create "$1" "${conf[layout]}" "${conf[kind]}" >/dev/null
    case ${conf[kind]}-${conf[layout]} in
    disperse-*) options+=(cluster.disperse-self-heal-daemon "$shd") ;;
    *-1x1) ;;
    *) options+=(cluster.self-heal-daemon "$shd") ;;
    esac
    [[ $shd == off ]] || options+=(cluster.heal-timeout 5)
    [[ ${conf[mode]} == work ]] || options+=(performance.write-behind off)
    [[ ${conf[hosts]} -eq 1 ]] || options+=(network.ping-timeout 10)
    [[ ${#options[@]} -eq 0 ]] || gl volume set "$1" "${options[@]}" >/dev/null || return 1
    gl volume start "$1" >/dev/null
}

all_online() {
    [[ $(bricks_online all) -eq $(bricks_wanted) ]]
}

find_brick_pids() {
    if [[ ${conf[manager]} == files ]]; then
        brick_pids=("${daemon_pid[@]}")
    else
        mapfile -t brick_pids < <(glusterd_brick_pids)
    fi
}

mount_begin() {
    local vol=$1 mnt=$2
    if [[ ${conf[manager]} == files ]]; then
        volume_client_volfile "$vol" default >"$T/$vol.client.vol"
        mount_launch "$mnt" -f "$T/$vol.client.vol"
    else
        mount_launch "$mnt" -s "$(gl_brick_host 0)" --volfile-id "$vol"
    fi
}

# The process of the first mount serves all mounts.
mounts_begin_kiln() {
    local vol pid
    local -a source
    for vol in $(volumes_list); do
        source=(-s "$glusterd_host" --volfile-id "$vol")
        if [[ ${conf[manager]} == files ]]; then
            volume_client_volfile "$vol" default >"$T/$vol.client.vol"
            source=(-f "$T/$vol.client.vol")
        fi
        mkdir -p "$T/m${vol#v}"
        "$KILN_MOUNT" --shared -l "$T/log/kiln-mount.log" "${source[@]}" "$T/m${vol#v}" || return 1
    done
    pid=$(pgrep -f "kiln-mount --shared")
    client_pids=("$pid")
}

mounts_end_kiln() {
    local vol
    for vol in $(volumes_list); do
        umount "$T/m${vol#v}" || error "$vol could not be unmounted"
    done
    wait_for 240 "kiln-mount to end" process_gone "${client_pids[0]}" || error "kiln-mount did not end"
    grep -q "exit status 0" "$T/log/kiln-mount.log" || error "kiln-mount did not end well"
}

mounts_begin() {
    local vol
    client_pids=()
    if [[ ${conf[client]} == kiln ]]; then
        mounts_begin_kiln
        return
    fi
    for vol in $(volumes_list); do
        mount_begin "$vol" "$T/m${vol#v}"
        client_pids+=("${mount_pid[$T/m${vol#v}]}")
    done
    for vol in $(volumes_list); do
        mount_arrive "$vol" "$T/m${vol#v}"
    done
}

mounts_end() {
    local vol
    if [[ ${conf[client]} == kiln ]]; then
        mounts_end_kiln
        return
    fi
    for vol in $(volumes_list); do
        mount_end "$T/m${vol#v}"
    done
}

rest() {
    wait_for_rest "${1:-1.5}" $((20 + conf[volumes])) "${brick_pids[@]}" "${client_pids[@]}"
}

no_bricks_run() {
    [[ -z $(glusterd_brick_pids) ]]
}

# Stock's bricks end with the sandbox, because the harness does not test their end.
serve_end() {
    local vol daemon left
    mounts_end
    [[ ${conf[brick]} == kiln ]] || return 0
    if [[ ${conf[manager]} == files ]]; then
        for daemon in "${!daemon_pid[@]}"; do
            daemon_stop "$daemon" || error "$daemon did not end well"
        done
    else
        for vol in $(volumes_list); do
            gl volume stop "$vol" force >/dev/null || error "$vol was not stopped"
        done
        wait_for 120 "the brick processes to end" no_bricks_run || error "brick processes are left"
    fi
    logs_collect
    left=$(cat "$T"/log/*.log | grep -c 'graph-audit' || true)
    note audit "$left"
    [[ $left -eq 0 ]] || error "$left lines tell of what was left of bricks"
}

logs_collect() {
    local host
    if [[ ${conf[manager]} == glusterd ]]; then
        cat /var/log/glusterfs/bricks/*.log >"$T/log/bricks.log" 2>/dev/null || true
        for host in "${!host_pid[@]}"; do
            cat "/proc/${host_pid[$host]}/root/var/log/glusterfs/bricks/"*.log >"$T/log/bricks-$host.log" 2>/dev/null || true
        done
    fi
}
