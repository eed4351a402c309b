#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Every cell of tests/mount/matrix but `corners` on stock bricks: on each layout, Kiln's client beside stock's and the other way round.

exec "$(dirname "$0")/matrix" --tap --brick stock --not corners --files "${KILN_FILES:-1000}"
