#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The -S socket: a call without a reply blocks its volume for minutes (management 4.1). Unknown operations, garbage,
# mangled dictionaries, bricks that do not exist and invalid volfiles all get a reply, and the bricks continue to
# serve. TERMINATE and ATTACH of one brick may overlap in any way: the last call decides, no orphan is left, and
# exactly one descriptor of the brick's root is open.
# Covers: bricks/management.c, bricks/brick-ops.c, rpc/xdr/brick-op-program.c

. "$(dirname "$0")/../lib/kiln.sh"

export BRICKD
glusterd_bricks_start
gl volume set all cluster.brick-multiplex on >/dev/null
gl_create v 3x1 >/dev/null
gl volume start v >/dev/null
wait_for 120 "the bricks" bricks_all_online v 3
pid=$(glusterd_brick_pids)
socket=$(tr '\0' '\n' <"/proc/$pid/cmdline" | grep -A1 -x -e -S | tail -n 1)
brick=$T/bricks/v-1
gl_mount v "$T/mnt"
for i in {1..20}; do echo "$i" >"$T/mnt/f$i"; done

ops() { "$kiln_lib/brick_op.py" "$socket" "$@"; }
roots_open() { find "/proc/$pid/fd" -lname "$1" | wc -l; }

t "the process has a socket" test -S "$socket"
include "every call is answered" python3 "$tests_dir/management/brick_ops.py" answered "$socket" "$brick"
is "$(bricks_online v)" 3 "the bricks are online after the calls"
is "$(cat "$T"/mnt/f*  | wc -l)" 20 "the bricks serve after the calls"

if [[ $BRICKD == kiln ]]; then
    # Stock attaches a second copy, and does not wait (management 4.5, 5.3).
    volfile=$(echo /var/lib/glusterd/vols/v/v.*-v-1.vol)
    include "overlapping attach and detach calls are answered" python3 "$tests_dir/management/brick_ops.py" together "$socket" "$brick" "$volfile" "$pid"
    t "start force succeeds after the SIGNOUTs" gl volume start v force
    wait_for 120 "the bricks" bricks_all_online v 3
    is "$(roots_open "$brick")" 1 "one descriptor of the brick's root is open"
    is "$(glusterd_brick_pids)" "$pid" "one process serves all bricks"
    wait_for 120 "the mount to reach the bricks" gl_mount_reaches "$T/mnt" v 3x1
    is "$(cat "$T"/mnt/f* | wc -l)" 20 "all files are present"

    # The volume was deleted and made anew on the same path, and the TERMINATE was lost: the volfile names another volume-id.
    id=$(getfattr --absolute-names --only-values -n trusted.glusterfs.volume-id "$brick" | od -An -tx1 | tr -d ' \n')
    other=11223344-5566-7788-99aa-bbccddeeff00
    mkdir "$T/other"
    was=${id:0:8}-${id:8:4}-${id:12:4}-${id:16:4}-${id:20}
    sed "s/$was/$other/" "$volfile" >"$T/other/${volfile##*/}"
    t "the second volfile has another volume" grep -q "$other" "$T/other/${volfile##*/}"
    t "ATTACH of another volume's brick on the same path is refused while the folder belongs to the old volume" \
        bash -c "'$kiln_lib/brick_op.py' '$socket' 12 '$T/other/${volfile##*/}' | grep -q op_ret=-1"
    setfattr -n trusted.glusterfs.volume-id -v "0x${other//-/}" "$brick"
    is "$(ops 12 "$T/other/${volfile##*/}")" "accept=0 op_ret=0 errno=0 errstr=" "ATTACH of another volume's brick succeeds when the folder belongs to the new volume"
    is "$(roots_open "$brick")" 1 "one descriptor of the brick's root is open after the change"
    setfattr -n trusted.glusterfs.volume-id -v "0x$id" "$brick"
    is "$(ops 12 "$volfile")" "accept=0 op_ret=0 errno=0 errstr=" "ATTACH of the old volume's brick succeeds when the folder belongs to the old volume"
    # The refused ATTACH had taken the brick down, so the brick was signed out. glusterd signs in only bricks that glusterd
    # attaches.
    t "start force succeeds after the SIGNOUT" gl volume start v force
    wait_for 120 "the bricks" bricks_all_online v 3
    wait_for 120 "the mount to reach the bricks" gl_mount_reaches "$T/mnt" v 3x1
    is "$(cat "$T"/mnt/f* | wc -l)" 20 "all files are present after the last start"
fi
umount "$T/mnt"
t "gluster volume stop succeeds" gl volume stop v
wait_for 120 "the process to end" process_gone "$pid"
