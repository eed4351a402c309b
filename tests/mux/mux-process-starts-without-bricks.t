#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kilnd with a unix socket and without a volfile starts, answers, has no brick to log in to, and ends like any other
# kilnd.
# Covers: glusterfsd/kilnd.c, bricks/management.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"

ask() {
    PYTHONPATH=$tests_dir/wire python3 -c '
import sys, kilnwire
peer = kilnwire.Peer("127.0.0.1", int(sys.argv[1]))
peer.ping()
print(len(peer.dump()) > 0, peer.login("/bricks/b1")[:2])' "$(<"$T/port")"
}

"$KILND" -N -S "$T/socket" -l "$T/log/empty.log" --brick-port 0 --port-file "$T/port" --statedump-dir "$T" &
pid=$!
t "kilnd listens on a TCP port" wait_for 120 "a port" test -s "$T/port"
t "kilnd listens on the socket of the option -S" test -S "$T/socket"
is "$(stat -c %a "$T/socket")" 600 "only root may use the socket"
is "$(ask)" "True (-1, 2)" "kilnd lists its programs, and answers a login with ENOENT"
dump=$(dump_take "$pid" "$T")
is "$(basename "$dump" | cut -d . -f 1)" kilnd "a statedump has the program's name"
kill -TERM "$pid"
status=0
wait "$pid" || status=$?
is "$status" 0 "SIGTERM ends kilnd with status 0"
