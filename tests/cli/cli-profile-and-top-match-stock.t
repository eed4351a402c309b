#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# `gluster volume profile` (start, info, incremental, cumulative, peek, clear, stop) and all forms of `gluster volume
# top`: the tables have the rows and columns of stock bricks after the same work, as text and as XML, and the same
# numbers of calls; intervals are counted as stock counts them; cleared figures are gone. The comparison leaves out
# FORGET (a brick forgets objects when it likes), STAT (a client sends one after waiting for more than a second), and
# the root among the directories of top, which stock does not list.
# Covers: xlators/debug/io-stats/profile.c, xlators/debug/io-stats/top.c, bricks/brick-ops.c

. "$(dirname "$0")/../lib/kiln.sh"

# Rows by latency come in another order each time.
rows_in_order="sort=^#.#.UNIT drop=.(FORGET|STAT)\$|^#./\$"
twins_start 2x1
twins_mount

# The files are larger than the limit of quick-read, which reads small files with the LOOKUP; direct reads pass the caches.
# Nothing is removed or renamed: stock lists old names.
work() {
    local dir
    for dir in "$T/mnt-a/$1" "$T/mnt-b/$1"; do
        mkdir "$dir" "$dir/d"
        for i in 1 2 3 4 5 6; do
            dd if=/dev/zero of="$dir/f$i" bs=128k count=$((i + 1)) status=none
            dd if="$dir/f$i" of=/dev/null bs=128k iflag=direct status=none
        done
        ls -l "$dir" >/dev/null
        setfattr -n user.x -v y "$dir/f3"
    done
}

t_twins "info of a volume without profile" profile VOL info
t_twins "start" profile VOL start
t_twins "start of a started profile" profile VOL start
# The options reach the bricks by way of the volfile.
counts_calls() {
    df "$T/mnt-${1#twin-}" >/dev/null
    [[ $(gl volume profile "$1" info peek | grep -cE ' (STATFS|LOOKUP)$') -ge 4 ]]
}
for vol in twin-a twin-b; do
    wait_for 120 "the bricks of $vol to count" counts_calls $vol
done
t_twins "info clear" profile VOL info clear
work one

calls() {
    gl volume profile "$1" info cumulative | awk '
        $NF ~ /^(MKDIR|CREATE|SETXATTR|WRITE|READ|RELEASE|RELEASEDIR)$/ { n[$NF] += $(NF - 1) }
        /^Data Written:|^ *Data Read:/ { n[$2] += $3 }
        END { for (f in n) print f, n[f] }' | sort | xargs
}
is "$(calls twin-b)" "$(calls twin-a)" "the brick counts as many calls as stock"
TWINS_SHAPE=$rows_in_order
t_twins "info peek" profile VOL info peek
t_twins "info as XML" profile VOL info peek --xml
t_twins "info cumulative" profile VOL info cumulative
t_twins "info incremental peek" profile VOL info incremental peek
interval() { gl volume profile "$1" info "${@:2}" | grep -oE '^Interval [0-9]+' | sort -u; }
for vol in twin-a twin-b; do
    is "$(interval $vol incremental) $(interval $vol peek) $(interval $vol peek) $(interval $vol)" \
        "Interval 0 Interval 1 Interval 1 Interval 1" "$vol: a read ends an interval, a peek does not"
done
t_twins "info of intervals without calls" profile VOL info incremental

for what in open read write opendir readdir write-perf read-perf; do
    t_twins "top $what" top VOL $what
    t_twins "top $what of one brick with one line" top VOL $what brick "$glusterd_host:BRICK-1" list-cnt 1
    t_twins "top $what as XML" top VOL $what --xml
done
for what in write-perf read-perf; do
    t_twins "top $what with a test of the disk" top VOL $what bs 4096 count 1000
    t_twins "top $what with a test of one brick's disk" top VOL $what bs 4096 count 1000 brick "$glusterd_host:BRICK-1" list-cnt 1
    t_twins "top $what with a test of one disk as XML" top VOL $what bs 4096 count 1000 --xml
    t_twins "top $what with half of the arguments" top VOL $what bs 4096
done
t "the test of the disk leaves no file" test -z "$(find "$T/bricks" -name '*perf*')"
most() { gl volume top "$1" write list-cnt 2 | grep -E '^[0-9]' | sort; }
is "$(most twin-b)" "$(most twin-a)" "the same files have the most writes, and the same numbers"
t_twins "top clear" top VOL clear
for what in open write opendir; do
    t_twins "top $what after top clear" top VOL $what
done
t_twins "top of an unknown kind" top VOL colours
t_twins "info clear as XML" profile VOL info clear --xml
t_twins "info after info clear" profile VOL info
t_twins "stop" profile VOL stop
t_twins "stop of a stopped profile" profile VOL stop
t_twins "info after the stop" profile VOL info
