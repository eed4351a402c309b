#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# While certificate and key of both sides are replaced again and again, by two renames each as tools for certificates do,
# each new mount works: a mount that finds the new certificate with the old key waits for the new key. A pair that does not
# match for good is an error with the names of both files.
# Covers: rpc/transport/tls-config.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$tests_dir/lib/tls.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
[[ $BRICKD == kiln ]] || skip_all "the files are loaded by Kiln"

tls_ca ca
for i in 1 2; do # two pairs for each name, to be swapped
    for name in server client; do
        tls_cert "$name"
        mv "$tls_dir/$name.pem" "$tls_dir/$name$i.pem"
        mv "$tls_dir/$name.key" "$tls_dir/$name$i.key"
    done
done
for name in server client; do
    tls_cert "$name"
done
volume_new v 1x1
mapfile -t xlator_options < <(tls_options v-server server)
volume_start v
words=()
while IFS= read -r option; do
    words+=(--xlator-option "$option")
done < <(tls_options 'v-client-*' client)

# The pause between the two renames is long, so that most mounts meet a pair that does not match.
replace() {
    local i=1 name kind
    while [[ ! -e $T/enough ]]; do
        for kind in pem key; do
            for name in server client; do
                cp -p "$tls_dir/$name$i.$kind" "$tls_dir/new" && mv "$tls_dir/new" "$tls_dir/$name.$kind" || return 1
            done
            echo "$i $kind" >>"$T/replaced"
            sleep 0.2
        done
        i=$((3 - i))
    done
}
replace &
replacing=$!
mounts_and_writes() {
    mount_kiln v "$T/mnt" "${words[@]}" && echo "$1" >"$T/mnt/file" && [[ $(cat "$T/mnt/file") == "$1" ]]
}
for i in {1..8}; do
    t_here "mount $i works" mounts_and_writes "$i"
    t_here "mount $i ends" mount_end "$T/mnt"
done
touch "$T/enough"
status=0
wait "$replacing" || status=$?
is "$status" 0 "the files were replaced meanwhile"
t "the files were replaced at least four times" test "$(wc -l <"$T/replaced")" -ge 8

cp "$tls_dir/server.key" "$tls_dir/client.key"
touch -d '1 hour ago' "$tls_dir/client.key" "$tls_dir/client.pem"
volfile_id=${volume_id[v]} volfile_bare v "$(volume_specs v)" >"$T/mixed.vol"
t "a pair that does not match for good is named" fails_with "client.key is not the key of the certificate" \
    timeout 60 "$KILN_MOUNT" -f "$T/mixed.vol" -l "$T/log/mixed.log" "${words[@]}" "$T/mnt"
t_here "kilnd ends" volume_stop v
