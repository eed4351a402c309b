#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Test suites and operators use stock's gf_attach to remove single bricks from a multiplexed process and to return
# them, without glusterd. The script detaches a brick, then one that does not exist, attaches a brick by its volfile,
# twice, then by a missing volfile and by an invalid one. The other brick of the process continues to serve, and
# glusterd's own start and stop work afterwards.
# Covers: bricks/management.c, bricks/bricks.c

. "$(dirname "$0")/../lib/kiln.sh"

glusterd_bricks_start
gl volume set all cluster.brick-multiplex on >/dev/null
gl_create v 1x2 >/dev/null
gl volume start v >/dev/null
online() { wait_for 120 "$1 bricks to be online" bricks_all_online v "$1"; }
online 2
pid=$(glusterd_brick_pids)
is "$(wc -w <<<"$pid")" 1 "one process serves both bricks"
socket=$(tr '\0' '\n' <"/proc/$pid/cmdline" | grep -A1 -x -e -S | tail -n 1)
gone=$T/bricks/v-1
volfile=$(echo /var/lib/glusterd/vols/v/v.*v-1.vol)

t "the volume is mounted" gl_mount v "$T/mnt"
echo before >"$T/mnt/file"

t "gf_attach detaches a brick" gf_attach -d "$socket" "$gone"
online 1
t "the other brick serves" sh -c "echo while >'$T/mnt/file'"
is "$(cat "$T/bricks/v-1/file")" before "the detached brick does not get the write"
is "$(glusterd_brick_pids)" "$pid" "the process serves on"
mkdir "$T/nowhere"
t "gf_attach of an unknown brick to detach succeeds" gf_attach -d "$socket" "$T/nowhere"
t_not "gf_attach refuses a missing volfile" gf_attach "$socket" "$T/no.vol"
is_served() { [[ -n $(find "/proc/$pid/fd" -lname "$gone") ]]; }
t_not "the process has no descriptor of the brick" is_served
t "gf_attach attaches the brick" gf_attach "$socket" "$volfile"
wait_for 60 "the brick's root to be open" is_served
t "gf_attach of an attached brick succeeds" gf_attach "$socket" "$volfile"
# glusterd only knows of bricks that glusterd has attached, with any daemon.
t "glusterd starts its bricks" gl volume start v force
online 2
# Refused until the self-heal daemon has found the brick.
back() {
    gl volume heal v >/dev/null 2>&1
    [[ $(cat "$gone/file") == while ]]
}
wait_for 120 "the file to be healed" back
is "$(cat "$gone/file")" while "the brick is healed"
t "gf_attach detaches the brick again" gf_attach -d "$socket" "$gone"
online 1
t "glusterd starts the detached brick" gl volume start v force
online 2
is "$(glusterd_brick_pids)" "$pid" "the same process serves the brick"
umount "$T/mnt"
t "gluster volume stop succeeds" gl volume stop v
t "gluster volume delete succeeds" gl volume delete v
