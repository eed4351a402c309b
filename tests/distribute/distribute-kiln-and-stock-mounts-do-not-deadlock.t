#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Two mounts of a distributed volume on stock bricks race; one or both of them are kiln-mount. In one pair the first
# mount renames x to y while the second unlinks y; in the other the first makes d/x while the second removes d.
# Neither pair deadlocks. (Two stock mounts deadlock within seconds: a removal waits for the locks of distribute,
# whose holder waits for the removal.) KILN_PAIR_SECONDS and KILN_PAIR_LAYOUT (2x2) make the test longer and larger.
# Covers: xlators/cluster/distribute/rename.c, xlators/cluster/distribute/rmdir.c, xlators/cluster/distribute/names.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

seconds=${KILN_PAIR_SECONDS:-3}
volume_new v "${KILN_PAIR_LAYOUT:-2x1}"
volume_assign v stock
volume_start v
mount_kiln v "$T/kiln1"
mount_kiln v "$T/kiln2"
mount_volume v "$T/stock"

bytes_of() {
    local blocks size
    read -r blocks size < <(stat -f -c '%b %S' "$1") && echo $((blocks * size))
}

has_both_bricks() {
    local bytes
    bytes=$(bytes_of "$1" 2>/dev/null) && [[ $bytes -eq $((2 * $(bytes_of "$T"))) ]]
}

# The stock client crashes in some of these pairs (a segmentation fault in its distribute). The script then mounts the client anew
# and repeats the pair, because a pair with a crash shows nothing about deadlocks.
pair_works() {
    local pair=$1 deaths status
    for deaths in 0 1 2 3 4; do
        status=0
        python3 "$tests_dir/locks/pairs.py" "$pair" "$seconds" "$T/$2/$pair" "$T/$3/$pair" || status=$?
        [[ "$2 $3" == *stock* ]] && process_gone "${mount_pid[$T/stock]}" || return "$status"
        echo "# the stock client died"
        mount_end "$T/stock" && mount_volume v "$T/stock" || return 1
    done
    return 1
}

for mnt in kiln1 kiln2; do
    wait_for 240 "both bricks of $mnt" has_both_bricks "$T/$mnt"
done
for pair in rename mkdir; do
    mkdir "$T/stock/$pair"
    for mounts in "kiln1 kiln2" "kiln1 stock" "stock kiln1"; do
        read -r one two <<<"$mounts"
        t_here "$pair: $one and $two do not deadlock in $seconds seconds" pair_works "$pair" "$one" "$two"
    done
done
for mnt in kiln1 kiln2 stock; do
    t_here "$mnt: the volume is unmounted" mount_end "$T/$mnt"
done
volume_stop v
