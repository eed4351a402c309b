#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln tls init and kiln host add give each host of a store its certificate. An etcd with a certificate of the same authority
# serves only such hosts. A host without a certificate, with one of another authority, with that of another host, and
# one that was not added are refused, and the log says why. So are records and questions that a program without a host's
# key puts into the store.
# Covers: volumes/cluster/host-proof.c, volumes/cluster/cluster-register.c, volumes/cluster/cluster-ask.c, cli/tls.c, cli/host.c,
# glusterfsd/options.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/cluster.sh"

cluster_net 3
for h in h1 h2 h3; do
    mkdir -p "$T/$h/usr/lib/ssl" "$T/$h/etc/ssl" "$T/$h/etc/kiln"
done
# kiln of host H, with the files of that host
kiln_at() {
    on "$1" "$KILN" --socket="$T/$1/socket" "${@:2}"
}
t "the first host makes an authority and its certificate" kiln_at h1 tls init h1 10.9.0.11
t "kiln tls cert makes a certificate for etcd" kiln_at h1 tls cert etcd "$T/tls" 10.9.0.1
GOMAXPROCS=1 etcd --name e1 --data-dir "$T/etcd" --listen-client-urls https://10.9.0.1:2379 \
    --advertise-client-urls https://10.9.0.1:2379 --listen-peer-urls http://127.0.0.1:2380 \
    --initial-advertise-peer-urls http://127.0.0.1:2380 --initial-cluster e1=http://127.0.0.1:2380 --unsafe-no-fsync \
    --cert-file "$T/tls/glusterfs.pem" --key-file "$T/tls/glusterfs.key" --trusted-ca-file "$T/tls/glusterfs.ca" \
    --client-cert-auth >>"$T/log/etcd.out" 2>&1 </dev/null &
etcd_pid=$!
store() {
    ETCDCTL_API=3 etcdctl --endpoints https://10.9.0.1:2379 --cacert "$T/tls/glusterfs.ca" --cert "$T/tls/glusterfs.pem" \
        --key "$T/tls/glusterfs.key" "$@"
}
wait_for 240 "etcd to answer" store get kiln
cluster_store=etcds://10.9.0.1:2379
# kilnd of host H ends at its start and its log matches PATTERN
kilnd_refuses() {
    local host=$1 pattern=$2 status=0
    : >"$T/log/refused.log"
    on "$host" timeout 60 "$KILND" --store "$cluster_store" --host "$host" --state "$T/$host/state" -N \
        -l "$T/log/refused.log" --management-socket "$T/$host/socket" || status=$?
    [[ $status -ne 0 && $status -ne 124 ]] && grep -E -- "$pattern" "$T/log/refused.log"
}
# kilnd of host H runs, cannot reach the store, and its log matches PATTERN
kilnd_is_shut_out() {
    local host=$1 pid status=0
    : >"$T/log/refused.log"
    host_exec "$host" "$KILND" --store "$cluster_store" --host "$host" --state "$T/$host/state" -N \
        -l "$T/log/refused.log" --management-socket "$T/$host/socket" &
    pid=$!
    wait_for 60 "the log line" grep -E -- "$2" "$T/log/refused.log" || status=$?
    kill "$pid" && wait "$pid" || status=$?
    return "$status"
}

t_here "the first host starts with its certificate" host_start h1
t "an address with a blank is refused" fails_with "cannot be the name" kiln_at h1 host add h2 "10 9"
t "the second host is added" kiln_at h1 host add h2 10.9.0.12 "$T/h2.pem"
is "$(stat -c %a "$T/h2.pem")" 600 "only root may read the file with its key"
t "an existing file is not replaced" fails_with "exists" kiln_at h1 host add h2 10.9.0.12 "$T/h2.pem"
t "the list shows the added host and its address" host_says h1 '^h2 +added .*10\.9\.0\.12' host list
t "a host without the authority's key cannot add" fails_with "no authority" kiln_at h2 host add h3 10.9.0.13

t "a host without a certificate does not get into the store, and its log says why" \
    kilnd_is_shut_out h2 "(certificate|SSL|TLS).*store-away"
t "another file than a certificate of kiln host add is refused" fails_with "do not fit" kiln_at h2 tls take /etc/hosts
t "the second host takes its certificate" kiln_at h2 tls take "$T/h2.pem"
t_here "the second host starts" host_start h2
t "the first host counts the second host as up" wait_for 60 "h2 to be up" host_is h2 up h1

t "the third host has an authority of its own" kiln_at h3 tls init h3 10.9.0.13
t "its certificate does not get it into the store" kilnd_is_shut_out h3 "(certificate|SSL|TLS).*store-away"
rm "$T"/h3/usr/lib/ssl/* "$T"/h3/etc/ssl/*
t "a certificate is made for the third host, which was not added" kiln_at h1 tls cert h3 "$T/h3/usr/lib/ssl" 10.9.0.13
t "a host that was not added is refused" kilnd_refuses h3 "host h3 was not added to this store"
t "the third host is added" kiln_at h1 host add h3 10.9.0.13 "$T/h3.pem"
cp "$T/h3/usr/lib/ssl/glusterfs.pem" "$T/h3/usr/lib/ssl/glusterfs.key" "$T"
cp "$T/h2/usr/lib/ssl/glusterfs.pem" "$T/h2/usr/lib/ssl/glusterfs.key" "$T/h3/usr/lib/ssl/"
t "the certificate of another host is refused" kilnd_refuses h3 "cannot prove that it is host h3.*another name"
t "the log says which command helps" grep -q "kiln host add h3 ADDRESS" "$T/log/refused.log"
cp "$T/glusterfs.pem" "$T/glusterfs.key" "$T/h3/usr/lib/ssl/"

# A program with access to the store, but without the key of a host.
store put /kiln/alive/h3 "$(store get --print-value-only /kiln/alive/h2)" >/dev/null
t "the record of another host in a host's place is refused" wait_for 60 "the log line" \
    grep -q "host h3 has no valid certificate: it is the certificate of another name; the host counts as down" "$T/log/kilnd-h1.log"
t "the list says so" host_says h1 '^h3 +refused' host list
store get --print-value-only /kiln/alive/h2 | sed 's/"pid":/"pid":1/' >"$T/forged"
store put /kiln/alive/h2 "$(<"$T/forged")" >/dev/null
t "a changed record is refused" wait_for 60 "the log line" \
    grep -q "host h2 has no valid certificate: its key has not signed this record" "$T/log/kilnd-h1.log"
store put /kiln/ask/h1/00000000-0000-4000-8000-000000000001 \
    '{"from":"h2","verb":"upgrade","args":{"program":"/bin/false"}}' >/dev/null
t "a question without a signature is refused" wait_for 60 "the log line" \
    grep -q "a question is refused: host h2 has no valid certificate: it shows none" "$T/log/kilnd-h1.log"

t_here "the second host ends" host_stop h2
t_here "the second host returns" host_start h2
t_here "the third host starts" host_start h3
for h in h1 h2 h3; do
    t "host $h sees three hosts" wait_for 60 "three hosts" eval '[[ $(kiln_of "$h" host list | grep -c " up ") -eq 3 ]]'
done
job=00000000-0000-4000-8000-000000000002
store put /kiln/jobs/$job '{"kind":"upgrade","scope":"hosts","state":"running","done":0,"total":1,"started":1,"text":"","hosts":["h2"],"program":"/bin/false"}' >/dev/null
t "an upgrade to a program that no host has ordered fails" wait_for 60 "the job" \
    host_says h1 "upgrade .*failed .*has no valid certificate" job list
t "the program was not tried" eval '! grep -q /bin/false "$T"/log/kilnd-h?.log'

t "a volume is created over the hosts" kiln_of h3 volume create v replica 3 h1:/srv/b h2:/srv/b h3:/srv/b
t "the volume starts" kiln_of h2 volume start v
is "$(kiln_of h1 volume status v | grep -c '^Brick h[123]:/srv/b .* Y ')" 3 "its bricks answer the first host"
t "its connections are encrypted with the certificates" kiln_of h1 volume set v tls on
mkdir "$T/m"
mount --bind "$T/h1/usr/lib/ssl" /usr/lib/ssl
t "kiln-mount mounts the volume" cluster_mount v "$T/m"
t "a file is written" eval 'echo hello >"$T/m/f"'
is "$(cat "$T"/h[123]/srv/b/f | xargs)" "hello hello hello" "all three hosts have the file"
