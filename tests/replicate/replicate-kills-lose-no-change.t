#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Four rounds of tests/replicate/torture: a brick or the mount is killed while writers work. Left out, because they do not hold yet: kills of
# both at once (changes of names come back), and hard links (names that were removed while a brick was away stay there).

exec "$(dirname "$0")/torture" --tap --seed "${KILN_SEED:-7}" --rounds "${KILN_TORTURE_ROUNDS:-1}" --not link \
    --cell 2x2:brick:daemon --cell 1x3:mount:mount --cell arbiter:brick:daemon --cell 2x2:mount:daemon
