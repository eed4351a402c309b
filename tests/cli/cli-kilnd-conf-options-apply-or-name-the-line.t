#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kilnd takes options from a configuration file, behind those of the command line. A wrong line or a wrong option ends
# kilnd with status 64 before anything is started; the message names the file, the line, the key and the expected value.
# kilnd --check names volfiles whose bricks would not start.
# Covers: glusterfsd/config.c, glusterfsd/options.c, glusterfsd/kilnd.c, extras/kilnd.conf

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/front.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"

conf=$T/kilnd.conf

# says STATUS TEXT ARG...: kilnd ends with this status, and the first line of its output is `kilnd: TEXT`
says() {
    local want=$1 text=$2 status=0 said
    shift 2
    said=$("$KILND" "$@" 2>&1 </dev/null) || status=$?
    is "$status: $(head -n 1 <<<"$said")" "$want: kilnd: $text" "kilnd ${*//$T/T}: status $want, and the reason"
}

# line_says EXPECTED LINE: a file with two good lines and this one is refused
line_says() {
    printf '# comment\nlog-level = INFO\n%s\n' "$2" >"$conf"
    says 64 "$conf:3: $1" --config "$conf" --state "$T/no-state"
}

line_says "log-levl: expected the long name of an option that kilnd --help lists" "log-levl = INFO"
line_says "log-level: expected once; line 2 sets it already" "log-level = DEBUG"
line_says "metrics-address = 9421: expected HOST:PORT" "metrics-address = 9421"
line_says "pools = fast: expected on, off, poison or trace:K" "pools = fast"
line_says "strict-features = maybe: expected on or off" "strict-features = maybe"
line_says "port = 99999: expected a port, a number from 0 to 65535" "port = 99999"
line_says "xlator-option = a: expected PATTERN.KEY=VALUE" "xlator-option = a"
line_says "metrics-address = : expected a value" "metrics-address ="
line_says "volfile: expected on the command line only" "volfile = /x.vol"
line_says "brick-mux: expected on the command line only" "brick-mux = on"
line_says "expected KEY = VALUE, with a key such as log-level, or a comment behind #" "log-file /x"
says 64 "$T/nowhere: No such file or directory" --config "$T/nowhere" --state "$T/no-state"
t_not "nothing was started" test -e "$T/no-state"

says 64 "--log-level FOO: expected CRITICAL, ERROR, WARNING, INFO, DEBUG or TRACE" --log-level=FOO --state "$T/no-state"
says 64 "--brick-port abc: expected a port, a number from 0 to 65535" --brick-port=abc --state "$T/no-state"
says 64 "--metrics-address 9421: expected HOST:PORT" --metrics-address=9421 --state "$T/no-state"
nobody() {
    setpriv --reuid nobody --clear-groups "$KILND" --state "$T/no-state" 2>&1
}
t "a kilnd without rights says so in plain words" grep -q '^kilnd: must be run as root' <(nobody)

# A file that is right.
printf '%s\n' "management-socket = $T/q" "metrics-address=127.0.0.1:9421" "strict-features = on" "  # comment" \
    "pool-option = cap=8M" "pool-option = sweep=7s" "port = 24111" "log-level = ERROR" "brick-port = 49999" >"$conf"
export KILN_SOCKET=$T/q
front_start --config "$conf" -L INFO
t "the socket of the file answers" kiln list
t "the address of the file answers" curl -sS --fail --max-time 60 -o "$T/metrics" http://127.0.0.1:9421/metrics
t "the port of the file is open" port_answers 24111
t "both pool options count" grep -q '"sweep.*7000\|7s' <(kiln --json pools)
t "the command line wins over the file" grep -q '\] I \[' "$T/log/kilnd.log"
front_stop

# Under -f the options about volumes do not count.
volume_new v 1x1
brick=${volume_bricks[v]}
"$KILND" -N --config "$conf" -f "${brick_volfile[$brick]}" --brick-port 0 --port-file "$T/port" -l "$T/log/v.log" \
    >"$T/log/v.out" 2>&1 </dev/null &
pid=$!
wait_for 120 "kilnd to listen" test -s "$T/port"
is "$(kiln list)" v "kiln list names the volumes of a kilnd without --state"
t "kiln status shows the brick" grep -qE "^Brick localhost:$brick +$(cat "$T/port") +Y +$pid$" <(kiln status v)
is "$(kiln status other 2>&1 | head -n 1)" "kiln: this kilnd serves no brick of a volume other" "an unknown volume is refused"
dump=$(kiln statedump)
t "kiln statedump prints the file, which is there" test -s "$dump"
t "kiln explain reads the file" kiln explain "$dump"
t "kiln volume create says that this kilnd keeps no volumes" \
    fails_with "this kilnd keeps no volumes: it serves bricks of a glusterd or of volfiles" kiln volume create x "$T/x"

# A second kilnd with the same file.
volume_new w 1x1
brick_w=${volume_bricks[w]}
"$KILND" -N --config "$conf" -f "${brick_volfile[$brick_w]}" --brick-port 0 --port-file "$T/port-w" -L INFO -l "$T/log/w.log" \
    >"$T/log/w.out" 2>&1 </dev/null &
pid_w=$!
wait_for 120 "the second kilnd to listen" test -s "$T/port-w"
is "$(kiln --socket "$T/q.$pid_w" list)" w "a second kilnd with the same file answers at a socket of its own"
t "its log says so" grep -q "$T/q belongs to another kilnd: this kilnd answers at $T/q.$pid_w until that one ends" "$T/log/w.log"
{ kill -KILL "$pid" && wait "$pid"; } 2>/dev/null || true
second_has_all() {
    [[ $(kiln list) == w ]] && curl -sS --fail --max-time 60 http://127.0.0.1:9421/metrics | grep -q 'volume="w"'
}
t "the second kilnd takes socket and address when the first one has died" wait_for 120 "the names" second_has_all
kill -TERM "$pid_w"
t_here "the second kilnd ends with status 0" wait "$pid_w"
t_not "no socket stays" compgen -G "$T/q*"

# --check
cp "${brick_volfile[$brick]}" "$T/good.vol"
sed 's|^\( *type debug/io-stats\)$|type cluster/unheard-of|' "$T/good.vol" >"$T/bad.vol"
is "$("$KILND" --check -f "$T/good.vol")" "" "--check prints nothing for a good volfile"
t "--check names a volfile whose brick would not start" fails_with "$T/bad.vol: does not start: " \
    "$KILND" --check -f "$T/good.vol" -f "$T/bad.vol"
says 64 "--check needs a volfile: expected -f FILE" --check

t "the example file is right but for the folder" "$KILND" --config "$source_dir/extras/kilnd.conf" --check -f "$T/good.vol"
