#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A proxy cuts connections between kiln-mount and a brick with TLS after some bytes of either side, in each state of the
# handshake: kilnd (once it has a byte) and kiln-mount log the peer's address and the reason, and the mount command ends
# with the reason. Other mounts are served, and an open mount goes on when the cuts end. Data that arrive in single bytes
# are right. A brick refuses a renegotiation and logs the reason. Both sides name a certificate that is for another use.
# Covers: rpc/transport/tls.c, rpc/client/brick-peer.c, rpc/client/rpc-client.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$tests_dir/lib/tls.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
[[ $BRICKD == kiln ]] || skip_all "the logs are Kiln's"

tls_ca ca
tls_cert server
tls_cert client
volume_new v 1x1
mapfile -t xlator_options < <(tls_options v-server server)
volume_start v
log=$T/log/v-kiln.log port=${daemon_port[v-kiln]}
words=()
while IFS= read -r option; do
    words+=(--xlator-option "$option")
done < <(tls_options 'v-client-*' client)
t_here "a mount without the proxy is ready" mount_kiln v "$T/open" "${words[@]}"

proxy_port=$((port + 100))
proxy=
proxy_ends() {
    [[ -z $proxy ]] || { kill "$proxy" && wait "$proxy" 2>/dev/null; } || true
    proxy=
}
proxy_starts() { # MODE...
    proxy_ends
    echo "$*" >"$T/mode"
    "$tests_dir/client/tls_proxy.py" "$proxy_port" "$port" "$T/mode" >>"$T/log/proxy.log" 2>&1 &
    proxy=$!
    wait_for 60 "the proxy" port_answers "$proxy_port"
}
volfile_id=${volume_id[v]} volfile_bare v "127.0.0.1:$proxy_port:${volume_bricks[v]}" >"$T/proxied.vol"
mkdir -p "$T/mnt"

mount_fails() { # TEXT ARG...
    local text=$1
    shift
    fails_with "$text" timeout 60 "$KILN_MOUNT" -f "$T/proxied.vol" --hard=0 -l "$T/log/cut.log" "$@" "$T/mnt"
}
kilnd_logged() { # TEXT: since the line number $seen
    grep -qE "TLS connection from 127.0.0.1:[0-9]+ failed: $1" <(tail -n "+$((seen + 1))" "$log")
}
open_serves() { echo "$1" >"$T/open/file" && [[ $(cat "$T/open/file") == "$1" ]]; }

# A row: the side that is cut, the bytes, and the reason of kiln-mount.
first="the peer ended the connection at the first message of TLS"
while read -r side bytes reason; do
    proxy_starts "$side" "$bytes"
    seen=$(wc -l <"$log")
    rm -f "$T/log/cut.log"
    t "a mount that is cut ($side $bytes) ends with: $reason" mount_fails "$reason" "${words[@]}"
    t "kiln-mount logs the brick's address and the reason ($side $bytes)" \
        grep -qE " 127.0.0.1:$proxy_port(:| failed:) $reason" "$T/log/cut.log"
    [[ $bytes -eq 0 ]] ||
        t_here "kilnd logs the mount's address and the reason ($side $bytes)" \
            wait_for 60 "a log line" kilnd_logged "the peer (ended the connection during|left before) the handshake"
done <<END
up 0 the peer
up 3 $first
up 100 $first
up 500 the peer ends connections after our part of the handshake of TLS
down 0 the peer
down 3 the peer ended the connection during the handshake
down 90 the peer ended the connection during the handshake
down 400 the peer ended the connection during the handshake
END
t "the other mount is served" open_serves cuts

# An open mount whose new connections are cut
proxy_starts pass
"$KILN_MOUNT" -f "$T/proxied.vol" --hard=0 -l "$T/log/again.log" "${words[@]}" "$T/mnt"
echo before >"$T/mnt/again"
proxy_starts up 100
is_cut() { grep -q "TLS connection to 127.0.0.1:$proxy_port failed: $first" "$T/log/again.log"; }
t_here "an open mount logs the reason of a cut" wait_for 120 "a log line" is_cut
proxy_starts pass
goes_on() { echo after >>"$T/mnt/again" 2>/dev/null; }
t_here "the open mount goes on when the cuts end" wait_for 120 "the mount" goes_on
is "$(xargs <"$T/open/again")" "before after" "the other mount sees what was written before and after the cuts"
umount "$T/mnt"

proxy_starts bytes
head -c 65536 /dev/urandom >"$T/data"
t "a mount whose records arrive in single bytes is ready" \
    "$KILN_MOUNT" -f "$T/proxied.vol" --hard=0 -l "$T/log/bytes.log" "${words[@]}" "$T/mnt"
t "records of 16 KiB are written in single bytes" dd if="$T/data" of="$T/mnt/data" bs=64k status=none conv=fsync
t "the other mount reads the same data" cmp "$T/data" "$T/open/data"
cp "$T/data" "$T/open/more"
t "records of 16 KiB are read in single bytes" cmp "$T/data" "$T/mnt/more"
umount "$T/mnt"

renegotiates() { # prints what s_client says
    (echo R; sleep 1) | timeout 60 openssl s_client -tls1_2 -connect "127.0.0.1:$port" -CAfile "$tls_dir/ca.ca" \
        -cert "$tls_dir/client.pem" -key "$tls_dir/client.key" 2>&1
}
seen=$(wc -l <"$log")
t "a client that renegotiates gets an alert" grep -qi "no renegotiation" <(renegotiates)
t_here "kilnd logs the client's address and the renegotiation" \
    wait_for 60 "a log line" kilnd_logged "the peer refuses us .*a renegotiation was refused"
t "the other mount is served after the renegotiation" open_serves renegotiated

# Certificates for another use
tls_cert_for() { # NAME USE
    tls_request "$1"
    openssl x509 -req -in "$tls_dir/$1.csr" -CA "$tls_dir/ca.ca" -CAkey "$tls_dir/ca.ca.key" -CAcreateserial -days 30 \
        -extfile <(echo "extendedKeyUsage=$2") -out "$tls_dir/$1.pem" 2>/dev/null
}
tls_cert_for signer codeSigning
tls_cert_for guest clientAuth
mount_end "$T/open"
t_here "kilnd ends" volume_stop v
volume_start v # anew, because the log folds lines of the same kind
proxy_starts pass
mapfile -t signer < <(tls_options 'v-client-*' signer | sed 's/^/--xlator-option=/')
t "a client's certificate for another use is named" mount_fails "CN=signer): our certificate is not made for this use" "${signer[@]}"
t_here "kilnd logs the mount's address and the use" wait_for 60 "a log line" \
    grep -qE "TLS connection from 127.0.0.1:[0-9]+ failed: the peer's certificate CN=signer, .*purpose" "$log"
volume_stop v
mapfile -t xlator_options < <(tls_options v-server guest)
volume_start v
t "a brick's certificate for clients alone is named" \
    mount_fails "the peer's certificate CN=guest, issued by CN=ca: unsuitable certificate purpose" "${words[@]}"
t_here "kilnd logs the refusal and the mount's address" wait_for 60 "a log line" \
    grep -qE "TLS connection from 127.0.0.1:[0-9]+ failed: the peer refuses us \(CN=guest\): our certificate is not made" "$log"
proxy_ends
t_here "kilnd ends again" volume_stop v
