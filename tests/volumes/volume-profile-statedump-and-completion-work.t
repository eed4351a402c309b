#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The commands by which an operator looks at a volume without a glusterd: profile counts the calls that were made and
# their durations; a statedump is written; shell completion knows the verbs and the volumes; an unsupported feature is
# reported as such.
# Covers: volumes/profile.c, volumes/verbs-ask.c, cli/completion.c

. "$(dirname "$0")/../lib/kiln.sh"

mkdir -p "$T/b"
calls_of() {
    kiln_json profile v | python3 -c 'import json, sys
fops = {f["fop"].upper(): f for f in json.load(sys.stdin)["bricks"][0]["fops"]}
print(fops.get(sys.argv[1], {}).get("calls", 0))' "$1"
}
times_are_in_order() {
    kiln_json profile v | python3 -c 'import json, sys
fops = json.load(sys.stdin)["bricks"][0]["fops"]
assert fops and all(0 < f["p50_us"] <= f["p99_us"] for f in fops if f["p50_us"] is not None), fops'
}
dump_is_there() {
    compgen -G "$T/kilnd.*.dump.*"
}
completes() {
    bash -c 'eval "$("$1" completion bash)"; PATH=$(dirname "$1"):$PATH COMP_WORDS=(kiln "${@:2}") COMP_CWORD=$(($# - 1))
        _kiln; printf "%s\n" "${COMPREPLY[@]}"' bash "$KILN" "$@"
}
# The completions of the last word for zsh.
zsh_completes() {
    zsh -fc 'compadd() { print -r -- ${@:#--} }; _files() { print -r -- FILES }; compdef() { :; }
        eval "$("$1" completion zsh)"; PATH=${1:h}:$PATH words=(kiln "${@:2}") CURRENT=$#; _kiln' zsh "$KILN" "$@"
}

front_start
kiln volume create v "$T/b/1"
kiln volume start v
front_mount v "$T/mnt"
front_mount v "$T/mnt2"
before=$(calls_of MKDIR)
mkdir "$T"/mnt/dir-{1..7}
is "$(($(calls_of MKDIR) - before))" 7 "profile counts calls"
t "and how long they took" times_are_in_order
t "its table names them" grep -qiE '^ +mkdir +[0-9]+ +[0-9.]+ +[0-9.]+ +[0-9.]+$' <<<"$(kiln volume profile v info)"
t "profile is switched on as by gluster" kiln volume profile v start
is "$(kiln_json get v diagnostics.count-fop-hits | grep -o '"value":"[^"]*')" '"value":"on' "and the option is set"
t "kiln asks for a statedump" kiln statedump
t "it is written" wait_for 120 "the dump" dump_is_there
python3 -c '
import fcntl, os, sys, time
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
os.close(os.open(sys.argv[2], os.O_CREAT))
time.sleep(3600)' "$T/mnt/locked" "$T/is-locked" &
wait_for 120 "a lock to be held" test -e "$T/is-locked"
python3 -c '
import fcntl, sys
fcntl.lockf(open(sys.argv[1], "r+"), fcntl.LOCK_EX)' "$T/mnt2/locked" &
waiter=$!
explains() {
    curl -s --unix-socket /run/kiln/kilnd.socket http://kilnd/statedump.json >"$T/dump.json"
    kiln explain "$T/dump.json" | grep -qE '^  /locked: process .* waits since .* for a write lock \(posixlk\) that is held since .* by process'
}
t "explain says who waits for whom" wait_for 120 "the lock that waits" explains
mount --bind /dev/null /sbin/mount.glusterfs # from here on there is no stock client
t "of the text of a dump, too" grep -q 'pools have' <<<"$(kiln explain - <"$(compgen -G "$T/kilnd.*.dump.*" | head -n 1)")"
t_not "not of another file" kiln explain "$0"
is "$(kiln volume clear-locks v /locked kind granted posix | grep -oE 'posix blocked locks=.*')" \
    "posix blocked locks=0 granted locks=1" "a lock is taken away, and counted"
wait "$waiter"
is "$(kiln volume clear-locks v /locked kind all posix)" "No locks cleared." "and has gone"
slowest_waited_for_a_lock() {
    kiln_json profile v slow | python3 -c 'import json, sys
slow = json.load(sys.stdin)["bricks"][0]["slow"]
lk = [c for c in slow if c["fop"] == "lk" and c["object"] == "/locked"]
assert any((c["stages_us"]["locks"] or 0) > c["total_us"] / 2 and c["stages_us"]["reply"] is not None for c in lk), slow
assert all(abs(sum(v or 0 for v in c["stages_us"].values()) - c["total_us"]) < 1 for c in slow), slow'
}
t "the call that waited is among the slowest, and most of its time is that of the lock" \
    wait_for 60 "the call to be noted" slowest_waited_for_a_lock
t "its line is for people" grep -qE '^  lk +[0-9.]+ .* /locked; client [0-9]+ on ' <<<"$(kiln profile v slow)"
t "kiln top tells of the machine's CPU and load" grep -qE '  machine [0-9]+% load [0-9.]+' <<<"$(kiln top --once | head -n 1)"
t "kiln top has it" grep -qE '^/locked +lk ' <<<"$(kiln top --once)"
curl -s --unix-socket /run/kiln/kilnd.socket http://kilnd/statedump.json >"$T/dump.json"
t "explain says it in words" grep -qE ': lk of /locked took .* behind locks of other clients' <<<"$(kiln explain "$T/dump.json")"
is "$(kiln_json clear-locks v / kind all entry | grep -oc '"cleared":"No locks cleared."')" 1 "the root has none"
t_not "a range that is none is refused" kiln volume clear-locks v /locked kind all posix 1-2
t_not "what leads out of a brick is not followed" kiln volume clear-locks v /../1/locked kind all posix
t_not "of a file that is not there none" kiln volume clear-locks v /nowhere kind all posix
is "$(findmnt -n -l -t fuse.glusterfs | wc -l)" 2 "nothing stays mounted"
is "$(completes volume st | sort | tr '\n' ' ')" "start statedump status stop " "verbs are completed"
is "$(completes volume start '')" v "and names of volumes"
is "$(completes volume set v network.ping | tr '\n' ' ')" "network.ping-timeout " "keys of options"
is "$(completes profile v st | tr '\n' ' ')" "start stop " "and words"
t "the script for zsh is one" bash -c "'$KILN' completion zsh | zsh -nf /dev/stdin"
is "$(zsh_completes completion '')" "bash zsh" "and offers words alone where there are no others"
is "$(zsh_completes mount v '' | tail -n 1)" FILES "and files where an argument may be one"
t "a volume is measured" bash -c "'$KILN' bench v 0.1 >'$T/bench'"
is "$(grep -cE '\| +[0-9]+ +[0-9-]+ +[0-9]+ +[0-9]+ \| +[0-9]+ .* %$' "$T/bench")" 8 "beside a bare folder, eight loads"
is "$(find "$T/b" "$T/mnt" -name '.kiln-bench*')$(findmnt -n -l -t fuse.glusterfs | tail -n +3)" "" "and nothing of it stays"
t_not "what would move data is refused" kiln volume remove-brick v "$T/b/1" start
t "every verb has help" bash -c "for verb in \$('$KILN' help | awk '\$1 == \"kiln\" { print \$2 == \"volume\" ? \$3 : \$2 }' | grep -v help); do
    '$KILN' help \"\$verb\" | grep -q '^Usage: kiln' || exit 1; done"
