#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount reads the supplementary groups of a user from /proc through a descriptor that it keeps for each thread, at
# most once in 10 ms for the same thread, uid and gid. When a process gains or drops a group, the change applies from
# its next request on.
# Covers: xlators/mount/fuse/groups.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
command -v strace >/dev/null || skip_all "no strace"

files=200
mnt=$T/mnt
volume_new v 1x1
volume_start v
mount_kiln v "$mnt"
mkdir -m 777 "$mnt/root" "$mnt/user"
mkdir -m 770 "$mnt/secret"
chgrp 4242 "$mnt/secret"
touch "$mnt/of-group"
chown 21001:4242 "$mnt/of-group"

small_files() {
    python3 - "$1" "$2" $files <<'EOS'
import os, sys
folder, uid = sys.argv[1], int(sys.argv[2])
if uid:
    os.setgroups([uid, 4242, 4343]); os.setgid(uid); os.setuid(uid)
for i in range(int(sys.argv[3])):
    with open("%s/%d" % (folder, i), "w") as file:
        file.write("x" * 4096)
EOS
}
cpu_ticks() {
    awk '{ print $14 + $15 }' "/proc/${mount_pid[$mnt]}/stat"
}
is_traced() {
    local task
    for task in /proc/"${mount_pid[$mnt]}"/task/*; do
        grep -q "^TracerPid:[[:space:]]*[1-9]" "$task/status" || return 1
    done
}
# calls_of NAME UID: sets total, opens and reads_of_groups for UID's files, as strace counts, and the milliseconds.
calls_of() {
    strace -f -qq -p "${mount_pid[$mnt]}" -o "$T/$1.trace" &
    local tracer=$!
    wait_for 60 "strace to trace each thread" is_traced
    milliseconds=$(date +%s%3N)
    small_files "$mnt/$1" "$2"
    milliseconds=$(($(date +%s%3N) - milliseconds))
    kill -INT "$tracer"
    wait "$tracer" || true
    total=$(grep -cE '^[0-9]+ +[a-z0-9_]+\(' "$T/$1.trace")
    opens=$(grep -cE '(open|openat)\(.*"/proc/' "$T/$1.trace" || true)
    reads_of_groups=$(grep -cE '^[0-9]+ +pread64\(' "$T/$1.trace" || true)
}

small_files "$mnt/user" 21001 # warm: a place in the kernel's caches and in the table
small_files "$mnt/root" 0
rm -f "$mnt"/user/* "$mnt"/root/*
calls_of root 0
root_total=$total
calls_of user 21001
diag "system calls of kiln-mount for each of $files small files: root's $((root_total * 10 / files))/10, a user's $((total * 10 / files))/10; $opens opens and $reads_of_groups reads below /proc in $milliseconds ms"
t "a user's files need no open below /proc but the first" test "$opens" -le 3
t "groups are read" test "$reads_of_groups" -ge 1
t "groups are read at most once in 10 ms" test "$reads_of_groups" -le $((3 + milliseconds / 10))
t "a user's file costs at most three calls more than root's" test "$total" -le $((root_total + 3 * files))

t "a process has the rights of its groups, and of its new groups after a change" python3 - "$mnt/secret" "$mnt/of-group" <<'EOS'
import os, sys
os.setresgid(21001, 21001, 21001)
os.setgroups([4242])
# The uid changes, and the right to change groups stays: that of a server which acts for users.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(8, 1, 0, 0, 0) == 0 # PR_SET_KEEPCAPS
os.setresuid(21001, 21001, 21001)
class Header(ctypes.Structure): _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]
class Data(ctypes.Structure): _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]
setgid = 1 << 6
header, data = Header(0x20080522, 0), (Data * 2)(Data(setgid, setgid, 0), Data(0, 0, 0))
assert libc.capset(ctypes.byref(header), data) == 0, os.strerror(ctypes.get_errno())
def may():
    try:
        os.close(os.open(sys.argv[1] + "/f", os.O_CREAT | os.O_RDWR, 0o660))
        os.unlink(sys.argv[1] + "/f")
        return True
    except PermissionError:
        return False
for round in range(20):
    os.setgroups([4242])
    assert may(), "the group that it has got does not count, round %d" % round
    os.setgroups([])
    assert not may(), "the group that it has given up counts, round %d" % round
for round in range(20): # the brick clears S_ISGID of a caller who is not in the group
    os.setgroups([])
    may()
    os.setgroups([4242])
    os.chmod(sys.argv[2], 0o2755)
    assert os.stat(sys.argv[2]).st_mode & 0o2000, "the bit of the group that it has got is lost, round %d" % round
    os.chmod(sys.argv[2], 0o755)
    may()
    os.setgroups([])
    os.chmod(sys.argv[2], 0o2755)
    assert not os.stat(sys.argv[2]).st_mode & 0o2000, "the bit of the group that it has given up stays, round %d" % round
EOS

t "a process that acts for two users in turn has the rights of each at once" python3 - "$mnt/secret" <<'EOS'
import os, sys
name = sys.argv[1] + "/of-two"
def may(uid, gid, groups):
    os.seteuid(0)
    os.setgroups(groups)
    os.setegid(gid)
    os.seteuid(uid)
    try:
        os.close(os.open(name, os.O_CREAT | os.O_RDWR, 0o660))
        os.unlink(name)
        return True
    except PermissionError:
        return False
for round in range(50):
    assert may(21001, 21001, [4242]), "the group of the first user does not count, round %d" % round
    assert not may(21002, 21001, []), "the second user has the group of the first, round %d" % round
    assert may(21001, 21001, [4242]), "the group of the first user does not count again, round %d" % round
    assert not may(21001, 21003, []), "a user with another primary group has the groups from before, round %d" % round
EOS
