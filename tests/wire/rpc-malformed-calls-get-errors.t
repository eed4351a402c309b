#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# For every malformed call a peer gets an error in the full layout of that fop or a closed connection, and the brick
# serves all other clients. hostile.py lists the calls. The script does not send stock any call that is known to
# crash stock.
# Covers: rpc/server/rpc-server.c, rpc/xdr/fop-codec.c, xlators/protocol/server/fops.c

. "$(dirname "$0")/../lib/kiln.sh"

volume_new v 1x1
volume_start v
brick=${volume_bricks[v]}
daemon=${brick_daemon[$brick]}
port=${daemon_port[$daemon]}
[[ $BRICKD == stock ]] || port=$(cat "$T/$daemon.port")
options=()
[[ $BRICKD == kiln ]] || options+=(--spare-stock)
export KILN_TEST_PID=${daemon_pid[$daemon]}
include "every check of malformed calls succeeds" python3 "$tests_dir/wire/hostile.py" 127.0.0.1 "$port" "$brick" "${options[@]}"
volume_stop v
