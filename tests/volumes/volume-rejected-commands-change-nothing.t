#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A command that cannot be carried out is refused with a message that says why, and changes neither the state
# directory nor a brick's directory.
# Covers: volumes/verbs/verbs-change.c, volumes/volumes-paths.c, volumes/volumes-set.c, volumes/problem.c

. "$(dirname "$0")/../lib/kiln.sh"

mkdir -p "$T"/b/{full,other} "$T"/ro
touch "$T/b/full/file" "$T/b/plain-file"
ln -s "$T/b/other" "$T/b/link"
mount -t tmpfs -o ro kiln-ro "$T/ro"
mkdir -m 700 "$T/state"
mount -t tmpfs -o size=256k,mode=700 kiln-state "$T/state" # small, so that it can be full
front_start
kiln volume create demo replica 2 "$T"/b/{1,2}
kiln volume create at-rest "$T/b/rest"
kiln volume set demo cluster.self-heal-daemon off # it makes a folder in each brick, when it likes
kiln volume start demo
before=$(front_state)

# refused STATUS PATTERN ARG...: kiln ends with this status, says something that matches, and nothing is changed
refused() {
    local want=$1 pattern=$2 said status=0
    shift 2
    said=$(kiln "$@" 2>&1 </dev/null) || status=$?
    is "$status" "$want" "kiln $*: status $want"
    t "kiln $*: the message names the cause" grep -qE -- "$pattern" <<<"$said"
    [[ $(front_state) == "$before" ]] || is "$(front_state)" "$before" "... and nothing has changed"
}

refused 1 'cannot be the name' volume create 'bad/name' "$T/b/new"
refused 1 'cannot be the name' volume create $'bad\001name' "$T/b/new"
refused 1 'cannot be the name' volume create "$(printf 'n%.0s' {1..200})" "$T/b/new"
for word in volume type option subvolumes end-volume; do
    refused 1 "word of the volfile's grammar" volume create "$word" "$T/b/new"
done
refused 1 'exists already' volume create demo "$T/b/new"
refused 1 'volume demo has its brick' volume create two "$T/b/1"
refused 1 'volume demo has its brick' volume create two "$T/b/1/below"
refused 1 'the brick .*/b/new twice' volume create two "$T/b/new" "$T/b/new/"
refused 1 'overlap: one lies in the other' volume create two "$T/b/new" "$T/b/new/below"
refused 1 'server.ssl on: TLS: certificate .*: No such file' volume set demo server.ssl on
refused 1 'client.ssl on: TLS: certificate .*: No such file' volume set demo client.ssl on
refused 1 "would hide the brick $T/b/1 of volume demo" mount demo "$T/b/1"
refused 1 'would hide the brick' mount demo "$T/b"
refused 1 'not empty' volume create two "$T/b/full"
refused 1 'no folder' volume create two "$T/b/plain-file"
refused 1 'symbolic link' volume create two "$T/b/link"
refused 1 'No such file' volume create two "$T/b/missing/brick"
refused 1 'read-only' volume create two "$T/ro/brick"
refused 1 'not absolute' volume create two b/new
refused 1 'blank' volume create two "$T/b/with blank"
refused 1 'component' volume create two "$T/b/../new"
refused 1 'not known|another machine' volume create two "192.0.2.1:$T/b/new"
refused 1 'multiple of 2' volume create two replica 2 "$T"/b/new{1..3}
refused 1 'arbiter' volume create two replica 2 arbiter 1 "$T"/b/new{1..2}
refused 2 'takes no word force' volume create two force
refused 2 'expected a number' volume create two replica many "$T/b/new"
refused 1 'no volume nosuch' volume start nosuch
refused 1 'started already' volume start demo
refused 1 'not started' volume stop at-rest
refused 1 'is started' volume delete demo
refused 1 'no volume nosuch' volume info nosuch
refused 1 'did you mean performance.read-ahead' volume set demo performance.red-ahead on
refused 1 'ping-timeout' volume set demo network.ping-timeout soon
refused 1 'ping-timeout' volume set demo performance.read-ahead on network.ping-timeout 100000
refused 1 'cannot be the name of an option' volume set demo $'user.new\nline' on
refused 1 'cannot be the name of an option' volume set demo $'user.\033[31mred' on
refused 1 'not built' volume set demo locks.trace on
refused 1 'has one set of bricks' volume rebalance demo fix-layout start
refused 1 'fix-layout is not built' volume fix-layout demo
refused 1 'top of files is not built' volume top demo open
refused 1 'log is not built' volume log demo rotate
refused 2 'unknown verb' volume lot demo
refused 2 "'extra' is not known" top --once extra
refused 2 "quota: 'enable' is not known" volume quota demo enable
refused 2 'quota set: wrong number of arguments' volume quota demo set /home
refused 2 'replica: expected a number' volume create two replica
refused 2 'replica: expected before the bricks' volume create two "$T"/b/new1 replica 2
refused 1 'disperse N redundancy R' volume create two replica 3 arbiter 2 "$T"/b/new{1..3}
refused 1 'with disperse 3' volume create two disperse 3 "$T"/b/new{1..2}
refused 1 'chooses no folders' volume create two sets 2
refused 2 'wrong number of arguments' store export one two
refused 2 'did you mean start' volume strat demo
refused 2 'a verb that kiln help lists' volume nosuchverb demo
refused 1 'disperse 4 redundancy 2' volume create two disperse 4 redundancy 2 "$T"/b/new{1..4}
refused 2 'has no value' volume set demo performance.read-ahead on network.ping-timeout
refused 1 'is not set' volume reset demo performance.read-ahead
refused 1 'no option' volume get demo nosuch
refused 2 'unknown verb' volume frobnicate demo
refused 2 'try: +kiln help' --frobnicate
refused 2 'expected: split-brain bigger-file' volume heal demo split-brain
refused 1 'not started' volume clear-locks at-rest / kind all posix
refused 1 'no option' volume reset demo nosuch
refused 2 'missing' volume start
refused 2 'too many' volume stop demo now
refused 1 'no volume is mounted' umount "$T/b"

head -c 1M /dev/zero >"$T/state/fill" 2>/dev/null || true
refused 1 'No space left' volume set demo network.ping-timeout 33
refused 1 'df -h' volume create two "$T/b/new"
t_not "kilnd knows the state of its volumes" grep -q volume-state-unknown "$T/log/kilnd.log"
rm "$T/state/fill"

KILN_SOCKET=$T/nobody refused 3 'does not answer' volume list
is "$(kiln_json volume info nosuch || true)" '{"error":"there is no volume nosuch","try":"kiln volume list"}' \
    "errors are JSON when answers are JSON"
t_not "a second daemon is refused the state" "$KILND" --state "$T/state" -N --port 24999 --management-socket "$T/second"
is "$(front_state)" "$before" "the refused commands have changed nothing"

# Requests without kiln, because any process that may open the socket can send any bytes.
post() {
    curl -s --unix-socket /run/kiln/kilnd.socket -d "$2" "http://kilnd/v1/$1"
}
t "a request that is not JSON gets an answer" grep -q 'not JSON' <<<"$(post volume-list '{')"
t "a request for an unknown verb gets an answer" grep -q 'does not know' <<<"$(post volume-frobnicate '{}')"
t "a request with an additional argument gets an answer" grep -q 'cannot be understood' <<<"$(post volume-list '{"more": 1}')"
t "a request with an argument of another type gets an answer" grep -q 'cannot be understood' <<<"$(post volume-start '{"name": 1}')"
is "$(front_state)" "$before" "the refused requests have changed nothing"
