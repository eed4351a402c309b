#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# No client can reach a file outside of its brick, open a device or a FIFO, or pass as another client. attack_paths.py
# and attack_trust.py describe the attacks.
# Covers: xlators/storage/posix/object/reach.c, xlators/protocol/server/resolve.c, xlators/protocol/server/handshake.c

. "$(dirname "$0")/../lib/own-root.sh"
. "$tests_dir/wire/attacks.sh"

# The comparison of the root detects each kind of change.
mkdir /root/x
t_not "the comparison detects a new folder outside of the brick" diff "$T/root-before" <(own_root_listing)
rmdir /root/x
cat /victim/file >/dev/null
t_not "the comparison detects that a file outside of the brick was read" test "$(own_root_times)" == "$own_root_known_times"
own_root_note

[[ $BRICKD == kiln ]] || skip_all "what goes through in stock is known"
attacks_run "attack_paths|attack_trust" "${KILN_ATTACKS:-.}"
