#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A brick keeps the index of a directory's pending entries as long as stock keeps it: the same XATTROPs to a brick of
# Kiln and to a stock one leave the same index entries. When a self-heal daemon subtracts the healed counts, marks
# that arrived meanwhile must stay. Otherwise the changes behind these marks would never be healed.
# Covers: xlators/features/index/index-xattrop.c, xlators/features/index/index-entry.c

. "$(dirname "$0")/../lib/kiln.sh"

volume_new k 1x1
volume_new s 1x1
volume_assign s stock
volume_start k
volume_start s

# VOL DAEMON OUT
answers() {
    python3 "$tests_dir/fops/index_answers.py" 127.0.0.1 "${daemon_port[$2]}" "${volume_bricks[$1]}" "$1" >"$3"
}
kiln_daemon=${brick_daemon[${volume_bricks[k]}]}
[[ $BRICKD == stock ]] || daemon_port[$kiln_daemon]=$(cat "$T/$kiln_daemon.port")
t "the brick under test answers" answers k "$kiln_daemon" "$T/of-kiln"
t "the stock brick answers" answers s "${brick_daemon[${volume_bricks[s]}]}" "$T/of-stock"
t "stock answers every question" test "$(wc -l <"$T/of-stock")" -eq "$(grep -c '^count(' "$tests_dir/fops/index_answers.py")"
diag "$(cat "$T/of-stock")"
t "both bricks give the same answers" diff "$T/of-stock" "$T/of-kiln"
