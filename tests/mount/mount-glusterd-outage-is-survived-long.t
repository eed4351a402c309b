#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A volume on kilnd's bricks is mounted by name under a stock glusterd. When glusterd dies, files are read and written
# as before, and the mount's log says that the volfile is kept. When glusterd is back, the mount follows changes again
# without a signal. When the volume is stopped, every call fails with ENOTCONN at once, and the log says so. When the
# volume is started again, the same mount and a file that stayed open work. When the volume is deleted, calls fail
# with ENOTCONN, and umount leaves nothing.
# Covers: mount/spec.c, rpc/client/glusterd-calls.c, xlators/protocol/client/client.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

log=$T/log/kiln-mount.log
mnt=$T/mnt

is_away() {
    [[ $(ls "$mnt" 2>&1) == *"Transport endpoint is not connected"* ]]
}

is_back() {
    ls "$mnt" >/dev/null 2>&1
}

# The log has a message named $1 at or behind line $2.
has_said() {
    tail -n "+$2" "$log" | grep -q "\[$1\]"
}

lines() {
    wc -l <"$log"
}

# Daemons that the script starts must not inherit descriptor 7.
without_fd7() {
    "$@" 7>&-
}

system_cover
ln -s "$KILN_MOUNT" /usr/sbin/mount.kiln
use_kiln on
glusterd_start
gl_create v 1x2 >/dev/null
gl volume start v >/dev/null
wait_for 240 "the bricks of v" bash -c "$(declare -f bricks_online gl); [[ \$(bricks_online v) == 2 ]]"
mkdir "$mnt"
t "the volume is mounted by name" mount -t kiln -o "log-file=$log,attribute-timeout=0,entry-timeout=0" "$glusterd_host:/v" "$mnt"
exec 7>>"$mnt/open"
echo one >&7

# ---- glusterd dies
at=$(lines)
kill -KILL "$glusterd_pid"
wait "$glusterd_pid" 2>/dev/null || true
t "the log says that the volfile is kept" wait_for 240 "the log" has_said mount-volfile-kept "$at"
t "a file is created while glusterd is down" bash -c "echo made >'$mnt/made'"
t_here "an open file is written while glusterd is down" bash -c "echo two >&7"
is "$(cat "$mnt/made" "$mnt/open" | tr '\n' ' ')" "made one two " "files are read while glusterd is down"
ip addr del "$glusterd_host/32" dev lo
without_fd7 glusterd_start
at=$(lines)
without_fd7 gl volume set v network.ping-timeout 31 >/dev/null
t "an option that is set reaches the mount after glusterd is back" wait_for 240 "the options" has_said mount-options "$at"

# ---- the volume is stopped
at=$(lines)
without_fd7 gl volume stop v >/dev/null
t "calls fail with ENOTCONN after the volume was stopped" wait_for 240 "ENOTCONN" is_away
t_not "an open file cannot be written while the volume is stopped" bash -c "echo never >&7"
t "the log names the lost brick" has_said brick-peer-down "$at"
t "the log says that the volume is away" grep -q "W .*the volume is away" "$log"
without_fd7 gl volume start v >/dev/null
t "the same mount works after the volume was started" wait_for 240 "the bricks" is_back
wait_for 240 "the open file" bash -c "echo three >&7"
is "$(tr '\n' ' ' <"$mnt/open")" "one two three " "the file that stayed open was written again"
t_not "no other server was taken for glusterd" grep "there is a glusterd where" "$log"
exec 7>&-

# ---- and deleted
gl volume stop v >/dev/null
gl volume delete v >/dev/null
t "calls fail with ENOTCONN after the volume was deleted" wait_for 240 "ENOTCONN" is_away
t "the volume is unmounted" umount "$mnt"
t_not "the mount table has no entry after umount" mount_is_listed "$mnt"
t "kiln-mount and mount.kiln end after umount" wait_for 240 "its end" bash -c '! pgrep -x kiln-mount && ! pgrep -x mount.kiln'
t_not "the mount leaked no object" grep -E 'graph-audit|graph-inodes-left|fuse-audit' "$log"
kill "$glusterd_pid"
