#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A killed client loses its locks: the brick sees the connection end, and the waiting process on another mount gets
# the locks.
# Covers: xlators/features/locks/locks.c, xlators/protocol/server/session.c

. "$(dirname "$0")/../lib/kiln.sh"

volume_new v 2x2
volume_start v
mount_volume v "$T/m1"
mount_volume v "$T/m2"
echo data >"$T/m1/file"

# Waits for the lock, makes a file when the lock is granted, and keeps the lock until killed.
holder() {
    python3 -c '
import fcntl, sys, time
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX)
open(sys.argv[2], "w").close()
sys.stdin.read()
' "$1" "$2" <&8 &
}
mkfifo "$T/never-ends"
exec 8<>"$T/never-ends"
holder "$T/m1/file" "$T/first-has-it"
t "the first mount's process has the lock" wait_for 120 "the lock" test -e "$T/first-has-it"
holder "$T/m2/file" "$T/second-has-it"
second=$!
in_a_lock_call() {
    [[ $(cut -d ' ' -f 1 "/proc/$second/syscall") == 72 ]]
}
t "the second mount's process waits for the lock" wait_for 120 "the process to wait" in_a_lock_call
t_not "the second mount's process does not have the lock" wait_for 1 "the lock" test -e "$T/second-has-it"
mount_kill "$T/m1"
t "the second mount's process gets the lock when the first client dies" wait_for 240 "the lock" test -e "$T/second-has-it"
kill "$second"
wait "$second" || true
mount_volume v "$T/m3"
t "the lock is free for a third process afterwards" \
    python3 -c 'import fcntl, sys; fcntl.lockf(open(sys.argv[1], "r+b"), fcntl.LOCK_EX)' "$T/m3/file"
