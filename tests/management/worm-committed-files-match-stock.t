#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# features.worm-file-level: Kiln's bricks commit the same files as stock ones, by mode or age, refuse the same
# commands, and store the same state on disk, with each of its options set while the bricks serve.
# Covers: xlators/features/worm/worm-file.c

. "$(dirname "$0")/../lib/kiln.sh"

# COMMAND...: prints the command and its exit status.
say() {
    local status=0
    "$@" >/dev/null 2>&1 || status=$?
    echo "$*: $status"
}
# The xattrs of a file on the brick. The period is the remaining time, so its last digit is masked.
state() {
    getfattr -d -m 'trusted.(worm|reten)' "$1" 2>/dev/null | sed -n 's/^trusted[.]//p' | sed -E 's,"([0-9]+)/([0-9]*)[0-9]/,"\1/\2x/,'
}
write_to() {
    python3 -c 'import os, sys
f = os.open(sys.argv[1], os.O_WRONLY)
os.write(f, b"more")
os.fsync(f)' "$1"
}
# In the folder of a mount; $1: the brick.
young() {
    for f in before young; do
        for command in "write_to $f" "truncate -s 1 $f" "mv $f moved" "mv moved $f" "ln $f second" "rm second" "chmod 600 $f"; do
            say $command
        done
        state "$1/$f"
        say rm $f
    done
}
kept() {
    echo other >other
    for command in "write_to $2" "truncate -s 1 $2" "mv $2 moved" "mv -f other $2" "ln $2 second" "rm -f $2" "chmod 644 $2" \
        "setfattr -n user.a -v b $2" "cat $2"; do
        say $command
    done
    state "$1/$2"
}
times() {
    for when in "+5000 seconds" "+3000 seconds" "2001-01-01"; do
        say touch -a -d "$when" "$2"
        state "$1/$2"
    done
}
both() {
    local what=$1 vol
    shift
    for vol in twin-a twin-b; do
        (cd "${twin_mnt[$vol]}" && set +e && "$1" "$T/bricks/$vol-0" "${@:2}") >"$T/out-$vol"
    done
    t "$what" diff "$T/out-twin-a" "$T/out-twin-b"
    t "$what: the steps print more than ${least:-5} lines" test "$(wc -l <"$T/out-twin-a")" -gt "${least:-5}"
}
# STATE: waits until new commits of both volumes are stored with this state.
acts() {
    local vol
    for vol in twin-a twin-b; do
        wait_for 60 "$vol to act" commits_as "$vol" "$1"
    done
}
commits_as() {
    local probe=probe$((++probes))
    touch "${twin_mnt[$1]}/$probe"
    chmod 400 "${twin_mnt[$1]}/$probe"
    [[ $(getfattr --only-values -n trusted.reten_state "$T/bricks/$1-0/$probe" 2>/dev/null) == "$2" ]]
}
probes=0
set_both() { twins_run gl volume set VOL "$@" >/dev/null; }

twins_start 1x1
twins_mount
twins_run bash -c 'echo text >MNT/before'
set_both features.default-retention-period 1000
set_both features.auto-commit-period 1000
set_both features.worm-file-level on
acts 3/1000/1000
twins_run bash -c 'cd MNT && for f in young mode enterprise; do echo text >$f; done && mkdir d && chmod 500 d'
both "files that are not committed" young
twins_run chmod 444 MNT/mode
both "one that its mode has committed" kept mode
cp "$T/out-twin-b" "$T/kept-twin-b"
both "its time" times mode
t "the removal of a committed file is refused" grep -qx "rm -f mode: 1" "$T/kept-twin-b"
folders() { say rmdir d; }
least=0 both "folders are not" folders
set_both features.retention-mode enterprise
acts 11/1000/1000
twins_run chmod 444 MNT/enterprise
both "its time in enterprise mode" times enterprise
set_both features.retention-mode relax
acts 3/1000/1000

twins_run bash -c 'cd MNT && for f in old maker; do echo text >$f; done'
set_both features.auto-commit-period 1
acts 3/1000/1
sleep 2
both "one that its age commits" kept old
maker() {
    python3 -c 'import os, time
f = os.open("mine", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
time.sleep(3)
os.write(f, b"late")
os.fsync(f)'
    echo "$? $(cat mine)"
}
least=0 both "who has made a file goes on with it" maker

set_both features.auto-commit-period 1000
set_both features.default-retention-period 1
acts 3/1/1000
ended() {
    for f in first second third; do
        echo text >"$f"
        chmod 444 "$f"
    done
    sleep 2.5
    say truncate -s 1 first
    state "$1/first"
    for command in "write_to first" "mv first moved" "ln first other2" "rm -f first" "rm -f second" "ls"; do
        [[ $command == ls ]] || say $command
    done
}
both "a retention that has ended" ended
set_both features.worm-files-deletable off
sleep 2
undeletable() {
    say rm -f third
    state "$1/third"
}
least=1 both "what may not even then be removed" undeletable
set_both features.worm-file-level off
free() { rm -f "$T/mnt-$1/third" 2>/dev/null; }
t "with the option off a committed file can be removed from stock bricks" wait_for 60 "the brick to be told" free a
t "with the option off a committed file can be removed from Kiln's bricks" wait_for 60 "the brick to be told" free b
t "with the option off all other files can be removed" twins_run bash -c 'rm -rf MNT/*'
twins_run umount MNT
twins_run gl volume stop VOL >/dev/null
