#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A process with fifty open volumes has no threads for each, uses two of them from four threads, with files that are
# closed in callbacks, and has no descriptor left when all are closed. A volume takes at most 50 kB, so 600 take 30 MB. Files can be closed
# after the volume, which waits for callbacks.
# Covers: api/engine.c, api/volume.c, api/request.c, api/io.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/gfapi.sh"

mkdir -p "$T/b"
front_start
for v in v w; do
    kiln volume create $v replica 2 "$T/b/$v"{1,2}
    kiln volume start $v
done

with_kiln timeout 280 python3 "$(dirname "$0")/volumes_work.py" many "$T/log/many.log" >"$T/many" 2>&1 || cat "$T/many"
read -r one fifty < <(sed -n 's/^threads.*: //p' "$T/many")
t "fifty volumes take no threads of their own" test "${fifty:-99}" -lt $((${one:-99} + 30))
is "$(grep descriptors "$T/many")" "descriptors left: 0" "closed volumes leave no descriptor"

with_kiln timeout 280 python3 "$(dirname "$0")/volumes_work.py" memory "$T/log/memory.log" 200 >"$T/memory" 2>&1 || cat "$T/memory"
read -r before after < <(sed -n 's/^kB with.*: //p' "$T/memory")
t "200 volumes take $((${after:-99999} - ${before:-0})) kB, at most 10000" test $((${after:-99999} - ${before:-0})) -le 10000
is "$(with_kiln timeout 280 python3 "$(dirname "$0")/volumes_work.py" left "$T/log/left.log" 2>&1)" \
    "closed: 0 0, then: EBADF" "files can be closed after the volume"
is "$(grep -c gfapi-files-left "$T/log/left.log") $(grep -c ' E \[' "$T/log/left.log")" "1 0" "the log mentions the file that was closed after the volume, and no error"
is "$(with_kiln timeout 280 python3 "$(dirname "$0")/volumes_work.py" pending "$T/log/pending.log" 2>&1)" \
    "the callback had ended: True" "closing a volume waits for a callback that runs"
