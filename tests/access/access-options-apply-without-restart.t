#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Options that restrict access to a volume are set while it is mounted: storage.owner-uid and -gid, server.root-squash
# and all-squash with anonuid, storage.reserve, auth.allow and auth.reject. Each option takes effect on the mount, and
# loses its effect when it is reset, without a restart of the brick. With --stock the same script runs a stock brick.
# Covers: xlators/protocol/server/auth.c, xlators/protocol/server/squash.c, xlators/storage/posix/reserve.c,
# libglusterfs/graph/reconfigure.c

. "$(dirname "$0")/../lib/kiln.sh"

glusterd_bricks_start
t "a volume is created" gl_create v 1x1
t "the volume is started" gl volume start v
is_online() { [[ $(bricks_online v) == 1 ]]; }
wait_for 240 "the brick to be online" is_online
brick_pid=$(glusterd_brick_pids)
mnt=$T/mnt
mkdir "$mnt"

# The kernel keeps nothing, so each look asks the brick.
mount_v() {
    glusterfs --process-name fuse -s "$glusterd_host" --volfile-id v --attribute-timeout=0 --entry-timeout=0 \
        -l "$T/log/mnt.log" "$mnt" && wait_for 30 "the mount" is_glusterfs_mount "$mnt"
}
t "the volume is mounted" mount_v
t "directories for all users are made" bash -c "mkdir '$mnt/all' '$mnt/roots' && chmod 1777 '$mnt/all' && echo data >'$mnt/file'"

# DESC CMD...: becomes true.
soon() {
    local desc=$1
    shift
    t "$desc" wait_for 240 "$desc" "$@"
}
set_to() { t "$1 is set to $2" gl volume set v "$1" "$2"; }
says() { [[ $(stat -c "$1" "$2" 2>/dev/null) == "$3" ]]; }

set_to storage.owner-uid 1234
soon "the volume's root belongs to that user" says %u "$mnt" 1234
set_to storage.owner-gid 1235
soon "and to that group" says %u:%g "$mnt" 1234:1235
set_to storage.owner-uid 0
soon "and to root again" says %u "$mnt" 0
set_to storage.owner-gid 0
soon "and to its group" says %u:%g "$mnt" 0:0

# A new file in $mnt/all, made by the given user, belongs to another.
made_by() {
    local file=$mnt/all/$EPOCHREALTIME
    setpriv --reuid "$1" --regid "$1" --clear-groups bash -c ": >'$file'" && says %u "$file" "$2"
}
root_may() {
    mkdir "$mnt/roots/$EPOCHREALTIME" 2>/dev/null
}
root_may_not() { ! root_may; }
t "root may write" root_may
set_to server.root-squash on
soon "root may not write into root's folder" root_may_not
soon "what root makes elsewhere belongs to nobody" made_by 0 65534
t "a user's new file belongs to the user" made_by 2000 2000
set_to server.anonuid 3000
soon "or to anonuid" made_by 0 3000
set_to server.root-squash off
soon "root may write again" root_may
t "root's new file belongs to root" made_by 0 0

set_to server.all-squash on
soon "what a user makes belongs to anonuid" made_by 2000 3000
set_to server.all-squash off
soon "to the user again" made_by 2000 2000

# More than the disk has: internal clients alone may write.
may_write() { echo data >"$mnt/all/$EPOCHREALTIME"; }
may_not_write() { ! may_write 2>"$T/write.out" && grep -q 'No space left' "$T/write.out"; }
t "a file is written" may_write
set_to storage.reserve 100TB
soon "below the reserve nothing new is written" may_not_write
is "$(cat "$mnt/file")" data "the written data is read back"
set_to storage.reserve 1
soon "it is written again" may_write

# A mount by the volume's own volfile has no password, so the brick judges the mount by its address.
guest=$T/guest
mkdir "$guest"
guest_mount() {
    glusterfs --process-name fuse -f /var/lib/glusterd/vols/v/v.tcp-fuse.vol --attribute-timeout=0 --entry-timeout=0 \
        -l "$T/log/guest.log" "$guest" && wait_for 60 "the mount" is_glusterfs_mount "$guest"
}
is_in() { [[ $(cat "$guest/file") == data ]]; }
is_out() { ! stat "$guest/file" >/dev/null 2>&1; }
t "a client without a password mounts" guest_mount
t "the client without a password reads a file" is_in
set_to auth.allow '10.1.2.3,10.4.*'
soon "a list without its address puts it out" is_out
t "a client with the password keeps its access" grep -q data "$mnt/file"
set_to auth.allow "10.1.2.3,$glusterd_host"
soon "a list with it lets it in again" is_in
set_to auth.reject "$glusterd_host"
soon "a list of those who may not puts it out" is_out
has_come_back() { grep -q data "$mnt/file"; }
t "auth.reject is reset" gl volume reset v auth.reject
soon "it is in again" is_in
soon "and who has the password, who may be put out by that list too" has_come_back
t "auth.allow is reset" gl volume reset v auth.allow
t "the client without a password keeps its access" is_in
umount "$guest"

is "$(glusterd_brick_pids)" "$brick_pid" "the same process served the brick throughout"

umount "$mnt"
t "the volume is stopped" gl volume stop v
wait_for 240 "the process to end" process_gone "$brick_pid"
