#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kilnd keeps volumes without glusterd: `kiln` creates, starts, configures, stops and deletes volumes. The stock
# client mounts the volumes by name and gets changed options. After SIGKILL every acknowledged change is still
# present.
# Covers: volumes/volumes.c, volumes/verbs-change.c, volumes/volfile-server.c, cli/volume.c

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
is "$(kiln list)" "" "there are no volumes"
t "a replicated volume is made" kiln volume create demo replica 2 "$T"/b/{1..4}
t "a plain one, with the name of this machine" kiln volume create plain "localhost:$T/b/5"
is "$(kiln list | tr '\n' ' ')" "demo plain " "both are listed"
is "$(getfattr --absolute-names -n trusted.glusterfs.volume-id -e hex "$T/b/1" | sed -n 's/^trusted.*=0x//p')" \
    "$(kiln_json info demo | grep -o '"id":"[^"]*' | cut -d'"' -f4 | tr -d -)" "a brick carries the volume's id"
t "one is started" kiln volume start demo
t "the other, too" kiln volume start plain
t "the stock client mounts it by name" front_mount demo "$T/demo"
t "and the other, by kiln" bash -c "mkdir '$T/plain' && '$KILN' mount plain '$T/plain'"
t "a file can be written" bash -c "echo one >'$T/demo/file' && echo two >'$T/plain/file'"
is "$(cat "$T"/b/[1-4]/file | sort | uniq -c | awk '{ print $1, $2 }')" "2 one" "it is on both bricks of a pair"

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
    "who is too old for the volume is told so, as by glusterd"
is "$(getspec 2 /plain) $(getspec 1 /plain)" "0 95" "a plain volume asks for less"
t "the log says what is missing" grep -q "too old for it: it does not know op-version 30800 .*\[volfile-op-version\]" "$T/log/kilnd.log"

t "an option is set" kiln volume set demo performance.read-ahead on network.ping-timeout 11
t "the mounted client has a new layer" wait_for 120 "read-ahead" read_ahead_is_there "$T/demo" demo
t "and the new value" wait_for 120 "the ping timeout" ping_timeout_is demo 11
is "$(kiln_json get demo network.ping-timeout)" '{"options":[{"option":"network.ping-timeout","set":true,"value":"11"}]}' \
    "get says what is set"
t "an option of bricks is set while they serve" kiln volume set demo features.read-only on
t_not "and they refuse changes" touch "$T/demo/refused"
t "it is taken back" kiln volume reset demo features.read-only
t "and they do not" touch "$T/demo/taken"

# The bricks with logged logins since kilnd's last start.
logins() {
    tail -n "+$log_lines" "$T/log/kilnd.log" | sed -n 's/.* 0-[a-z]*-server: \([^:]*\): .* \[login\]$/\1/p' | sort -u
}
t "only warnings are logged of its bricks" kiln volume set demo diagnostics.brick-log-level WARNING
front_kill
log_lines=$(($(wc -l <"$T/log/kilnd.log") + 1))
t_here "it starts again after SIGKILL" front_start
is "$(kiln_json status | grep -o '"online":true' | wc -l)" 5 "every brick is served again"
t "the mounts go on" wait_for 240 "the file" grep -qx one "$T/demo/file"
t "and can be written" wait_for 240 "a write" bash -c "echo three >'$T/demo/third'"
t "so can the other" wait_for 240 "a write" bash -c "echo four >'$T/plain/fourth'"
is "$(logins)" "$T/b/5" "lines of one volume's bricks are logged, those of the other are not"
is "$(kiln_json get demo network.ping-timeout | grep -o '"value":"[^"]*')" '"value":"11' "what was set is set"

t "kiln unmounts" kiln umount "$T/plain"
t "a volume is stopped" kiln volume stop plain
is "$(kiln_json status plain | grep -c '"online":true' || true)" 0 "its brick is not served"
t_not "nor can it be mounted" front_mount plain "$T/plain"
t "it is deleted" kiln volume delete plain
is "$(kiln list)" demo "and gone"
is "$(cat "$T/b/5/file")" two "its file is where it was"
t_here "kilnd ends well" front_stop
t_here "and starts again" front_start
is "$(kiln list)" demo "with what is left"
