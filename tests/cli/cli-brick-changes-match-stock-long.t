#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# add-brick, rebalance, remove-brick (start, status, commit, force), replace-brick and reset-brick have the same
# effect on kilnd's bricks as on stock ones, with and without multiplexing, while a client has the volume mounted. No
# file is lost.
# Covers: bricks/bricks.c, bricks/brick-ops.c, bricks/management.c

. "$(dirname "$0")/../lib/kiln.sh"

glusterd_bricks_start
mnt=$T/mnt
brick() { echo "$glusterd_host:$T/bricks/$vol-$1"; }
online() { wait_for 120 "$1 bricks of $vol to be online" bricks_all_online "$vol" "$1"; }
no_process_serves() { ! has_root_open "$1"; }
has_root_open() {
    local pid
    for pid in $(glusterd_brick_pids); do
        [[ -z $(find "/proc/$pid/fd" -lname "$1" 2>/dev/null) ]] || return 0
    done
    return 1
}
all_files() { cat $(seq -f "$mnt/f%g" 40) | sha256sum; }
# The mount follows each change of the volume, some time later.
all_there() { [[ $(all_files) == "$want" ]]; }
task_done() { gl volume "$@" status | grep -q completed; }

for mux in off on; do
    vol=mux-$mux
    gl volume set all cluster.brick-multiplex $mux >/dev/null
    t "$vol: glusterd creates the volume" gl_create $vol 2x1
    # A name that is not where its hash says is looked for everywhere, also when bricks have come and gone.
    gl volume set $vol cluster.lookup-optimize off >/dev/null
    t "$vol: glusterd starts the volume" gl volume start $vol
    online 2
    gl_mount $vol "$mnt"
    for i in {1..40}; do echo "file $i" >"$mnt/f$i"; done
    want=$(all_files)

    t "$vol: add-brick succeeds" gl volume add-brick $vol "$(brick 2)" force
    online 3
    t_not "$vol: add-brick refuses a brick of the volume" gl volume add-brick $vol "$(brick 2)" force
    t "$vol: rebalance fix-layout starts" gl volume rebalance $vol fix-layout start
    wait_for 240 "fix-layout" task_done rebalance $vol
    t "$vol: rebalance starts" gl volume rebalance $vol start force
    wait_for 240 "the rebalance" task_done rebalance $vol
    t_here "$vol: all files are present after the rebalance" wait_for 120 "all files" all_there
    t "$vol: the new brick has files" test -n "$(find "$T/bricks/$vol-2" -maxdepth 1 -name 'f*' -size +0)"

    t "$vol: remove-brick start succeeds" gl volume remove-brick $vol "$(brick 0)" start
    wait_for 240 "the brick to be emptied" task_done remove-brick $vol "$(brick 0)"
    t "$vol: remove-brick commit succeeds" gl volume remove-brick $vol "$(brick 0)" commit
    online 2
    wait_for 120 "the removed brick to be let go" no_process_serves "$T/bricks/$vol-0"
    is "$(find "$T/bricks/$vol-0" -maxdepth 1 -name 'f*' -size +0 | wc -l)" 0 "$vol: the removed brick is empty"
    t_here "$vol: all files are present after remove-brick" wait_for 120 "all files" all_there
    t_not "$vol: remove-brick refuses a brick outside of the volume" gl volume remove-brick $vol "$(brick 0)" start

    t "$vol: remove-brick start of another brick succeeds" gl volume remove-brick $vol "$(brick 1)" start
    t "$vol: remove-brick stop succeeds" gl volume remove-brick $vol "$(brick 1)" stop
    online 2
    t_here "$vol: all files are present after remove-brick stop" wait_for 120 "all files" all_there

    t "$vol: add-brick adds a second replica" gl volume add-brick $vol replica 2 "$(brick 3)" "$(brick 4)" force
    online 4
    healed() { [[ $(gl volume heal $vol info | awk '/^Number of entries:/ { n += $4 } END { print NR ? n + 0 : 1 }') == 0 ]] &&
        bricks_equal "$T/bricks/$vol-1" "$T/bricks/$vol-3" && bricks_equal "$T/bricks/$vol-2" "$T/bricks/$vol-4"; }
    gl volume heal $vol full >/dev/null || true
    wait_for 240 "the new replicas to be filled" healed
    tap_ok "$vol: the new replicas have all data"
    t "$vol: replace-brick succeeds" gl volume replace-brick $vol "$(brick 4)" "$(brick 5)" commit force
    online 4
    wait_for 120 "the replaced brick to be let go" no_process_serves "$T/bricks/$vol-4"
    wait_for 240 "the new brick to be filled" bricks_equal "$T/bricks/$vol-2" "$T/bricks/$vol-5"
    tap_ok "$vol: the new brick has all data"
    t "$vol: reset-brick start succeeds" gl volume reset-brick $vol "$(brick 1)" start
    online 3
    wait_for 120 "the brick to be let go" no_process_serves "$T/bricks/$vol-1"
    rm -rf "$T/bricks/$vol-1"
    mkdir "$T/bricks/$vol-1"
    t_here "$vol: all files are present through the other replica" wait_for 120 "all files" all_there
    t "$vol: reset-brick commit succeeds" gl volume reset-brick $vol "$(brick 1)" "$(brick 1)" commit force
    online 4
    gl volume heal $vol full >/dev/null || true
    wait_for 240 "the emptied brick to be filled" bricks_equal "$T/bricks/$vol-1" "$T/bricks/$vol-3"
    tap_ok "$vol: the emptied brick has all data"
    t "$vol: remove-brick removes the second replica" gl volume remove-brick $vol replica 1 "$(brick 3)" "$(brick 5)" force
    online 2
    t_here "$vol: all files are present at the end" wait_for 120 "all files" all_there
    umount "$mnt"
    t "$vol: glusterd stops the volume" gl volume stop $vol
    t "$vol: glusterd deletes the volume" gl volume delete $vol
    none_run() { [[ -z $(glusterd_brick_pids) ]]; }
    wait_for 120 "all processes to end" none_run
done
if [[ $BRICKD == kiln ]]; then
    cat /var/log/glusterfs/bricks/*.log >"$T/log/bricks.log"
    is "$(grep -cE 'graph-audit' "$T/log/bricks.log")" 0 "kilnd keeps nothing of any detached brick"
fi
