#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A brick sends replies that are garbage, too short, too long or of another operation; it sends replies never, twice
# or late, or in a record of 2 GiB; it finds names that do not exist, fails with numbers that are no errno and lists
# names that no directory has. Six threads issue all kinds of calls through kiln-mount, with names of up to 1,025
# bytes, on that brick alone and on volumes that contain it. Every call ends, with or without an error. Data returned
# without an error is right unless the brick changed it. kiln-mount does not crash, serves as before when the brick
# behaves again, and ends without a leak.
#
#   KILN_MANGLE_SECONDS (8)                     for each kind of reply and layout
#   KILN_MANGLE_MINUTES                         for all of them together
#   KILN_MANGLE_KINDS, KILN_MANGLE_LAYOUTS      only these kinds and layouts
#
# Covers: xlators/protocol/client, rpc/client/rpc-client.c, rpc/client/rpc-fop.c, rpc/xdr/fop-codec.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

here=$(dirname "$0")
seconds=${KILN_MANGLE_SECONDS:-8}
kinds="twice late never short half garbage noise flip extreme long other huge fault errno found names"

# The first brick is reached by way of the proxy.
volume_specs() {
    local brick at
    for brick in ${volume_bricks[$1]}; do
        at=${daemon_port[${brick_daemon[$brick]}]}
        [[ $brick != */b0 ]] || at=$(cat "$T/$1.proxy")
        echo "127.0.0.1:$at:$brick"
    done
}

is_back() {
    local text
    text=$(cat "$1/back" 2>&1)
    [[ $text == back ]] && return
    diag "instead of back: $text"
    return 1
}

can_be_written() {
    rm -f "$1/back" && echo back >"$1/back"
}

behaves() {
    wait_for 240 "the brick to be of use" can_be_written "$1"
    is_back "$1"
}

layouts=${KILN_MANGLE_LAYOUTS:-1x1 1x2 2x1 2x2 arbiter 1x2+1 1x4+2}
if [[ -n ${KILN_MANGLE_MINUTES:-} ]]; then
    seconds=$((KILN_MANGLE_MINUTES * 60 / $(wc -w <<<"$layouts") / $(wc -w <<<"${KILN_MANGLE_KINDS:-$kinds}")))
fi

volume_split=brick
for layout in $layouts; do
    shape=$layout volfile_arbiter=
    [[ $layout != arbiter ]] || { shape=1x3 volfile_arbiter=yes; }
    vol=v$layout
    mnt=$T/mnt-$layout
    dir=$T/proxy-$layout
    mkdir "$dir"
    volume_new "$vol" "$shape"
    volume_start "$vol"
    first=${volume_bricks[$vol]%% *}
    python3 -B "$here/hostile_brick.py" "${daemon_port[${brick_daemon[$first]}]}" "$T/$vol.proxy" --by "$dir" >"$T/log/proxy-$layout.log" 2>&1 &
    proxy_pid=$!
    wait_for 240 "the proxy" test -s "$T/$vol.proxy"
    mount_kiln "$vol" "$mnt" --attribute-timeout=0 --entry-timeout=0 "--xlator-option=$vol-client-*.ping-timeout=5" \
        "--xlator-option=$vol-client-*.frame-timeout=5"
    wait_for 240 "the mount" can_be_written "$mnt"
    python3 -c 'import sys
open(sys.argv[1], "wb").write(b"".join((b"%015d\n" % n) * 256 for n in range(256)))' "$mnt/probe"
    for how in ${KILN_MANGLE_KINDS:-$kinds}; do
        probe=-
        [[ $how != @(twice|late|never|short|half|noise|huge|fault) ]] || probe=$mnt/probe
        echo "$how 20" >"$dir/mode"
        include "$layout: $how: the work ends without an error" python3 "$here/mangling_work.py" "$mnt" "$probe" "$seconds" 240
        t_not "$layout: $how: kiln-mount is alive" process_gone "${mount_pid[$mnt]}"
        t "$layout: $how: replies were mangled: $(cat "$dir/did")" grep -q "$how=" "$dir/did"
        rm "$dir/mode"
        t_here "$layout: $how: the mount serves as before when the brick behaves again" behaves "$mnt"
    done
    t_here "$layout: the volume is unmounted" mount_end "$mnt"
    kill "$proxy_pid"
    wait "$proxy_pid" 2>/dev/null || true
    volume_stop "$vol"
done
