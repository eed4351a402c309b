#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# enter-root.sh ROOT COMMAND...: runs COMMAND with the Debian in the folder ROOT (stock-root.sh) as its root file system.
#
# tests/lib/sandbox.sh calls this script in a new mount namespace, whose end unmounts everything. Changes of the root go to an
# overlay on a tmpfs. The source tree, the build folder, $KILN_KEEP and the folders that $KILN_ENTER_BIND names (separated by
# blanks) are bound to their own paths, so a kilnd that was built on the machine runs with the root's libraries, beside the root's
# stock programs. /dev and /sys are the machine's.
set -euo pipefail

source_dir=$(readlink -f "$(dirname "$0")/../..")
root=$1
shift
enter=$(dirname "$root")/enter
mkdir -p "$enter"
mount -t tmpfs -o size=2g,mode=755 kiln-enter "$enter"
mkdir "$enter"/{upper,work,root}
mount -t overlay kiln-root -o "lowerdir=$root,upperdir=$enter/upper,workdir=$enter/work" "$enter/root"

bind() {
    mkdir -p "$enter/root$1"
    mount --rbind "$1" "$enter/root$1"
}

bind /dev
bind /sys
bind "$source_dir"
build_dir=$(readlink -f "${KILN_BUILD:-$source_dir/build}")
[[ $build_dir/ == "$source_dir"/* ]] || bind "$build_dir"
if [[ -n ${KILN_KEEP:-} ]]; then
    mkdir -p "$KILN_KEEP"
    bind "$(readlink -f "$KILN_KEEP")"
fi
for dir in ${KILN_ENTER_BIND:-}; do
    bind "$dir"
done
# Debian 13 has libfuse3 under another soname, so the machine's libfuse3 is copied beside it. Libraries that the root has are
# kept.
for program in kilnd kiln-mount kiln; do
    [[ -x $build_dir/$program ]] || continue
    while read -r library; do
        [[ -e $enter/root$library ]] || cp -L "$library" "$enter/root$library"
    done < <(ldd "$build_dir/$program" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p')
done
mount -t proc proc "$enter/root/proc"
cat /etc/hosts >"$enter/root/etc/hosts"

where=$PWD
cd "$enter/root"
mkdir -p .old
pivot_root . .old
umount -l /.old
rmdir /.old
cd "$where" 2>/dev/null || cd /
exec "$@"
