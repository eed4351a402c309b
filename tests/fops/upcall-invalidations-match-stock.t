#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# What the clients of a brick with cache-invalidation on are told of changes that others make, byte by byte on the wire: a
# brick of Kiln sends what a stock one sends. With the option off nobody is told.

. "$(dirname "$0")/../lib/kiln.sh"

if ! command -v glusterfsd >/dev/null; then
    skip_all "there is no stock glusterfsd to compare with"
fi
export PYTHONDONTWRITEBYTECODE=1

for vol in k s; do
    volume_new "$vol" 1x1
    volume_assign "$vol" "$([[ $vol == k ]] && echo kiln || echo stock)"
done
xlator_options=("*-upcall.cache-invalidation=on")
volume_start k
volume_start s

# VOL PORT OUT
answers() {
    python3 "$tests_dir/fops/upcall_answers.py" 127.0.0.1 "$2" "${volume_bricks[$1]}" >"$3"
}

t "Kiln answers every question" answers k "$(cat "$T/${brick_daemon[${volume_bricks[k]}]}.port")" "$T/kiln"
t "stock answers every question" answers s "${daemon_port[${brick_daemon[${volume_bricks[s]}]}]}" "$T/stock"
t "they are many" test "$(grep -c 'flags 0x' "$T/stock")" -gt 50
t "the callbacks are the same" diff "$T/stock" "$T/kiln"
volume_stop k
volume_stop s

xlator_options=()
volume_start k
t "with the option off, too" answers k "$(cat "$T/${brick_daemon[${volume_bricks[k]}]}.port")" "$T/off"
is "$(grep -c 'event 1' "$T/off" || true)" 0 "but nobody is told of anything"
