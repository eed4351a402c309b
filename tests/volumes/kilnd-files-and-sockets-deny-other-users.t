#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Another user of the machine cannot use the files and sockets that kilnd, its self-heal daemon and kiln-mount create:
# no socket accepts the user's connection, and no file or directory is writable for the user. The self-heal daemon
# has no socket: it obeys its standard input.
# Covers: volumes/state-dir.c, volumes/heal/healer.c, heal/channel.c, rpc/transport/listener.c

. "$(dirname "$0")/../lib/kiln.sh"

mkdir -p "$T/b" "$T/mnt" "$T/stock"
umask 0 # as careless as a caller can be

# Every file and folder that was made, but for the bricks' own: mode, owner, path.
made() {
    find /run /var/log/kiln /var/log/glusterfs /var/lib/glusterd "$T/state" "$T/log" "$T"/*.pid "$T"/*.port "$T"/*dump* \
        -mindepth 0 \( -path /run -o -path /run/lock -o -path /run/gluster -o -path /run/gluster/metrics -o -path /var/log/glusterfs \
        -o -path /var/lib/glusterd -o -path "$T/log" -o -name kilnd.out \) -o -printf '%m %U %p\n' 2>/dev/null | sort -k 3
}
healer() {
    pgrep -P "$front_pid" -x kiln-heal || true
}
is_there() {
    [[ -n $(healer) ]]
}
# The kernel's names of all sockets that processes listen on.
listening() {
    ss -xlH | awk '{ print $5 }' | grep "^/" | sort -u
}
# Prints the sockets that accept a connection of the user nobody.
lets_in() {
    listening | python3 -c '
import os, socket, sys
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
for path in sys.stdin.read().split():
    for kind in socket.SOCK_STREAM, socket.SOCK_SEQPACKET:
        s = socket.socket(socket.AF_UNIX, kind)
        try:
            s.connect(path)
            print(path)
        except PermissionError:
            pass
        except OSError as error:
            if error.errno != 91:  # EPROTOTYPE
                print(path, error)'
}

rm -rf /var/log/kiln
front_start -p "$T/kilnd.pid" --port-file "$T/kilnd.port"
kiln volume create r replica 2 "$T"/b/{1,2}
kiln volume start r
t "a replicated volume has a self-heal daemon" wait_for 120 "the self-heal daemon" is_there
t "kiln-mount --shared mounts the volume" "$KILN_MOUNT" --shared -s localhost --volfile-id r -l "$T/log/mount.log" "$T/mnt"
t "a file can be written" touch "$T/mnt/file"
kill -USR1 "$front_pid"
wait_for 60 "the statedump" bash -c "compgen -G '$T/*.dump.*'"

listening >"$T/listening"
diag "$(cat "$T/listening")"
t "the test tries kilnd's socket" grep -qx /run/kiln/kilnd.socket "$T/listening"
t "the test tries the socket of kiln-mount --shared" grep -qx /run/kiln-mount.sock "$T/listening"
is "$(lets_in)" "" "no socket lets another user connect"
is "$(ss -xlHp | grep -c kiln-heal)" 0 "the self-heal daemon listens on no socket"
is "$(sed -n 's/^Umask:\t//p' "/proc/$(healer)/status")" 0077 "only root may read or write files of the self-heal daemon"

made >"$T/made"
diag "$(cat "$T/made")"
is "$(awk '$1 !~ /^[0-7]?[0-7]?[0145][0145]$/ || $2 != 0' "$T/made")" "" "no other user can write a file of kilnd, of the self-heal daemon or of kiln-mount"
is "$(grep -cE "/(kilnd.pid|kilnd.port|kilnd.socket|heal.log|kilnd.log|mount.log|kiln-mount.sock.lock|volumes/r.json|.*\.dump\..*)$" "$T/made")" \
    9 "the list has the files that kilnd, the self-heal daemon and kiln-mount make"

umount "$T/mnt"
t "the volume stops" kiln volume stop r
is "$(healer)" "" "the self-heal daemon ends with the last volume"
