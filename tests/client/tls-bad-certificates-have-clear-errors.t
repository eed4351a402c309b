#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A mount that TLS keeps out ends with an error that names the certificate and the reason, and the brick's log has the
# mount's address and the reason. Names that auth.ssl-allow does not list are refused. Bricks with and without TLS
# share one kilnd, and each accepts its own kind of mounts alone. Replaced certificates count without a restart and
# disturb no open mount.
# Covers: rpc/transport/tls-config.c, rpc/transport/tls.c, xlators/protocol/server/auth.c, xlators/protocol/server/door.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$tests_dir/lib/tls.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
[[ $BRICKD == kiln ]] || skip_all "the errors are Kiln's"

mnt=$T/mnt other=$T/other
tls_ca ca
tls_ca strangers
tls_cert server
tls_cert client
tls_cert_dated expired "2 days ago" "1 day ago"
tls_cert_dated early "2 days" "9 days"
tls_cert stranger strangers
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 5 -subj /CN=own \
    -keyout "$tls_dir/own.key" -out "$tls_dir/own.pem" 2>/dev/null

# Two volumes in one kilnd: v demands TLS, plain has none.
volume_daemon=both
volume_new v 1x1
volume_new plain 1x1
volume_daemon=
brick=${volume_bricks[v]}
log=$T/log/both.log
mapfile -t xlator_options < <(tls_options v-server server)
xlator_options+=("v-server.transport.socket.ssl-crl-path=$tls_dir/crl" "v-server.auth.login.$brick.ssl-allow=client,exp*,ear*,own,str*,server")

# An empty list of revoked certificates of the CA.
mkdir "$tls_dir/crl"
touch "$tls_dir/index"
printf '[ca]\ndefault_ca=d\n[d]\ndatabase=%s\ndefault_md=sha256\ndefault_crl_days=5\n' "$tls_dir/index" >"$tls_dir/ca.cnf"
make_crl() {
    openssl ca -config "$tls_dir/ca.cnf" -gencrl -cert "$tls_dir/ca.ca" -keyfile "$tls_dir/ca.ca.key" \
        -out "$tls_dir/crl.new" 2>/dev/null &&
        mv "$tls_dir/crl.new" "$tls_dir/crl/$(openssl x509 -hash -noout -in "$tls_dir/ca.ca").r0"
}
make_crl
volume_start v

tls_words() { # VOL [NAME [CA]]: sets `words`, the command line's part about TLS
    local vol=$1 option
    local -a options=()
    shift
    words=()
    [[ $# -eq 0 ]] || mapfile -t options < <(tls_options "$vol-client-*" "$@")
    for option in "${options[@]}"; do
        words+=(--xlator-option "$option")
    done
}

mount_with() { # MNT VOL [NAME [CA]]
    local to=$1 vol=$2
    local -a words
    tls_words "${@:2}"
    mount_kiln "$vol" "$to" "${words[@]}"
}

more_words=() # of the command line
mount_fails() { # TEXT VOL [NAME [CA]]
    local text=$1 vol=$2
    local -a words
    tls_words "${@:2}"
    # shellcheck disable=SC2046
    volfile_id=${volume_id[$vol]} volfile_bare "$vol" $(volume_specs "$vol") >"$T/fails.vol"
    mkdir -p "$other"
    fails_with "$text" timeout 30 "$KILN_MOUNT" -f "$T/fails.vol" -l "$T/log/fails.log" "${words[@]}" \
        "${more_words[@]}" "$other"
}

t_here "a mount with a good certificate is ready" mount_with "$mnt" v client
t_here "a plain mount of the plain volume in the same kilnd is ready" mount_with "$T/mnt-plain" plain
serves() {
    echo "$1" >"$mnt/file" && [[ $(cat "$mnt/file") == "$1" ]] && echo "$1" >"$T/mnt-plain/file"
}
t "both mounts are written to" serves first

t "a plain mount of the volume with TLS is refused at the login" mount_fails "demands TLS" v
t "a TLS mount of the plain volume in the same kilnd is refused at the login" mount_fails "has no TLS" plain client
t "an expired certificate is named" mount_fails "CN=expired): our certificate has expired" v expired
t "a certificate that a wrong clock makes too early is named" \
    mount_fails "CN=early): our certificate is not yet valid by the peer's clock" v early
t "a certificate of another authority is named" mount_fails "CN=stranger): our certificate's authority" v stranger
t "a self-signed certificate is named" mount_fails "CN=own)" v own
t "a brick that the mount's authorities do not know is named" \
    mount_fails "certificate CN=server: its authority CN=ca: self-signed" v client strangers
more_words=(--xlator-option 'v-client-*.transport.socket.ssl-check-host=on')
t "with ssl-check-host the certificate of another host is named" \
    mount_fails "CN=server, issued by CN=ca: IP address mismatch (not 127.0.0.1, ssl-check-host)" v client
more_words=()
t "a missing certificate file is named" mount_fails "$tls_dir/nobody.pem: No such file" v nobody
t "a missing list of authorities is named" mount_fails "$tls_dir/none.ca: No such file" v client none
tls_cert guest
t "a name that auth.ssl-allow does not list is refused" mount_fails "authentication failed" v guest
for reason in 'CN=expired, issued by CN=ca: certificate has expired' \
    'CN=early, issued by CN=ca: certificate is not yet valid' 'CN=stranger, .*unable to get local issuer' \
    'CN=own, .*self-signed'; do
    t "kilnd logs the mount's address and the reason: $reason" \
        grep -qE "TLS connection from 127.0.0.1:[0-9]+ failed: the peer's certificate $reason" "$log"
done

chmod 644 "$tls_dir/server.key"
touch "$tls_dir/server.pem"
t_here "a key that other users may read serves" mount_with "$other" v client
t "the log says that the key is exposed" grep -q "private key $tls_dir/server.key has mode 0644.*tls-key-exposed" "$log"
mount_end "$other"

openssl ca -config "$tls_dir/ca.cnf" -revoke "$tls_dir/client.pem" -cert "$tls_dir/ca.ca" -keyfile "$tls_dir/ca.ca.key" \
    2>/dev/null
make_crl
t "a revoked certificate is refused" mount_fails "our certificate is revoked" v client
t "the open mounts are served" serves revoked

# New certificates under load.
tls_cert client2
loop() {
    local i
    for ((i = 0; i < 400; i++)); do
        echo "$i" >"$mnt/loop-$((i % 20))" || return 1
    done
}
loop &
load=$!
for i in 1 2 3; do
    tls_cert server
    sleep 0.1
done
status=0
wait "$load" || status=$?
is "$status" 0 "a mount writes without an error while certificates are replaced"
tls_cert server
t "a new connection loads the new certificate" mount_fails "authentication failed" v client2
t "kilnd logs that it loaded the files again" grep -q tls-reloaded "$log"
mount_end "$mnt"
mount_end "$T/mnt-plain"
t_here "kilnd ends" volume_stop v
