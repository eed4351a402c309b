#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Between kiln-mount and kilnd the lock of a file's data and its dirty mark share a message, and so do the removal of
# the mark, the unlock and the RELEASE of a written file; any other RELEASE may go along with a later message. Lock and mark of a
# file that is expected to be written go along with its CREATE or OPEN. With `--compound=off`, or with `kilnd --no-compound`, each
# call has a message of its own, and the bricks end in the same state. The mount, or a brick, is killed at each border between two
# of these messages: nothing is lost, a stock mount goes on with the file, and the self-heal daemon makes the replicas equal.
# Covers: rpc/server/sequence.c, rpc/client/rpc-sequence.c, xlators/cluster/replicate/hold.c,
# Covers: xlators/protocol/client/late-release.c, xlators/cluster/replicate/new-files.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/measure.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
[[ $BRICKD == kiln ]] || skip_all "stock bricks take no joined calls"

files=20
kiln=$T/kiln stock=$T/stock
volume_split=brick
volume_new v 1x2
volume_start v
read -ra bricks <<<"${volume_bricks[v]}"
mount_graph=default

write_files() {
    local i
    for ((i = 0; i < files; i++)); do
        echo "$1 $i" >"$kiln/$1$i"
    done
}

is_marked() {
    getfattr -n trusted.afr.dirty -e hex "${bricks[${2:-0}]}/$1" 2>/dev/null | grep -q 0x00000001
}

not_marked() {
    ! is_marked "$1" 0 && ! is_marked "$1" 1
}

# Waits until all holds have ended. Returns whether from $2 to $3 messages were saved.
joined_is() {
    wait_for 240 "no mark" not_marked "$1$((files - 1))"
    [[ $(count_joined "${mount_pid[$kiln]}") -ge $2 && $(count_joined "${mount_pid[$kiln]}") -le $3 ]]
}

# Returns whether the first brick has the file open.
has_open() {
    local file
    for file in /proc/"${daemon_pid[${brick_daemon[${bricks[0]}]}]}"/fd/*; do
        [[ ! $file -ef ${bricks[0]}/$1 ]] || return 0
    done
    return 1
}

# ---- messages
mount_kiln v "$kiln" --xlator-option='*.lock-new-files=off' --xlator-option='*.release-wait-ms=0'
write_files on
t "lock and mark, and mark, unlock and RELEASE, share a message to each brick" joined_is on $((6 * files - 8)) $((6 * files))
mount_end "$kiln"
# A file that was not written has no message for its RELEASE, except that of a later file.
mount_kiln v "$kiln" --xlator-option='*.lock-new-files=off' --xlator-option='*.release-wait-ms=60000'
touch "$kiln"/empty{1..3}
write_files late
t "so does the RELEASE of a file before" joined_is late $((6 * files - 2)) $((6 * files + 6))
t "the RELEASEs of files before have gone" eval '! has_open empty1 && ! has_open empty3'
mount_end "$kiln"
# LOOKUP; CREATE, lock and mark; WRITE; mark, unlock and RELEASE; UNLINK: the locks on names are shared.
mount_kiln v "$kiln"
records_now() {
    echo $(($(count_rpcs "${mount_pid[$kiln]}") - $(count_joined "${mount_pid[$kiln]}")))
}
whole_files() {
    python3 - "$kiln" "$files" <<'END'
import os, sys
for i in range(int(sys.argv[2])):
    name = "%s/whole%d" % (sys.argv[1], i)
    fd = os.open(name, os.O_CREAT | os.O_WRONLY | os.O_SYNC, 0o644)
    os.write(fd, b"x" * 4096)
    os.close(fd)
    os.unlink(name)
END
}
# The first file of a mount takes single locks, and lock and mark of a new file wait for the result of the first file.
whole_files
before=$(records_now)
whole_files
records=$(($(records_now) - before))
diag "$records records for $files files"
t "create, synchronous write, close and unlink take at most 10 records a file" test "$records" -le $((10 * files + 24))
# OPEN, lock and mark in the place of CREATE. The first one shows that opened files are written.
reopen_files() {
    python3 - "$kiln" "$files" "$1" <<'END'
import os, sys
for i in range(int(sys.argv[2])):
    fd = os.open("%s/on%d" % (sys.argv[1], i), os.O_WRONLY | getattr(os, sys.argv[3]))
    os.write(fd, b"open")
    os.close(fd)
END
}
# Sets `records` to the records of opening all files with the flag $1, writing and closing them.
count_reopened() {
    local before
    before=$(records_now)
    reopen_files "$1"
    wait_for 240 "no mark" not_marked "on$((files - 1))"
    records=$(($(records_now) - before))
    diag "$records records for $files files with $1"
}
count_reopened O_APPEND
t "open, append and close take at most 8 records a file" test "$records" -le $((8 * files + 24))
# The hold lasts over the TRUNCATE that the kernel sends after OPEN.
count_reopened O_TRUNC
t "open with O_TRUNC, write and close take at most 10 records a file" test "$records" -le $((10 * files + 24))
mount_end "$kiln"
mount_kiln v "$kiln" --compound=off
write_files off
t "with --compound=off each call has a message of its own" joined_is off 0 0
mount_end "$kiln"
kilnd_options=(--no-compound)
daemons_restart_all() {
    local daemon
    for daemon in $(volume_daemons v); do
        daemon_kill "$daemon"
        daemon_start "$daemon"
    done
}
daemons_restart_all
mount_kiln v "$kiln"
write_files plain
t "bricks of kilnd --no-compound get a message for each call" joined_is plain 0 0
mount_end "$kiln"
kilnd_options=()
daemons_restart_all
t "the replicas are equal" bricks_get_equal "${bricks[@]}"

# ---- deaths
# The hold of the file on fd 7 lasts until the file is closed.
hold_mount() {
    mount_kiln v "$kiln" --hard=0 --xlator-option='*.post-op-delay-secs=3600' --xlator-option='*.flush-behind=off' \
        --xlator-option='*.write-behind=off'
}
not_open() {
    ! has_open "$1"
}
mount_kiln v "$kiln" --hard=0 --xlator-option='*.release-wait-ms=60000'
: >"$kiln/closed"
t "a closed file is open at the brick while its RELEASE waits" has_open closed
mount_kill "$kiln"
t "mount killed before the RELEASE: the end of the session closes the file" wait_for 60 "its close" not_open closed
mount_volume v "$stock" plain --attribute-timeout=0 --entry-timeout=0
stock_appends() {
    echo stock >>"$stock/$1" && [[ $(cat "$stock/$1") == "$2"stock ]]
}
hold_mount
echo x >"$kiln/first"

exec 7>"$kiln/mark-mount"
t "a new file is locked and marked before its first write" wait_for 240 "the mark" is_marked mark-mount
mount_kill "$kiln" 7>&-
exec 7>&- || true
t "mount killed after lock and mark: a stock mount writes" stock_appends mark-mount ""

# The mount expects a write to an opened file when the last one was written.
opens_marked() {
    hold_mount
    echo old >"$kiln/$1"
    echo x >>"$kiln/first"
    exec 7>>"$kiln/$1"
    wait_for 240 "the mark" is_marked "$1"
}
t_here "an opened file is locked and marked before its first write" opens_marked open-mount
mount_kill "$kiln" 7>&-
exec 7>&- || true
t "mount killed after OPEN, lock and mark: a stock mount writes" stock_appends open-mount $'old\n'

# The same, and then the TRUNCATE.
is_marked_on_both() {
    is_marked "$1" 0 && is_marked "$1" 1
}
empties_marked() {
    hold_mount
    echo old >"$kiln/$1"
    echo x >>"$kiln/first"
    exec 7>"$kiln/$1"
    [[ ! -s ${bricks[0]}/$1 && ! -s ${bricks[1]}/$1 ]] && wait_for 240 "the marks" is_marked_on_both "$1"
}
t_here "an emptied file is locked and marked before its first write" empties_marked empty-mount
mount_kill "$kiln" 7>&-
exec 7>&- || true
t "mount killed after OPEN and TRUNCATE: a stock mount writes" stock_appends empty-mount ""

hold_mount
exec 7>"$kiln/write-mount"
echo one >&7
t "a written file keeps its mark" is_marked write-mount
mount_kill "$kiln" 7>&-
exec 7>&- || true
t "mount killed after the write: a stock mount writes behind it" stock_appends write-mount $'one\n'

hold_mount
echo x >"$kiln/second" # as for "first": a new file that is written makes the mount expect the same of the next
exec 7>"$kiln/mark-brick"
wait_for 240 "the mark" is_marked mark-brick
daemon_kill "${brick_daemon[${bricks[1]}]}"
t "brick killed after lock and mark: the write succeeds" eval 'echo two >&7'
exec 7>&-
is "$(cat "$kiln/mark-brick")" two "the file can be read"
daemon_start "${brick_daemon[${bricks[1]}]}"
mount_end "$kiln"

opens_marked open-brick
daemon_kill "${brick_daemon[${bricks[1]}]}"
t "brick killed after OPEN, lock and mark: the write succeeds" eval 'echo new >&7'
exec 7>&-
is "$(cat "$kiln/open-brick")" $'old\nnew' "the opened file can be read"
daemon_start "${brick_daemon[${bricks[1]}]}"
mount_end "$kiln"

empties_marked empty-brick
daemon_kill "${brick_daemon[${bricks[1]}]}"
t "brick killed after OPEN and TRUNCATE: the write succeeds" eval 'echo fresh >&7'
exec 7>&-
is "$(cat "$kiln/empty-brick")" fresh "the emptied file can be read"
daemon_start "${brick_daemon[${bricks[1]}]}"
mount_end "$kiln"

hold_mount
exec 7>"$kiln/write-brick"
echo three >&7
daemon_kill "${brick_daemon[${bricks[1]}]}"
exec 7>&-
is "$(cat "$kiln/write-brick")" three "brick killed after the write: the file can be read"
daemon_start "${brick_daemon[${bricks[1]}]}"
mount_end "$kiln"
shd_start v
t "the self-heal daemon clears all marks" wait_for 240 "heal" nothing_pending "${bricks[@]}"
t "the replicas are equal" bricks_get_equal "${bricks[@]}"
is "$(cat "${bricks[1]}"/{mark-brick,write-brick,write-mount,open-brick,empty-brick})" $'two\nthree\none\nstock\nold\nnew\nfresh' \
    "the killed brick has all writes"
mount_end "$stock"
