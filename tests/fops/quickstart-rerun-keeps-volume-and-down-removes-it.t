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
t "quickstart.sh succeeds" quickstart --bricks "$T/bricks" --mount "$T/vol"
is "$(tail -n 1 "$T/log/quickstart.out")" "mounted at $T/vol" "the last line names the mount point"
t "the output has the table of pools" grep -q 'hits-hot' "$T/log/quickstart.out"
t "the output has the table of kiln top" grep -q "^ *4 bricks  *cpu" "$T/log/quickstart.out"
t "the output names the command that stops the volume" grep -q -- '--down' "$T/log/quickstart.out"
is "$(findmnt -n -o FSTYPE "$T/vol")" fuse.glusterfs "the volume is mounted"
is "$(findmnt -n -o FSTYPE "$T/bricks/brick3")" tmpfs "the bricks are ramdisks"
is "$(pgrep -c -x kilnd)" 1 "one kilnd runs"
echo mine >"$T/vol/mine"
t "a second run succeeds" quickstart --bricks "$T/bricks" --mount "$T/vol"
is "$(tail -n 1 "$T/log/quickstart.out")" "mounted at $T/vol" "the last line of the second run names the mount point"
is "$(cat "$T/vol/mine")" mine "the files are present after the second run"
is "$(pgrep -c -x kilnd)" 1 "one kilnd runs after the second run"
kill -KILL "$(pgrep -x kilnd)"
t "a run after the death of kilnd succeeds" quickstart --bricks "$T/bricks" --mount "$T/vol"
is "$(cat "$T/vol/mine")" mine "the files are present after the death of kilnd"
t "quickstart.sh --down succeeds" quickstart --down
is "$(pgrep -x "kilnd|glusterfs" || pgrep -x kiln-mount)" "" "no process is left after --down"
is "$(findmnt -n -o TARGET | grep -cE "$T/(vol|bricks)")" 0 "no mount is left after --down"
t "no file is left after --down" test ! -e /run/kiln-quickstart -a ! -e "$T/bricks"
t "a second --down succeeds" quickstart --down
