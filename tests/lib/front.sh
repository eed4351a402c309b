# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# front: a kilnd that keeps its own volumes, and the command kiln.
#
#   front_start [ARG...]     starts kilnd with the state folder $T/state and waits for its first answer; ARG for
#                            kilnd(8)
#   front_stop               SIGTERM; kilnd has to end with status 0
#   front_kill               SIGKILL
#   kiln ARG...              kiln(8) of the build
#   kiln_json ARG...         the answer of kiln, as one line without spaces
#   front_mount VOL MNT      mounts a volume by name with the stock client
#   front_state              everything that the state folder and the folders of bricks below $T/b hold, and their ids

: "${KILN:=${KILN_BUILD:-$source_dir/build}/kiln}"
front_pid=

kiln() {
    "$KILN" "$@"
}

kiln_json() {
    kiln --json "$@" | python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin), sort_keys=True, separators=(",", ":")))'
}

front_answers_or_ended() {
    process_gone "$front_pid" || kiln list
}

front_start() {
    "$KILND" --state "$T/state" -N -l "$T/log/kilnd.log" --statedump-dir "$T" "$@" >>"$T/log/kilnd.out" 2>&1 </dev/null &
    front_pid=$!
    wait_for 240 "kilnd to answer" front_answers_or_ended
    kiln list >/dev/null || { echo "kilnd did not start" >&2; return 1; }
}

front_stop() {
    local pid=$front_pid status=0
    front_pid=
    kill -TERM "$pid"
    wait_for 240 "kilnd to end" process_gone "$pid"
    wait "$pid" || status=$?
    [[ $status -eq 0 ]] || { echo "kilnd ended with status $status" >&2; return 1; }
}

front_kill() {
    local pid=$front_pid
    front_pid=
    # Bash reports the killed job on standard error.
    { kill -KILL "$pid" && wait "$pid"; } 2>/dev/null || true
}

front_mount() {
    mkdir -p "$2"
    mount -t glusterfs -o log-file="$T/log/client-$(basename "$2").log" "localhost:/$1" "$2"
}

front_state() {
    find "$T/state" \( -name lock -o -name fill \) -prune -o -type f -exec sha256sum {} + | sort
    find "$T/b" -path '*/.glusterfs' -prune -o -printf '%P %y %m\n' | sort
    find "$T/b" -maxdepth 1 -mindepth 1 -type d -exec getfattr --absolute-names -h -d -m trusted.glusterfs.volume-id -e hex {} +
}

front_end() {
    local mnt
    cd /
    for mnt in $(findmnt -n -l -t fuse.glusterfs -o TARGET); do
        umount -l "$mnt" || true
    done
    [[ -z $front_pid ]] || t_here "kilnd ends with status 0 on SIGTERM" front_stop
    if grep -lE 'ERROR: (Address|Leak|Thread)Sanitizer|WARNING: ThreadSanitizer|runtime error:' "$T"/log/*.out \
        >/dev/null 2>&1; then
        tap_not_ok "no sanitizer complains"
    fi
}
at_end+=(front_end)
