#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A removal that waits for another client's locks holds no place of io-threads: with more of them waiting than places, the
# holder's unlock and everybody else's calls are answered.

. "$(dirname "$0")/../lib/kiln.sh"

export PYTHONDONTWRITEBYTECODE=1
volume_new v 1x1
volume_start v
brick=${volume_bricks[v]}
t "20 removals wait and nobody else does" \
    python3 "$tests_dir/locks/waiting_removals.py" 127.0.0.1 "$(cat "$T/${brick_daemon[$brick]}.port")" "$brick"
volume_stop v
