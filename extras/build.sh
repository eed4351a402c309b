#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# build.sh DIR [CONFIGURE-OPTION...]: configures (when needed) and builds Kiln in DIR, outside the source tree.
#
# The tools cannot build below a path with a space. Then DIR becomes a link to a new folder below /var/tmp, and a link
# in that folder leads to the source tree, so that the tools see no space. Removing DIR leaves the folder behind.
#
# The output of the tools goes to DIR/build.log; the terminal gets one line a step, or the end of the log when a step
# fails. Two builds of one DIR wait for each other.
set -euo pipefail

source_dir=$(dirname "$(dirname "$(readlink -f "$0")")")
[[ ${1:-} != --help ]] || { sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0; }
[[ $# -ge 1 && $1 != -* ]] || { echo "usage: build.sh DIR [CONFIGURE-OPTION...]" >&2; exit 2; }
has_space() {
    [[ $1 == *[[:space:]]* ]]
}

if [[ ! -e $1 ]] && { has_space "$source_dir" || has_space "$(readlink -m "$1")"; }; then
    elsewhere=$(mktemp -d /var/tmp/kiln-build.XXXXXX)
    mkdir "$elsewhere/build"
    ln -s "$source_dir" "$elsewhere/source"
    mkdir -p "$(dirname "$1")"
    [[ ! -L $1 ]] || rm "$1" # its folder has gone
    ln -s "$elsewhere/build" "$1"
fi
mkdir -p "$1"
build_dir=$(readlink -f "$1")
shift
log=$build_dir/build.log
! has_space "$source_dir" || source_dir=$(dirname "$build_dir")/source
[[ $source_dir -ef $(dirname "$(dirname "$(readlink -f "$0")")") ]] ||
    { echo "build.sh: $build_dir was made for another source tree, and this one's path has a space: remove it" >&2; exit 1; }

step() {
    local what=$1
    shift
    echo "  $what"
    "$@" >>"$log" 2>&1 || {
        echo "  failed: $* (the end of $log follows)" >&2
        tail -n 40 "$log" >&2
        exit 1
    }
}

exec 9>"$build_dir/build.lock"
flock 9
: >"$log"
if [[ ! -e $source_dir/configure || $source_dir/configure.ac -nt $source_dir/configure ]]; then
    (
        flock 8
        cd "$source_dir"
        step "autoreconf" autoreconf -fi
    ) 8>"$source_dir/.autoreconf.lock"
    rm -f "$source_dir/.autoreconf.lock"
fi
cd "$build_dir"
options="$*"
if [[ ! -e Makefile || ! -e configured-with || $(cat configured-with) != "$options" ]]; then
    step "configure $options" "$source_dir/configure" "$@"
    echo "$options" >configured-with
fi
step "make" make -j"$(nproc)"
