#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A kiln-mount may not have more memory than it has (RLIMIT_AS) while applications make, write and list files: each call is answered, some with
# ENOMEM, nobody hangs, the process lives, and its log says what it lacks. When the limit is gone everything works.

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
! grep -q '^SAN_FLAGS = ..*' "$(dirname "$KILN_MOUNT")/Makefile" || skip_all "a sanitizer maps terabytes"
command -v prlimit >/dev/null || skip_all "there is no prlimit"

mount_graph=whole
mnt=$T/mnt log=$T/log/kiln-mount-mnt.log
volume_new v 2x2
volume_start v
mount_kiln v "$mnt"
wait_for 240 "the volume" test -d "$mnt/."
pid=${mount_pid[$mnt]}

cat >"$T/hungry.py" <<'EOS'
"""Says how many calls were answered with what."""
import collections
import errno
import os
import sys

answers = collections.Counter()


def attempt(function, *args):
    try:
        result = function(*args)
        answers["done"] += 1
        return result
    except OSError as error:
        answers[errno.errorcode[error.errno]] += 1
        return None


fds = []
for i in range(200):
    fd = attempt(os.open, "%s/%s-%d-%d" % (sys.argv[1], "x" * 150, os.getpid(), i), os.O_RDWR | os.O_CREAT, 0o644)
    if fd is not None:
        fds.append(fd)
        attempt(os.pwrite, fd, bytes(131072), 0)
        attempt(os.setxattr, fd, "user.large", b"x" * 8000)
    if i % 50 == 0:
        attempt(os.listdir, sys.argv[1])
for fd in fds:
    attempt(os.close, fd)
print(*("%s=%d" % each for each in sorted(answers.items())), flush=True)
EOS

hungry() {
    local i status=0
    local -a all=()
    for i in {1..6}; do
        timeout 60 python3 "$T/hungry.py" "$mnt" >"$T/told.$i" 2>&1 &
        all+=($!)
    done
    for i in "${all[@]}"; do
        wait "$i" || status=1
    done
    return "$status"
}

kib() {
    awk '/^VmSize:/ { print $2 }' "/proc/$pid/status"
}

works() {
    seq 1000 >"$mnt/after" && cmp <(seq 1000) "$mnt/after"
}

prlimit --pid "$pid" --as=$(($(kib) * 1024)):
t_here "without memory each call is answered" hungry
t "some of them with ENOMEM" grep -q ENOMEM "$T"/told.*
diag "$(cat "$T"/told.*)"
t "the log says what is lacking" grep -qE "no memory|out of memory" "$log"
t "the process lives" kill -0 "$pid"
prlimit --pid "$pid" --as=unlimited:
t "the limit is gone: everything works" wait_for 60 "it to work" works
t_here "unmounted" mount_end "$mnt"
