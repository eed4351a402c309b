#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Installs the missing packages of the lists in debian/control, and prints nothing if no package is missing.
#
#   extras/install-deps.sh [SET...]     SET: build, test, develop, package, stock-version   (default: build test)
#   extras/install-deps.sh --list [SET...]
#
# Services of the packages (glusterd) are neither started now nor at the next boot: a policy-rc.d file that
# forbids it stands in the way while apt works. On a machine that had glusterd already, nothing changes.
set -euo pipefail

control=$(dirname "$(readlink -f "$0")")/../debian/control

# The names in one field of the source paragraph, without versions, alternatives and architectures. debhelper-compat
# is a virtual package, which only the set package needs.
packages_in() {
    awk -v field="$1:" '
        /^#/ { next }
        /^$/ { exit }
        $1 == field { on = 1; sub(/^[^:]*:/, "") }
        on && /^[A-Za-z]/ && !/^[ \t]/ && $0 ~ /^[A-Za-z-]+:/ { on = 0 }
        on { print }' "$control" |
        tr ',' '\n' | sed -e 's/|.*//; s/[(\[<].*//; s/[[:space:]]//g' -e '/^$/d' -e '/^debhelper-compat$/d'
}

# A package counts as present if the package or another package that provides it is installed (fuse3 provides fuse).
is_present() {
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

[[ ${1:-} != --help ]] || { sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0; }
list_only=false
if [[ ${1:-} == --list ]]; then
    list_only=true
    shift
fi
[[ $# -gt 0 ]] || set -- build test

wanted=()
for set_name in "$@"; do
    case $set_name in
    build) field=Build-Depends ;;
    test) field=XS-Test-Depends ;;
    develop) field=XS-Develop-Depends ;;
    package) field=XS-Package-Depends ;;
    stock-version) field=XS-Stock-Version-Depends ;;
    *)
        echo "install-deps.sh: no set named '$set_name' (build, test, develop, package, stock-version)" >&2
        exit 2
        ;;
    esac
    mapfile -t names < <(packages_in "$field")
    [[ ${#names[@]} -gt 0 ]] || { echo "install-deps.sh: $field not found in $control" >&2; exit 2; }
    wanted+=("${names[@]}")
done

missing=()
for name in "${wanted[@]}"; do
    if $list_only; then
        echo "$name"
    elif ! is_present "$name"; then
        missing+=("$name")
    fi
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

if [[ $EUID -ne 0 ]]; then
    echo "install-deps.sh: missing packages, and only root can install them: ${missing[*]}" >&2
    exit 1
fi
echo "installing: ${missing[*]}"

policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    trap 'rm -f "$policy"' EXIT
fi

export DEBIAN_FRONTEND=noninteractive
apt_install() {
    apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 "${missing[@]}" >"$1" 2>&1
}
log=$(mktemp)
# apt-get update runs only if the installation with the present package lists fails.
if ! apt_install "$log"; then
    apt-get update -qq || { echo "install-deps.sh: apt-get update failed" >&2; exit 1; }
    apt_install "$log" || { cat "$log" >&2; exit 1; }
fi
rm -f "$log"
if [[ " ${missing[*]} " == *" glusterfs-server "* ]] && [[ -d /run/systemd/system ]]; then
    systemctl disable --now --quiet glusterd.service || true
fi
if [[ " ${missing[*]} " == *" samba "* ]] && [[ -d /run/systemd/system ]]; then
    systemctl disable --now --quiet smbd.service nmbd.service || true
fi
