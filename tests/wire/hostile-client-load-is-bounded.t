#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The requests of one client cost the daemon no more than a bound, and cost the clients of the other bricks little
# time. attack_load.py describes the attacks.
# Covers: xlators/protocol/server/bounds.c, rpc/transport/flow.c, rpc/transport/admit.c

. "$(dirname "$0")/../lib/own-root.sh"
. "$tests_dir/wire/attacks.sh"
[[ $BRICKD == kiln ]] || skip_all "what goes through in stock is known"
# Attacks that wait for a deadline of half a minute, or open thousands of files, are in
# hostile-client-full-size-attacks-fail-long.t.
attacks_run "attack_load" "${KILN_ATTACKS:-outlives|unread_replies|without_end|pieces_of|never_speak|removals|long_queue|patterns|depth|deep|closed_connections|index}"
