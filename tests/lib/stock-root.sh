#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# stock-root.sh VERSION: prints a folder that holds a Debian with that version of GlusterFS. The script makes a missing folder
# first.
#
#   11      Debian 13 (trixie), GlusterFS 11.1
#   11.2    Debian testing (forky), GlusterFS 11.2
#
# The folder is ${KILN_CACHE:-/var/cache/kiln}/debian-13 or debian-14. debootstrap and apt fill it from KILN_MIRROR (default
# http://deb.debian.org/debian) once: some 300 packages, 1 GB, a few minutes. It holds the stock programs, the tools that
# the test scripts call, and the libraries that a kilnd built on Debian 12 needs, which have the same sonames in both. Tests
# write to an overlay (tests/lib/sandbox.sh), so the folder stays as debootstrap left it. The script makes the folder anew when
# the list of packages below has changed. To renew the folder otherwise, remove it.
#
# Two calls at the same time wait for each other. debootstrap works in a neighbouring folder that gets the final name when
# complete, so an interrupted run leaves nothing that a later run takes for a root.
set -euo pipefail

# The names since Debian 13, where libraries with 64-bit times end in t64.
packages=(glusterfs-server glusterfs-client acl attr ca-certificates curl e2fsprogs fio fuse3 gcc iproute2 kmod libc6-dev
    libjansson4 libjemalloc2 libcap-ng0 libmicrohttpd12t64 libncurses6 libseccomp2 libssl3t64 liburcu8t64 libxxhash0 libuuid1 mount openssl perl procps
    psmisc python3 rsync strace tshark util-linux xfsprogs zlib1g zsh)

die() {
    echo "stock-root.sh: $*" >&2
    exit 1
}

case ${1:-} in
11) suite=trixie name=debian-13 ;;
11.2) suite=forky name=debian-14 ;;
-h | --help) sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;;
*) die "GlusterFS ${1:-(no version given)}: expected 11 or 11.2" ;;
esac

cache=${KILN_CACHE:-/var/cache/kiln}
root=$cache/$name

is_made() {
    [[ $(cat "$root/etc/kiln-packages" 2>/dev/null) == "${packages[*]}" ]]
}

# debootstrap makes the smallest Debian, and apt installs the packages there, because debootstrap knows no virtual packages.
make_root() {
    local -x DEBIAN_FRONTEND=noninteractive
    nice -n 10 debootstrap --variant=minbase "$suite" "$root.new" "${script[@]:-$mirror}" &&
        printf '#!/bin/sh\nexit 101\n' >"$root.new/usr/sbin/policy-rc.d" && # no service starts
        chmod 755 "$root.new/usr/sbin/policy-rc.d" &&
        nice -n 10 unshare --mount --pid --fork --kill-child -- bash -c 'mount -t proc proc "$1/proc" && exec chroot "$@"' bash "$root.new" \
            apt-get install -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io "${packages[@]}"
}

if ! is_made; then
    [[ $EUID -eq 0 ]] || die "$root is missing, and debootstrap must run as root"
    type -P debootstrap >/dev/null || die "$root is missing: install debootstrap (extras/install-deps.sh stock-version)"
    mkdir -p "$cache"
    exec 9>"$cache/$name.lock"
    flock 9
    if ! is_made; then
        echo "stock-root.sh: making $root, which takes some minutes" >&2
        rm -rf --one-file-system "$root.new"
        scripts=/usr/share/debootstrap/scripts
        mirror=${KILN_MIRROR:-http://deb.debian.org/debian}
        script=()
        [[ -e $scripts/$suite ]] || script=("$mirror" "$scripts/sid") # Debian 12's debootstrap is older than the suite
        make_root >"$cache/$name.log" 2>&1 </dev/null ||
            { tail -n 20 "$cache/$name.log" >&2; die "failed: $cache/$name.log, $root.new/debootstrap/debootstrap.log"; }
        rm -rf "$root.new"/var/cache/apt/archives/*.deb
        echo "${packages[*]}" >"$root.new/etc/kiln-packages"
        rm -rf --one-file-system "$root"
        mv -T "$root.new" "$root"
    fi
fi
echo "$root"
