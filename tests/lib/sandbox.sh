# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# sandbox: each test script runs in namespaces of its own.
#
# Sourcing this file starts the script again under unshare(1), with its own mounts, process ids and network (a
# loopback interface and nothing else). So two tests, or the same test twice, may use the same port at the same time, and a script
# leaves nothing behind: when its first process ends, the kernel ends all other processes and removes the mounts and sockets.
#
# $T is the script's folder, on a tmpfs. The system's folders of GlusterFS (/var/lib/glusterd, /var/log/glusterfs) and /run, where
# glusterd listens for the CLI, are covered by empty ones. When a test failed, the tails of all logs in $T are printed;
# KILN_KEEP=DIR copies $T's logs and volfiles to DIR/<script>/.
#
# KILN_STOCK_VERSION=11 runs the script in a Debian with that GlusterFS (stock-root.sh makes it, enter-root.sh enters it): the
# stock programs, their libraries and the tools are that Debian's, kilnd is built here.

tests_dir=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
source_dir=$(dirname "$tests_dir")

if [[ -z ${KILN_SANDBOX:-} ]]; then
    if [[ $EUID -ne 0 ]]; then
        echo "1..0 # SKIP needs root"
        exit 0
    fi
    enter=()
    # A script that runs itself once more is in that Debian already.
    if [[ -n ${KILN_STOCK_VERSION:-} && -z ${KILN_STOCK_ENTERED:-} ]]; then
        stock_root=$("$tests_dir/lib/stock-root.sh" "$KILN_STOCK_VERSION") ||
            { echo "Bail out! no root with GlusterFS $KILN_STOCK_VERSION"; exit 1; }
        enter=("$tests_dir/lib/enter-root.sh" "$stock_root")
        export KILN_STOCK_ENTERED=1
    fi
    export KILN_SANDBOX=$$
    exec unshare --mount --net --ipc --pid --fork --kill-child --mount-proc --propagation private -- \
        "${enter[@]}" bash "$(readlink -f "$0")" "$@"
fi
unset KILN_SANDBOX

set -euo pipefail
umask 022
export LC_ALL=C.UTF-8
# The programs of Debian's packages come first: a Python of another place in PATH may take ten times as long to start.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH

sandbox_open() {
    T=$(mktemp -d /tmp/kiln-test.XXXXXX)
    mount -t tmpfs -o size=16g,mode=755 kiln-test "$T"
    mkdir "$T/log"
    ip link set lo up
    # No outgoing connection may take the port of a daemon that is down for a while. In a root of its own, /proc is read-only.
    local reserved=/proc/sys/net/ipv4/ip_local_reserved_ports
    [[ ! -w $reserved ]] || echo 49152-49999 >"$reserved"
    sandbox_cover
}

# Covers the folders in the caller's mount namespace.
sandbox_cover() {
    local dir
    for dir in /run /var/lib/glusterd /var/log/glusterfs; do
        mkdir -p "$dir"
        mount -t tmpfs kiln-test "$dir"
    done
    mkdir -p /run/gluster/metrics /run/lock
}

sandbox_print_logs() {
    local file
    for file in "$T"/log/*; do
        [[ -s $file ]] || continue
        diag "---- $(basename "$file"): the last of $(wc -l <"$file") lines"
        # Informational lines of a stock client fill pages; warnings and errors are in the other lines.
        diag "$(grep -Ev '^\[[^]]*\] [IDT] \[|^ *[0-9]+: |^\+-*\+$' "$file" | tail -n "${KILN_LOG_LINES:-25}" | cut -c 1-400)"
    done
}

sandbox_keep_in() {
    local keep
    keep=$1/$(basename "$0")
    mkdir -p "$keep"
    cp -r "$T"/log/. "$keep/"
    find "$T" -xdev -name '*.vol' -exec cp --backup=numbered {} "$keep/" \;
}

sandbox_keep() {
    sandbox_keep_in "$KILN_KEEP"
}

# Lines in kiln-heal's log, which all scripts share.
sandbox_heal_refusals() {
    cat /var/log/kiln/heal.log 2>/dev/null | grep -c '\[sandbox-refused\]' || true
}

# A daemon of Kiln whose own sandbox has refused a call lacks a call in its list. A script that wants refusals sets
# refusals_expected=yes.
sandbox_check_refusals() {
    local lines
    [[ ${refusals_expected:-no} == no ]] || return 0
    lines=$(grep -rhs '\[sandbox-refused\]' "$T/log" /var/log/glusterfs)
    [[ $(sandbox_heal_refusals) -le $heal_refusals_before ]] || lines+=$(grep '\[sandbox-refused\]' /var/log/kiln/heal.log)
    [[ -n $lines ]] || return 0
    tap_not_ok "no system call of a daemon is refused"
    diag "$lines"
}

sandbox_close() {
    local status=$?
    trap - EXIT
    set +e
    if [[ $status -ne 0 ]]; then
        diag "the script ended early, with status $status"
    else
        local step
        for step in "${at_end[@]}"; do
            "$step"
        done
        sandbox_check_refusals
        tap_finish || status=1
    fi
    [[ $status -eq 0 ]] || sandbox_print_logs
    [[ -z ${KILN_KEEP:-} ]] || sandbox_keep
    # All remaining processes die with this shell, the first process of its namespace. Outside, only the empty mount point of $T
    # is left to remove.
    cd /
    umount -l "$T"
    rmdir "$T"
    exit "$status"
}

sandbox_open
heal_refusals_before=$(sandbox_heal_refusals)
trap sandbox_close EXIT
