#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A replicate client dies while it changes names, with all replicas up: only one brick has the changes, and the client has
# written no mark because no replica was missing. Each brick notes the folder, because the client held the lock on its names.
# The next kiln-mount compares the folder: the replicas have equal names although no application looks a name up. If another
# healer has the folder's lock, the mount tries again. A client that has
# released its locks leaves no note, nor do locks of distribute and of healers.
# Covers: xlators/cluster/dead-changes.c, xlators/cluster/replicate/dead-folders.c, xlators/features/index/index-dead.c, xlators/features/locks/unfinished.c

. "$(dirname "$0")/../lib/kiln.sh"
[[ $BRICKD == kiln ]] || skip_all "stock's bricks keep no notes"

volume_split=brick

# FOLDER DOMAIN keeps|unlocks: locks of the folder's names on all bricks, changes on the last brick alone, and the connections
# end.
half_a_change() {
    local at
    mapfile -t at < <(bricks_at "${bricks[@]}")
    PYTHONPATH=$tests_dir/wire python3 -B - "$@" "${at[@]}" <<'EOF'
import os, sys, uuid
from kilnwire import Peer, d_gfid
folder, domain, unlocks, bricks = sys.argv[1], sys.argv[2], sys.argv[3] == "unlocks", [at.split(":") for at in sys.argv[4:]]
peers = []
owner = os.urandom(8)
for port, brick in bricks:
    peer = Peer("127.0.0.1", int(port))
    peer.owner = owner
    assert peer.login(brick)[0] == 0
    peers.append(peer)
gfid = os.getxattr(os.path.join(bricks[0][1], folder), "trusted.gfid")

def must(reply):
    assert reply.op_ret >= 0, reply

for peer in peers:
    must(peer.fop("LOOKUP", name=folder))
    must(peer.fop("ENTRYLK", gfid=gfid, cmd=0, type=1, volume=domain))
peer = peers[-1]
must(peer.fop("MKDIR", pargfid=gfid, mode=0o755, name="made", xdata={"gfid-req": d_gfid(uuid.uuid4().bytes)}))
must(peer.fop("MKNOD", pargfid=gfid, mode=0o100644, name="node", xdata={"gfid-req": d_gfid(uuid.uuid4().bytes)}))
must(peer.fop("UNLINK", pargfid=gfid, name="removed"))
must(peer.fop("RENAME", pargfid=gfid, pargfid2=gfid, name="renamed", name2="new-name"))
if unlocks:
    for peer in peers:
        must(peer.fop("ENTRYLK", gfid=gfid, cmd=1, type=1, volume=domain))
os._exit(0)
EOF
}

# FOLDER DOMAIN: keeps healers away from the folder's names until the file $T/healed exists.
heal_elsewhere() {
    local at
    mapfile -t at < <(bricks_at "${bricks[@]}")
    rm -f "$T/healed" "$T/heals"
    PYTHONPATH=$tests_dir/wire python3 -B - "$T" "$@" "${at[@]}" <<'EOF' &
import os, sys, time
from kilnwire import Peer
top, folder, domain, bricks = sys.argv[1], sys.argv[2], sys.argv[3], [at.split(":") for at in sys.argv[4:]]
peers = []
for port, brick in bricks:
    peer = Peer("127.0.0.1", int(port))
    peer.owner = b"healer.."
    assert peer.login(brick)[0] == 0
    gfid = os.getxattr(os.path.join(brick, folder), "trusted.gfid")
    assert peer.fop("LOOKUP", name=folder).op_ret >= 0
    assert peer.fop("ENTRYLK", gfid=gfid, cmd=0, type=1, volume=domain).op_ret >= 0
    peers.append(peer)
open(top + "/heals", "w").close()
while not os.path.exists(top + "/healed"):
    time.sleep(0.05)
os._exit(0)
EOF
    healer=$!
    wait_for 30 "the lock" test -e "$T/heals"
}

notes() {
    local brick
    for brick in "${bricks[@]}"; do
        ls "$brick/.glusterfs/indices/kiln-names" 2>/dev/null | grep -c -- -dead || true
    done | xargs
}

names_of() {
    (cd "$1/folder" && find . -printf '%P %y\n' | sort)
}

equal() {
    local brick
    for brick in "${bricks[@]:1}"; do
        [[ $(names_of "$brick") == "$(names_of "${bricks[0]}")" ]] || return 1
    done
    [[ $(notes) =~ ^(0 ?)+$ ]]
}

notes_are() {
    [[ $(notes) == "$1" ]]
}

for count in 2 3; do
    vol=v$count mnt=$T/mnt-$count all=${count/2/1 1} none=${count/2/0 0}
    all=${all/3/1 1 1} none=${none/3/0 0 0}
    volume_new "$vol" "1x$count"
    volume_start "$vol"
    read -ra bricks <<<"${volume_bricks[$vol]}"
    mount_kiln "$vol" "$mnt"
    for folder in folder unlocked distributed healed; do
        mkdir "$mnt/$folder"
        for name in kept removed renamed; do
            echo "contents of $name" >"$mnt/$folder/$name"
        done
    done
    mount_end "$mnt"
    is "$(notes)" "$none" "$vol: a mount that has ended leaves no note"
    half_a_change unlocked "$vol-replicate-0" unlocks
    half_a_change distributed dht.entry.sync keeps
    half_a_change healed "$vol-replicate-0:self-heal" keeps
    t "$vol: a client changes names on the last brick alone, and dies" half_a_change folder "$vol-replicate-0" keeps
    t "$vol: each brick notes the folder, and no other folder" wait_for 30 "notes" notes_are "$all"
    heal_elsewhere folder "$vol-replicate-0:self-heal"
    mount_kiln "$vol" "$mnt"
    waits() { grep -q '\[dead-changes\]' "$T/log/kiln-mount-$(basename "$mnt").log"; }
    t "$vol: the next mount meets a healer that has locked the folder" wait_for 30 "the line" waits
    is "$(notes)" "$all" "$vol: the notes stay"
    touch "$T/healed"
    wait "$healer"
    t "$vol: the next mount gives the replicas equal names, without a LOOKUP, and the notes go" wait_for 60 "equal names" equal
    is "$(cat "$mnt/folder/kept")" "contents of kept" "$vol: another file of the folder is as it was"
    is "$(cat "$mnt/folder/removed")" "contents of removed" "$vol: a file whose removal was not complete has its contents"
    is "$(cat "$mnt/folder"/*name* | sort -u)" "contents of renamed" "$vol: the renamed file has its contents"
    t "$vol: the folder can be removed" rm -r "$mnt/folder"
    mount_end "$mnt"
    volume_stop "$vol"
done
