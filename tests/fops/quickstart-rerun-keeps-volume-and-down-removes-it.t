#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# extras/quickstart.sh starts a volume, keeps it and its files when it runs again, also after kilnd has died, and
# leaves nothing after --down.
# Covers: extras/quickstart.sh

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"
[[ ${KILN_BUILD:-} == "$source_dir/build" ]] || skip_all "it uses the plain build, and this is a test of another"

quickstart() {
    timeout 900 "$source_dir/extras/quickstart.sh" "$@" >"$T/log/quickstart.out" 2>&1 </dev/null
}
t "up" quickstart --bricks "$T/bricks" --mount "$T/vol"
is "$(tail -n 1 "$T/log/quickstart.out")" "mounted at $T/vol" "its last line"
t "the pools' table was printed" grep -q 'hits-hot' "$T/log/quickstart.out"
t "what kiln top saw" grep -q "^ *4 bricks  *cpu" "$T/log/quickstart.out"
t "how to stop, too" grep -q -- '--down' "$T/log/quickstart.out"
is "$(findmnt -n -o FSTYPE "$T/vol")" fuse.glusterfs "it is mounted"
is "$(findmnt -n -o FSTYPE "$T/bricks/brick3")" tmpfs "the bricks are ramdisks"
is "$(pgrep -c -x kilnd)" 1 "one kilnd runs"
echo mine >"$T/vol/mine"
t "up again" quickstart --bricks "$T/bricks" --mount "$T/vol"
is "$(tail -n 1 "$T/log/quickstart.out")" "mounted at $T/vol" "its last line"
is "$(cat "$T/vol/mine")" mine "the files are still there"
is "$(pgrep -c -x kilnd)" 1 "still one kilnd"
kill -KILL "$(pgrep -x kilnd)"
t "up after kilnd was killed" quickstart --bricks "$T/bricks" --mount "$T/vol"
is "$(cat "$T/vol/mine")" mine "the files are still there"
t "down" quickstart --down
is "$(pgrep -x "kilnd|glusterfs" || pgrep -x kiln-mount)" "" "no process is left"
is "$(findmnt -n -o TARGET | grep -cE "$T/(vol|bricks)")" 0 "no mount is left"
t "no file is left" test ! -e /run/kiln-quickstart -a ! -e "$T/bricks"
t "down again" quickstart --down
