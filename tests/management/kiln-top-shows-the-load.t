#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln top runs under load: once as JSON and as text, and live in terminals of 80 and of 200 columns. It reports a kilnd
# that is not running or goes away.
# Covers: cli/top.c, cli/top-view.c, bricks/top-answer.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"
export KILN_POOLS=on # in a build with ASan they are off if nobody says so, and then have no figures

kiln() {
    "${KILND%/*}/kiln" --socket="$T/http" "$@"
}

kilnd_options=(--management-socket "$T/http")
volume_new v 1x2
volume_start v
mount_volume v "$T/mnt" plain
read -r first second <<<"${volume_bricks[v]}"

(
    while [[ ! -e $T/enough ]]; do
        dd if=/dev/zero of="$T/mnt/file" bs=4096 count=50 conv=notrunc,fsync status=none
    done
) &
load=$!

# A second may pass without a call on a machine that is busy with other things.
sees_load() {
    kiln top --once --json >"$T/top.json" && python3 - "$T/top.json" "$first" "$second" <<'PY'
import json, sys
top = json.load(open(sys.argv[1]))
assert 0 < top["seconds"] < 600 and top["resident_bytes"] > 0 and top["pools"]["bytes"] > 0, top
bricks = {b["brick"]: b for b in top["bricks"]}
assert sorted(bricks) == sorted(sys.argv[2:])
for b in bricks.values():
    fops = {f["fop"]: f for f in b["fops"]}
    assert b["volume"] == "v" and b["up"] and b["clients"] == 1 and len(b["client_list"]) == 1
    assert b["memory"] > 0
    if not (b["written"] > 0 and fops["writev"]["ops"] > 0 and b["client_list"][0]["received"] > 0):
        sys.exit(1)
    assert 0 < fops["writev"]["p50_us"] <= fops["writev"]["p99_us"], fops
PY
}
t "kiln top --once --json sees the writes" wait_for 240 "writes in a second" sees_load
kiln top --once >"$T/top.txt"
t "kiln top as text shows the operations" grep -Eq "^v:b0 +writev +[0-9]" "$T/top.txt"
t "kiln top shows volumes" grep -Eq "^v +2 +[0-9]" "$T/top.txt"
t "kiln top shows the sum of the bricks" grep -Eq "^all 2 bricks +[0-9]" "$T/top.txt"
t "kiln top --once shows at most ten slowest calls" \
    test "$(awk '/^what/ { is_slow = 1; next } /^$/ { is_slow = 0 } is_slow' "$T/top.txt" | wc -l)" -le 10
t "kiln top shows the clients" grep -Eq "v:b0 +\S.* 127\.0\.0\.1:[0-9]+" "$T/top.txt"
is "$(awk 'length($0) > 80 && !/ bricks  cpu/' "$T/top.txt")" "" "kiln top fits into 80 columns"

# live VIEW: types the keys into a terminal, whose output goes to $T/screen.
live() {
    local keys=$1
    mkfifo "$T/keys"
    TERM=xterm script -qfc "stty rows 24 cols 80; $KILN_BIN --socket=$T/http top" "$T/screen" <"$T/keys" >/dev/null &
    local pid=$! key
    exec {fd}>"$T/keys"
    for key in $keys; do
        wait_for 120 "what key $key waits for" grep -aqE "${shown[$key]}" "$T/screen" || return
        printf '%s' "$key" >&"$fd"
    done
    wait_for 120 "top to end" process_gone "$pid" || return
    exec {fd}>&-
    rm "$T/keys"
    wait "$pid"
}
# Only the second brick matches; the key Escape shows all again.
live_filter() {
    mkfifo "$T/keys"
    TERM=xterm script -qfc "stty rows 24 cols 80; $KILN_BIN --socket=$T/http top" "$T/screen" <"$T/keys" >/dev/null &
    local pid=$!
    exec {fd}>"$T/keys"
    wait_for 120 "the screen" grep -aq 'all 2 bricks' "$T/screen" || return
    printf '/b1\r' >&"$fd"
    wait_for 120 "the filtered rows" grep -aq 'bricks: 1 with b1' "$T/screen" || return
    printf 'q' >&"$fd"
    wait_for 120 "top to end" process_gone "$pid" || return
    exec {fd}>&-
    rm "$T/keys"
    wait "$pid"
}
KILN_BIN=${KILND%/*}/kiln
# Ncurses writes only the differences to the last screen, so each view is checked by a text that no earlier view has at
# the same place.
declare -A shown=([f]='OPS/S' [c]='inodel|xattro|writev' [r]='out/s' [v]='out/s' [?]='bricks' [b]='features that volumes ask for' [q]='queue')
t "live kiln top shows bricks, operations, clients, volumes and help, and ends" live "f c r v ? b b q"
t "live kiln top shows only rows with a typed text" live_filter
# The terminal refuses each character outside of its columns.
for columns in 80 200; do
    t "a screen of $columns columns shows VOLUME:BRICK, sums, help and the filter's rows" \
        "$(dirname "$0")/top_screen.py" "$columns" '^v:b0 (.*\n)+v:b1 |^v:b1 (.*\n)+v:b0 ' v '^v +2 +[0-9]' b \
        '^all 2 bricks +[0-9]' '?' \
        '^m .* there$(.*\n)+.*has more\.$' b '^all 2 bricks +[0-9]' $'/b1\r' '1 with b1' q \
        -- "$KILN_BIN" --socket="$T/http" top
done
touch "$T/enough"
wait "$load" || true

status=0
kiln top --once --socket=/none >/dev/null 2>"$T/said" || status=$?
is "$status" 2 "an unknown argument is refused"
status=0
kiln top </dev/null >"$T/out" 2>"$T/said" || status=$?
is "$status" 2 "live kiln top without a terminal is refused"
t "the message names the option that works" grep -q -- "--once" "$T/said"
mount_end "$T/mnt"
volume_stop v
status=0
kiln top --once >/dev/null 2>"$T/said" || status=$?
is "$status" 3 "kiln top without a kilnd has exit status 3"
t "the message says that kilnd does not answer" grep -q "does not answer" "$T/said"
