#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Several hostile clients send random calls to two bricks. Other clients see no effect, nothing is left behind, and
# nothing outside of the bricks changes.
#
#   hostile-client-random-calls-leave-bricks-intact-long.t [--minutes N] [--seed S] [--processes N] [--only FOPS]
#                                                                          also KILN_FUZZ_MINUTES
#
# The bricks belong to two volumes of one daemon. In both the trash keeps removed files, upcall watches all inodes,
# and the brick asks the name service for the groups of each caller (manage-gids). Volume v has WORM for single files,
# volume w for the whole volume.
#
# Afterwards the daemon's memory pools and descriptors are at their earlier levels (except for remembered inodes),
# every handle of the bricks is right, and the daemon ends with status 0. With --asan or --tsan (tests/run.sh) a
# sanitizer watches. KILN_KEEP=DIR keeps a record of each process's changes of names, which shows by gfid the calls that led to a
# wrong handle.
# Covers: xlators/protocol/server, xlators/storage/posix, rpc/server

. "$(dirname "$0")/../lib/own-root.sh"
. "$tests_dir/wire/attacks.sh"
[[ $BRICKD == kiln ]] || skip_all "stock is known to crash"

arguments=("$@")
[[ $# -gt 0 ]] || arguments=(--minutes "${KILN_FUZZ_MINUTES:-5}")

# The pools with objects in use, without the pools of remembered inodes. (Under ASan the pools are off, and ASan reports leaks at
# the daemon's end.)
pools_in_use() {
    awk -F= '$1 == "pool-name" { name = $2 } $1 == "active-count" && $2 > 0 && name !~ /inode|dentry|-ctx$/ { print name ": " $2 }' \
        "$(dump_take "${daemon_pid[fuzz]}" "$T")"
}

pools_are_back() {
    [[ $(pools_in_use) == "$pools_before" ]]
}

descriptors_are_back() {
    [[ $(proc_fds "${daemon_pid[fuzz]}") -le $descriptors_before ]]
}

# The janitor removes deleted trees together with the handles of their objects.
landfill_is_empty() {
    [[ -z $(find "$T"/[vw]/b0/.glusterfs/landfill -mindepth 1 -print -quit 2>/dev/null) ]]
}

volume_daemon=fuzz
export BRICK_SERVER_OPTIONS=$'manage-gids on\ngid-timeout 1'
for vol in v w; do
    place_tmpfs "$T/$vol/b0" 512m
    mount -o remount,nodev "$T/$vol/b0"
    volume_new $vol 1x1
done
xlator_options=('*-trash.trash=on' '*-upcall.cache-invalidation=on' 'v-worm.worm-file-level=on' 'v-worm.auto-commit-period=1' 'w-worm.worm=on')
volumes_start
brick=${volume_bricks[v]}
other=${volume_bricks[w]}
port=$(cat "$T/fuzz.port")
pools_before=$(pools_in_use)
descriptors_before=$(proc_fds "${daemon_pid[fuzz]}")
include "every call gets its answer" \
    python3 -B "$tests_dir/wire/live_fuzz.py" "$port" "$brick" "$other" --names "$T/log" "${arguments[@]}"
t_here "the number of descriptors is at its earlier level" wait_for 120 "descriptors as before" descriptors_are_back
t_here "the pools are at their earlier level" wait_for 120 "pools as before" pools_are_back
pools_are_back || diag "$(diff <(echo "$pools_before") <(pools_in_use))"
t_here "the landfill is empty" wait_for 120 "an empty landfill" landfill_is_empty
t "a LOOKUP of each name makes the handle right" python3 -B "$tests_dir/wire/live_fuzz.py" "$port" "$brick" "$other" --look
for b in "$brick" "$other"; do
    t "every handle of ${b#"$T"/} is right" brick_handles_hold "$b"
done
