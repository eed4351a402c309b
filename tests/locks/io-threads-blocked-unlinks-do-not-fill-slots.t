#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# An unlink that waits for the locks of another client holds no slot of io-threads. With more such unlinks than slots,
# the brick still answers the holder's unlock and the calls of all other clients.
# Covers: xlators/features/locks/removal.c, xlators/performance/io-threads/io-threads.c

. "$(dirname "$0")/../lib/kiln.sh"

volume_new v 1x1
volume_start v
brick=${volume_bricks[v]}
t "20 waiting removals delay no other call" \
    python3 "$tests_dir/locks/waiting_removals.py" 127.0.0.1 "$(cat "$T/${brick_daemon[$brick]}.port")" "$brick"
volume_stop v
