#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The brick of a kiln-mount dies while a file is open. Calls fail with ENOTCONN at once. When the brick is back, the
# same descriptor writes the file, and the client has taken its lock again. A mount starts also when its brick has
# never been up. SIGTERM and umount leave no process and no mount.
# Covers: xlators/protocol/client/client.c, xlators/protocol/client/remote-fd.c, xlators/protocol/client/held-locks.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

is_away() {
    [[ $(ls "$mnt" 2>&1) == *"Transport endpoint is not connected"* ]]
}

is_back() {
    ls "$mnt" >/dev/null 2>&1
}

said() {
    printf '%s\n' "$1" >&7 2>>"$T/said"
}

ends_well() {
    local status=0
    wait_for 240 "kiln-mount to end" process_gone "$1"
    wait "$1" || status=$?
    [[ $status -eq 0 ]]
}

for kind in kiln stock; do
    volume_new "v-$kind" 1x1
    volume_assign "v-$kind" "$kind"
    volume_start "v-$kind"
    mnt=$T/mnt-$kind
    daemon=${brick_daemon[${volume_bricks[v-$kind]}]}
    mount_kiln "v-$kind" "$mnt" --attribute-timeout=0 --entry-timeout=0
    exec 7>>"$mnt/open"
    said before
    exec 8>>"$mnt/locked"
    flock -x 8
    daemon_kill "$daemon"
    t "$kind: calls fail with ENOTCONN while the brick is down" wait_for 240 "ENOTCONN" is_away
    t_not "$kind: an open file cannot be written while the brick is down" said meanwhile
    daemon_start "$daemon" 7>&- 8>&- # or it would hold the files open, and the mount with them
    t "$kind: the mount works again when the brick is back" wait_for 240 "the brick" is_back
    t_here "$kind: the same descriptor writes the open file again" said after
    is "$(tr '\n' ' ' <"$mnt/open")" "before after " "$kind: the file has the lines from before and after"
    exec 7>&-
    mount_kiln "v-$kind" "$T/other-$kind" 8>&-
    t_not "$kind: the client holds its lock again" flock -n "$T/other-$kind/locked" true
    exec 8>&-
    t "$kind: the lock is free after its holder released it" timeout 240 flock "$T/other-$kind/locked" true
    t_here "$kind: the other mount is unmounted" mount_end "$T/other-$kind"
    t_here "$kind: the volume is unmounted" mount_end "$mnt"
    t_not "$kind: the mount table has no entry after umount" mount_is_listed "$mnt"

    # SIGTERM with a file open, which keeps the kernel's side alive.
    mount_kiln "v-$kind" "$mnt"
    pid=${mount_pid[$mnt]}
    unset "mount_pid[$mnt]" "mount_is_kiln[$mnt]"
    exec 7>>"$mnt/open"
    kill -TERM "$pid"
    t_here "$kind: SIGTERM ends the mount with status 0 while a file is open" ends_well "$pid"
    t_not "$kind: the next write to the open file fails" said late
    exec 7>&-
    t_not "$kind: the mount table has no entry after SIGTERM" mount_is_listed "$mnt"
    t_not "$kind: the mount leaked no object" grep -E 'graph-audit|graph-inodes-left|fuse-audit' "$T/log/kiln-mount-mnt-$kind.log"
    volume_stop "v-$kind"
done

# The script aborts the kernel's side of the mount: the process ends and removes the dead mount point.
volume_start v-kiln
mnt=$T/cut
mount_kiln v-kiln "$mnt"
pid=${mount_pid[$mnt]}
unset "mount_pid[$mnt]" "mount_is_kiln[$mnt]"
mount -t fusectl none /sys/fs/fuse/connections
echo 1 >"/sys/fs/fuse/connections/$(stat -c %d "$mnt")/abort"
t_here "a mount without a connection ends with status 0" ends_well "$pid"
t_not "the mount table has no entry for the mount without a connection" mount_is_listed "$mnt"
volume_stop v-kiln

# A mount whose brick starts later.
mnt=$T/early
mount_kiln v-kiln "$mnt"
t "a mount that starts without its brick answers ENOTCONN" wait_for 240 "ENOTCONN" is_away
volume_start v-kiln
t "a mount that starts without its brick works when the brick starts" wait_for 240 "the brick" is_back
t_here "the volume is unmounted" mount_end "$mnt"
