#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kilnd is killed again and again (KILN_ROUNDS, 100) while two volumes are written to and options are set: the volumes come back,
# every file whose fsync was answered is there with what was written, and every option that was answered is set.
. "$(dirname "$0")/../lib/kiln.sh"

rounds=${KILN_ROUNDS:-100}
mkdir -p "$T/b"
writers=()

# MNT LOG: writes files until $T/stop is there; a line in LOG for each one that was flushed
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
# One after the other; $T/set has the last one that was answered, $T/setting the one after it.
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
grows() {
    [[ $(wc -l <"$1") -gt $2 ]]
}
# LOG DIR...: how many of the files of LOG are not whole in one of the folders
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
for v in r d; do
    kiln volume start "$v"
    front_mount "$v" "$T/mnt-$v"
    mkdir "$T/mnt-$v/files"
    touch "$T/log-$v"
    write_files "$T/mnt-$v/files" "$T/log-$v"
done
set_options &
writers+=($!)
for ((round = 1; round <= rounds; round++)); do
    written=$(wc -l <"$T/log-r")
    plain=$(wc -l <"$T/log-d")
    wait_for 240 "files to be written" grows "$T/log-r" "$((written + 5))"
    wait_for 240 "files to be written" grows "$T/log-d" "$((plain + 5))"
    sleep "0.$((RANDOM % 10))"
    front_kill
    front_start
done
written=$(wc -l <"$T/log-r")
t "after $rounds kills files are written" wait_for 240 "files to be written" grows "$T/log-r" "$written"
touch "$T/stop"
for pid in "${writers[@]}"; do
    wait_for 240 "a writer to end" process_gone "$pid"
done
diag "files flushed: $(wc -l <"$T/log-r") and $(wc -l <"$T/log-d"), options set: $(cat "$T/set")"
is "$(kiln_json status | grep -o '"online":true' | wc -l)" 6 "every brick is served"
is "$(missing "$T/log-r" "$T/mnt-r/files")" 0 "every file that was flushed is there, of the replicated volume"
is "$(missing "$T/log-d" "$T/mnt-d/files")" 0 "and of the plain one"
number=$(kiln_json get r user.number | grep -oE '[0-9]+')
t "the option is the last one that was answered, or the next" test "$number" -ge "$(cat "$T/set")" -a "$number" -le "$(cat "$T/setting")"
