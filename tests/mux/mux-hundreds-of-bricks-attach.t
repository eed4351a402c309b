#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Hundreds of bricks are attached to one kilnd through the channel that glusterd uses. Each accepts logins, has at
# most 4 descriptors and no thread. A brick in the middle is detached and attached again while clients work on its
# neighbours. KILN_BRICKS is the number of bricks; mux-4000-bricks-attach-long.t sets 4,000.
# Covers: bricks/bricks.c, bricks/management.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"
bricks=${KILN_BRICKS:-300}
ulimit -n "$(ulimit -H -n)"
[[ $(ulimit -n) -ge $((4 * bricks + 1000)) ]] || skip_all "a process may have $(ulimit -n) descriptors"

volfile_brick v @BRICK@ 5f0c7a3e-8d11-4f4e-9a57-1c2d3e4f5a6b >"$T/template"
"$KILND" -N -S "$T/socket" -l "$T/log/many.log" -L WARNING --brick-port 0 --port-file "$T/port" --statedump-dir "$T" &
pid=$!
t "kilnd listens" wait_for 120 "a port" test -s "$T/port"
include "bricks come and go" python3 "$tests_dir/mux/many_attach.py" "$T/socket" "$(<"$T/port")" "$pid" "$T/many" "$bricks" "$T/template"
kill -TERM "$pid"
status=0
wait "$pid" || status=$?
is "$status" 0 "SIGTERM ends kilnd with status 0"
t_not "no audit has found a leak" grep -E 'graph-audit|graph-inodes-left' "$T/log/many.log"
