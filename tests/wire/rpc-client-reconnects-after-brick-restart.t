#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# rpc/client works with real bricks: brick-client logs in to a stock brick and to kilnd, does one of each common
# operation with kilnd's codec, and reconnects after the brick's process was killed and restarted. brick-client then
# does the same through a stock glusterd, which names the brick's port.
# Covers: rpc/client/brick-peer.c, rpc/client/rpc-client.c, rpc/client/glusterd-calls.c, tests/wire/brick-client.c

. "$(dirname "$0")/../lib/kiln.sh"

client=${KILN_BUILD:-$source_dir/build}/tests/wire/brick-client
[[ -x $client ]] || skip_all "there is no $client: build first"

said() {
    grep -qx "# $1" "$T/log/client-$2.out"
}

said_or_ended() {
    process_gone "$client_pid" || said "$@"
}

# NAME KILL START: kills and starts the brick when the client asks; the client itself has to notice both.
dies_and_returns() {
    local name=$1 status=0
    wait_for 240 "the client to ask for the brick's death" said_or_ended "kill the brick now" "$name"
    process_gone "$client_pid" || $2
    wait_for 240 "the client to ask for the brick's return" said_or_ended "start the brick now" "$name"
    process_gone "$client_pid" || $3
    wait_for 240 "the client to end" process_gone "$client_pid"
    wait "$client_pid" || status=$?
    include "$name: every check has run" cat "$T/log/client-$name.out"
    is "$status" 0 "$name: the client ends with status 0"
}

run_client() {
    local name=$1
    shift
    "$client" "$@" >"$T/log/client-$name.out" 2>"$T/log/client-$name.log" </dev/null &
    client_pid=$!
}

kill_it() { daemon_kill "$daemon"; }
start_it() { daemon_start "$daemon"; }

for kind in stock kiln; do
    volume_new "v-$kind" 1x1
    volume_assign "v-$kind" "$kind"
    volume_start "v-$kind"
    brick=${volume_bricks[v-$kind]}
    daemon=${brick_daemon[$brick]}
    run_client "$kind" 127.0.0.1 "${daemon_port[$daemon]}" "$brick"
    dies_and_returns "$kind" kill_it start_it
    volume_stop "v-$kind"
done

glusterd_start
mkdir -p "$T/g"
t "stock glusterd creates a volume" gluster --mode=script volume create g "$glusterd_host:$T/g/b0" force
t "stock glusterd starts the volume" gluster --mode=script volume start g
kill_brick() { kill -KILL "$(glusterd_brick_pids)"; }
# glusterd that has not noticed the death of the brick forgets the port of the new process when it does.
has_noticed() { gluster volume status g --xml | grep -q '<status>0</status>'; }
start_brick() {
    wait_for 60 "glusterd to notice the death" has_noticed
    gluster --mode=script volume start g force
}
run_client glusterd "$glusterd_host" 24007 "$T/g/b0"
dies_and_returns glusterd kill_brick start_brick
gluster --mode=script volume stop g >/dev/null
