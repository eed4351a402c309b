# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# machine: Debians that systemd has booted in systemd-nspawn, for the scripts of tests/packages, and their TAP.
#
#   $dir, $root, $log        a folder in /var/tmp, removed at the end; the machine's root folder in it; output of the last step
#   machine_use NAME         the machine that the next functions mean, with the root folder $dir/NAME; the first is `root`
#   t NAME COMMAND...        a step; `is GOT WANTED NAME` compares
#   machine_boot [NETNS]     true when systemd has started all units; without the network namespace there is no network
#   machine_halt             true when the machine has ended by itself; machine_kill ends it as a loss of power does
#   inside COMMAND-LINE      runs in the machine; `until_inside SECONDS COMMAND-LINE` repeats it
#   machine_sources DIR      the files of the tree that git knows, in DIR
#   machine_debs             steps that make $debs, the folder of the packages, or KILN_DEBS=DIR
#   machine_unpack           steps that make $root a bare Debian 12 with the packages in /debs; KILN_BASE=FILE.tar is that Debian
#   machine_layer LOWER      makes $root an overlay: the changes of folder LOWER are elsewhere
#   machine_done             prints the plan and ends the script

top=$(readlink -f "$(dirname "$0")/../..")
n=0 failed=0 nspawn='' leader='' machine=root
declare -A processes=() # of the machines that are not $machine: "NSPAWN LEADER"
[[ $EUID -eq 0 ]] || { echo "1..0 # SKIP not root"; exit 0; }
dir=$(mktemp -d /var/tmp/kiln-packages.XXXXXX) || exit 1
root=$dir/root
log=$dir/log

machine_use() {
    processes[$machine]="$nspawn $leader"
    machine=$1 root=$dir/$1
    read -r nspawn leader <<<"${processes[$1]:-}"
}

machine_kill() {
    kill -KILL "$leader"
    wait "$nspawn" 2>/dev/null
    nspawn='' leader=''
}

machine_halt() {
    local i status=1
    [[ -n $nspawn ]] || return 0
    kill "$nspawn" 2>/dev/null # the machine is shut down
    for ((i = 0; i < 1800; i++)); do
        kill -0 "$nspawn" 2>/dev/null || { status=0; break; }
        sleep 0.1
    done
    kill -KILL "$nspawn" 2>/dev/null
    wait "$nspawn" 2>/dev/null
    nspawn=
    return "$status"
}

cleanup() {
    local name
    processes[$machine]="$nspawn $leader"
    for name in "${!processes[@]}"; do
        machine_use "$name"
        machine_halt
    done
    find /sys/fs/cgroup -depth -type d -path "*/kiln-$$-*" -exec rmdir {} + 2>/dev/null
    findmnt -rn -o TARGET | grep "^$dir/" | sort -r | xargs -r umount -l
    rm -rf --one-file-system "$dir"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

result() { # STATUS NAME
    n=$((n + 1))
    if [[ $1 -eq 0 ]]; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        failed=1
        tail -n 30 "$log" | sed 's/^/# /'
    fi
}

t() { # NAME COMMAND...
    local name=$1
    shift
    "$@" >"$log" 2>&1 </dev/null
    result $? "$name"
}

is() { # GOT WANTED NAME
    echo "got: $1, wanted: $2" >"$log"
    [[ $1 == "$2" ]]
    result $? "$3"
}

# A command line in the machine.
inside() {
    nsenter -t "$leader" -m -u -i -n -p -r -w env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive bash -c "$1"
}

until_inside() { # SECONDS COMMAND-LINE
    local until=$((SECONDS + $1))
    until inside "$2"; do
        [[ $SECONDS -lt $until ]] || return 1
        sleep 0.5
    done
}

machine_sources() {
    mkdir -p "$1" && (cd "$top" && git ls-files -z | tar --null -cf - -T -) | tar -C "$1" -xf -
}

build_debs() {
    machine_sources "$dir/build/kiln" &&
        (cd "$dir/build/kiln" && DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" dpkg-buildpackage -us -uc -b)
}

machine_debs() {
    debs=${KILN_DEBS:-$dir/build}
    [[ -n ${KILN_DEBS:-} ]] || t "dpkg-buildpackage makes the packages" build_debs
    [[ $(find "$debs" -name '*.deb' ! -name '*-dbgsym_*' | wc -l) -eq 5 ]] ||
        { echo "Bail out! not five packages in $debs"; exit 1; }
}

machine_names() { # the machine has this machine's name service
    printf '127.0.0.1 localhost\n' >"$root/etc/hosts" && cp /etc/resolv.conf "$root/etc/resolv.conf"
}

machine_unpack() {
    local base=${KILN_BASE:-$dir/base.tar}
    [[ -s $base ]] || t "mmdebstrap makes a bare Debian 12" mmdebstrap --variant=apt --include=systemd,systemd-sysv,dbus bookworm "$base"
    mkdir "$root" && tar -C "$root" -xf "$base" && machine_names || { echo "Bail out! no bare Debian"; exit 1; }
    mkdir "$root/debs"
    find "$debs" -name '*.deb' ! -name '*-dbgsym_*' -exec cp {} "$root/debs" \;
}

machine_layer() { # LOWER
    mkdir -p "$root" "$root-upper" "$root-work" &&
        mount -t overlay kiln-root -o "lowerdir=$1,upperdir=$root-upper,workdir=$root-work" "$root" && machine_names
}

# systemd would mix up two machines of one cgroup.
enter_cgroup() { # PID
    local tree
    for tree in $(findmnt -rn -t cgroup2 -o TARGET; findmnt -rn -t cgroup -O name=systemd -o TARGET); do
        mkdir -p "$tree/kiln-$$-$machine" && echo "$1" >"$tree/kiln-$$-$machine/cgroup.procs" || return 1
    done
}

machine_boot() { # [NETNS]
    local i devices=(--bind=/dev/fuse) network=(--private-network)
    [[ ! -e /dev/autofs ]] || devices+=(--bind=/dev/autofs)
    [[ -z ${1:-} ]] || network=("--network-namespace-path=/run/netns/$1" "--hostname=$machine")
    (
        enter_cgroup "$BASHPID" || exit 1
        exec systemd-nspawn --register=no --keep-unit -q -D "$root" "${network[@]}" "${devices[@]}" \
            --rlimit=RLIMIT_NOFILE=1048576 -b
    ) </dev/null >>"$dir/boot.log" 2>&1 &
    nspawn=$!
    for ((i = 0; i < 300; i++)); do
        leader=$(pgrep -P "$nspawn" | head -n 1)
        [[ -z $leader || $(cat "/proc/$leader/comm" 2>/dev/null) != systemd ]] || break
        sleep 0.1
    done
    until_inside 300 '[[ $(systemctl is-system-running) =~ ^(running|degraded)$ ]]' 2>/dev/null
}

machine_done() {
    echo "1..$n"
    exit "$failed"
}
