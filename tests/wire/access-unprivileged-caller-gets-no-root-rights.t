#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# An ordinary user's client cannot do what is root's, with or without root-squash: not by ids that are nobody's, not by the pids of
# the volume's own helpers, not by names of xattrs. rights.py says what is tried. Who has the volume's password may.

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "stock lets all of this pass"
export PYTHONDONTWRITEBYTECODE=1
volume_daemon=both
for vol in plain squashed; do
    brick=$T/$vol/b0
    BRICK_SERVER_OPTIONS="auth.login.$brick.allow helper"$'\n'"auth.login.helper.password secret"
    [[ $vol == plain ]] || BRICK_SERVER_OPTIONS+=$'\n'"root-squash on"
    volume_new "$vol" 1x1
    chmod 1777 "$brick"
done
volume_start plain
include "nothing was let pass" python3 "$tests_dir/wire/rights.py" 127.0.0.1 "$(cat "$T/both.port")" \
    "$T/plain/b0" "$T/squashed/b0" helper secret
volume_stop plain
