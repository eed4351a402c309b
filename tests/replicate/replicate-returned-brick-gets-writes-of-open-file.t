#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A file is created while one of two replicas is down, and stays open. The replica returns, and the mount tries to
# open the file there before it exists; then the self-heal daemon creates it. Later writes reach both replicas without
# a heal, so the other replica may die.
# Covers: xlators/cluster/replicate/open-files.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

volume_split=brick
volume_new v 1x2
volume_start v
read -ra bricks <<<"${volume_bricks[v]}"
mnt=$T/mnt log=$T/log/kiln-mount-mnt.log

is_up() {
    [[ $(grep -c "v-client-1: logged in" "$log") -ge $1 ]]
}

is_down() {
    grep -q "v-client-1: the connection.*is lost" "$log"
}

written_on() {
    [[ $(tr '\n' ' ' <"$1/open") == "$2" ]]
}

mount_kiln v "$mnt" --attribute-timeout=0 --entry-timeout=0
wait_for 100 "both" is_up 1
wait_for 100 "the volume" test -d "$mnt/."
daemon_kill "${brick_daemon[${bricks[1]}]}"
wait_for 100 "the loss" is_down
exec 7>"$mnt/open"
echo one >&7
daemon_start "${brick_daemon[${bricks[1]}]}" 7>&-
wait_for 100 "its coming" is_up 2
echo two >&7
t_not "the file is not yet on the returned brick when the mount opens it there" test -s "${bricks[1]}/open"
shd_start v 7>&-
t "the self-heal daemon creates the file on the returned brick" wait_for 100 "the heal" nothing_pending "${bricks[@]}"
t "the healed file has the earlier contents" written_on "${bricks[1]}" "one two "
kill -TERM "$shd_pid"
wait_for 100 "the self-heal daemon's end" process_gone "$shd_pid"
shd_pid=
echo three >&7
t "later writes are on both bricks" wait_for 20 "the write" written_on "${bricks[1]}" "one two three "
t_here "fsync of the open file succeeds" python3 -c 'import os; os.fsync(7)'
daemon_kill "${brick_daemon[${bricks[0]}]}"
is "$(tr '\n' ' ' <"$mnt/open")" "one two three " "after the death of the other brick the file is readable"
exec 7>&-
t_here "the volume is unmounted" mount_end "$mnt"
