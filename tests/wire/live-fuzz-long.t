#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Random calls of several hostile clients at two bricks: nobody else notices, nothing is left behind, nothing outside of the bricks is
# touched.
#
#   live-fuzz-long.t [--minutes N] [--seed S] [--processes N]      also KILN_FUZZ_MINUTES
#
# Afterwards: the daemon's memory pools and descriptors are where they were (but for what it remembers of inodes), every handle of the
# bricks is the right one, and the daemon ends well. With --asan or --tsan (tests/run.sh) a sanitizer watches. KILN_KEEP=DIR keeps what
# each process did to names: what led to a handle that is wrong is found there by its gfid.

. "$(dirname "$0")/../lib/own-root.sh"
. "$tests_dir/wire/attacks.sh"
[[ $BRICKD == kiln ]] || skip_all "stock is known to crash"

arguments=("$@")
[[ $# -gt 0 ]] || arguments=(--minutes "${KILN_FUZZ_MINUTES:-5}")

# The pools that hold objects, but for what is remembered of inodes. (ASan's pools are off: it counts at the daemon's end itself.)
pools_in_use() {
    awk -F= '$1 == "pool-name" { name = $2 } $1 == "active-count" && $2 > 0 && name !~ /inode|dentry|-ctx$/ { print name ": " $2 }' \
        "$(dump_take "${daemon_pid[v-$BRICKD]}" "$T")"
}

pools_are_back() {
    [[ $(pools_in_use) == "$pools_before" ]]
}

descriptors_are_back() {
    [[ $(proc_fds "${daemon_pid[v-$BRICKD]}") -le $descriptors_before ]]
}

# Removed trees are taken away by the janitor, and with them the handles of what is in them.
landfill_is_empty() {
    [[ -z $(find "$T"/v/b*/.glusterfs/landfill -mindepth 1 -print -quit 2>/dev/null) ]]
}

for b in b0 b1; do
    place_tmpfs "$T/v/$b" 512m
    mount -o remount,nodev "$T/v/$b"
done
volume_new v 2x1
volume_start v
read -r brick other <<<"${volume_bricks[v]}"
port=$(cat "$T/v-$BRICKD.port")
pools_before=$(pools_in_use)
descriptors_before=$(proc_fds "${daemon_pid[v-$BRICKD]}")
include "what is sent gets its answer" \
    python3 -B "$tests_dir/wire/live_fuzz.py" "$port" "$brick" "$other" --names "$T/log" "${arguments[@]}"
t_here "descriptors are as before" wait_for 120 "descriptors as before" descriptors_are_back
t_here "pools are as before" wait_for 120 "pools as before" pools_are_back
pools_are_back || diag "$(diff <(echo "$pools_before") <(pools_in_use))"
t_here "the landfill is empty" wait_for 120 "an empty landfill" landfill_is_empty
t "whoever looks a name up makes its handle right" python3 -B "$tests_dir/wire/live_fuzz.py" "$port" "$brick" "$other" --look
for b in "$brick" "$other"; do
    t "every handle of ${b##*/} is the right one" brick_handles_hold "$b"
done
