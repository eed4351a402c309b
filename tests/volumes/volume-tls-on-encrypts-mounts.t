#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# `kiln tls init` makes certificates, and `kiln volume set NAME tls on` encrypts a started volume: an open Kiln mount
# goes on with its files, new mounts of both kinds use TLS, another volume stays plain, and heal info answers. The port
# refuses old versions and weak suites. `tls off` returns the volume to plain connections.
# Covers: cli/tls.c, volumes/volumes-set.c, mount/volume.c, xlators/protocol/server/door.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

# The folders that kiln tls writes, for this script alone.
mount -t tmpfs kiln-test /usr/lib/ssl
mount -t tmpfs kiln-test /etc/ssl
mkdir -p /etc/kiln
mount -t tmpfs kiln-test /etc/kiln

mkdir -p "$T/b"
front_start
t "kiln tls init makes an authority and a certificate" kiln tls init node1
t "a second init changes nothing" fails_with "File exists" kiln tls init node1
is "$(stat -c %a /etc/kiln/tls/ca.key /usr/lib/ssl/glusterfs.key | xargs)" "600 600" "only root can read the keys"
t "the other folder shows the same files" cmp /usr/lib/ssl/glusterfs.pem /etc/ssl/glusterfs.pem
t "openssl verifies the certificate" openssl verify -CAfile /usr/lib/ssl/glusterfs.ca /usr/lib/ssl/glusterfs.pem
t "kiln tls cert makes another host's certificate" kiln tls cert client7 "$T/client7"
t "openssl verifies that certificate" openssl verify -CAfile /usr/lib/ssl/glusterfs.ca "$T/client7/glusterfs.pem"
t "a name with a blank is refused" fails_with "cannot be the name" kiln tls cert "a b" "$T/none"

t "a replicated volume is created" kiln create web replica 2 "$T/b/web0" "$T/b/web1"
kiln start web
kiln create open "$T/b/open" >/dev/null
kiln start open
kilnm=$T/kilnm stock=$T/stock
mkdir -p "$kilnm" "$stock" "$T/open"
mounts() { "$KILN_MOUNT" -s localhost --volfile-id "$1" -l "$T/log/kiln-mount-$(basename "$2").log" "$2"; }
t "the volume is mounted without TLS" mounts web "$kilnm"
t "another volume is mounted" mounts open "$T/open"
exec 7>"$kilnm/held"
echo before >&7

# An application that writes files all the time
(n=0; while [[ ! -e $T/stop ]]; do echo "$n" >"$kilnm/file-$n" || exit 1; n=$((n + 1)); done) 2>"$T/writer.err" &
writer=$!
is_writing() { [[ -e $kilnm/file-$((${1:-0} + 5)) ]]; }
wait_for 60 "the writer to begin" is_writing
t "kiln volume set web tls on" kiln volume set web tls on
is_encrypted() { grep -q 'TLS connection to .*CN=node1' "$T/log/kiln-mount-kilnm.log" && echo x >"$kilnm/probe"; }
t_here "the open mount goes on with TLS" wait_for 120 "the mount to use TLS" is_encrypted
written=$(ls "$kilnm" | grep -c '^file-')
t "the writer goes on" wait_for 60 "more files" is_writing "$written"
touch "$T/stop"
t_here "the writer got no error" wait "$writer"
t "the mount needed no other graph" test "$(grep -c 'mount-switched\|mount-change-not-followed' "$T/log/kiln-mount-kilnm.log")" -eq 0
t "the open file is written" bash -c "echo after >&7"
exec 7>&-
is "$(xargs <"$kilnm/held")" "before after" "the open file has what was written before and after the change"
t "the other volume is written without TLS" bash -c "echo y >'$T/open/file'"
front_mount web "$stock"
t "a stock mount reads by TLS" test "$(xargs <"$stock/held")" == "before after"
t "a stock mount writes by TLS" bash -c "echo stock >'$stock/new'"
port=$(kiln_json status web | grep -oE '"port":[0-9]+' | head -1 | cut -d: -f2)
shown() { openssl s_client -connect "localhost:$port" -CAfile /usr/lib/ssl/glusterfs.ca -cert "$T/client7/glusterfs.pem" \
    -key "$T/client7/glusterfs.key" "$@" </dev/null 2>&1; }
for version in -tls1_3 -tls1_2; do
    t "the port speaks TLS: $version" grep -q 'Verify return code: 0' <(shown "$version")
done
t "the port refuses TLS 1.1" grep -q 'alert\|no protocols available' <(shown -tls1_1)
t_not "the port refuses a suite without forward secrecy" grep -q 'Cipher is AES' <(shown -tls1_2 -cipher AES128-SHA)

t "TLS of one side alone is refused" fails_with "no client can connect" kiln volume set web client.ssl off
t "a reset of one side is refused" fails_with "no client can connect" kiln volume reset web server.ssl
t "TLS of one side can be forced" kiln volume set web client.ssl off --force
t "TLS of both sides is set again" kiln volume set web tls on
t "kiln volume set web auth.ssl-allow" kiln volume set web auth.ssl-allow 'node*'
t "the mounts are served" bash -c "echo allowed >'$stock/allowed' && cat '$kilnm/allowed'"
t "a heal info answers over TLS" kiln heal web info
t_here "kilnd stops" front_stop
front_start
is_back() { echo again >"$kilnm/again" && [[ $(cat "$stock/again") == again ]]; }
t_here "the mounts return after a restart of kilnd" wait_for 120 "the mounts" is_back

t "kiln volume set web tls off" kiln volume set web tls off
is_off() { echo plain >"$kilnm/plain" && [[ $(cat "$T/b/web0/plain") == plain ]]; }
t_here "the Kiln mount goes on without TLS" wait_for 120 "the mount" is_off
umount -l "$stock"
umount "$kilnm"
umount "$T/open"
t_here "kilnd ends" front_stop
