#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A replicate client dies while it changes the attributes of a file and a folder, with all replicas up: only one brick has the
# change, and the client has written no mark because no replica was missing. Each brick counts the object's metadata as dirty,
# because the client held its metadata lock. The stock self-heal daemon then makes the replicas equal, without a mount.

. "$(dirname "$0")/../lib/kiln.sh"
[[ $BRICKD == kiln ]] || skip_all "stock's bricks do not mark unfinished changes"

volume_split=brick

# As replicate does: locks on all bricks, the change on brick $1 alone, and the connections end.
half_a_change() {
    local at
    mapfile -t at < <(bricks_at "${bricks[@]}")
    PYTHONPATH=$tests_dir/wire python3 -B - "$vol-replicate-0" "$1" "${at[@]}" <<'EOF'
import os, sys
from kilnwire import Peer, Raw, d_bytes, opaque, u32, u64
domain, which, bricks = sys.argv[1], int(sys.argv[2]), [at.split(":") for at in sys.argv[3:]]
owner = os.urandom(8)
flock = Raw(u32(1) + u32(0) + u64((1 << 63) - 2) + u64(0) + u32(os.getpid()) + opaque(owner))
peers = []
for port, brick in bricks:
    peer = Peer("127.0.0.1", int(port))
    peer.owner = owner
    assert peer.login(brick)[0] == 0
    peers.append(peer)
for name in ("file", "folder"):
    gfid = os.getxattr(os.path.join(bricks[0][1], name), "trusted.gfid")
    for peer in peers:
        assert peer.fop("INODELK", gfid=gfid, cmd=1, type=1, flock=flock, volume=domain).op_ret == 0
    assert peers[which].fop("SETXATTR", gfid=gfid, dict={"user.color": d_bytes(b"green")}).op_ret == 0
os._exit(0)
EOF
}

xattr_of() {
    getfattr --only-values -n user.color "$1" 2>/dev/null || echo none
}

dirty_of() {
    getfattr -e hex --only-values -n trusted.afr.dirty "$1" 2>/dev/null | od -An -tx1 | tr -d ' \n'
}

is_marked() {
    local brick name
    for brick in "${bricks[@]}"; do
        for name in file folder; do
            [[ $(dirty_of "$brick/$name") == 000000000000000100000000 ]] || return 1
        done
    done
}

equal() {
    local brick name
    for brick in "${bricks[@]:1}"; do
        for name in file folder; do
            [[ $(xattr_of "$brick/$name") == "$(xattr_of "${bricks[0]}/$name")" ]] || return 1
        done
    done
    nothing_pending "${bricks[@]}"
}

for count in 2 3; do
    vol=v$count mnt=$T/mnt-$count
    volume_new "$vol" "1x$count"
    volume_start "$vol"
    read -ra bricks <<<"${volume_bricks[$vol]}"
    mount_kiln "$vol" "$mnt"
    echo contents >"$mnt/file"
    mkdir "$mnt/folder"
    setfattr -n user.color -v red "$mnt/file" "$mnt/folder"
    mount_end "$mnt"
    t "$vol: a client that has ended its changes leaves no mark" nothing_pending "${bricks[@]}"
    t "$vol: a client changes attributes on the last brick alone, and dies" half_a_change $((count - 1))
    t "$vol: each brick marks both objects" wait_for 30 "dirty marks" is_marked
    shd_start "$vol"
    t "$vol: the daemon makes the replicas equal and takes the marks back" wait_for 60 "equal replicas" equal
    for name in file folder; do
        t "$vol: $name has the old or the new value" grep -x 'red\|green' <(xattr_of "${bricks[0]}/$name")
    done
    is "$(cat "${bricks[0]}/file" "${bricks[-1]}/file")" $'contents\ncontents' "$vol: the file's data are as they were"
    { kill -TERM "$shd_pid" && wait "$shd_pid"; } 2>/dev/null || true
    shd_pid=
    volume_stop "$vol"
done
