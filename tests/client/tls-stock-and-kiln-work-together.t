#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The bricks of a distributed replicated volume and a mount with TLS work together, whichever of them are the stock
# program's. A side that speaks TLS with a side that does not gets an error at once: kiln-mount ends with the reason,
# the stock client answers ENOTCONN.
# Covers: rpc/transport/tls.c, rpc/transport/tls-config.c, xlators/protocol/server/door.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$tests_dir/lib/tls.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
[[ $BRICKD == kiln ]] || skip_all "the script has bricks of both kinds itself"

tls_ca ca
tls_cert server
tls_cert client
mapfile -t server_tls < <(tls_options v-server server)
mapfile -t client_tls < <(tls_options 'v-client-*' client)
mnt=$T/mnt

volume_new v 2x2
daemon() {
    volume_daemons v
}

# Words of the client's command line.
client_words() {
    local option
    [[ $1 == tls ]] || return 0
    for option in "${client_tls[@]}"; do
        printf '%s\n' --xlator-option "$option"
    done
}

mount_as() {
    local kind=$1 words
    mapfile -t words < <(client_words "$2")
    if [[ $kind == stock ]]; then
        mount_volume v "$mnt" plain "${words[@]}"
    else
        mount_kiln v "$mnt" "${words[@]}"
    fi
}

work() {
    dd if=/dev/urandom of="$mnt/big" bs=1M count=8 status=none && cp "$mnt/big" "$T/big" &&
        mkdir "$mnt/dir" && for i in {1..50}; do echo "$i" >"$mnt/dir/$i" || return 1; done &&
        [[ $(ls "$mnt/dir" | wc -l) -eq 50 ]] && cmp "$T/big" "$mnt/big" && rm -r "$mnt/dir" "$mnt/big"
}

# The client of one kind and the brick of another: nothing hangs.
stock_is_refused() {
    local words
    mapfile -t words < <(client_words "$1")
    volume_client_volfile v plain >"$T/refused.vol"
    mount_launch "$mnt" -f "$T/refused.vol" "${words[@]}"
    wait_for 60 "the stock client to be mounted" mount_is_listed_or_ended "$mnt" "${mount_pid[$mnt]}"
    fails_with "not connected" timeout 30 stat "$mnt/x"
}

kiln_is_refused() {
    local words
    mapfile -t words < <(client_words "$1")
    volume_client_volfile v plain >"$T/refused.vol"
    mkdir -p "$mnt"
    fails_with "$2" timeout 20 "$KILN_MOUNT" -f "$T/refused.vol" -l "$T/log/refused.log" "${words[@]}" "$mnt"
}

end_refused() {
    [[ -n ${mount_pid[$mnt]:-} ]] || return 0
    mount_kill "$mnt" 2>/dev/null || true
}

for brick in kiln stock; do
    volume_assign v "$brick"
    for side in tls plain; do
        xlator_options=()
        [[ $side == plain ]] || xlator_options=("${server_tls[@]}")
        volume_start v
        for client in kiln stock; do
            t_here "a $client mount of a $brick brick, both $side" mount_as "$client" "$side"
            t "files are written and read: $client mount, $brick brick, both $side" work
            t_here "the $client mount of a $brick brick ends, both $side" mount_end "$mnt"
        done
        if [[ $side == tls ]]; then
            reason="demands TLS"
            [[ $brick == kiln ]] || reason="may demand TLS" # a stock brick only ends the connections
            t "kiln-mount without TLS learns that the $brick brick demands TLS" kiln_is_refused plain "$reason"
            t "the log names the $brick brick's address" grep -qE " 127.0.0.1:[0-9]+.* demands? TLS" "$T/log/refused.log"
            t_here "a stock mount without TLS is not served by a $brick brick with TLS" stock_is_refused plain
        else
            t "kiln-mount with TLS learns that the $brick brick has none" kiln_is_refused tls "without TLS"
            t_here "a stock mount with TLS is not served by a $brick brick without" stock_is_refused tls
        fi
        end_refused
        t_here "the $brick daemon, $side, ends" volume_stop v
    done
done
log=$T/log/v-kiln.log
t "kilnd logs the name of the client's certificate" grep -q 'TLS connection from 127.0.0.1:[0-9]*, CN=client' "$log"
t "kilnd logs who speaks without TLS" grep -qE 'TLS connection from 127.0.0.1:[0-9]+ failed: .*speaks without TLS' "$log"
t "kilnd logs who speaks TLS where there is none" grep -qE 'from 127.0.0.1:[0-9]+ failed: the peer speaks TLS' "$log"
