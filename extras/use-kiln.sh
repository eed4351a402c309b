#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# use-kiln.sh on [--force] [KILND] | off | status
#
# Makes stock glusterd start kilnd for its bricks (on), or the stock program again (off). As root, on a machine with Debian's glusterfs-server.
#
#   on      /usr/sbin/glusterfsd, glusterd and glusterfs are diverted (dpkg-divert). The last two stay stock; glusterfsd
#           becomes a link to KILND (default: the kilnd that is installed). kilnd runs bricks and hands everything else over to the
#           stock program. Running bricks are not touched; kilnd serves them after their next start. First the brick volfiles
#           of all volumes are checked: volumes whose options kilnd refuses are named, and nothing is changed without --force.
#   off     restores the stock programs. Running bricks are not touched.
#   status  prints `on`, `off`, or the half-done steps. Exit status 0, 1, 2.
#
# The same command completes an interrupted run. The stock packages may be upgraded or installed again in between: dpkg
# then writes the diverted files.
set -euo pipefail

bin_dir=/usr/sbin
names=(glusterfsd glusterd glusterfs)
stock=glusterfsd.distrib
hand_over=/usr/libexec/kiln/glusterfsd
volumes_dir=/var/lib/glusterd/vols

die() {
    echo "use-kiln.sh: $*" >&2
    exit 3
}

diverted_to() {
    dpkg-divert --truename "$bin_dir/$1"
}

is_diverted() {
    [[ $(diverted_to "$1") == "$bin_dir/$1.distrib" ]]
}

# Prints the kind of file in the place of a diverted file: `kiln`, `stock` (the link to the diverted program), `none`, or
# `other`.
in_place() {
    local file=$bin_dir/$1 target
    [[ -L $file || -e $file ]] || { echo none; return; }
    target=$(readlink "$file" || true)
    if [[ $target == "$stock" ]]; then
        echo stock
    elif [[ $1 == glusterfsd && $target == /*/kilnd ]]; then
        echo kiln
    else
        echo other
    fi
}

state() {
    local name diverted=0 placed=0
    for name in "${names[@]}"; do
        ! is_diverted "$name" || diverted=$((diverted + 1))
    done
    [[ $diverted -gt 0 ]] || { echo off; return; }
    [[ $(in_place glusterfsd) != kiln ]] || placed=$((placed + 1))
    for name in glusterd glusterfs; do
        [[ $(in_place "$name") != stock ]] || placed=$((placed + 1))
    done
    if [[ $diverted -eq ${#names[@]} && $placed -eq ${#names[@]} && -L $hand_over ]]; then
        echo on
    else
        echo "half-done: $diverted of ${#names[@]} files diverted, $placed of ${#names[@]} links in place"
    fi
}

find_kilnd() {
    local file=${1:-}
    if [[ -z $file ]]; then
        file=$(PATH=/usr/sbin:/usr/local/sbin type -P kilnd || true)
        [[ -n $file ]] || die "no kilnd in /usr/sbin or /usr/local/sbin: install Kiln, or name the file"
    fi
    file=$(realpath -e "$file") || die "$1: no such file"
    [[ ${file##*/} == kilnd && -f $file && -x $file ]] || die "$file: expected a program named kilnd"
    [[ $("$file" --version 2>/dev/null) == kilnd* ]] || die "$file: does not answer --version as kilnd does"
    echo "$file"
}

# Refused before anything is changed.
check_can_divert() {
    local name owner
    for name in "${names[@]}"; do
        if is_diverted "$name"; then
            [[ $(in_place "$name") != other ]] || die "$bin_dir/$name is diverted, and what stands there is neither Kiln's nor stock"
            continue
        fi
        [[ $(diverted_to "$name") == "$bin_dir/$name" ]] || die "$bin_dir/$name is diverted by somebody else: $(diverted_to "$name")"
        owner=$(dpkg-query -S "$bin_dir/$name" 2>/dev/null) || die "$bin_dir/$name belongs to no package: install glusterfs-server"
        [[ $owner == *gluster* ]] || die "$bin_dir/$name belongs to ${owner%%:*}"
        [[ ! -e $bin_dir/$name.distrib && ! -L $bin_dir/$name.distrib ]] || die "$bin_dir/$name.distrib is in the way"
    done
}

# A link that is there in one step, so that nobody finds nothing.
put_link() {
    ln -sfn "$1" "$2.kiln-new"
    mv -fT "$2.kiln-new" "$2"
}

# Prints a line for each volume that kilnd would not start, or would serve without a feature. Fails if it would not start one.
check_volumes() {
    local kilnd=$1 dir volume file said status=0
    local -a volfiles
    for dir in "$volumes_dir"/*/; do
        volume=$(basename "$dir")
        volfiles=()
        for file in "$dir$volume".*.vol; do
            ! grep -q '^ *type storage/posix$' "$file" 2>/dev/null || volfiles+=(-f "$file")
        done
        [[ ${#volfiles[@]} -gt 0 ]] || continue
        said=$("$kilnd" --check --config=/dev/null "${volfiles[@]}" 2>&1) || status=1
        # One line a volume: its bricks have the same options.
        [[ -z $said ]] || echo "volume $volume: $(grep -m 1 'does not start' <<<"$said" || head -n 1 <<<"$said")"
    done
    return "$status"
}

switch_on() {
    local kilnd name force=no
    [[ ${1:-} != --force ]] || { force=yes; shift; }
    kilnd=$(find_kilnd "${1:-}")
    check_can_divert
    check_volumes "$kilnd" || [[ $force == yes ]] ||
        die "kilnd would not start the bricks of these volumes: change their options, or type use-kiln.sh on --force; nothing was changed"
    mkdir -p "${hand_over%/*}"
    put_link "$bin_dir/$stock" "$hand_over"
    for name in "${names[@]}"; do
        is_diverted "$name" ||
            dpkg-divert --quiet --local --rename --divert "$bin_dir/$name.distrib" --add "$bin_dir/$name"
        if [[ $name == glusterfsd ]]; then
            put_link "$kilnd" "$bin_dir/$name"
        else
            put_link "$stock" "$bin_dir/$name"
        fi
    done
    echo "bricks that start from now on are served by $kilnd"
}

switch_off() {
    local name
    for name in "${names[@]}"; do
        ! is_diverted "$name" || [[ $(in_place "$name") != other ]] ||
            die "$bin_dir/$name: neither Kiln's nor stock, so it is not removed"
    done
    for name in "${names[@]}"; do
        is_diverted "$name" || continue
        rm -f "$bin_dir/$name"
        dpkg-divert --quiet --local --rename --divert "$bin_dir/$name.distrib" --remove "$bin_dir/$name"
    done
    rm -f "$hand_over"
    rmdir "${hand_over%/*}" 2>/dev/null || [[ ! -d ${hand_over%/*} ]] || echo "${hand_over%/*} is kept: it holds other files"
    echo "bricks that start from now on are stock's"
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
    echo "usage: use-kiln.sh on [--force] [KILND] | off | status" >&2
    exit 2
    ;;
esac
