#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The script sends the same calls about contents, xattrs, counters and directories to a brick of Kiln and to a stock
# one and compares the replies byte by byte. The replies are equal, except for the deliberate differences that
# answers.py lists.
# Covers: xlators/storage/posix, rpc/xdr/fop-codec.c

. "$(dirname "$0")/../lib/kiln.sh"

if ! command -v glusterfsd >/dev/null; then
    skip_all "there is no stock glusterfsd to compare with"
fi

volume_new k 1x1
volume_assign k kiln
volume_new s 1x1
volume_assign s stock
volume_start k
volume_start s

# VOL PORT OUT
answers() {
    python3 "$tests_dir/fops/answers.py" 127.0.0.1 "$2" "${volume_bricks[$1]}" >"$3.all" && sed -e '/^~/d' "$3.all" >"$3"
}

t "Kiln answers every question" answers k "$(cat "$T/${brick_daemon[${volume_bricks[k]}]}.port")" "$T/kiln"
t "stock answers every question" answers s "${daemon_port[${brick_daemon[${volume_bricks[s]}]}]}" "$T/stock"
t "stock has given more than 250 answers" test "$(wc -l <"$T/stock")" -gt 250
t "both bricks give the same answers" diff "$T/stock" "$T/kiln"
volume_stop k
volume_stop s
