#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Two replicas share a process, and the storage of one replica fails its health check. Clients are told at once and
# write to the other replica alone. Half a minute later kilnd detaches the failed brick and continues to serve the
# other one. When the last brick fails, the process ends.
# Covers: xlators/storage/posix/health.c, bricks/bricks.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"

BRICK_POSIX_OPTIONS="health-check-interval 1"
volume_new v 1x2
volume_start v
mount_volume v "$T/mnt" plain
read -r sick fine <<<"${volume_bricks[v]}"
daemon=${brick_daemon[$sick]}
pid=${daemon_pid[$daemon]}
log=$T/log/$daemon.log

# A folder where the check writes its file; the check may put the file back in between.
break_disk() {
    until mkdir "$1/.glusterfs/health_check" 2>/dev/null; do
        rm -f "$1/.glusterfs/health_check"
    done
}

logged() {
    grep -q -- "$1" "$log"
}

# The write went to one replica and left a count against the other.
written_past_the_sick_one() {
    echo more >>"$T/mnt/file"
    [[ $(getfattr -e hex -n trusted.afr.v-client-0 "$fine/file" 2>/dev/null) == *=0x00000[0-9a-f]*[1-9a-f]* ]]
}

ends() {
    ! kill -0 "$pid" 2>/dev/null
}

echo one >"$T/mnt/file"
break_disk "$sick"
t "the log names the failed health check" wait_for 120 "the health check to fail" logged "brick-failed"
t "clients write to the other replica before the brick is detached" wait_for 120 "a write to one replica" written_past_the_sick_one
t_not "the failed brick is still attached then" logged "brick $sick is detached"
t "kilnd detaches the failed brick" wait_for 240 "the brick to be detached" logged "brick $sick is detached"
t_not "the failed brick leaves no object in the pools" logged graph-audit
is "$(head -n 1 "$T/mnt/file")" one "the other brick serves"
t "the daemon runs on" kill -0 "$pid"

break_disk "$fine"
unset "daemon_pid[$daemon]"
t "the process ends when the last brick fails" wait_for 240 "kilnd to end" ends
t "the log says that no brick is left" logged no-brick-left
