#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount goes into the background when the mount is usable, and its exit status tells whether the mount is usable. It refuses
# unsupported options and layers by name and then leaves nothing mounted; it leaves out layers that only improve speed.
# Covers: mount/options.c, mount/volume.c, mount/types.c, libglusterfs/graph/unbuilt.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

volume_new v 1x1
volume_start v
mnt=$T/mnt
mkdir "$mnt"
volfile_bare v "$(volume_specs v)" >"$T/bare.vol"

# DESC STATUS REGEX ARG...: kiln-mount fails with the status and a message that matches, and mounts nothing.
refuses() {
    local what=$1 want=$2 regex=$3 status=0
    shift 3
    "$KILN_MOUNT" -l "$T/log/refused.log" "$@" >"$T/refused.out" 2>&1 || status=$?
    is "$status" "$want" "$what: the exit status is $want"
    t "$what: the message names the cause" grep -E -- "$regex" "$T/refused.out"
    t_not "$what: nothing is mounted" mount_is_listed "$mnt"
}

with_layer() {
    cat "$T/bare.vol"
    volfile_layer top "$1" v "${@:2}"
}

for type in features/cloudsync features/cdc; do
    with_layer "$type" >"$T/other.vol"
    refuses "$type" 1 "the type $type is not built" -f "$T/other.vol" "$mnt"
done
refuses "a volfile that is not there" 1 "No such file" -f "$T/none.vol" "$mnt"
refuses "a mount point that is not there" 1 "mount point .*try: mkdir -p" -f "$T/bare.vol" "$T/none"
echo "volume" >"$T/bad.vol"
refuses "a volfile that is none" 1 "bad.vol:[12]" -f "$T/bad.vol" "$mnt"
refuses "a command line without a volume" 64 "the volume is missing" "$mnt"
refuses "a command line without a mount point" 64 "the mount point is missing" localhost:/v
refuses "a server without a volume" 64 "volfile-id VOLUME is missing" -s 127.0.0.1 "$mnt"
refuses "a volfile and a server" 64 "exclude each other" -f "$T/bare.vol" -s 127.0.0.1 --volfile-id v "$mnt"
refuses "a server that is not there" 1 "no glusterd or kilnd answers at 127.0.0.1, port 24007: Connection refused" 127.0.0.1:/v "$mnt"
refuses "a subdirectory that is not there" 1 "refuses this client" -f "$T/bare.vol" --subdir-mount=/x "$mnt"
refuses "a subdirectory by half a path" 64 "expected an absolute path" -f "$T/bare.vol" --subdir-mount=x "$mnt"
refuses "gfids as names" 64 "aux-gfid-mount is not built" -f "$T/bare.vol" --aux-gfid-mount "$mnt"
refuses "a bad choice" 1 "kernel-writeback-cache" -f "$T/bare.vol" --kernel-writeback-cache=perhaps "$mnt"
refuses "an option that nobody knows" 64 "unrecognized option" -f "$T/bare.vol" --colour "$mnt"
refuses "a bad timeout" 1 "attribute-timeout" -f "$T/bare.vol" --attribute-timeout=soon "$mnt"

# The refusal of a brick that rejects all clients is final, so kiln-mount does not try for ever.
volume_new shut 1x1
BRICK_SERVER_OPTIONS="auth.addr.${volume_bricks[shut]}.reject *"
volume_assign shut "$BRICKD"
volume_start shut
volfile_bare shut "$(volume_specs shut)" >"$T/shut.vol"
refuses "a brick that refuses every client" 1 "refuses this client" -f "$T/shut.vol" "$mnt"

# The same holds for several bricks, also if one of them is down. But a brick that is down does not refuse, and a single brick
# that accepts the mount is enough.
BRICK_SERVER_OPTIONS=
volume_split=brick
for layout in 1x2 2x1 2x2; do
    vol=r$layout
    volume_new "$vol" "$layout"
    volume_start "$vol"
    volume_client_volfile "$vol" default >"$T/$vol.vol"
    refuses "$layout: a subdirectory that is not there" 1 "refuses this client" -f "$T/$vol.vol" --subdir-mount=/x "$mnt"
    refuses "$layout in a shared process: a subdirectory that is not there" 1 "refuses this client" --shared -f "$T/$vol.vol" --subdir-mount=/x "$mnt"
    last=${volume_bricks[$vol]##* }
    daemon_stop "${brick_daemon[$last]}"
    refuses "$layout with a brick away: a subdirectory that is not there" 1 "refuses this client" -f "$T/$vol.vol" --subdir-mount=/x "$mnt"
    t "$layout with one brick down: kiln-mount exits with 0" "$KILN_MOUNT" -f "$T/$vol.vol" -l "$T/log/away.log" -p "$T/mount.pid" "$mnt"
    t "$layout with one brick down: the volume is mounted" mount_is_listed "$mnt"
    pid=$(<"$T/mount.pid")
    umount "$mnt"
    wait_for 240 "kiln-mount to end" process_gone "$pid"
    volume_stop "$vol"
    t "$layout with all bricks down: kiln-mount exits with 0" "$KILN_MOUNT" --hard=1 -f "$T/$vol.vol" -l "$T/log/away.log" -p "$T/mount.pid" "$mnt"
    t "$layout with all bricks down: the volume is mounted" mount_is_listed "$mnt"
    pid=$(<"$T/mount.pid")
    umount "$mnt"
    wait_for 240 "kiln-mount to end" process_gone "$pid"
done
volume_split=

# Layers that are left out.
{
    cat "$T/bare.vol"
    below=v
    for layer in write-behind open-behind quick-read md-cache io-threads; do
        volfile_layer "v-$layer" "performance/$layer" "$below" "any-option any"
        below=v-$layer
    done
} >"$T/layers.vol"
t "a volume with performance layers is mounted in the background" "$KILN_MOUNT" -f "$T/layers.vol" -l "$T/log/background.log" \
    -p "$T/mount.pid" --fs-name host:/v "$mnt"
is "$(findmnt -n -o FSTYPE,SOURCE --mountpoint "$mnt" | tr -s ' ')" "fuse.glusterfs host:/v" "the mount table shows the volume"
t "the mount is usable at once" bash -c "echo text >'$mnt/file' && grep -q text '$mnt/file'"
threads=$(ls "/proc/$(cat "$T/mount.pid")/task" | wc -l)
t "the process has at most 12 threads ($threads)" test "$threads" -le 12
pid=$(cat "$T/mount.pid")
umount "$mnt"
t "umount ends the process" wait_for 240 "kiln-mount to end" process_gone "$pid"
t_not "the pid file is removed" test -e "$T/mount.pid"
t "the process ended with status 0" grep -q "exit status 0" "$T/log/background.log"
t_not "the mount leaked no object" grep -E 'graph-audit|graph-inodes-left|fuse-audit' "$T/log/background.log"
