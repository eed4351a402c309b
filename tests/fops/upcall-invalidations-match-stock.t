#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Clients of a brick with cache-invalidation on get callbacks about the changes of other clients. A brick of Kiln
# sends the same callbacks as a stock one, byte by byte. With the option off the brick sends none.
# Covers: xlators/features/upcall, xlators/protocol/server/callback.c

. "$(dirname "$0")/../lib/kiln.sh"

if ! command -v glusterfsd >/dev/null; then
    skip_all "there is no stock glusterfsd to compare with"
fi

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
t "stock has sent more than 50 callbacks" test "$(grep -c 'flags 0x' "$T/stock")" -gt 50
t "both bricks send the same callbacks" diff "$T/stock" "$T/kiln"
volume_stop k
volume_stop s

xlator_options=()
volume_start k
t "Kiln answers every question with the option off" answers k "$(cat "$T/${brick_daemon[${volume_bricks[k]}]}.port")" "$T/off"
is "$(grep -c 'event 1' "$T/off" || true)" 0 "the brick sends no callback with the option off"
