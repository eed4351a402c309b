#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# `gluster volume clear-locks` of posix, inode and entry locks, granted, blocked and all, prints and does the same on
# kilnd's bricks as on stock ones.
# Covers: xlators/features/locks/clrlk.c

. "$(dirname "$0")/../lib/kiln.sh"

twins_start 1x1
twins_mount
twins_run bash -c 'for i in 1 2 3; do echo text >MNT/f$i; done; mkdir MNT/d'

# Takes a posix lock on the file $1, or waits for the lock, and writes the result to the file $2.
lock_hold() {
    python3 -c '
import fcntl, os, sys, time
def say(text):
    with open(sys.argv[2] + ".new", "w") as file:
        file.write(text)
    os.rename(sys.argv[2] + ".new", sys.argv[2])
file = open(sys.argv[1], "r+")
try:
    fcntl.lockf(file, fcntl.LOCK_EX)
    say("granted")
    time.sleep(3600)
except OSError as error:
    say(os.strerror(error.errno))' "$1" "$2" &
}
for vol in twin-a twin-b; do
    lock_hold "${twin_mnt[$vol]}/f1" "$T/$vol.held"
    wait_for 120 "a lock to be held" test -e "$T/$vol.held"
    lock_hold "${twin_mnt[$vol]}/f1" "$T/$vol.waits"
done

t_twins "clear-locks of a file without locks" clear-locks VOL /f2 kind all posix
t_twins "clear-locks of a missing file" clear-locks VOL /nowhere kind all posix
t_twins "clear-locks of an unknown kind" clear-locks VOL /f1 kind some posix
t_twins "clear-locks of an unknown lock type" clear-locks VOL /f1 kind all padlock
t_twins "clear-locks of all inode locks" clear-locks VOL /f1 kind all inode
t_twins "clear-locks of granted inode locks of a range" clear-locks VOL /f1 kind granted inode 0,0-0
t_twins "clear-locks of blocked inode locks" clear-locks VOL /f1 kind blocked inode
t_twins "clear-locks of all entry locks" clear-locks VOL /d kind all entry
t_twins "clear-locks of granted entry locks of a name" clear-locks VOL /d kind granted entry x
t_twins "clear-locks of blocked entry locks" clear-locks VOL /d kind blocked entry

cleared() { gl volume clear-locks "$1" /f1 kind "$2" posix | grep -oE 'posix blocked locks=.*'; }
one_waits() { [[ $(cleared "$1" blocked) == "posix blocked locks=1 granted locks=0" ]]; }
for vol in twin-a twin-b; do
    # It waits some time after it was asked for.
    t_here "$vol: clear-locks clears and counts the waiting lock" wait_for 120 "one that waits" one_waits $vol
    t_here "$vol: the waiting process gets an answer" wait_for 120 "the answer" test -e "$T/$vol.waits"
done
is "$(cat "$T/twin-b.waits")" "$(cat "$T/twin-a.waits")" "the waiting process gets the same answer as with stock"
for vol in twin-a twin-b; do
    is "$(cleared $vol granted)" "posix blocked locks=0 granted locks=1" "$vol: clear-locks clears and counts the held lock"
    lock_hold "${twin_mnt[$vol]}/f1" "$T/$vol.next"
    t_here "$vol: another process gets an answer" wait_for 120 "the lock" test -e "$T/$vol.next"
    is "$(cat "$T/$vol.next")" granted "$vol: another process gets the lock"
    is "$(cleared $vol all)" "posix blocked locks=0 granted locks=1" "$vol: clear-locks clears and counts all locks"
done
t_twins "clear-locks when no lock is left" clear-locks VOL /f1 kind all posix
t_twins "volume set server.root-squash" volume set VOL server.root-squash on
t_twins "clear-locks under root-squash" clear-locks VOL /f1 kind all posix
