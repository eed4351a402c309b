#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# An etcd of three members that demands certificates and users, as doc/security.md sets it up: kilnd reaches it with its
# certificate and the password file, also while one member is dead. A program without the password or without a
# certificate changes nothing. A store of a newer format is refused.
# Covers: volumes/cluster/store-etcd.c, volumes/cluster/curl-library.c, volumes/cluster/cluster.c, glusterfsd/options.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"
. "$(dirname "$0")/../lib/tls.sh"

cluster_net 1
tls_ca ca
tls_cert h1
openssl req -newkey rsa:2048 -nodes -subj /CN=etcd -keyout "$tls_dir/etcd.key" -out "$tls_dir/etcd.csr" 2>/dev/null
openssl x509 -req -in "$tls_dir/etcd.csr" -CA "$tls_dir/ca.ca" -CAkey "$tls_dir/ca.ca.key" -CAcreateserial -days 30 \
    -extfile <(echo "subjectAltName=IP:10.9.0.1,IP:127.0.0.1") -out "$tls_dir/etcd.pem" 2>/dev/null

members=()
for i in 1 2 3; do
    GOMAXPROCS=1 etcd --name "e$i" --data-dir "$T/etcd$i" --listen-client-urls "https://10.9.0.1:237$i" \
        --advertise-client-urls "https://10.9.0.1:237$i" --listen-peer-urls "http://127.0.0.1:238$i" \
        --initial-advertise-peer-urls "http://127.0.0.1:238$i" --cert-file "$tls_dir/etcd.pem" \
        --key-file "$tls_dir/etcd.key" --trusted-ca-file "$tls_dir/ca.ca" --unsafe-no-fsync \
        --initial-cluster e1=http://127.0.0.1:2381,e2=http://127.0.0.1:2382,e3=http://127.0.0.1:2383 \
        >>"$T/log/etcd$i.out" 2>&1 </dev/null &
    members+=($!)
done
member_kill() {
    { kill -KILL "$1" && wait "$1"; } 2>/dev/null || true
}
secure_store() {
    ETCDCTL_API=3 etcdctl --endpoints https://10.9.0.1:2371,https://10.9.0.1:2372,https://10.9.0.1:2373 \
        --cacert "$tls_dir/ca.ca" --cert "$tls_dir/h1.pem" --key "$tls_dir/h1.key" "$@"
}
wait_for 240 "etcd to answer" secure_store get kiln
secure_store user add kiln:secret >/dev/null
secure_store user add root:rootsecret >/dev/null
secure_store role add kiln >/dev/null
secure_store role grant-permission kiln --prefix=true readwrite /kiln/ >/dev/null
secure_store user grant-role kiln kiln >/dev/null
secure_store user grant-role root root >/dev/null
secure_store auth enable >/dev/null
echo secret >"$T/password"
echo wrong >"$T/wrong"

cluster_store=etcds://kiln@10.9.0.1:2371,10.9.0.1:2372,10.9.0.1:2373
no_user_store=etcds://10.9.0.1:2371,10.9.0.1:2372,10.9.0.1:2373
certificate=(--store-ca "$tls_dir/ca.ca" --store-cert "$tls_dir/h1.pem" --store-key "$tls_dir/h1.key")
kilnd_fails() { # TEXT ARG...: kilnd ends at its start and says TEXT
    local text=$1 status=0
    shift
    timeout 120 "$KILND" --host h1 --state "$T/state-x" -N -l "$T/log/x.log" --management-socket "$T/x.socket" "$@" || status=$?
    [[ $status -ne 0 && $status -ne 124 ]] && grep -q "$text" "$T/log/x.log" && : >"$T/log/x.log"
}
t "a wrong password is refused" kilnd_fails "refuses user 'kiln'" --store "$cluster_store" \
    "${certificate[@]}" --store-password-file "$T/wrong"
t "a kilnd without a user is refused" kilnd_fails "refuses user ''" --store "$no_user_store" \
    "${certificate[@]}"
t_here "kilnd reaches the store with its certificate, user and password" \
    host_start h1 "${certificate[@]}" --store-password-file "$T/password"
t "a volume is created and started" bash -c "'$KILN' --socket='$T/h1/socket' volume create v h1:/srv/b &&
    '$KILN' --socket='$T/h1/socket' volume start v"
t "a program without the password cannot read the volume" fails_with "user name is empty" secure_store get /kiln/volumes/v
no_certificate() {
    curl -s -m 20 --cacert "$tls_dir/ca.ca" "https://10.9.0.1:2371/v3/kv/range" -d '{"key": "Zm9v"}'
}
t_not "a program without a certificate gets no answer" no_certificate
t "a program without the password cannot write the volume" fails_with "user name is empty" secure_store put /kiln/volumes/v x
store_is() {
    kiln_of h1 --json host list | grep -q "\"state\": \"$1\""
}

member_kill "${members[0]}"
t "a change works with one of three members dead" \
    wait_for 120 "the change" kiln_of h1 volume set v network.ping-timeout 23
member_kill "${members[1]}"
t "without a majority the store is away" wait_for 120 "the store to be away" store_is away
t "a change is refused" fails_with "does not answer" kiln_of h1 volume set v network.ping-timeout 24
t_here "kilnd ends without its store" host_stop h1

member_kill "${members[2]}"

cluster_store=etcd://10.9.0.1:2379
etcd_start
store put /kiln/format '{"format": 99}' >/dev/null
rm -rf "$T/state-x"
t "a store of a newer format is refused" kilnd_fails "a newer kilnd has written it" --store "$cluster_store"
is "$(store get --prefix /kiln/ --keys-only | tr -d '\n')" /kiln/format "the refused kilnd has written nothing"
