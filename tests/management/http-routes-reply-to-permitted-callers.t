#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kilnd --management-socket and --metrics-address: HTTP requests are answered for permitted callers only; invalid
# addresses stop the start; /readyz reports a failed disk of a brick; without the options there is neither a thread
# nor a socket.
# Covers: glusterfsd/http.c, glusterfsd/http-routes.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"

BRICK_POSIX_OPTIONS="health-check-interval 1"
volume_new v 1x2
volume_start v
daemon=$(volume_daemons v)
threads_without=$(proc_threads "${daemon_pid[$daemon]}")
volume_stop v

kilnd_options=(--management-socket "$T/http" --metrics-address 127.0.0.1:9421)
volume_start v
pid=${daemon_pid[$daemon]}
log=$T/log/$daemon.log
read -r sick _ <<<"${volume_bricks[v]}"

# Body and, on the last line, the status.
ask() {
    curl -sS --max-time 120 --unix-socket "$T/http" -w '\n%{http_code}' "http://kiln$1"
}
ask_tcp() {
    curl -sS --max-time 120 -w '\n%{http_code}' "http://127.0.0.1:9421$1"
}

is "$(stat -c %a "$T/http")" 600 "the socket is for root alone"
is "$(ask /healthz)" $'ok\n\n200' "/healthz"
is "$(ask /readyz | tail -n 1)" 200 "/readyz: all serve"
is "$(ask /readyz | head -n 1)" "ready: bricks serving 2, attaching 0, failed 0, detaching 0, missing 0" "and it counts them"
is "$(ask_tcp /healthz)" $'ok\n\n200' "/healthz at the address"
is "$(ask_tcp /readyz | tail -n 1)" 200 "/readyz at the address"
is "$(ask /nothing | tail -n 1)" 404 "what is not there"
is "$((threads_without + 2))" "$(proc_threads "$pid")" "one thread for each of the two"

# A peer that sends bytes without sense, or none, is nobody's trouble.
for _ in $(seq 40); do
    head -c 2000 /dev/urandom >/dev/tcp/127.0.0.1/9421 || true
done
for _ in $(seq 100); do
    exec {silent}<>/dev/tcp/127.0.0.1/9421
    printf 'GET /heal' >&"$silent"
done
is "$(ask_tcp /healthz)" $'ok\n\n200' "after garbage, and beside a hundred that are silent"

is_unready() {
    [[ $(ask /readyz | tail -n 1) == 503 ]]
}
until mkdir "$sick/.glusterfs/health_check" 2>/dev/null; do
    rm -f "$sick/.glusterfs/health_check"
done
t "/readyz says when a disk has failed" wait_for 120 "the failure" is_unready
t "which is so" grep -q brick-failed "$log"
is "$(ask /healthz | tail -n 1)" 200 "the process lives all the same"
rmdir "$sick/.glusterfs/health_check"
volume_stop v
t "the socket has gone with the process" test ! -e "$T/http"

refuses() {
    local want=$1 pattern=$2 desc=$3 status=0
    shift 3
    timeout 120 "$KILND" -N -S "$T/socket" --brick-port 0 -l "$T/log/bad.log" "$@" >"$T/said" 2>&1 </dev/null || status=$?
    is "$status" "$want" "$desc: exit status $want"
    t "$desc: says why" grep -Eq -- "$pattern" "$T/said"
}
refuses 64 'metrics-address 9421: expected HOST:PORT' "a port alone" --metrics-address 9421
refuses 64 'metrics-address :9421: expected HOST:PORT' "no host" --metrics-address :9421
refuses 1 'management-socket /none/http: No such file' "a folder that is not there" --management-socket /none/http
touch "$T/file"
refuses 1 "management-socket $T/file: Address already in use" "a file that is no socket" --management-socket "$T/file"
t "and it is left alone" test -f "$T/file"
