#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# One peer sends more than its share of requests. The memory that the daemon holds for this peer stays within the
# bounds of rpc/transport/limits.h, requests beyond them are refused or wait, and the other brick of the process
# serves. floods.py lists the floods.
# Covers: rpc/transport/flow.c, rpc/transport/limits.h, xlators/protocol/server/bounds.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"

volume_daemon=both
volume_new v 2x1
volume_start v
set -- ${volume_bricks[v]}
export KILN_TEST_PID=${daemon_pid[both]}
include "every flood stays within its bounds" python3 "$tests_dir/wire/floods.py" 127.0.0.1 "$(cat "$T/both.port")" "$1" "$2"
volume_stop v
