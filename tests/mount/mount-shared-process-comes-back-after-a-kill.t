#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# `kiln mount` and `mount -t kiln` mount in one shared process unless noshared is given. A mount point that has a mount
# is refused. When the shared process was killed, the next mount, or the service, takes all its mount points back; calls
# on files that were open fail with ENOTCONN. A dead mount point that was unmounted by hand stays unmounted.
# Covers: mount/records.c, mount/place.c, mount/shared.c, mount/kiln-mount.c, cli/mount.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/front.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"
[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

system_cover
ln -s "$KILN_MOUNT" /usr/sbin/mount.kiln
mkdir -p "$T"/m/{a,b,c,d,e,own} "$T/b"
front_start
for vol in a b c; do
    kiln create "$vol" "$T/b/$vol"
    kiln start "$vol"
done

shared_pid() {
    pgrep -f '^mount.kiln' | while read -r pid; do
        [[ $(readlink "/proc/$pid/fd/"* 2>/dev/null) != */run/kiln-mount.sock.lock* ]] || echo "$pid"
    done
}
killed() {
    local pid
    pid=$(shared_pid)
    kill -KILL "$pid"
    wait_for 60 "the process to end" process_gone "$pid"
}
mounts_on() { # how many mounts lie on this folder
    findmnt -n -l -o TARGET | grep -cx "$1" || true
}

t "kiln mount mounts a volume" kiln mount a "$T/m/a"
t "kiln mount mounts another volume" kiln mount b "$T/m/b"
t "mount -t kiln mounts a third one" mount -t kiln localhost:/c "$T/m/c"
is "$(pgrep -fc '^mount.kiln')" 1 "one process has all three mounts"
t "noshared mounts in a process of its own" kiln mount a "$T/m/own" -o noshared
is "$(pgrep -fc '^mount.kiln')" 2 "there are two processes"
for vol in a b c; do
    echo "text $vol" >"$T/m/$vol/file"
done
is "$(cat "$T/m/own/file")" "text a" "the mount of the other process shows the volume"

status=0
kiln mount a "$T/m/a" >"$T/twice.out" 2>&1 || status=$?
is "$status" 32 "a second mount on the same folder is refused with status 32"
t "the message names the folder and the remedy" grep -q "$T/m/a: a volume is mounted there already; try: umount $T/m/a" "$T/twice.out"
is "$(mounts_on "$T/m/a")" 1 "one mount lies on the folder"
status=0
kiln mount b "$T/m/own" -o noshared >"$T/twice.out" 2>&1 || status=$?
is "$status" 32 "noshared does not mount on a mount either"
is "$(find /run/kiln-mount -type f | wc -l)" 3 "each shared mount has a record"

# Killed.
exec 7<"$T/m/a/file"
killed
t "the mount points of a killed process are dead" fails_with "Transport endpoint is not connected" ls "$T/m/a"
mkdir -p "$T/m/e"
t "the next mount is made" kiln mount c "$T/m/e"
back() {
    [[ $(cat "$T/m/a/file" "$T/m/b/file" "$T/m/c/file" 2>/dev/null | tr '\n' ' ') == "text a text b text c " ]]
}
t "the next mount brings all mounts back" wait_for 60 "the mounts" back
is "$(pgrep -fc '^mount.kiln')" 2 "one shared process has all mounts again"
t "a file that was open fails with ENOTCONN" fails_with "Transport endpoint is not connected" cat <&7
exec 7<&-
is "$(mounts_on "$T/m/a")" 1 "no dead mount lies below the new one"
t "a mount with its old options is writable" touch "$T/m/a/new"

# Repair, and a mount point that was unmounted by hand.
killed
umount "$T/m/b"
t "kiln mount repairs a dead mount point" kiln mount a "$T/m/a"
t "the others come back" wait_for 60 "the mount" test -e "$T/m/c/file"
is "$(mounts_on "$T/m/b")" 0 "a mount that was unmounted by hand stays unmounted"
unrecorded() {
    [[ $(find /run/kiln-mount -type f | wc -l) == 3 ]]
}
t "a mount that was unmounted by hand has no record any more" wait_for 60 "the record to go" unrecorded

# The service, with kilnd down.
killed
front_stop
"$KILN_MOUNT" --serve -N >>"$T/log/serve.out" 2>&1 </dev/null &
service=$!
wait_for 60 "the service to listen" test -S /run/kiln-mount.sock
sleep 0.5
t "the mount points stay dead while no volfile is to be had" fails_with "Transport endpoint" ls "$T/m/a"
front_start
t "the service takes the mounts back when kilnd is there again" wait_for 120 "the mounts" test -e "$T/m/a/file" -a -e "$T/m/c/file"
t "a new mount joins the service" kiln mount b "$T/m/b"
is "$(pgrep -fc '^mount.kiln')" 1 "only the mount with noshared has another process"
kill -KILL "$service"
{ wait "$service"; } 2>/dev/null || true
printf 'namespace=x\0mountpoint=%s\0' "$T/m/d" >/run/kiln-mount/0123456789abcdef
"$KILN_MOUNT" --serve -N >>"$T/log/serve.out" 2>&1 </dev/null &
service=$!
t "a service that was killed is followed by the next" wait_for 60 "the mounts" test -e "$T/m/a/file" -a -e "$T/m/b/file" -a -e "$T/m/c/file"
t_not "a record of another namespace is dropped" test -e /run/kiln-mount/0123456789abcdef
t "a second service ends, because there is nothing to do" "$KILN_MOUNT" --serve -N
for mnt in a b c e; do
    t "$mnt is unmounted" umount "$T/m/$mnt"
done
t_here "the service ends with its last mount, with status 0" wait "$service"
is "$(find /run/kiln-mount -type f | wc -l)" 0 "no record is left"
t "the mount with noshared has been there all the time" test -e "$T/m/own/file"
umount "$T/m/own"

# SIGTERM unmounts, and leaves no record.
"$KILN_MOUNT" --serve -N >>"$T/log/serve.out" 2>&1 </dev/null &
service=$!
wait_for 60 "the service to listen" test -S /run/kiln-mount.sock
t "a mount in the service" kiln mount a "$T/m/a"
kill -TERM "$service"
t_here "the service ends on SIGTERM with status 0" wait "$service"
is "$(mounts_on "$T/m/a"), $(find /run/kiln-mount -type f | wc -l)" "0, 0" "no mount and no record is left"
"$KILN_MOUNT" --serve -N >>"$T/log/serve.out" 2>&1 </dev/null &
service=$!
wait_for 60 "the service to listen" test -S /run/kiln-mount.sock
kill -TERM "$service"
t_here "a service without a mount ends on SIGTERM with status 0" wait "$service"
