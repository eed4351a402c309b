#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A client dies while it changes attributes and names of a dispersed volume, with all bricks up: only the last brick has the
# changes, and nothing is pending, because the client writes no mark while all bricks are good. Each brick notes the objects, because
# the client held their locks. kiln-heal, or the next kiln-mount, makes the bricks equal without a LOOKUP by an application, and the
# notes go. The stock self-heal daemon changes nothing. It takes the mark of a write back that only one brick has done: the notes
# tell kiln-heal to compare the contents in any case. A client that has released its locks, and locks of distribute and of healers,
# leave no note.
# Covers: xlators/cluster/dead-changes.c, xlators/cluster/disperse/dead-objects.c, xlators/features/locks/unfinished.c,
# xlators/features/index/index-dead.c

. "$(dirname "$0")/../lib/kiln.sh"
[[ $BRICKD == kiln ]] || skip_all "stock's bricks keep no notes"
[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

volume_split=brick

# DOMAIN changes|holds|unlocks|removes NAME...: as a disperse client locks the objects on all bricks, and ends the connections:
# after changes on the last brick alone, without a change, after the unlock, or after the removal on all bricks.
half_a_change() {
    local at
    mapfile -t at < <(bricks_at "${bricks[@]}")
    PYTHONPATH=$tests_dir/wire python3 -B - "${at[*]}" "$@" <<'EOF'
import os, sys, uuid
from kilnwire import Peer, Raw, d_bytes, d_gfid, opaque, u32, u64
bricks, domain, what, names = [at.split(":") for at in sys.argv[1].split()], sys.argv[2], sys.argv[3], sys.argv[4:]
owner = os.urandom(8)
peers = []

def must(reply):
    assert reply.op_ret >= 0, reply

def lock(peer, gfid, kind):
    flock = Raw(u32(kind) + u32(0) + u64(0) + u64(0) + u32(os.getpid()) + opaque(owner))
    must(peer.fop("INODELK", gfid=gfid, cmd=1, type=kind, flock=flock, volume=domain))

for port, brick in bricks:
    peer = Peer("127.0.0.1", int(port))
    peer.owner = owner
    assert peer.login(brick)[0] == 0
    peers.append(peer)
gfids = {name: os.getxattr(os.path.join(bricks[0][1], name), "trusted.gfid") for name in names}
for name, gfid in gfids.items():
    for peer in peers:
        must(peer.fop("LOOKUP", name=name))
        lock(peer, gfid, 1)
    for peer in peers if what == "removes" else []:
        must(peer.fop("UNLINK", pargfid=bytes(15) + b"\1", name=name))
    if what != "changes":
        continue
    if name == "written":
        for peer in peers:
            must(peer.fop("XATTROP", gfid=gfid, flags=1, dict={"trusted.ec.dirty": d_bytes(u64(1) + u64(0))}))
        must(peers[-1].fop("WRITE", b"#" * 512, gfid=gfid))
        continue
    must(peers[-1].fop("SETXATTR", gfid=gfid, dict={"user.color": d_bytes(b"green")}))
    if name == "folder":
        peer = peers[-1]
        must(peer.fop("MKDIR", pargfid=gfid, mode=0o755, name="made", xdata={"gfid-req": d_gfid(uuid.uuid4().bytes)}))
        must(peer.fop("UNLINK", pargfid=gfid, name="removed"))
        must(peer.fop("RENAME", pargfid=gfid, pargfid2=gfid, name="renamed", name2="new-name"))
for gfid in gfids.values() if what == "unlocks" else []:
    for peer in peers:
        lock(peer, gfid, 2)
os._exit(0)
EOF
}

notes() {
    local brick
    for brick in "${bricks[@]}"; do
        ls "$brick/.glusterfs/indices/kiln-names" 2>/dev/null | grep -c -- -dead || true
    done | xargs
}

notes_are() {
    [[ $(notes) == "$1" ]]
}

view() {
    (cd "$1" && find file folder -printf '%P %y %m\n' | sort && getfattr -d -m '^user' file folder)
}

equal() {
    local brick
    for brick in "${bricks[@]:1}"; do
        [[ $(view "$brick") == "$(view "${bricks[0]}")" ]] || return 1
    done
    [[ $(notes) =~ ^(0 ?)+$ ]]
}

content() {
    printf "$1 %.0s" {1..900}
}

for way in "2+1 kiln-heal" "4+2 kiln-mount" "4+2 kiln-heal"; do
    read -r layout healer <<<"$way"
    vol=v${layout/+/and}${healer#kiln-} mnt=$T/mnt-${layout/+/and}${healer#kiln-}
    volume_new "$vol" "1x$layout"
    volume_start "$vol"
    read -ra bricks <<<"${volume_bricks[$vol]}"
    zeros=$(printf '0 %.0s' "${bricks[@]}" | xargs)
    mount_kiln "$vol" "$mnt"
    mkdir "$mnt/folder"
    for name in file written folder/kept folder/removed folder/renamed gone unlocked distributed healed; do
        content "$name" >"$mnt/$name"
    done
    setfattr -n user.color -v red "$mnt/file" "$mnt/folder"
    mount_end "$mnt"
    is "$(notes)" "$zeros" "$way: a mount that has ended leaves no note"
    half_a_change "$vol-disperse-0" unlocks unlocked
    half_a_change dht.layout.heal holds distributed
    half_a_change "$vol-disperse-0:self-heal" holds healed
    half_a_change "$vol-disperse-0" removes gone
    sleep 0.5
    is "$(notes)" "$zeros" "$way: finished changes, other locks and a removed file leave no note"
    t "$way: a client changes attributes and names on the last brick alone, and dies" half_a_change "$vol-disperse-0" changes file folder written
    t "$way: each brick notes these objects, and no other" wait_for 30 "notes" notes_are "${zeros//0/3}"
    is "$(for brick in "${bricks[@]}"; do brick_pending "$brick"; done | sort -u | wc -l)" 1 "$way: nothing is pending but the write"
    if [[ $healer == kiln-heal ]]; then
        before=$(for brick in "${bricks[@]}"; do view "$brick"; done)
        shd_start "$vol"
        wait_for 60 "the stock daemon" nothing_pending "${bricks[@]}" || true
        { kill -TERM "$shd_pid" && wait "$shd_pid"; } 2>/dev/null || true
        is "$(for brick in "${bricks[@]}"; do view "$brick"; done)" "$before" "$way: the stock daemon changes no name and no attribute"
        t "$way: the stock daemon takes the mark of the write back" nothing_pending "${bricks[@]}"
        kiln_heal_start "$vol"
    else
        mount_kiln "$vol" "$mnt"
    fi
    t "$way: the bricks become equal, and the notes go" wait_for 60 "equal bricks" equal
    for name in file folder; do
        is "$(getfattr --absolute-names --only-values -n user.color "${bricks[0]}/$name")" red "$way: $name has the attributes of most bricks"
    done
    if [[ $healer == kiln-heal ]]; then
        t "$way: kiln-heal leaves nothing pending" wait_for 60 "heals" nothing_pending "${bricks[@]}"
        { kill -TERM "$shd_pid" && wait "$shd_pid"; } 2>/dev/null || true
        mount_kiln "$vol" "$mnt"
    fi
    shd_pid=
    is "$(ls "$mnt/folder" | xargs)" "kept removed renamed" "$way: the folder has the names of most bricks"
    for name in file folder/kept folder/removed folder/renamed $([[ $layout == 2+1 ]] || echo written); do
        is "$(cat "$mnt/$name")" "$(content "$name")" "$way: $name has its contents"
    done
    t "$way: nothing is pending after the reads" wait_for 60 "heals" nothing_pending "${bricks[@]}"
    t "$way: the folder can be removed" rm -r "$mnt/folder"
    t_here "$way: the volume is unmounted" mount_end "$mnt"
    t "$way: all fragments belong together" python3 "$tests_dir/disperse/disperse_work.py" fragments "${layout#*+}" "${bricks[@]}"
    volume_stop "$vol"
done
