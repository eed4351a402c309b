#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A program outside the tree, built with pkg-config against an installed copy of libkiln-mempool, works in each mode,
# under each allocator, under ASan and under valgrind.
#
#   tests/pool/pool-installed-library-works.t [BUILD-DIRECTORY]
#
# The script installs into a temporary directory from a configured build (default: $KILN_BUILD, or build/ of this
# tree). The output is TAP.
# Covers: libglusterfs/mem

set -u
top=$(dirname "$(readlink -f "$0")")/../..
build=${1:-${KILN_BUILD:-$top/build}}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n=0 failed=0

result() { # STATUS NAME
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; failed=1; sed 's/^/# /' "$dir/log"; fi
}

skip() {
    n=$((n + 1))
    echo "ok $n - $1 # SKIP $2"
}

try() { # NAME COMMAND...
    local name=$1
    shift
    "$@" > "$dir/log" 2>&1
    result $? "$name"
}

preloaded() { # LIBRARY
    if [ -n "$(LD_PRELOAD=$1 /bin/true 2>&1)" ]; then skip "under $1" "not installed"; return; fi
    try "under $1" env LD_PRELOAD="$1" "$dir/example"
}

if [ ! -f "$build/Makefile" ]; then echo "Bail out! no configured build in $build"; exit 1; fi
if grep -q '^SAN_FLAGS = ..*' "$build/Makefile"; then echo "1..0 # SKIP a sanitizer's build is not installed"; exit 0; fi
prefix=$(sed -n 's/^prefix = //p' "$build/Makefile")
make -s -C "$build" DESTDIR="$dir/root" install-libLTLIBRARIES install-kilnmemHEADERS install-pkgconfigDATA \
    install-dist_mempoolexampleDATA > "$dir/log" 2>&1
result $? "installs"
pc=$(find "$dir/root" -name kiln-mempool.pc)
export PKG_CONFIG_PATH=${pc%/*} LD_LIBRARY_PATH
flags=$(pkg-config --define-variable=prefix="$dir/root$prefix" --define-variable=libdir="${pc%/pkgconfig/*}" \
    --define-variable=includedir="$dir/root$prefix/include" --cflags --libs kiln-mempool)
LD_LIBRARY_PATH=${pc%/pkgconfig/*}
source=$(find "$dir/root" -name mempool-example.c)
# shellcheck disable=SC2086
try "a program builds with pkg-config" ${CC:-cc} -std=gnu17 -O2 -Wall -Wextra -Werror "$source" $flags -o "$dir/example"
# shellcheck disable=SC2086
try "and a C++ program includes the headers" ${CXX:-c++} -Wall -Werror -x c++ -fsyntax-only $flags - \
    <<< $'#include <mem/mem-inline.h>\nint main() { void *p = mem_get_t(2); mem_put_t(2, p); }'
for mode in on off poison trace:10; do
    try "in mode $mode" env KILN_POOLS=$mode "$dir/example"
done
for lib in libjemalloc.so.2 libmimalloc.so.2.0 libtcmalloc_minimal.so.4; do
    preloaded $lib
done
try "without caches" env KILN_POOL_BYPASS='*' "$dir/example"
# shellcheck disable=SC2086
try "builds under ASan" ${CC:-cc} -std=gnu17 -g -fsanitize=address "$source" $flags -o "$dir/example-asan"
try "under ASan" env KILN_POOL_SWEEP=10 "$dir/example-asan"
try "under ASan, pools on" env KILN_POOLS=on "$dir/example-asan"
if command -v valgrind > /dev/null; then
    for mode in off on poison; do
        try "under valgrind in mode $mode" env KILN_POOLS=$mode valgrind -q --error-exitcode=9 --leak-check=full "$dir/example"
    done
else
    skip "under valgrind" "not installed"
fi
echo "1..$n"
exit $failed
