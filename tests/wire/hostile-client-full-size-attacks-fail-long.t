#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# All attacks at full size: a million rounds of each race (or five minutes), tens of connections, hundreds of
# thousands of calls. Also for --asan and --tsan.
# Covers: xlators/protocol/server, xlators/storage/posix, rpc

export KILN_ATTACK_SIZE=full
. "$(dirname "$0")/../lib/own-root.sh"
. "$tests_dir/wire/attacks.sh"
[[ $BRICKD == kiln ]] || skip_all "what goes through in stock is known"
attack_seconds=900
attacks_run . "${KILN_ATTACKS:-.}"
