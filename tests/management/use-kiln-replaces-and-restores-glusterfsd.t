#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# extras/use-kiln.sh puts kilnd where glusterd looks for glusterfsd. Stock programs stay stock, command lines that are
# not a brick's are passed to stock, `off` restores the previous state, a half-done change is completed, and a change
# that could not be undone is refused. extras/use-kiln-gfapi.sh does the same with libgfapi.so.0.
# Covers: extras/use-kiln.sh, extras/use-kiln-gfapi.sh, glusterfsd/hand-over.c

. "$(dirname "$0")/../lib/kiln.sh"
system_cover

state_is() {
    local text
    text=$(use_kiln status || true)
    [[ $text == "$1"* ]] || { echo "state: $text"; return 1; }
}

files_as_packaged() {
    local out
    out=$(dpkg -V glusterfs-common glusterfs-client glusterfs-server | grep ' /usr/sbin/' || true)
    [[ -z $out ]] || { echo "$out"; return 1; }
}

first_line() {
    "$@" 2>&1 | head -n 1
}

stock=$(first_line glusterfs --version)

t "status is off before the first command" state_is off
t "all files are the packages'" files_as_packaged
t "use-kiln.sh on succeeds" use_kiln on
t "status is on after on" state_is on
t "a second on succeeds" use_kiln on
t "status is on after the second on" state_is on
is "$(readlink -f /usr/sbin/glusterfsd)" "$(readlink -f "$KILND")" "glusterfsd is kilnd"
is "$(first_line glusterfs --version)" "$stock" "glusterfs is stock"
is "$(first_line glusterd --version)" "$stock" "glusterd is stock"
is "$(first_line glusterfsd --version)" "$stock" "glusterfsd without a brick is stock"
is "$(first_line glusterfsd --process-name brick --version)" "$(first_line "$KILND" --version)" "glusterfsd for a brick is kilnd"

# glusterfsd waits for the FIFO's writer, so that the script has time for its checks.
mkfifo "$T/volfile"
glusterfsd -N -f "$T/volfile" -l "$T/log/handed-over.log" >/dev/null 2>&1 &
pid=$!
is_stock_now() { [[ $(readlink "/proc/$pid/exe") == /usr/sbin/glusterfsd.distrib ]]; }
wait_for 60 "the stock program to run" is_stock_now
is "$(cat /proc/$pid/comm)" glusterfsd "a process that kilnd hands over to stock keeps its name"
kill -KILL $pid
wait $pid 2>/dev/null || true

glusterd_start
pid=$(cat "$T/glusterd.pid")
is "$(cat "/proc/$pid/comm")" glusterd "glusterd runs under its own name"
t "glusterd answers" gluster --mode=script volume list
kill "$pid"
wait_for 60 "glusterd to end" process_gone "$pid"

t "use-kiln.sh off succeeds" use_kiln off
t "status is off after off" state_is off
t "a second off succeeds" use_kiln off
t "all files are the packages' after off" files_as_packaged
is "$(first_line glusterfsd --version)" "$stock" "glusterfsd is stock again"
t "no file of Kiln is left after off" test ! -e /usr/libexec/kiln -a ! -e /usr/sbin/glusterd.distrib

# The state that an interrupted run leaves.
dpkg-divert --quiet --local --rename --divert /usr/sbin/glusterfsd.distrib --add /usr/sbin/glusterfsd
t "status reports an interrupted run" state_is half-done
t "on completes an interrupted run" use_kiln on
t "status is on after the completion" state_is on
rm /usr/sbin/glusterd
t "status reports a missing link" state_is half-done
t "off removes the rest" use_kiln off
t "all files are the packages' after the second off" files_as_packaged

t_not "a program that is not kilnd is refused" "$source_dir/extras/use-kiln.sh" on /bin/true
t_not "a missing program is refused" "$source_dir/extras/use-kiln.sh" on /nowhere/kilnd
t "status is off after the refusals" state_is off
dpkg-divert --quiet --package other --rename --divert /usr/sbin/glusterfs.other --add /usr/sbin/glusterfs
t_not "a diversion of another package is refused" use_kiln on
t "status is off after the refused diversion" state_is off
dpkg-divert --quiet --package other --rename --divert /usr/sbin/glusterfs.other --remove /usr/sbin/glusterfs
t "use-kiln.sh on succeeds" use_kiln on
rm /usr/sbin/glusterfsd
echo mine >/usr/sbin/glusterfsd
t_not "off does not remove a foreign file" use_kiln off
is "$(cat /usr/sbin/glusterfsd)" mine "the foreign file is unchanged"
rm /usr/sbin/glusterfsd
t "off succeeds without the foreign file" use_kiln off
t "all files are the packages' at the end" files_as_packaged

# ---- libgfapi.so.0 ---------------------------------------------------------------------------------

lib_dir=/usr/lib/$(uname -m)-linux-gnu
ours=$(dirname "$KILND")/libgfapi.so.0
mkdir -p "$T/lib/upper" "$T/lib/work"
mount -t overlay kiln-test -o "lowerdir=$lib_dir,upperdir=$T/lib/upper,workdir=$T/lib/work" "$lib_dir"
use_gfapi() {
    "$source_dir/extras/use-kiln-gfapi.sh" "$@"
}
library_is() {
    [[ $(use_gfapi status || true) == "$1"* && $(readlink -f "$lib_dir/libgfapi.so.0") == "$2" ]]
}
loads() {
    local found
    ldconfig -n "$lib_dir"
    found=$(python3 -c 'import ctypes; ctypes.CDLL("libgfapi.so.0"); print(open("/proc/self/maps").read())' | grep -m 1 -o '/.*libgfapi.*')
    [[ $found == "$1" ]] || { echo "loaded: $found"; return 1; }
}
stock=$(readlink -f "$lib_dir/libgfapi.so.0")
t "the library's status is off" library_is off "$stock"
t_not "a library that is not Kiln's is refused" use_gfapi on "$lib_dir/libgfapi.so.0"
t_not "a missing library is refused" use_gfapi on /nowhere/libgfapi.so.0
t "use-kiln-gfapi.sh on succeeds" use_gfapi on "$ours"
t "the status names Kiln's library" library_is on "$(readlink -f "$ours")"
t "programs load Kiln's library, also after ldconfig" loads "$(readlink -f "$ours")"
t "GlusterFS's library is kept" test -f "$lib_dir/kiln-stock/libgfapi.so.0"
t "a second on succeeds" use_gfapi on "$ours"
rm "$lib_dir/libgfapi.so.0"
is "$(use_gfapi status || true)" "half-done: 2 of 2 files diverted" "a missing link shows in the status"
t "use-kiln-gfapi.sh off succeeds" use_gfapi off
t "a second use-kiln-gfapi.sh off succeeds" use_gfapi off
t "the status is off" library_is off "$stock"
t "programs load GlusterFS's library" loads "$stock"
is "$(dpkg -V libgfapi0)$(ls -d "$lib_dir/kiln-stock" 2>/dev/null)" "" "the package's files are complete, and nothing else is left"
dpkg-divert --quiet --local --rename --divert "$T/elsewhere" --add "$lib_dir/libgfapi.so.0"
t_not "a diversion to another place is refused" use_gfapi on "$ours"
dpkg-divert --quiet --local --rename --divert "$T/elsewhere" --remove "$lib_dir/libgfapi.so.0"
rm "$lib_dir"/libgfapi.so.0*
t "use-kiln-gfapi.sh on succeeds without GlusterFS's library" use_gfapi on "$ours"
t "programs load Kiln's library" loads "$(readlink -f "$ours")"
t "off removes the link" use_gfapi off
is "$(ls -d "$lib_dir"/libgfapi.so* "$lib_dir/kiln-stock" 2>/dev/null)" "" "use-kiln-gfapi.sh off leaves no file"
