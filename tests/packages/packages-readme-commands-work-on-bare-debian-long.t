#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The first two commands of README's "Try it" run in a bare Debian 12, as root, from a fresh clone. The quick start
# serves and mounts a volume and takes it down again, and all tests pass.
#
#   tests/packages/packages-readme-commands-work-on-bare-debian-long.t
#
# The script needs root, the archive's mirror and `extras/install-deps.sh package`. KILN_BASE=FILE.tar is the bare
# Debian; the script makes it when it is missing. With KILN_README_ONLY=REGEX tests/run.sh runs only the matching
# scripts. The commit that is checked out is tested. The output is TAP. All files are in one directory of /var/tmp,
# which the script removes at the end. The script takes an hour on two cores.
# Covers: README.md, extras/quickstart.sh, tests/run.sh

set -u
top=$(readlink -f "$(dirname "$0")/../..")
n=0 failed=0

command -v debootstrap >/dev/null || { echo "1..0 # SKIP no debootstrap: extras/install-deps.sh package"; exit 0; }
[[ $EUID -eq 0 ]] || { echo "1..0 # SKIP not root"; exit 0; }
dir=$(mktemp -d /var/tmp/kiln-readme.XXXXXX) || exit 1
root=$dir/root
log=$dir/log
trap 'rm -rf --one-file-system "$dir"' EXIT
trap 'exit 1' INT TERM

t() { # NAME COMMAND...
    local name=$1
    shift
    n=$((n + 1))
    if "$@" >"$log" 2>&1 </dev/null; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name"
        failed=1
        tail -n 60 "$log" | sed 's/^/# /'
    fi
}

# Runs a command line in the machine, with new namespaces for processes and mounts, which end with the command. The
# network is this machine's.
inside() {
    unshare --mount --pid --uts --ipc --fork --kill-child --propagation private -- bash -euc '
        cd "$1"
        mount --bind . .
        cd "$1"
        mkdir -p old
        mount -t proc proc proc
        mount -t sysfs -o ro sysfs sys
        mount --rbind /dev dev
        mount -t tmpfs -o mode=755 run run
        pivot_root . old
        cd /
        umount -l /old
        exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
            DEBIAN_FRONTEND=noninteractive bash -c "cd /root/kiln && $2"' bash "$root" "$1"
}

base=${KILN_BASE:-$dir/base.tar}
bare() {
    debootstrap --variant=minbase bookworm "$dir/bare" http://deb.debian.org/debian && rm -rf "$dir/bare"/var/cache/apt/archives/*.deb &&
        tar -C "$dir/bare" -cf "$base" . && rm -rf --one-file-system "$dir/bare"
}
[[ -s $base ]] || t "debootstrap makes a bare Debian 12" bare
mkdir "$root" && tar -C "$root" -xf "$base" || { echo "Bail out! no bare Debian"; exit 1; }
printf '127.0.0.1 localhost %s\n' "$(uname -n)" >"$root/etc/hosts"
cp /etc/resolv.conf "$root/etc/resolv.conf"
t "git makes a fresh clone" git clone -q --no-hardlinks "$top" "$root/root/kiln"

quickstart() {
    inside 'extras/quickstart.sh && echo hello >/mnt/kiln/file && grep -q hello /mnt/kiln/file && extras/quickstart.sh --down &&
        ! findmnt /mnt/kiln'
}
t "extras/quickstart.sh serves and mounts a volume, and removes the volume with --down" quickstart
only=${KILN_README_ONLY:+--only ${KILN_README_ONLY@Q}}
# Its last line says what has failed.
all_pass() {
    inside "tests/run.sh $only" && tail -n 1 "$log" | grep -qE '^[0-9]+ passed, 0 failed'
}
t "tests/run.sh passes, and its last line says so" all_pass

echo "1..$n"
exit "$failed"
