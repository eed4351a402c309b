#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# One of three bricks is down. kiln-mount can do the same with the other two bricks as the stock client, and where it
# cannot, it returns the same errno. When the brick is back, the mount repairs its directories, attributes and xattrs,
# and names and bricks are equal to those of the stock client.
# Covers: xlators/cluster/distribute/heal.c, xlators/cluster/distribute/lookup.c, xlators/cluster/distribute/mkdir.c,
# xlators/cluster/distribute/all.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

here=$tests_dir/distribute
no_cache=(--attribute-timeout=0 --entry-timeout=0)
volume_split=brick

bytes_of() {
    local blocks size
    read -r blocks size < <(stat -f -c '%b %S' "$1") && echo $((blocks * size))
}

# MOUNT COUNT: succeeds when COUNT bricks are connected. The size of the mount is the sum of their sizes, and each
# brick has the size of $T.
has_bricks() {
    local bytes
    bytes=$(bytes_of "$1" 2>/dev/null) && [[ $bytes -eq $(($2 * $(bytes_of "$T"))) ]]
}

probe() {
    python3 "$here/distribute_probe.py" "$1" "$2" >"$T/$3.$1"
}

# CLIENT VOLUME
go_through() {
    local client=$1 v=$2 mnt=$T/mnt-$1 holder
    volume_start "$v"
    if [[ $client == kiln ]]; then
        mount_kiln "$v" "$mnt" "${no_cache[@]}"
    else
        mount_volume "$v" "$mnt" plain "${no_cache[@]}" # md-cache would answer for the brick that is away
    fi
    wait_for 240 "all bricks of $mnt" has_bricks "$mnt" 3
    t "$client: directories and files are created" probe make "$mnt" "$client"
    # When the kernel drops its caches (other scripts tell it to), a stock client forgets the layouts of folders, and returns EINVAL,
    # ESTALE or EIO for an operation that needs the missing brick. kiln-mount returns ENOTCONN in either case.
    python3 "$here/distribute_probe.py" hold "$mnt" >"$T/$client.hold" &
    holder=$!
    wait_for 240 "the folders to be held" grep -q held "$T/$client.hold"
    t_here "$client: a brick is stopped" daemon_stop "$v-b1"
    wait_for 240 "$mnt to be without it" has_bricks "$mnt" 2
    t "$client: every operation is tried" probe probe "$mnt" "$client"
    kill "$holder"
    wait "$holder" || true
    daemon_start "$v-b1"
    wait_for 240 "the brick to be back in $mnt" has_bricks "$mnt" 3
    t "$client: the tree is read after the brick returned" probe look "$mnt" "$client"
    t_here "$client: the volume is unmounted" mount_end "$mnt"
    # shellcheck disable=SC2086
    python3 "$here/brick_trees.py" --no-names ${volume_bricks[$v]} >"$T/$client.trees"
    volume_stop "$v"
}

same() {
    diff "$T/stock.$1" "$T/kiln.$1"
}

volume_new as-stock 3x1
volume_assign as-stock stock
go_through stock as-stock
volume_new as-kiln 3x1
volume_assign as-kiln kiln
go_through kiln as-kiln

t "some operations failed with ENOTCONN" grep -q ENOTCONN "$T/kiln.probe"
t "both clients succeed and fail in the same operations" same probe
t "both clients see the same tree afterwards" same look
t "the bricks of both volumes are equal" same trees
