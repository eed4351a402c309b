#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# quickstart.sh: from a clean checkout to a mounted volume.
#
#   extras/quickstart.sh [--bricks DIR] [--mount PATH]
#   extras/quickstart.sh --down
#
# Installs what is missing, builds, makes four ramdisk bricks of a 2x2 volume below DIR (default
# /run/kiln/quickstart/bricks), serves them from one kilnd, mounts the volume on PATH (default /mnt/kiln) with the stock
# GlusterFS client, and shows that it works. The volume stays mounted. Run again, it keeps the volume and its files, and
# restarts only what is not running or older than the build. --down ends and removes everything, the files too.
set -euo pipefail

source_dir=$(dirname "$(dirname "$(readlink -f "$0")")")
. "$source_dir/extras/volfile.sh"
. "$source_dir/extras/client-state.sh"

state=/run/kiln/quickstart
build_dir=$source_dir/build
bricks_dir=$state/bricks
mount_dir=/mnt/kiln
started=$SECONDS

say() {
    printf '[%3d s] %s\n' $((SECONDS - started)) "$*"
}

die() {
    echo "quickstart.sh: $*" >&2
    exit 1
}

show_logs() {
    local log
    for log in "$state"/kilnd.log "$state"/kilnd.out "$state"/client.log; do
        [[ -s $log ]] || continue
        echo "---- the end of $log" >&2
        tail -n 15 "$log" >&2
    done
}

wait_until() {
    local seconds=$1 what=$2 i
    shift 2
    for ((i = 0; i < seconds * 20; i++)); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.05
    done
    show_logs
    die "$what: not within $seconds s"
}

# The pid in a file, when that process lives and is the program it should be.
pid_of() {
    local file=$state/$1.pid pid
    [[ -s $file ]] || return 1
    pid=$(<"$file")
    [[ $(cat "/proc/$pid/comm" 2>/dev/null) == "$2" ]] || return 1
    echo "$pid"
}

gone() {
    [[ ! -d /proc/$1 || $(awk '$1 == "State:" { print $2 }' "/proc/$1/status") == Z ]]
}

is_mounted() {
    [[ $(findmnt -n -o FSTYPE --mountpoint "$1" | tail -n 1) == "$2" ]]
}

end_process() {
    local pid=$1 what=$2
    kill -TERM "$pid" 2>/dev/null || return 0
    wait_until 120 "$what ends" gone "$pid"
}

# ---- down ----------------------------------------------------------------------------------------------------

unmount_volume() {
    local pid
    if is_mounted "$mount_dir" fuse.glusterfs; then
        umount "$mount_dir" || die "$mount_dir is in use: leave it and run --down again"
    elif mountpoint -q "$mount_dir" 2>/dev/null || [[ $(stat "$mount_dir" 2>&1) == *"not connected"* ]]; then
        umount -l "$mount_dir" || true
    fi
    if pid=$(pid_of client glusterfs); then
        end_process "$pid" "the client"
    fi
}

stop_kilnd() {
    local pid
    if pid=$(pid_of kilnd kilnd); then
        end_process "$pid" kilnd
    fi
}

down() {
    local i
    if [[ ! -e $state/places ]]; then
        echo "nothing to take down"
        return
    fi
    { read -r bricks_dir && read -r mount_dir; } <"$state/places"
    say "unmounting $mount_dir"
    unmount_volume
    say "ending kilnd"
    stop_kilnd
    say "removing the bricks"
    for i in 1 2 3 4; do
        while is_mounted "$bricks_dir/brick$i" tmpfs; do
            umount "$bricks_dir/brick$i"
        done
        rmdir "$bricks_dir/brick$i" 2>/dev/null || true
    done
    rmdir "$bricks_dir" "$mount_dir" 2>/dev/null || true
    rm -rf "$state"
    rmdir /run/kiln 2>/dev/null || true
    echo "all is down"
}

# ---- up ------------------------------------------------------------------------------------------------------

find_kilnd() {
    local place
    for place in "$build_dir/kilnd" "$build_dir/glusterfsd/kilnd"; do
        [[ -x $place ]] && { echo "$place"; return; }
    done
    die "the build made no kilnd in $build_dir"
}

make_bricks() {
    local i data id
    [[ -s $state/volume-id ]] || cat /proc/sys/kernel/random/uuid >"$state/volume-id"
    id=$(<"$state/volume-id")
    for i in 1 2 3 4; do
        mkdir -p "$bricks_dir/brick$i"
        is_mounted "$bricks_dir/brick$i" tmpfs ||
            mount -t tmpfs -o size=1g,mode=755 kiln-quickstart "$bricks_dir/brick$i"
        data=$bricks_dir/brick$i/data
        mkdir -p "$data/.glusterfs"
        setfattr -n trusted.glusterfs.volume-id -v "0x${id//-/}" "$data"
        volfile_brick quick "$data" "$id" >"$state/brick$i.vol"
    done
}

start_kilnd() {
    local pid port=0
    if pid=$(pid_of kilnd kilnd); then
        if [[ $(readlink "/proc/$pid/exe") == "$(readlink -f "$kilnd")" && ! $kilnd -nt $state/kilnd.pid ]]; then
            say "kilnd is running (process $pid)"
            return
        fi
        say "ending a kilnd that is older than the build"
        stop_kilnd
    fi
    # The port of the time before: a client that is still mounted finds its bricks again.
    [[ ! -s $state/kilnd.port ]] || port=$(<"$state/kilnd.port")
    rm -f "$state/kilnd.port"
    setsid "$kilnd" -N -f "$state/brick1.vol" -f "$state/brick2.vol" -f "$state/brick3.vol" -f "$state/brick4.vol" \
        -p "$state/kilnd.pid" -l "$state/kilnd.log" --brick-name "$bricks_dir/brick1/data" --brick-port "$port" \
        --port-file "$state/kilnd.port" --statedump-dir "$state" >>"$state/kilnd.out" 2>&1 </dev/null 9>&- &
    pid=$!
    wait_until 120 "kilnd listens" kilnd_listens_or_ended "$pid"
    if [[ ! -s $state/kilnd.port ]]; then
        show_logs
        die "kilnd did not start"
    fi
    echo "$pid" >"$state/kilnd.pid"
}

kilnd_listens_or_ended() {
    [[ -s $state/kilnd.port ]] || gone "$1"
}

write_client_volfile() {
    local i port
    local -a specs=()
    port=$(<"$state/kilnd.port")
    for i in 1 2 3 4; do
        specs+=("127.0.0.1:$port:$bricks_dir/brick$i/data")
    done
    volfile_id=$(<"$state/volume-id") volfile_client quick 2x2 default "${specs[@]}" >"$state/client.vol"
}

# start_client NAME PATH
start_client() {
    setsid glusterfs -N --process-name fuse -f "$state/client.vol" -l "$state/$1.log" "$2" \
        >>"$state/$1.out" 2>&1 </dev/null 9>&- &
    echo $! >"$state/$1.pid"
    wait_until 120 "$2 is mounted" is_up_or_ended "$1" "$2"
    is_up "$1" "$2" >/dev/null 2>&1 || { show_logs; die "$2 could not be mounted"; }
}

# is_up NAME PATH: mounted, and connected to all four bricks.
is_up() {
    is_mounted "$2" fuse.glusterfs && client_is_settled "$2" quick 2x2 "$(<"$state/$1.pid")"
}

is_up_or_ended() {
    gone "$(<"$state/$1.pid")" || is_up "$1" "$2"
}

mount_volume() {
    if is_mounted "$mount_dir" fuse.glusterfs && pid_of client glusterfs >/dev/null; then
        say "$mount_dir is mounted"
        wait_until 120 "the client finds its bricks again" is_up client "$mount_dir"
        return
    fi
    unmount_volume
    mkdir -p "$mount_dir"
    [[ -z $(ls -A "$mount_dir") ]] || die "$mount_dir is not empty: choose another place with --mount PATH"
    start_client client "$mount_dir"
}

# Real files: the sources of Kiln, without what was built.
try_it() {
    local work=quickstart-$$ second=$state/second files
    say "writing the sources of Kiln to the volume"
    mkdir "$mount_dir/$work"
    tar -C "$source_dir" --exclude=./.git --exclude='./build*' --exclude=./autom4te.cache -cf - . |
        tar -C "$mount_dir/$work" -xf -
    (cd "$source_dir" && find . \( -name .git -o -name 'build*' -o -name autom4te.cache \) -prune -o \
        -type f -print0 | sort -z | xargs -0 sha256sum) >"$state/checksums"
    files=$(wc -l <"$state/checksums")
    say "reading them back through a second mount"
    mkdir -p "$second"
    start_client second "$second"
    (cd "$second/$work" && sha256sum --quiet --check "$state/checksums") || die "a file came back changed"
    say "$files files, all checksums right"
    say "renaming, listing, deleting"
    mv "$mount_dir/$work" "$mount_dir/$work-renamed"
    [[ $(find "$mount_dir/$work-renamed" -type f | wc -l) -ge $files ]] || die "the listing lacks names"
    ls "$mount_dir/$work-renamed" | head -n 5 | sed 's/^/           /'
    rm -rf "$mount_dir/$work-renamed"
    [[ ! -e $mount_dir/$work-renamed ]] || die "the folder is still there"
    umount "$second"
    wait_until 120 "the second client ends" gone "$(<"$state/second.pid")"
    rmdir "$second"
    rm -f "$state"/second.*
}

show_pools() {
    local pid dump
    pid=$(pid_of kilnd kilnd) || die "kilnd is gone"
    rm -f "$state"/*.dump.*
    kill -USR1 "$pid"
    wait_until 120 "kilnd writes a statedump" dump_is_there
    for dump in "$state"/*.dump.*; do
        say "the memory pools of kilnd (process $pid, $(awk '$1 == "VmRSS:" { printf "%.1f MB", $2 / 1024 }' \
            "/proc/$pid/status"), $(awk '$1 == "Threads:" { print $2 }' "/proc/$pid/status") threads)"
        "$source_dir/extras/pools-table.sh" "$dump"
    done
}

dump_is_there() {
    compgen -G "$state/*.dump.*"
}

up() {
    say "packages"
    "$source_dir/extras/install-deps.sh" build test
    say "building in $build_dir"
    "$source_dir/extras/build.sh" "$build_dir"
    kilnd=$(find_kilnd)
    modprobe fuse 2>/dev/null || true
    [[ -c /dev/fuse ]] || die "this machine has no /dev/fuse"

    if [[ -e $state/places && $(cat "$state/places") != "$bricks_dir"$'\n'"$mount_dir" ]]; then
        say "the places have changed: taking the old volume down"
        (down)
    fi
    mkdir -p "$state"
    printf '%s\n%s\n' "$bricks_dir" "$mount_dir" >"$state/places"
    say "four ramdisk bricks in $bricks_dir"
    make_bricks
    say "starting kilnd"
    start_kilnd
    say "kilnd listens on port $(<"$state/kilnd.port")"
    write_client_volfile
    say "mounting on $mount_dir"
    mount_volume
    try_it
    show_pools
    echo
    echo "logs: $state/kilnd.log, $state/client.log"
    echo "stop and remove everything: $source_dir/extras/quickstart.sh --down"
    echo "mounted at $mount_dir"
}

action=up
while [[ $# -gt 0 ]]; do
    case $1 in
    --down) action=down; shift ;;
    --bricks) bricks_dir=$(realpath -m "${2:?}"); shift 2 ;;
    --mount) mount_dir=$(realpath -m "${2:?}"); shift 2 ;;
    -h | --help) sed -n '4,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) die "no option $1; see --help" ;;
    esac
done
[[ $EUID -eq 0 ]] || die "has to run as root: it mounts file systems"
exec 9>/run/kiln-quickstart.lock
flock -n 9 || die "another quickstart.sh is at work"
"$action"
