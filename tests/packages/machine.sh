# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# machine: a Debian that systemd has booted in systemd-nspawn, for the scripts of tests/packages, and their TAP.
#
#   $dir, $root, $log        a folder in /var/tmp, removed at the end; the machine's root folder in it; output of the last step
#   t NAME COMMAND...        a step; `is GOT WANTED NAME` compares
#   machine_boot, machine_halt   true when systemd has started all units, or when the machine has ended by itself
#   inside COMMAND-LINE      runs in the machine, which has no network; `until_inside SECONDS COMMAND-LINE` repeats it
#   machine_sources DIR      the files of the tree that git knows, in DIR
#   machine_done             prints the plan and ends the script

top=$(readlink -f "$(dirname "$0")/../..")
n=0 failed=0 nspawn='' leader=''
[[ $EUID -eq 0 ]] || { echo "1..0 # SKIP not root"; exit 0; }
dir=$(mktemp -d /var/tmp/kiln-packages.XXXXXX) || exit 1
root=$dir/root
log=$dir/log

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
    machine_halt
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

machine_boot() {
    local i devices=(--bind=/dev/fuse)
    [[ ! -e /dev/autofs ]] || devices+=(--bind=/dev/autofs)
    systemd-nspawn --register=no --keep-unit -q -D "$root" --private-network "${devices[@]}" \
        --rlimit=RLIMIT_NOFILE=1048576 -b </dev/null >>"$dir/boot.log" 2>&1 &
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
