#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kilnd keeps volumes without glusterd: `kiln` creates, starts, configures, stops and deletes volumes. The stock
# client mounts the volumes by name and gets changed options. After SIGKILL every acknowledged change is still
# present.
# Covers: volumes/volumes.c, volumes/volumes-create.c, volumes/verbs/verbs-change.c, volumes/volfile-server.c, cli/volume.c

. "$(dirname "$0")/../lib/kiln.sh"

mkdir -p "$T/b"
read_ahead_is_there() {
    [[ -e $1/.meta/graphs/active/$2-read-ahead ]]
}
# A client logs the volfile of each new graph.
ping_timeout_is() {
    grep -q "option ping-timeout $2" "$T/log/client-$1.log"
}

t_here "kilnd starts with an empty state" front_start
is "$(kiln list)" "" "kiln lists no volumes"
t "kiln creates a replicated volume" kiln volume create demo replica 2 "$T"/b/{1..4}
t "kiln creates a plain volume on a brick with this machine's name" kiln volume create plain "localhost:$T/b/5"
is "$(kiln list | tr '\n' ' ')" "demo plain " "kiln lists both volumes"
is "$(getfattr --absolute-names -n trusted.glusterfs.volume-id -e hex "$T/b/1" | sed -n 's/^trusted.*=0x//p')" \
    "$(kiln_json info demo | grep -o '"id":"[^"]*' | cut -d'"' -f4 | tr -d -)" "a brick carries the volume's id"
t "kiln starts the replicated volume" kiln volume start demo
t "kiln starts the plain volume" kiln volume start plain
t "the stock client mounts the replicated volume by name" front_mount demo "$T/demo"
t "kiln mounts the plain volume" bash -c "mkdir '$T/plain' && '$KILN' mount plain '$T/plain'"
t "files can be written in both volumes" bash -c "echo one >'$T/demo/file' && echo two >'$T/plain/file'"
is "$(cat "$T"/b/[1-4]/file | sort | uniq -c | awk '{ print $1, $2 }')" "2 one" "both bricks of a pair have the file"

# OP-VERSIONS KEY: prints op_errno of the answer to a client with this highest op-version.
getspec() {
    python3 - "$@" <<'EOS'
import socket, struct, sys
def u32(*numbers):
    return struct.pack(">%dI" % len(numbers), *numbers)
def opaque(data):
    return u32(len(data)) + data + bytes(-len(data) % 4)
pairs = [(b"min-op-version", b"1"), (b"max-op-version", sys.argv[1].encode())] if sys.argv[1] else []
said = u32(len(pairs)) + b"".join(u32(len(k), len(v) + 1) + k + b"\0" + v + b"\0" for k, v in pairs)
call = u32(7, 0, 2, 14398633, 2, 2, 0, 0, 0, 0, 0) + opaque(sys.argv[2].encode()) + opaque(said if pairs else b"")
with socket.create_connection(("127.0.0.1", 24007)) as s, s.makefile("rb") as answer:
    s.sendall(u32(1 << 31 | len(call)) + call)
    print(struct.unpack(">I", answer.read(4 + 32)[-4:])[0])
EOS
}
is "$(getspec 100000 demo) $(getspec 30800 demo) $(getspec 30799 demo) $(getspec '' demo)" "0 0 95 95" \
    "a client that is too old for the volume is refused, as by glusterd"
is "$(getspec 2 /plain) $(getspec 1 /plain)" "0 95" "a plain volume requires a lower op-version"
t "the log names the missing op-version" grep -q "too old for it: it does not know op-version 30800 .*\[volfile-op-version\]" "$T/log/kilnd.log"

t "kiln sets options" kiln volume set demo performance.read-ahead on network.ping-timeout 11
t "the mounted client has a new layer" wait_for 120 "read-ahead" read_ahead_is_there "$T/demo" demo
t "the mounted client has the new ping timeout" wait_for 120 "the ping timeout" ping_timeout_is demo 11
is "$(kiln_json get demo network.ping-timeout)" '{"options":[{"option":"network.ping-timeout","set":true,"value":"11"}]}' \
    "kiln volume get prints the set values"
t "kiln sets an option of the bricks" kiln volume set demo features.read-only on
t_not "the bricks refuse changes with the option" touch "$T/demo/refused"
t "kiln resets the option" kiln volume reset demo features.read-only
t "the bricks accept changes without the option" touch "$T/demo/taken"

# The bricks with logged logins since kilnd's last start.
logins() {
    tail -n "+$log_lines" "$T/log/kilnd.log" | sed -n 's/.* 0-[a-z]*-server: \([^:]*\): .* \[login\]$/\1/p' | sort -u
}
t "kiln sets the bricks to log only warnings" kiln volume set demo diagnostics.brick-log-level WARNING
front_kill
log_lines=$(($(wc -l <"$T/log/kilnd.log") + 1))
t_here "kilnd starts again after SIGKILL" front_start
is "$(kiln_json status | grep -o '"online":true' | wc -l)" 5 "every brick is served again"
t "the mounts work after SIGKILL" wait_for 240 "the file" grep -qx one "$T/demo/file"
t "the replicated volume can be written after SIGKILL" wait_for 240 "a write" bash -c "echo three >'$T/demo/third'"
t "the plain volume can be written after SIGKILL" wait_for 240 "a write" bash -c "echo four >'$T/plain/fourth'"
is "$(logins)" "$T/b/5" "only the volume with the default log level logs logins"
is "$(kiln_json get demo network.ping-timeout | grep -o '"value":"[^"]*')" '"value":"11' "the set value is kept"

t "kiln unmounts the plain volume" kiln umount "$T/plain"
t "kiln stops the plain volume" kiln volume stop plain
is "$(kiln_json status plain | grep -c '"online":true' || true)" 0 "no brick of a stopped volume is served"
t_not "a stopped volume cannot be mounted" front_mount plain "$T/plain"
mv "$T/b/5" "$T/b/away"
says() { # PATTERN CMD...: CMD succeeds and prints a line with the pattern
    "${@:2}" >"$T/said" && grep "$1" "$T/said"
}
t "a forced start without a brick says which brick does not run, and why" \
    says "not all of its bricks run: brick $T/b/5: .*No such file" kiln volume start plain force
mv "$T/b/away" "$T/b/5"
t "a forced start with all bricks says no such thing" says "plain is started; mount it" kiln volume start plain force
kiln volume stop plain
t "kiln deletes the stopped volume" kiln volume delete plain
is "$(kiln list)" demo "kiln no longer lists the deleted volume"
is "$(cat "$T/b/5/file")" two "the deleted volume's brick keeps its file"
t_here "kilnd ends with status 0" front_stop
t_here "kilnd starts again" front_start
is "$(kiln list)" demo "kiln lists the remaining volume"
