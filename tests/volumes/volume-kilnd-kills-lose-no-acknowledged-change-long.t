#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kilnd is killed repeatedly (KILN_ROUNDS, 100) while clients write to three volumes, options are set, and bricks of
# one volume are replaced, added as a third replica and removed again. The volumes return, every file whose fsync was
# answered has its contents, on every copy after a heal, and every acknowledged option is set.
# Covers: volumes/state-dir.c, volumes/volumes.c, volumes/volumes-bricks.c

. "$(dirname "$0")/../lib/kiln.sh"

rounds=${KILN_ROUNDS:-100}
mkdir -p "$T/b"
writers=()

# MNT LOG: writes files until $T/stop exists, and a line in LOG for each flushed file
write_files() {
    python3 -c '
import os, sys, time
folder, log, stop = sys.argv[1], open(sys.argv[2], "w", buffering=1), sys.argv[3]
n = 0
while not os.path.exists(stop):
    n += 1
    try:
        fd = os.open("%s/%d" % (folder, n), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            os.write(fd, b"text %d\n" % n * 100)
            os.fsync(fd)
        finally:
            os.close(fd)
        log.write("%d\n" % n)
    except OSError:
        time.sleep(0.05)' "$1" "$2" "$T/stop" &
    writers+=($!)
}
# Sets options in succession. $T/set has the last acknowledged number, $T/setting the next number.
set_options() {
    local n=1
    while [[ ! -e $T/stop ]]; do
        echo "$n" >"$T/setting"
        if kiln volume set r user.number "$n" >/dev/null 2>&1; then
            echo "$n" >"$T/set"
        fi
        n=$((n + 1))
        sleep 0.05
    done
}
bricks_of() {
    kiln_json info "$1" | grep -oE '"path":"[^"]*"' | cut -d'"' -f4
}
# Writes a line to $T/changes for each acknowledged change. A refused change (kilnd is gone, copies are not equal yet) is repeated
# with another folder, because the next kilnd undoes an unfinished change of a killed kilnd at its start.
change_bricks() {
    local n=100 now=()
    while [[ ! -e $T/stop ]]; do
        n=$((n + 1))
        mapfile -t now < <(bricks_of g 2>/dev/null)
        case ${#now[@]}:$((RANDOM % 3)) in
        2:0) kiln volume add-brick g replica 3 "$T/b/$n" ;;
        2:*) kiln volume replace-brick g "${now[RANDOM % 2]}" "$T/b/$n" commit force ;;
        3:*) kiln volume remove-brick g replica 2 "${now[RANDOM % 3]}" force ;;
        *) false ;;
        esac >"$T/change.out" 2>&1 </dev/null && echo "$n ${#now[@]}" >>"$T/changes"
        kiln volume heal g >/dev/null 2>&1 || true # else the stock daemon may take ten minutes until it looks again
        sleep 0.2
    done
}
nothing_is_pending() {
    kiln volume heal g >/dev/null 2>&1 || true
    [[ $(kiln_json heal g info | grep -o '"count":0' | wc -l) -eq $(bricks_of g | wc -l) ]]
}
grows() {
    [[ $(wc -l <"$1") -gt $2 ]]
}
# LOG DIR...: the number of files of LOG that are not whole in one of the folders
missing() {
    python3 -c '
import os, sys
bad = 0
for n in map(int, open(sys.argv[1])):
    places = [d for d in sys.argv[2:] if os.path.exists("%s/%d" % (d, n))]
    bad += not places or any(open("%s/%d" % (d, n), "rb").read() != b"text %d\n" % n * 100 for d in places)
print(bad)' "$@"
}

front_start
kiln volume create r replica 2 "$T"/b/{1..4}
kiln volume create d "$T"/b/{5,6}
kiln volume create g replica 2 "$T"/b/{7,8}
: >"$T/changes"
for v in r d g; do
    kiln volume start "$v"
    front_mount "$v" "$T/mnt-$v"
    mkdir "$T/mnt-$v/files"
    touch "$T/log-$v"
    write_files "$T/mnt-$v/files" "$T/log-$v"
done
set_options &
writers+=($!)
change_bricks &
writers+=($!)
for ((round = 1; round <= rounds; round++)); do
    written=$(wc -l <"$T/log-r")
    plain=$(wc -l <"$T/log-d")
    changed=$(wc -l <"$T/changes")
    wait_for 240 "files to be written" grows "$T/log-r" "$((written + 5))"
    wait_for 240 "files to be written" grows "$T/log-d" "$((plain + 5))"
    # Every fifth round lets the copies become equal, which the next change of bricks waits for.
    [[ $((round % 5)) -ne 0 ]] || wait_for 240 "a change of bricks" grows "$T/changes" "$changed"
    sleep "0.$((RANDOM % 10))"
    front_kill
    front_start
done
written=$(wc -l <"$T/log-r")
t "files are written after $rounds kills" wait_for 240 "files to be written" grows "$T/log-r" "$written"
touch "$T/stop"
for pid in "${writers[@]}"; do
    wait_for 240 "a writer to end" process_gone "$pid"
done
diag "files flushed: $(wc -l <"$T/log-r"), $(wc -l <"$T/log-d") and $(wc -l <"$T/log-g"), options set: $(cat "$T/set")"
diag "bricks replaced or added: $(grep -c ' 2$' "$T/changes"), taken away: $(grep -c ' 3$' "$T/changes" || true)"
is "$(kiln_json status | grep -o '"online":true' | wc -l)" $((6 + $(bricks_of g | wc -l))) "every brick is served"
is "$(missing "$T/log-r" "$T/mnt-r/files")" 0 "the replicated volume has every flushed file"
is "$(missing "$T/log-d" "$T/mnt-d/files")" 0 "the plain volume has every flushed file"
is "$(missing "$T/log-g" "$T/mnt-g/files")" 0 "the volume with changed bricks has every flushed file"
t "the copies of the volume with changed bricks are healed" wait_for 600 "nothing to be pending" nothing_is_pending
for brick in $(bricks_of g); do
    is "$(missing "$T/log-g" "$brick/files")" 0 "each copy has every flushed file: ${brick#"$T"/}"
done
number=$(kiln_json get r user.number | grep -oE '[0-9]+')
t "the option has the last acknowledged number, or the next" test "$number" -ge "$(cat "$T/set")" -a "$number" -le "$(cat "$T/setting")"
