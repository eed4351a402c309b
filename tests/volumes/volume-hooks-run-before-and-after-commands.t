#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Scripts in STATE/hooks/VERB/{pre,post} run before and after a command of kiln, with the volume's name and the
# options. Their output appears in kilnd's log. A script that fails, that other users can write, or that kilnd kills
# at its deadline does not stop the command.
# Covers: volumes/hooks.c

. "$(dirname "$0")/../lib/kiln.sh"

mkdir -p "$T/b"
hook() {
    mkdir -p "$(dirname "$T/state/hooks/$1")"
    printf '#!/bin/sh\n%s\n' "$2" >"$T/state/hooks/$1"
    chmod 700 "$T/state/hooks/$1"
}
logged() {
    grep -qE "$1" "$T/log/kilnd.log"
}

front_start
hook create/pre/S10note "echo pre create \$* >>$T/calls"
hook create/post/S10note "echo post create \$* >>$T/calls"
hook start/pre/S20b "echo b \$* >>$T/calls"
hook start/pre/S10a "echo a \$* >>$T/calls; echo starts now; echo and complains >&2"
hook start/pre/K10no "echo no >>$T/calls"
hook start/post/S10fails "exit 7"
hook set/post/S10set "echo set \$* >>$T/calls"
hook stop/post/S10open "echo open >>$T/calls"
chmod 777 "$T/state/hooks/stop/post/S10open"
hook delete/pre/S10floods "seq 1 100000; printf 'a last line'"

t "a volume is created" kiln volume create v "$T/b/1"
t "the volume is started although a script fails" kiln volume start v
t "an option is set" kiln volume set v network.ping-timeout 17
t "a refused verb runs no script for a volume that there is not" bash -c "! '$KILN' volume start nosuch"
t "the volume is stopped" kiln --yes volume stop v
t "the volume is deleted while a script floods the log" timeout 60 "$KILN" --yes volume delete v
is "$(cat "$T/calls")" "pre create --volname=v
post create --volname=v
a --volname=v
b --volname=v
set --volname=v -o network.ping-timeout=17" "the scripts have run in order, with the volume's name and options"
t "the log has the output of a script" logged 'hook start/pre/S10a: starts now'
t "the log has the errors of a script" logged 'hook start/pre/S10a: .*and complains'
t "the log names a status that is not 0" logged 'hook start/post/S10fails: exit status 7'
t "the log names a script that other users can write" logged 'hooks/stop/post/S10open is not run'
t "the log has the beginning of a flood" logged 'hook delete/pre/S10floods: 1 [|] 2 [|] 3'
t "the log says that the flood was cut" logged 'S10floods: printed more than 8192 bytes'

# ---- the deadline ----------------------------------------------------------------------------

# The script's child holds the pipe of the output.
hook create/post/S10sleeps "sleep 100000 & echo \$! >$T/sleeper; wait"
t "a deadline of no seconds is refused" fails_with "a number of seconds from 1 to 3600" "$KILND" --state "$T/other" --hook-deadline 0
t_here "kilnd stops" front_stop
t_here "kilnd starts with a deadline of 2 seconds" front_start --hook-deadline 2
t "a command ends although its script does not" timeout 600 "$KILN" volume create w "$T/b/2"
t "the log names the killed script and the deadline" logged 'hook create/post/S10sleeps: killed because it ran longer than 2 s'
t "the children of the script are killed too" wait_for 60 "the child to end" process_gone "$(cat "$T/sleeper")"
