#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kilnd --management-socket and --metrics-address: HTTP requests are answered for permitted callers only; invalid
# addresses stop the start; /readyz reports a failed disk of a brick; without the options there is neither a thread
# nor a socket.
# Covers: daemon/http.c, glusterfsd/http-routes.c

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

is "$(stat -c %a "$T/http")" 600 "only root may use the socket"
is "$(ask /healthz)" $'ok\n\n200' "/healthz answers ok"
is "$(ask /readyz | tail -n 1)" 200 "/readyz answers 200 when all bricks serve"
is "$(ask /readyz | head -n 1)" "ready: bricks serving 2, attaching 0, failed 0, detaching 0, missing 0" "/readyz counts the bricks"
is "$(ask_tcp /healthz)" $'ok\n\n200' "/healthz answers at the address"
is "$(ask_tcp /readyz | tail -n 1)" 200 "/readyz answers at the address"
is "$(ask /nothing | tail -n 1)" 404 "an unknown path is 404"
is "$((threads_without + 2))" "$(proc_threads "$pid")" "the socket and the address need one thread each"

# A peer that sends bytes without sense, or none, is nobody's trouble.
for _ in $(seq 40); do
    head -c 2000 /dev/urandom >/dev/tcp/127.0.0.1/9421 || true
done
for _ in $(seq 100); do
    exec {silent}<>/dev/tcp/127.0.0.1/9421
    printf 'GET /heal' >&"$silent"
done
is "$(ask_tcp /healthz)" $'ok\n\n200' "/healthz answers after garbage, and beside a hundred silent connections"

is_unready() {
    [[ $(ask /readyz | tail -n 1) == 503 ]]
}
until mkdir "$sick/.glusterfs/health_check" 2>/dev/null; do
    rm -f "$sick/.glusterfs/health_check"
done
t "/readyz reports a failed disk" wait_for 120 "the failure" is_unready
t "the log reports the failed disk" grep -q brick-failed "$log"
is "$(ask /healthz | tail -n 1)" 200 "/healthz answers 200 beside a failed disk"
rmdir "$sick/.glusterfs/health_check"
volume_stop v
t "the process removes the socket at its end" test ! -e "$T/http"

refuses() {
    local want=$1 pattern=$2 desc=$3 status=0
    shift 3
    timeout 120 "$KILND" -N -S "$T/socket" --brick-port 0 -l "$T/log/bad.log" "$@" >"$T/said" 2>&1 </dev/null || status=$?
    is "$status" "$want" "$desc: exit status $want"
    t "$desc: the message names the cause" grep -Eq -- "$pattern" "$T/said"
}
refuses 64 'metrics-address 9421: expected HOST:PORT' "a port alone" --metrics-address 9421
refuses 64 'metrics-address :9421: expected HOST:PORT' "no host" --metrics-address :9421
refuses 1 'management-socket /none/http: No such file' "a folder that is not there" --management-socket /none/http
touch "$T/file"
refuses 1 "management-socket $T/file: Address already in use" "a file that is no socket" --management-socket "$T/file"
t "the file in the socket's place is left alone" test -f "$T/file"
