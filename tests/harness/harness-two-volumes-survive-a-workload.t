#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# tests/harness/run, small: two volumes of 2x2 on multiplexed bricks under stock glusterd run the seed workload, and
# every file is read back on every replica. The script also proves that the harness detects errors: its check finds
# each kind of damage, and an interrupted run leaves nothing behind. With --stock the same runs on stock bricks, as
# the oracle.
# Covers: tests/harness, bricks/bricks.c

. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/wait.sh"
[[ $EUID -eq 0 ]] || skip_all "needs root"
harness=$(dirname "$(readlink -f "$0")")
dir=$(mktemp -d)
trap 'rm -rf "$dir"; tap_finish || exit 1' EXIT
: "${BRICKD:=kiln}"

figure() {
    python3 -c 'import json, sys; print(eval("row[%r]" % sys.argv[2], {"row": json.load(open(sys.argv[1]))["rows"][0]}))' \
        "$dir/run.json" "$1" 2>/dev/null || echo none
}

t "two volumes of 2x2 survive the seed workload" "$harness/run" --volumes 2 --layout 2x2 --workload seed --files 20 --brick "$BRICKD" \
    --mux on --json "$dir/run.json"
is "$(figure online) of $(figure bricks)" "8 of 8" "all bricks are online"
is "$(figure processes)" 1 "one process serves all bricks"
is "$(figure checked) $(figure wrong) $(figure errors)" "40 0 0" "40 files are right on every replica, without errors"
[[ $BRICKD == stock ]] || is "$(figure audit)" 0 "nothing was left of the bricks"

# Four folders with the contents of a 2x2 volume's bricks, made by hand.
bricks=("$dir"/b{0..3})
whole() {
    rm -rf "${bricks[@]}"
    mkdir "${bricks[@]}"
    mkdir "${bricks[@]/%//d}"
    echo one | tee "$dir/b0/one" >"$dir/b1/one"
    echo two | tee "$dir/b2/d/two" >"$dir/b3/d/two"
    : | tee "$dir/b0/d/two" >"$dir/b1/d/two"
    chmod 1000 "$dir"/b[01]/d/two
    setfattr -n trusted.glusterfs.dht.linkto -v v-replicate-1 "$dir/b0/d/two" "$dir/b1/d/two"
}
check() {
    python3 "$harness/work.py" check 2x2 "$dir/manifest" "${bricks[@]}"
}
whole
mkdir -p "$dir/mount/d"
echo one >"$dir/mount/one"
echo two >"$dir/mount/d/two"
python3 "$harness/work.py" list "$dir/mount" "$dir/manifest"
t "bricks with the expected contents pass the check" check
damage() {
    whole
    eval "$2"
    t_not "the check finds $1" check
}
damage "a file that differs on one replica" 'echo 2wo >"$dir/b3/d/two"'
damage "a file that is missing on one replica" 'rm "$dir/b1/one"'
damage "a file that is missing on all" 'rm "$dir"/b[01]/one'
damage "a file too many" 'touch "$dir/b2/more"'
damage "a folder that is missing" 'rmdir "$dir"/b0/d 2>/dev/null || rm -r "$dir"/b0/d'
damage "a file on two subvolumes" 'cp "$dir/b0/one" "$dir/b2/one"; cp "$dir/b0/one" "$dir/b3/one"'

# Three folders with the contents of a dispersed volume's bricks: each piece of a file has different contents.
check() {
    python3 "$harness/work.py" check pieces "$dir/manifest" "$dir"/b{0..2}
}
whole() {
    rm -rf "${bricks[@]}"
    mkdir -p "$dir"/b{0..2}/d
    for i in 0 1 2; do echo "piece $i" | tee "$dir/b$i/one" >"$dir/b$i/d/two"; done
}
whole
t "pieces of each file on each brick pass the check" check
damage "a piece that is missing" 'rm "$dir/b1/d/two"'
damage "a piece too many" 'touch "$dir/b2/more"'

t_not "a wrong command line is refused" "$harness/run" --volumes none
t_not "a cut without hosts is refused" "$harness/run" --cut 1 5

# The job has a separate process group, as at a terminal.
set -m
TMPDIR=$dir "$harness/run" --volumes 1 --layout 2 --brick "$BRICKD" --files 100000 --json "$dir/cut.json" >"$dir/cut.out" 2>&1 &
run_pid=$!
set +m
t "a long run is under way" wait_for 120 "bricks" grep -q "bricks online" "$dir/cut.out"
pids=$(pgrep -P "$run_pid")
place=$(cat "$dir"/kiln-harness.*/*/place)
kill -INT "$run_pid"
status=0
wait "$run_pid" 2>/dev/null || status=$?
is "$status" 130 "the run ends with SIGINT"
gone() { local pid; for pid in $pids; do process_gone "$pid" || return 1; done; }
t "all processes of the run end" wait_for 60 "its processes to end" gone
is "$(ls -d "$place" "$dir"/kiln-harness.* 2>/dev/null)" "" "no folder of the run is left"
