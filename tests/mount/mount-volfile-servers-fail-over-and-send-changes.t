#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount gets its volfile from a server by volume name, from the next server when the first is down, and again
# when the server announces a change. kiln-mount applies options while files are open. When the server sends an
# invalid volfile, the log says so and the mount keeps the old volfile. A subdirectory of the volume can be the root
# of the mount.
# Covers: mount/spec.c, mount/volume.c, libglusterfs/graph/reconfigure.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

volume_new v 1x1
volume_start v
volfile_bare v "$(volume_specs v)" >"$T/v.vol"
mnt=$T/mnt
log=$T/log/mount.log
mkdir "$mnt"

server_start() {
    python3 "$kiln_lib/volfile-server.py" 127.0.0.1 24007 "$T/v.vol" >>"$T/log/server.log" 2>&1 5>&- &
    server=$!
    wait_for 120 "the server to listen" port_answers 24007
}

mounted() {
    "$KILN_MOUNT" -l "$log" -p "$T/mount.pid" "$@"
}

gone() {
    umount "$mnt"
    wait_for 240 "kiln-mount to end" process_gone "$(cat "$T/mount.pid")"
}

options_taken() {
    [[ $(grep -c '\[mount-options\]' "$log") == "$1" ]]
}

server_start
t "HOST:/VOLUME is mounted" mounted 127.0.0.1:/v "$mnt"
is "$(findmnt -n -o FSTYPE,SOURCE --mountpoint "$mnt" | tr -s ' ')" "fuse.glusterfs 127.0.0.1:/v" "the mount table shows the volume"
mkdir -p "$mnt/sub/dir"
echo text >"$mnt/sub/dir/file"
exec 5>>"$mnt/open"

# Options.
pid=$(cat "$T/mount.pid")
sed -i 's/ping-timeout 42/ping-timeout 41/' "$T/v.vol"
kill -HUP "$server"
t "the mount applies changed options" wait_for 120 "the options" grep -q '\[mount-options\]' "$log"
echo one >&5
sed -i 's/ping-timeout 41/ping-timeout 43/' "$T/v.vol"
kill -HUP "$pid"
t "SIGHUP makes the mount fetch the volfile again" wait_for 120 "the options" options_taken 2

cp "$T/v.vol" "$T/v.vol.before"
echo "volume" >"$T/v.vol"
kill -HUP "$server"
t "the log reports an invalid volfile" wait_for 120 "the line" grep -q '\[mount-volfile\]' "$log"
echo two >&5
is "$(tr '\n' ' ' <"$mnt/open")" "one two " "the mount still works after an invalid volfile"
mv "$T/v.vol.before" "$T/v.vol"

# The server goes and comes.
kill "$server"
wait "$server" || true
t "the mount works while its server is down" grep -q text "$mnt/sub/dir/file"
sed -i 's/ping-timeout 43/ping-timeout 40/' "$T/v.vol"
server_start
t "the mount fetches the volfile when the server is back" wait_for 120 "the options" options_taken 3
exec 5>&-
gone

t "the next server is asked when the first is down" mounted -s 127.0.0.2 -s 127.0.0.1 --volfile-id v "$mnt"
is "$(findmnt -n -o SOURCE --mountpoint "$mnt")" "127.0.0.2:/v" "the mount table shows the first server"
gone
t "a list of servers can be given with the volume" mounted 127.0.0.2,127.0.0.1:/v/sub "$mnt"
is "$(ls "$mnt")" dir "a subdirectory is the root"
echo more >>"$mnt/dir/file"
gone
is "$(tr '\n' ' ' <"${volume_bricks[v]}/sub/dir/file")" "text more " "the volume has the data that was written through the mount of the subdirectory"
mv "$T/v.vol" "$T/away.vol"
status=0
"$KILN_MOUNT" -l "$log" 127.0.0.1:/other "$mnt" >"$T/refused.out" 2>&1 || status=$?
is "$status" 1 "an unknown volume is refused"
t "the message names the unknown volume" grep -q "127.0.0.1 has no volume other; its volumes: kiln list" "$T/refused.out"
t_not "the unknown volume is not mounted" mount_is_listed "$mnt"
t_not "the mounts leaked no object" grep -E 'graph-audit|graph-inodes-left|fuse-audit' "$log"
kill "$server"
