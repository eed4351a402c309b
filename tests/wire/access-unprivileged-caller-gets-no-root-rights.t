#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The client of an ordinary user gets no rights of root, with or without root-squash: neither with ids of no
# user, nor with the pids of the volume's helpers, nor with names of xattrs. rights.py lists the attempts. A
# client with the volume's password may.
# Covers: xlators/protocol/server/squash.c, xlators/protocol/server/auth.c, xlators/storage/posix/xattr/xattr-rules.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "stock lets all of this pass"
volume_daemon=both
for vol in plain squashed; do
    brick=$T/$vol/b0
    BRICK_SERVER_OPTIONS="auth.login.$brick.allow helper"$'\n'"auth.login.helper.password secret"
    [[ $vol == plain ]] || BRICK_SERVER_OPTIONS+=$'\n'"root-squash on"
    volume_new "$vol" 1x1
    chmod 1777 "$brick"
done
volume_start plain
include "every attempt is refused" python3 "$tests_dir/wire/rights.py" 127.0.0.1 "$(cat "$T/both.port")" \
    "$T/plain/b0" "$T/squashed/b0" helper secret
volume_stop plain
