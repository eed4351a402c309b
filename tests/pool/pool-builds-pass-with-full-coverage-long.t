#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The tests of the memory pool reach every line of the pool. The tests and the stress test pass in every build
# (sanitizers, valgrind, clang, the pool's modes). A process that runs short of memory returns its cached
# memory. With KILN_STRESS_MINUTES each part of the stress test runs for that long.
# Covers: libglusterfs/mem

here=$(dirname "$(readlink -f "$0")")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
n=0

t() { # NAME COMMAND...
    local name=$1 status=0
    shift
    n=$((n + 1))
    "$@" > "$log" 2>&1 || status=$?
    case $status in
    0) echo "ok $n - $name" ;;
    77) echo "ok $n - $name # SKIP $(tail -1 "$log")" ;;
    *) echo "not ok $n - $name" ;;
    esac
    sed 's/^/# /' "$log"
}

t "the tests reach every line of the pool" "$here/coverage"
t "the pools of a process short of memory return their cached memory" "$here/pressure"
for leg in $("$here/stress" --list); do
    t "the pool's tests and stress pass in the leg $leg" "$here/stress" ${KILN_STRESS_MINUTES:+--minutes "$KILN_STRESS_MINUTES"} "$leg"
done
echo "1..$n"
