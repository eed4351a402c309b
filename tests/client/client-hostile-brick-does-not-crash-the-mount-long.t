#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The bricks of a kiln-mount send false replies of every kind and false callbacks. The mount does not crash. When the
# bricks behave again, the mount answers, ends with status 0 and has leaked nothing. With --asan or --tsan
# (tests/run.sh) a sanitizer watches.
#
#   client-hostile-brick-does-not-crash-the-mount-long.t [SECONDS [SEED]]      of each layout; also KILN_FUZZ_MINUTES, of both together
#
# Covers: xlators/protocol/client, rpc/client/rpc-client.c, rpc/xdr/fop-codec.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
[[ $BRICKD == kiln ]] || skip_all "the test is of kiln-mount, not of bricks"

seconds=${1:-$((${KILN_FUZZ_MINUTES:-0} * 30))}
[[ $seconds -gt 0 ]] || seconds=3
seed=${2:-$RANDOM}

volume_specs() {
    local brick
    for brick in ${volume_bricks[$1]}; do
        echo "127.0.0.1:$(cat "$T/$1.proxy"):$brick"
    done
}

proxy_start() {
    local vol=$1 daemon
    daemon=$(volume_daemons "$vol")
    python3 -B "$tests_dir/client/hostile_brick.py" "${daemon_port[$daemon]}" "$T/$vol.proxy" --seed "$seed" >"$T/log/proxy-$vol" &
    proxy=$!
    wait_for 60 "the brick that lies" test -s "$T/$vol.proxy"
}

work() {
    local number pids=() failed=0
    for number in 1 2 3; do
        timeout -k 5 $((seconds + 200)) python3 -B "$tests_dir/client/hostile_work.py" "$1" "$seconds" $((seed + number)) >"$T/log/work-$number" 2>&1 &
        pids+=($!)
    done
    for number in "${pids[@]}"; do
        wait "$number" || failed=1
    done
    cat "$T"/log/work-[123] >&2
    return $failed
}

works() {
    echo text >"$1/file" && [[ $(cat "$1/file") == text ]] && ls -l "$1" >/dev/null
}

# The mount's changes after false replies may be wrong on the bricks, so the script only checks that the bricks answer the mount.
answers() {
    timeout 60 stat -f "$1" >/dev/null
}

for layout in 1x1 2x2; do
    vol=v$layout mnt=$T/mnt$layout
    volume_new "$vol" "$layout"
    volume_start "$vol"
    proxy_start "$vol"
    kill -USR1 "$proxy"
    mount_kiln "$vol" "$mnt" --attribute-timeout=0 --entry-timeout=0 --negative-timeout=0 --xlator-option='*.frame-timeout=5' \
        --xlator-option='*.use-anonymous-inode=yes'
    wait_for 120 "the mount to work" works "$mnt"
    pid=${mount_pid[$mnt]}
    kill -USR2 "$proxy"
    t "$layout: every call gets an answer" work "$mnt"
    kill -USR1 "$proxy"
    t_not "$layout: the mount is alive" process_gone "$pid"
    t_here "$layout: the mount answers after its bricks behave again" wait_for 240 "the mount's bricks" answers "$mnt"
    kill -TERM "$proxy"
    wait "$proxy"
    diag "$(cat "$T/log/proxy-$vol")"
    t_here "$layout: the mount ends with status 0" mount_end "$mnt"
    volume_stop "$vol"
done
