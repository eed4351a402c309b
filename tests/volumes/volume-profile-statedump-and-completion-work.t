#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The commands by which an operator looks at a volume without a glusterd: profile counts the calls that were made and
# their durations; a statedump is written; shell completion knows the verbs and the volumes; an unsupported feature is
# reported as such.
# Covers: volumes/bricks/profile.c, volumes/verbs/verbs-ask.c, cli/completion.c

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
t "profile has the durations of the calls" times_are_in_order
t "profile's table names the calls" grep -qiE '^ +mkdir +[0-9]+ +[0-9.]+ +[0-9.]+ +[0-9.]+$' <<<"$(kiln volume profile v info)"
t "kiln volume profile start succeeds" kiln volume profile v start
is "$(kiln_json get v diagnostics.count-fop-hits | grep -o '"value":"[^"]*')" '"value":"on' "the option of the profile is set"
t "kiln statedump succeeds" kiln statedump
t "kilnd writes the statedump" wait_for 120 "the dump" dump_is_there
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
t "explain names the waiting call and the lock's holder" wait_for 120 "the lock that waits" explains
mount --bind /dev/null /sbin/mount.glusterfs # from here on there is no stock client
t "explain reads the text of a dump" grep -q 'pools have' <<<"$(kiln explain - <"$(compgen -G "$T/kilnd.*.dump.*" | head -n 1)")"
t_not "explain refuses another file" kiln explain "$0"
is "$(kiln volume clear-locks v /locked kind granted posix | grep -oE 'posix blocked locks=.*')" \
    "posix blocked locks=0 granted locks=1" "clear-locks clears and counts a lock"
wait "$waiter"
is "$(kiln volume clear-locks v /locked kind all posix)" "No locks cleared." "the cleared lock is gone"
slowest_waited_for_a_lock() {
    kiln_json profile v slow | python3 -c 'import json, sys
slow = json.load(sys.stdin)["bricks"][0]["slow"]
lk = [c for c in slow if c["fop"] == "lk" and c["object"] == "/locked"]
assert any((c["stages_us"]["locks"] or 0) > c["total_us"] / 2 and c["stages_us"]["reply"] is not None for c in lk), slow
assert all(abs(sum(v or 0 for v in c["stages_us"].values()) - c["total_us"]) < 1 for c in slow), slow'
}
t "the call that waited is among the slowest calls, and its time is mostly the wait for the lock" \
    wait_for 60 "the call to be noted" slowest_waited_for_a_lock
t "kiln profile slow prints the call as text" grep -qE '^  lk +[0-9.]+ .* /locked; client [0-9]+ on ' <<<"$(kiln profile v slow)"
t "kiln top shows the machine's CPU and load" grep -qE '  machine [0-9]+% load [0-9.]+' <<<"$(kiln top --once | head -n 1)"
t "kiln top shows the slow call" grep -qE '^/locked +lk ' <<<"$(kiln top --once)"
curl -s --unix-socket /run/kiln/kilnd.socket http://kilnd/statedump.json >"$T/dump.json"
t "explain describes the slow call" grep -qE ': lk of /locked took .* behind locks of other clients' <<<"$(kiln explain "$T/dump.json")"
is "$(kiln_json clear-locks v / kind all entry | grep -oc '"cleared":"No locks cleared."')" 1 "the root has no locks"
t_not "clear-locks refuses an invalid range" kiln volume clear-locks v /locked kind all posix 1-2
t_not "clear-locks refuses a path out of the brick" kiln volume clear-locks v /../1/locked kind all posix
t_not "clear-locks refuses a missing file" kiln volume clear-locks v /nowhere kind all posix
is "$(findmnt -n -l -t fuse.glusterfs | wc -l)" 2 "nothing stays mounted"
is "$(completes volume st | sort | tr '\n' ' ')" "start statedump status stop store " "the completion offers verbs"
is "$(completes volume start '')" v "the completion offers names of volumes"
is "$(completes volume set v network.ping | tr '\n' ' ')" "network.ping-timeout " "the completion offers keys of options"
is "$(completes profile v st | tr '\n' ' ')" "start stop " "the completion offers words of a verb"
t "the completion for zsh is a valid script" bash -c "'$KILN' completion zsh | zsh -nf /dev/stdin"
is "$(zsh_completes completion '')" "bash zsh" "the completion for zsh offers only words where no file fits"
is "$(zsh_completes mount v '' | tail -n 1)" FILES "the completion for zsh offers files where a file fits"
t "kiln bench measures a volume" bash -c "'$KILN' bench v 0.1 >'$T/bench'"
is "$(grep -cE '\| +[0-9]+ +[0-9-]+ +[0-9]+ +[0-9]+ \| +[0-9]+ .* %$' "$T/bench")" 8 "kiln bench compares eight loads with a bare folder"
is "$(find "$T/b" "$T/mnt" -name '.kiln-bench*')$(findmnt -n -l -t fuse.glusterfs | tail -n +3)" "" "kiln bench leaves nothing behind"
t_not "remove-brick start, which would move data, is refused" kiln volume remove-brick v "$T/b/1" start
t "every verb has help" bash -c "for verb in \$('$KILN' help | awk '\$1 == \"kiln\" { print \$2 == \"volume\" ? \$3 : \$2 }' | grep -v help); do
    '$KILN' help \"\$verb\" | grep -q '^Usage: kiln' || exit 1; done"
