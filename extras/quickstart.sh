#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# quickstart.sh: from a clean checkout to a mounted volume.
#
#   extras/quickstart.sh [--bricks DIR] [--mount PATH]
#   extras/quickstart.sh --down
#   extras/quickstart.sh --hosts 3 [--mount PATH | --down]     three hosts in namespaces: extras/quickstart-hosts.sh
#
# Installs missing packages, builds, makes four ramdisks below DIR (default /run/kiln-quickstart/bricks) and starts one
# kilnd with its own state folder. Then `kiln volume create` makes a 2x2 volume of the ramdisks, `kiln mount` mounts the
# volume on PATH (default /mnt/kiln), and a workload runs while `kiln top` watches. The volume stays mounted. A second run
# keeps the volume and its files, and restarts only daemons that do not run or are older than the build. --down stops the
# daemons and removes the volume with all files.
set -euo pipefail

source_dir=$(dirname "$(dirname "$(readlink -f "$0")")")

volume=quick
state=/run/kiln-quickstart
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
    for log in "$state"/kilnd.log "$state"/kilnd.out "$state"/client.log "$state"/second.log; do
        [[ -s $log ]] || continue
        echo "---- the end of $log" >&2
        tail -n 15 "$log" >&2
    done
}

wait_until() {
    local seconds=$1 what=$2 until=$((SECONDS + $1))
    shift 2
    while [[ $SECONDS -lt $until ]]; do
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

# The process of kiln-mount that has mounted the volume.
client_pid() {
    local dir
    for dir in /proc/[0-9]*; do
        if [[ $(cat "$dir/comm" 2>/dev/null) == kiln-mount ]] && grep -qzFx -- "$mount_dir" "$dir/cmdline" 2>/dev/null; then
            echo "${dir#/proc/}"
            return
        fi
    done
    return 1
}

unmount_volume() {
    local pid
    pid=$(client_pid) || pid=
    if is_mounted "$mount_dir" fuse.glusterfs; then
        umount "$mount_dir" || die "$mount_dir is in use: leave it and run --down again"
    elif mountpoint -q "$mount_dir" 2>/dev/null || [[ $(stat "$mount_dir" 2>&1) == *"not connected"* ]]; then
        umount -l "$mount_dir" || true
    fi
    [[ -z $pid ]] || wait_until 120 "the client ends" gone "$pid"
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
    echo "all is down"
}

# ---- up ------------------------------------------------------------------------------------------------------

find_programs() {
    local name
    for name in kilnd kiln kiln-mount; do
        [[ -x $build_dir/$name ]] || die "the build made no $name in $build_dir"
    done
    kilnd=$build_dir/kilnd
}

kiln() {
    "$build_dir/kiln" --socket="$state/kilnd.socket" "$@"
}

# Shows a command as typed at a prompt, and runs it.
show_and_run() {
    echo "         # $*"
    "$@" 9>&- | sed 's/^/           /'
}

make_ramdisks() {
    local i
    for i in 1 2 3 4; do
        mkdir -p "$bricks_dir/brick$i"
        is_mounted "$bricks_dir/brick$i" tmpfs ||
            mount -t tmpfs -o size=1g,mode=755 kiln-quickstart "$bricks_dir/brick$i"
    done
}

kilnd_answers_or_ended() {
    gone "$1" || kiln list
}

start_kilnd() {
    local pid
    if pid=$(pid_of kilnd kilnd); then
        if [[ $(readlink "/proc/$pid/exe") == "$(readlink -f "$kilnd")" && ! $kilnd -nt $state/kilnd.pid ]]; then
            say "kilnd is running (process $pid)"
            return
        fi
        say "ending a kilnd that is older than the build"
        stop_kilnd
    fi
    # The port where clients of any server ask first.
    if (exec 3<>/dev/tcp/127.0.0.1/24007) 2>/dev/null; then
        die "port 24007 is taken: end the glusterd or kilnd of this machine that has it (systemctl stop glusterd kilnd)"
    fi
    setsid "$kilnd" -N --state="$state/state" --management-socket="$state/kilnd.socket" \
        -p "$state/kilnd.pid" -l "$state/kilnd.log" --statedump-dir="$state" >>"$state/kilnd.out" 2>&1 </dev/null 9>&- &
    pid=$!
    wait_until 120 "kilnd answers" kilnd_answers_or_ended "$pid"
    kiln list >/dev/null || { show_logs; die "kilnd did not start"; }
}

make_volume() {
    if ! kiln list | grep -qx "$volume"; then
        show_and_run kiln volume create "$volume" replica 2 "$bricks_dir"/brick{1,2,3,4}/data
    fi
    [[ $(kiln --json info "$volume") == *'"status": "Started"'* ]] || show_and_run kiln volume start "$volume"
}

# Mounted, and connected to all four bricks, as these say.
is_up() {
    is_mounted "$mount_dir" fuse.glusterfs && [[ $(kiln --json top --once | grep -oE '"client": *"fuse"' | wc -l) -ge 4 ]]
}

mount_volume() {
    if is_mounted "$mount_dir" fuse.glusterfs && client_pid >/dev/null; then
        say "$mount_dir is mounted"
        wait_until 120 "the client finds its bricks again" is_up
        return
    fi
    unmount_volume
    mkdir -p "$mount_dir"
    [[ -z $(ls -A "$mount_dir") ]] || die "$mount_dir is not empty: choose another place with --mount PATH"
    show_and_run kiln mount "$volume" "$mount_dir" -o "noshared,log-file=$state/client.log"
    wait_until 120 "$mount_dir is mounted" is_up
}

mount_second() {
    mkdir -p "$state/second"
    mount -t glusterfs -o "log-file=$state/second.log" "localhost:/$volume" "$state/second" ||
        { show_logs; die "the stock client could not mount"; }
}

# Everything that is there is seen by the second mount, too.
second_sees_all() {
    [[ $(find "$state/second/$1" -type f | wc -l) -ge $2 ]]
}

# Real files: the sources of Kiln, without the build folders.
try_it() {
    local work=quickstart-$$ second=$state/second files
    say "writing the sources of Kiln to the volume, watched by kiln top --once"
    kiln top --once >"$state/top.out" 9>&- &
    local watcher=$!
    mkdir "$mount_dir/$work"
    tar -C "$source_dir" --exclude=./.git --exclude='./build*' --exclude=./autom4te.cache -cf - . |
        tar -C "$mount_dir/$work" -xf -
    (cd "$source_dir" && find . \( -name .git -o -name 'build*' -o -name autom4te.cache \) -prune -o \
        -type f -print0 | sort -z | xargs -0 sha256sum) >"$state/checksums"
    files=$(wc -l <"$state/checksums")
    wait "$watcher" || die "kiln top failed"
    head -n 16 "$state/top.out" | sed 's/^/           /'
    say "reading them back through a second mount, the stock client's"
    mount_second
    wait_until 120 "the second mount shows all files" second_sees_all "$work" "$files"
    (cd "$second/$work" && sha256sum --quiet --check "$state/checksums") || die "a file came back changed"
    say "$files files, all checksums right"
    umount "$second"
    rmdir "$second"
    say "renaming, listing, deleting"
    mv "$mount_dir/$work" "$mount_dir/$work-renamed"
    [[ $(find "$mount_dir/$work-renamed" -type f | wc -l) -ge $files ]] || die "the listing lacks names"
    ls "$mount_dir/$work-renamed" | head -n 5 | sed 's/^/           /'
    rm -rf "$mount_dir/$work-renamed"
    [[ ! -e $mount_dir/$work-renamed ]] || die "the folder is still there"
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
    find_programs
    modprobe fuse 2>/dev/null || true
    [[ -c /dev/fuse ]] || die "this machine has no /dev/fuse"

    if [[ -e $state/places && $(cat "$state/places") != "$bricks_dir"$'\n'"$mount_dir" ]]; then
        say "the places have changed: taking the old volume down"
        (down)
    fi
    mkdir -p "$state"
    printf '%s\n%s\n' "$bricks_dir" "$mount_dir" >"$state/places"
    say "four ramdisks in $bricks_dir"
    make_ramdisks
    say "starting kilnd --state=$state/state"
    start_kilnd
    say "the volume $volume"
    make_volume
    say "mounting on $mount_dir"
    mount_volume
    try_it
    show_pools
    echo
    echo "logs: $state/kilnd.log, $state/client.log"
    echo "look at it: $build_dir/kiln --socket=$state/kilnd.socket top"
    echo "stop and remove everything: $source_dir/extras/quickstart.sh --down"
    echo "mounted at $mount_dir"
}

if [[ ${1:-} == --hosts ]]; then
    [[ ${2:-} == 3 ]] || die "--hosts ${2:-}: only three hosts are built"
    exec "$source_dir/extras/quickstart-hosts.sh" "${@:3}"
fi
action=up
while [[ $# -gt 0 ]]; do
    case $1 in
    --down) action=down; shift ;;
    --bricks) bricks_dir=$(realpath -m "${2:?}"); shift 2 ;;
    --mount) mount_dir=$(realpath -m "${2:?}"); shift 2 ;;
    -h | --help) sed -n '4,16s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) die "no option $1; see --help" ;;
    esac
done
[[ $EUID -eq 0 ]] || die "has to run as root: it mounts file systems"
exec 9>/run/kiln-quickstart.lock
flock -n 9 || die "another quickstart.sh is at work"
"$action"
