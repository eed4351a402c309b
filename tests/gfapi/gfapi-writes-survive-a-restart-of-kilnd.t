#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A program writes and syncs through libgfapi while kilnd is killed and started again. The calls wait: none fails, and each acknowledged
# write is there.
# Covers: api/volume.c, api/request.c, api/io.c, xlators/features/hard

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/gfapi.sh"

mkdir -p "$T/b"
front_start
kiln volume create v replica 2 "$T/b/"{1,2}
kiln volume start v

count() {
    cat "$T/count" 2>/dev/null || echo 0
}
is_at_or_ended() {
    [[ $(count) -ge $1 ]] || process_gone "$writer"
}
with_kiln timeout 280 python3 "$(dirname "$0")/volumes_work.py" write "$T/log/write.log" "$T" >"$T/write" 2>&1 &
writer=$!
wait_for 240 "the first writes" is_at_or_ended 50
front_kill
at=$(count)
front_start
wait_for 240 "writes after the restart" is_at_or_ended $((at + 50))
touch "$T/stop"
wait "$writer" || true
is "$(cat "$T/write")" "all writes are there" "no write fails or is lost while kilnd is killed and started again"
