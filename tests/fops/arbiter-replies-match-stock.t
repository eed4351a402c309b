#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The script sends the same calls to an arbiter brick of Kiln and to a stock one and compares the replies byte by
# byte. Calls that touch contents are answered without effect, or refused, as stock does; all other calls work, and
# the files stay empty. arbiter_answers.py lists the deliberate differences.
# Covers: xlators/features/arbiter/arbiter.c

. "$(dirname "$0")/../lib/kiln.sh"

if ! command -v glusterfsd >/dev/null; then
    skip_all "there is no stock glusterfsd to compare with"
fi

BRICK_IS_ARBITER=yes
volume_new k 1x1
volume_new s 1x1
volume_assign s stock
volume_start k
volume_start s

# VOL DAEMON OUT
answers() {
    python3 "$tests_dir/fops/arbiter_answers.py" 127.0.0.1 "${daemon_port[$2]}" "${volume_bricks[$1]}" >"$3.all" && sed -e '/^~/d' "$3.all" >"$3"
}
kiln_daemon=${brick_daemon[${volume_bricks[k]}]}
[[ $BRICKD == stock ]] || daemon_port[$kiln_daemon]=$(cat "$T/$kiln_daemon.port")
t "the brick under test answers" answers k "$kiln_daemon" "$T/of-kiln"
t "the stock brick answers" answers s "${brick_daemon[${volume_bricks[s]}]}" "$T/of-stock"
t "stock has given more than 35 answers" test "$(wc -l <"$T/of-stock")" -gt 35
diag "$(grep '^~' "$T/of-kiln.all")"
t "both bricks give the same answers" diff "$T/of-stock" "$T/of-kiln"
