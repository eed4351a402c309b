#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# glusterd asks a process to attach a brick that it already serves, with a volfile from which no brick can be made.
# The reply is an error, and the brick continues to serve: the mount works, and the brick still gets new options of
# the volume. The script also checks that a statedump holds the requested parts, and that the process's socket exists
# until the process ends. The script runs for kilnd only, because stock dies of such a volfile.
# Covers: bricks/management.c, bricks/bricks.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "stock glusterfsd ends when a volfile is bad"
glusterd_bricks_start
t "a volume is created" gl_create v 1x1
t "the volume is started" gl volume start v
is_online() { [[ $(bricks_online v) == 1 ]]; }
wait_for 240 "the brick to be online" is_online
pid=$(glusterd_brick_pids)
socket=$(tr '\0' '\n' <"/proc/$pid/cmdline" | grep -A1 -x -e -S | tail -1)
t "the process has a socket" test -S "$socket"

mnt=$T/mnt
mkdir "$mnt"
t "the volume is mounted" glusterfs --process-name fuse -s "$glusterd_host" --volfile-id v -l "$T/log/mnt.log" "$mnt"
wait_for 240 "the mount" is_glusterfs_mount "$mnt"
t "a file is written" bash -c "echo data >'$mnt/file'"

# VOLFILE: prints the process's answer to an ATTACH of the volfile: the error's text, nothing after success.
attach() {
    PYTHONPATH=$tests_dir/wire python3 - "$socket" "$1" <<'PY'
import socket, sys
from kilnwire import Peer, Reader, opaque, text, u32
class BrickPeer(Peer):
    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)
        self.xid, self.callbacks = 1, []
        self.pid, self.uid, self.gid, self.groups, self.owner = 1, 0, 0, [], b""
answer = BrickPeer(sys.argv[1]).call(4867634, 2, 12, text(sys.argv[2]) + u32(12) + opaque(b"") + opaque(b""))
r = Reader(answer.body)
op_ret, op_errno = r.i32(), r.i32()
r.opaque()
print(r.opaque().decode() if op_ret else "")
PY
}
volfile=$(ls /var/lib/glusterd/vols/v/v.*.vol | head -1)
sed 's/option transport.socket.ssl-enabled off/option transport.socket.ssl-enabled on/' "$volfile" >"$T/${volfile##*/}"
said=$(attach "$T/${volfile##*/}")
t "an ATTACH of a volfile with TLS and without a certificate is refused: $said" grep -q glusterfs.pem <<<"$said"
sed 's,type features/trash,type features/unheard-of,' "$volfile" >"$T/${volfile##*/}"
said=$(attach "$T/${volfile##*/}")
t "an ATTACH of a volfile with an unknown type is refused by name: $said" grep -q unheard-of <<<"$said"
id=$(sed -n 's/^ *option volume-id //p' "$volfile" | head -1)
sed "s/$id/99999999-8d11-4f4e-9a57-1c2d3e4f5a6b/" "$volfile" >"$T/${volfile##*/}"
said=$(attach "$T/${volfile##*/}")
t "an ATTACH of another volume's brick on this folder is refused by name: $said" grep -q "volume-id is $id" <<<"$said"
t "the mount can be written after the refusals" bash -c "echo more >>'$mnt/file'"
is "$(attach "$volfile")" "" "an ATTACH of the served volfile succeeds"

t "glusterd sets an option" gl volume set v features.read-only on
is_read_only() { ! { echo more >>"$mnt/file"; } 2>/dev/null; }
t "the option reaches the brick" wait_for 240 "the brick to be read-only" is_read_only
is "$(glusterd_brick_pids)" "$pid" "the same process serves the brick"
t "the volume's status shows the brick online" is_online

rm -f /run/gluster/*.dump.*
t "a statedump of the calls and inodes succeeds" gl volume statedump v callpool inode
has_dump() { compgen -G "/run/gluster/*.$pid.dump.*" >/dev/null; }
wait_for 240 "a statedump" has_dump
cp /run/gluster/*."$pid".dump.* "$T/dump"
t "the statedump has the calls" grep -q '^\[workers\]' "$T/dump"
t "the statedump has the inodes" grep -q '^inodes=' "$T/dump"
is "$(grep -c '^\[mempool\|^\[xlator\.' "$T/dump" || true)" 0 "the statedump has no other parts"

umount "$mnt"
t "the volume is stopped" gl volume stop v
wait_for 240 "the process to end" process_gone "$pid"
t_not "the process removes its socket at the end" test -e "$socket"
