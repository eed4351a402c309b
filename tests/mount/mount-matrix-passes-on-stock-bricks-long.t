#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Every cell of tests/mount/matrix except `corners` passes on stock bricks: on each layout, with Kiln's client and a
# stock client on the same volume, each in either role.
# Covers: mount, xlators/mount/fuse, xlators/cluster, xlators/protocol/client

exec "$(dirname "$0")/matrix" --tap --brick stock --not corners --files "${KILN_FILES:-1000}"
