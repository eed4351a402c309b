#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# tests/harness/run, large: 20 volumes of 2x2 under the seed workload; volumes that are created and deleted next to
# busy ones; brick processes that are killed under load; one host of three that loses its network under load. The
# harness checks each run: files are right on every replica, healed, and nothing is left behind. With --stock the same
# runs on stock bricks, as the oracle, with two exceptions: stock cannot serve 80 bricks with fewer than 20,000
# descriptors, and leftovers of stock volumes are not checked.
# Covers: tests/harness, bricks/bricks.c

. "$(dirname "$0")/../lib/tap.sh"
[[ $EUID -eq 0 ]] || skip_all "needs root"
harness=$(dirname "$(readlink -f "$0")")
dir=$(mktemp -d)
trap 'rm -rf "$dir"; tap_finish || exit 1' EXIT
: "${BRICKD:=kiln}"

run() {
    "$harness/run" --brick "$BRICKD" --json "$dir/run.json" "$@"
}

figure() {
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["rows"][0].get(sys.argv[2]))' "$dir/run.json" "$1"
}

if [[ $BRICKD == kiln ]]; then
    t "20 multiplexed volumes of 2x2 survive the seed workload" run --volumes 20 --layout 2x2 --workload seed --mux on
    is "$(figure online) $(figure processes)" "80 1" "80 bricks are online in one process"
    is "$(figure checked) $(figure wrong) $(figure audit)" "2000 0 0" "2000 files are right on every replica, and no brick leaves anything behind"
    if [[ -r /sys/class/zram-control/hot_add ]]; then
        devices=$(ls /sys/block)
        t "20 volumes of 2x2, each on a separate zram device, survive the seed workload" run --volumes 20 --layout 2x2 --workload seed --mux on --ramdisk zram:20
        is "$(figure online) $(figure checked) $(figure wrong)" "80 2000 0" "80 bricks are online, and 2000 files are right"
        is "$(ls /sys/block)" "$devices" "no zram device is left"
    else
        t_not "without zram in the kernel 20 zram devices are refused" run --volumes 20 --ramdisk zram:20
    fi
    t "40 volumes are created and deleted beside two busy volumes" run --volumes 2 --layout 2 --churn 20 --mux on
fi
t "acknowledged changes survive the death of a process with all bricks under load" run --volumes 2 --layout 2x2 --kill --mux on
t "no load meets an error when single bricks are killed" run --volumes 1 --layout 3 --kill --mux off
t "no load meets an error when a host of three is cut off" run --hosts 3 --volumes 2 --layout 3 --cut 2 15 --mux on
t "no load meets an error when a host of a distributed volume is cut off" run --hosts 3 --volumes 1 --layout 2x3 --cut 3 20 --mux on
