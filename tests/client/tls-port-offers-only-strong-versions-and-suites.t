#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A TLS port of kilnd accepts TLS 1.2 and 1.3 with forward-secret AEAD suites on P-256, and nothing else that openssl(1) can
# offer: each version, suite and group is offered alone. No session is resumed. kiln-mount accepts no older version from a
# brick. ssl-min-version=1.3 refuses TLS 1.2 on both sides, and stock mounts go on.
# Covers: rpc/transport/tls-config.c, rpc/transport/tls-options.h

. "$(dirname "$0")/../lib/kiln.sh"
. "$tests_dir/lib/tls.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
[[ $BRICKD == kiln ]] || skip_all "the versions are Kiln's"

tls_ca ca
tls_cert client
# An RSA key, because suites without forward secrecy need one.
openssl req -newkey rsa:2048 -nodes -subj /CN=server -keyout "$tls_dir/server.key" -out "$tls_dir/server.csr" 2>/dev/null
openssl x509 -req -in "$tls_dir/server.csr" -CA "$tls_dir/ca.ca" -CAkey "$tls_dir/ca.ca.key" -CAcreateserial -days 30 \
    -out "$tls_dir/server.pem" 2>/dev/null
chmod 600 "$tls_dir/server.key"

volume_new v 1x1
mapfile -t server_tls < <(tls_options v-server server)
xlator_options=("${server_tls[@]}")
volume_start v
port=${daemon_port[v-kiln]}

offer() { # ARG... for s_client: prints the version and the suite of a handshake that succeeds
    openssl s_client -brief -connect "127.0.0.1:$port" -CAfile "$tls_dir/ca.ca" -cert "$tls_dir/client.pem" \
        -key "$tls_dir/client.key" "$@" </dev/null 2>&1 |
        awk -F': ' '/^Protocol version/ { version = $2 } /^Ciphersuite/ { print version, $2 }'
}
# Which of these are accepted, if each is offered alone?
accepted() { # OPTION VALUES ARG...
    local option=$1 value
    for value in $2; do
        [[ -z $(offer "$option" "$value" "${@:3}") ]] || echo "$value"
    done | sort | xargs
}
suites() { # ARG...: the suites that openssl knows
    openssl ciphers "$@" 'ALL:COMPLEMENTOFALL:@SECLEVEL=0' | tr ':' '\n' | sort -u
}

is "$(offer)" "TLSv1.3 TLS_AES_128_GCM_SHA256" "TLS 1.3 with AES-128-GCM comes first"
is "$(offer -tls1_2)" "TLSv1.2 ECDHE-RSA-AES128-GCM-SHA256" "TLS 1.2 with ECDHE and AES-128-GCM is accepted"
for version in -tls1 -tls1_1; do
    is "$(offer $version -cipher ALL:@SECLEVEL=0)" "" "the port refuses ${version#-}"
done
of_12=$(suites -s -tls1_2 | grep -v '^TLS_')
t "openssl knows weak suites" grep -qx AES128-SHA <<<"$of_12"
is "$(for suite in $of_12; do [[ -z $(offer -tls1_2 -cipher "$suite:@SECLEVEL=0") ]] || echo "$suite"; done | sort | xargs)" \
    "ECDHE-RSA-AES128-GCM-SHA256 ECDHE-RSA-AES256-GCM-SHA384 ECDHE-RSA-CHACHA20-POLY1305" \
    "of the $(wc -w <<<"$of_12") suites of TLS 1.2 three are accepted"
is "$(accepted -ciphersuites "TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256 TLS_AES_128_CCM_SHA256 \
TLS_AES_128_CCM_8_SHA256" -tls1_3)" "TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256" \
    "of the five suites of TLS 1.3 three are accepted"
for version in -tls1_2 -tls1_3; do
    is "$(accepted -groups "P-256 P-384 P-521 X25519 X448" $version)" "P-256" "${version#-}: the only group is P-256"
    openssl s_client -connect "127.0.0.1:$port" -CAfile "$tls_dir/ca.ca" -cert "$tls_dir/client.pem" -key "$tls_dir/client.key" \
        $version -sess_out "$T/session" </dev/null >"$T/shown" 2>&1
    t "${version#-}: there is no compression" grep -q '^Compression: NONE' "$T/shown"
    t_not "${version#-}: there is no ticket" grep -q 'TLS session ticket:' "$T/shown"
    [[ ! -s $T/session ]] || t_not "${version#-}: no session is resumed" grep -q '^Reused' <(openssl s_client -connect "127.0.0.1:$port" \
        -CAfile "$tls_dir/ca.ca" -cert "$tls_dir/client.pem" -key "$tls_dir/client.key" $version -sess_in "$T/session" </dev/null 2>&1)
    rm -f "$T/session"
done
is "$(openssl s_client -brief -tls1_2 -connect "127.0.0.1:$port" </dev/null 2>&1 | grep -c ESTABLISHED)" 0 \
    "a client without a certificate is refused"

# The mount's side: a stand-in for a brick that speaks one version.
mapfile -t client_tls < <(tls_options 'v-client-*' client)
mount_words() { # ARG...
    local option
    words=()
    for option in "${client_tls[@]}" "$@"; do
        words+=(--xlator-option "$option")
    done
}
mount_fails() { # TEXT VERSION... for s_server
    local text=$1 pid other=$((port + 100)) status=0
    openssl s_server -accept "127.0.0.1:$other" -cert "$tls_dir/server.pem" -key "$tls_dir/server.key" -CAfile "$tls_dir/ca.ca" \
        -cipher ALL:@SECLEVEL=0 -Verify 1 "${@:2}" </dev/zero >"$T/log/s_server.out" 2>&1 &
    pid=$!
    wait_for 60 "s_server to listen" port_answers "$other"
    volfile_id=${volume_id[v]} volfile_bare v "127.0.0.1:$other:${volume_bricks[v]}" >"$T/old.vol"
    mkdir -p "$T/old"
    fails_with "$text" timeout 60 "$KILN_MOUNT" -f "$T/old.vol" -l "$T/log/old.log" "${words[@]}" "$T/old" || status=1
    kill "$pid"
    wait "$pid" 2>/dev/null || true
    return "$status"
}
mount_words
t_here "kiln-mount refuses a brick that speaks TLS 1.1" mount_fails "TLS" -tls1_1
mount_words 'v-client-*.transport.socket.ssl-min-version=1.3'
t_here "with ssl-min-version=1.3 kiln-mount refuses a brick that speaks TLS 1.2" mount_fails "version" -tls1_2
volume_stop v

xlator_options=("${server_tls[@]}" v-server.transport.socket.ssl-min-version=1.3)
volume_start v
is "$(offer)" "TLSv1.3 TLS_AES_128_GCM_SHA256" "with ssl-min-version=1.3 the port accepts TLS 1.3"
is "$(offer -tls1_2)" "" "with ssl-min-version=1.3 the port refuses TLS 1.2"
t "kilnd's log has the reason" grep -q 'no version of TLS that this side allows (ssl-min-version)' "$T/log/v-kiln.log"
t_here "kiln-mount mounts by TLS 1.3" mount_kiln v "$T/mnt" "${words[@]}"
t_here "the stock client mounts by TLS 1.3" mount_volume v "$T/stock" plain "${words[@]//ssl-min-version=1.3/ssl-cert-depth=1}"
t "both mounts see the same file" eval "echo data >'$T/mnt/file' && [[ \$(cat '$T/stock/file') == data ]]"
mount_end "$T/stock"
mount_end "$T/mnt"
volume_stop v
xlator_options=("${server_tls[@]}" v-server.transport.socket.ssl-min-version=1.1)
t "ssl-min-version=1.1 is refused" fails_with "ssl-min-version" timeout 60 bash -c "$(daemon_command v-kiln | sed "s/.*/'&'/" | xargs -d '\n')"
