#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# use-kiln-gfapi.sh on [LIBRARY] | off | status
#
# Makes all programs load Kiln's libgfapi.so.0 (on), or GlusterFS's again (off). As root, on Debian and its kin. Programs that run
# keep the library that they have loaded.
#
#   on      the files libgfapi.so.0 and libgfapi.so.0.0.0 of the package libgfapi0 are diverted (dpkg-divert) to the folder
#           kiln-stock beside them; libgfapi.so.0 becomes a link to LIBRARY (default: that of the package libkiln-gfapi). Works
#           without libgfapi0, too: a later installation writes the diverted files.
#   off     removes the link and restores the files. LD_LIBRARY_PATH of single programs works as before.
#   status  prints `on`, `off` or `half-done`. Exit status 0, 1, 2.
#
# The same command completes an interrupted run. ldconfig leaves the link alone, because its folder has no other such library.
set -euo pipefail

lib_dir=/usr/lib/$(uname -m)-linux-gnu
stock_dir=$lib_dir/kiln-stock
names=(libgfapi.so.0 libgfapi.so.0.0.0)
link=$lib_dir/libgfapi.so.0

die() {
    echo "use-kiln-gfapi.sh: $*" >&2
    exit 3
}

diverted_to() {
    dpkg-divert --truename "$lib_dir/$1"
}

is_diverted() {
    [[ $(diverted_to "$1") == "$stock_dir/$1" ]]
}

# A link to an absolute path is the script's: that of libgfapi0 names a file beside it.
is_linked() {
    [[ -L $link && $(readlink "$link") == /*/libgfapi.so.0 ]]
}

state() {
    local name diverted=0
    for name in "${names[@]}"; do
        ! is_diverted "$name" || diverted=$((diverted + 1))
    done
    if [[ $diverted -eq 0 ]]; then
        echo off
    elif [[ $diverted -eq ${#names[@]} ]] && is_linked; then
        echo on
    else
        echo "half-done: $diverted of ${#names[@]} files diverted"
    fi
}

# Refused before anything is changed.
check_can_divert() {
    local name
    for name in "${names[@]}"; do
        is_diverted "$name" || [[ $(diverted_to "$name") == "$lib_dir/$name" ]] ||
            die "$lib_dir/$name is diverted by somebody else: $(diverted_to "$name")"
    done
    [[ ! -e $link || -L $link ]] || die "$link is no link, so no file of GlusterFS"
}

switch_on() {
    local library=${1:-$lib_dir/kiln/libgfapi.so.0} name
    library=$(realpath -e "$library") || die "$library: no such file; install the package libkiln-gfapi, or name the file"
    [[ ${library##*/} == libgfapi.so.0 && -f $library ]] || die "$library: expected a library named libgfapi.so.0"
    grep -q kiln-hard "$library" || die "$library is not Kiln's"
    check_can_divert
    mkdir -p "$stock_dir"
    for name in "${names[@]}"; do
        is_diverted "$name" || dpkg-divert --quiet --local --rename --divert "$stock_dir/$name" --add "$lib_dir/$name"
    done
    ln -sfn "$library" "$link.kiln-new"
    mv -fT "$link.kiln-new" "$link"
    echo "programs that start from now on load $library"
}

switch_off() {
    local name
    ! is_diverted libgfapi.so.0 || is_linked || [[ ! -e $link ]] || die "$link is not Kiln's, so it is not removed"
    for name in "${names[@]}"; do
        is_diverted "$name" || continue
        [[ $name != libgfapi.so.0 ]] || rm -f "$link"
        dpkg-divert --quiet --local --rename --divert "$stock_dir/$name" --remove "$lib_dir/$name"
    done
    rmdir "$stock_dir" 2>/dev/null || [[ ! -d $stock_dir ]] || echo "$stock_dir is kept: it holds other files"
    echo "programs that start from now on load GlusterFS's library, if it is installed"
}

case ${1:-} in
-h | --help) sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;;
status)
    text=$(state)
    echo "$text"
    [[ $text != off ]] || exit 1
    [[ $text == on ]] || exit 2
    exit 0
    ;;
on | off)
    [[ $EUID -eq 0 ]] || die "must be run as root"
    type -P dpkg-divert >/dev/null || die "no dpkg-divert: this is for Debian and its kin"
    if [[ $1 == on ]]; then
        switch_on "${@:2}"
    else
        switch_off
    fi
    ;;
*)
    echo "usage: use-kiln-gfapi.sh on [LIBRARY] | off | status" >&2
    exit 2
    ;;
esac
