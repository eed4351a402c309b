#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A replicated volume of glusterd with server.ssl, client.ssl, auth.ssl-allow and management TLS: kilnd serves its bricks,
# stock and Kiln mounts fetch the volfile and write, the self-heal daemon heals, and heal info and status answer. A mount
# without management TLS, or with a certificate of another authority, fails with the reason.
# Covers: bricks/management.c, mount/spec.c, rpc/transport/tls-config.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$tests_dir/lib/tls.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

tls_ca ca
tls_ca strangers
tls_cert node
tls_cert stranger strangers
# The default folder of all programs of this sandbox.
folder=/usr/lib/ssl
[[ -z ${KILN_STOCK_VERSION:-} ]] || folder=/etc/ssl
mount -t tmpfs kiln-test "$folder"
put_certificate() { # NAME CA FOLDER
    mkdir -p "$3"
    cp "$tls_dir/$1.pem" "$3/glusterfs.pem"
    cp "$tls_dir/$1.key" "$3/glusterfs.key"
    cp "$tls_dir/$2.ca" "$3/glusterfs.ca"
}
put_certificate node ca "$folder"
# A host with another certificate.
put_certificate stranger strangers "$T/stranger-ssl"
at_stranger() {
    unshare -m bash -c 'mount --bind "$0" "$1" && exec "${@:2}"' "$T/stranger-ssl" "$folder" "$@"
}
mkdir -p /var/lib/glusterd
touch /var/lib/glusterd/secure-access

mnt=$T/mnt kiln=$T/kiln
glusterd_bricks_start
gl_create v 1x2 >/dev/null
for option in "server.ssl on" "client.ssl on" "auth.ssl-allow node,other"; do
    # shellcheck disable=SC2086
    t "volume set $option" gl volume set v $option
done
t "the volume starts" gl volume start v
t_here "both bricks are online" wait_for 120 "the bricks" bricks_all_online v 2
if [[ $BRICKD == kiln ]]; then
    t "a brick's log names the certificate of its peers" \
        wait_for 60 "a log line" grep -qE 'TLS connection from .*CN=node' /var/log/glusterfs/bricks/*.log
    t "kilnd's connection to glusterd is encrypted" grep -qE 'TLS connection to .*:24007, CN=node' /var/log/glusterfs/bricks/*.log
fi
gl_mount v "$mnt"
t "the stock mount writes" bash -c "echo stock >'$mnt/file'"
mkdir -p "$kiln"
t "kiln-mount fetches the volfile by TLS" "$KILN_MOUNT" -s "$glusterd_host" --volfile-id v -l "$T/log/kiln.log" "$kiln"
t "kiln-mount's connection to glusterd is encrypted" grep -qE 'TLS connection to .*:24007, CN=node' "$T/log/kiln.log"
is "$(cat "$kiln/file")" stock "the Kiln mount reads what the stock mount has written"
t "the Kiln mount writes" bash -c "echo kiln >'$kiln/other'"

pid=$(cat /run/gluster/vols/v/*v-1.pid)
kill -KILL "$pid"
wait_for 60 "a brick to be gone" process_gone "$pid"
t "a file is written while a brick is away" bash -c "echo healed >'$kiln/heal'"
t "the brick starts again" gl volume start v force
t_here "both bricks are online again" wait_for 120 "the bricks" bricks_all_online v 2
gl volume heal v >/dev/null || true
is_healed() { [[ $(cat "$T/bricks/v-1/heal" 2>/dev/null) == healed ]]; }
t_here "the self-heal daemon heals by TLS" wait_for 120 "the heal" is_healed
t "heal info answers" gl volume heal v info

mkdir -p "$T/refused"
t "a mount without management TLS fails with the reason" fails_with "does it demand TLS (secure-access)?" \
    timeout 30 "$KILN_MOUNT" --secure-mgmt=off -s "$glusterd_host" --volfile-id v -l "$T/log/plain.log" "$T/refused"
t "a mount with another authority fails with the reason" fails_with "peer's certificate CN=node" \
    at_stranger timeout 30 "$KILN_MOUNT" -s "$glusterd_host" --volfile-id v -l "$T/log/stranger.log" "$T/refused"
t "the mounts are served" bash -c "echo more >>'$mnt/file' && echo more >>'$kiln/other'"
umount "$kiln"
umount "$mnt"
t "the volume stops" gl volume stop v
