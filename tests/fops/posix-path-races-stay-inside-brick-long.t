#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Runs the unit test of path escapes, test-posix-escape, with many more rounds (KILN_ESCAPE_ROUNDS). A round is some
# twenty calls of each of three users, so each race runs over a million times. It runs on tmpfs, which reuses inode
# numbers late, and with fewer rounds on xfs, which reuses them at once.
# Covers: xlators/storage/posix/object/reach.c, xlators/storage/posix/object/handle.c

. "$(dirname "$0")/../lib/kiln.sh"

build=${KILN_BUILD:-$source_dir/build}
program=$build/xlators/storage/posix/test-posix-escape
make -s -C "$build" xlators/storage/posix/test-posix-escape >"$T/log/make" 2>&1

escape() { # ROUNDS
    KILN_ESCAPE_ROUNDS=$1 "$program" >"$T/log/escape" 2>"$T/log/escape.err" || { tail -n 20 "$T/log/escape"; return 1; }
}

# The program works in /dev/shm: both file systems are put there, for this script alone.
rounds=${KILN_ESCAPE_ROUNDS:-20000}
mount -t tmpfs -o size=4g escape /dev/shm
t "no call leaves the brick in $rounds rounds on tmpfs" escape "$rounds"
truncate -s 1g "$T/xfs.img"
mkfs.xfs -q "$T/xfs.img"
mount -o loop "$T/xfs.img" /dev/shm
t "no call leaves the brick in $((rounds / 10)) rounds on xfs" escape $((rounds / 10))
umount /dev/shm
