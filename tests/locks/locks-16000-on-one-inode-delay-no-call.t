#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# One inode has 8,000 granted and 8,000 waiting locks. Locks and unlocks among them, and calls to another brick of the
# process, are answered in time. (If each unlock looked at all pairs it would take a second, and the clients of the
# other brick would time out.)
# Covers: xlators/features/locks/lock-tree.c, xlators/features/locks/lock-queue.c

. "$(dirname "$0")/../lib/kiln.sh"

volume_new v 2x1
volume_start v
read -r brick other <<<"${volume_bricks[v]}"
t "every call is answered in time" \
    python3 "$tests_dir/locks/many_locks.py" 127.0.0.1 "$(cat "$T/${brick_daemon[$brick]}.port")" "$brick" "$other"
volume_stop v
