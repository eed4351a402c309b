#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# 8,000 granted and 8,000 waiting locks of one inode: locks and unlocks among them, and calls to another brick of the process, are
# answered in time. (Where each unlock looks at all pairs it takes a second, and the other brick's clients time out.)

. "$(dirname "$0")/../lib/kiln.sh"

export PYTHONDONTWRITEBYTECODE=1
volume_new v 2x1
volume_start v
read -r brick other <<<"${volume_bricks[v]}"
t "nobody waits for long" \
    python3 "$tests_dir/locks/many_locks.py" 127.0.0.1 "$(cat "$T/${brick_daemon[$brick]}.port")" "$brick" "$other"
volume_stop v
