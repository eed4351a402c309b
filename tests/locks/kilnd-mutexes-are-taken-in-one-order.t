#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Mutexes inside kilnd: no thread takes a mutex twice, takes two mutexes in opposite orders, or waits for something
# else while it holds a mutex. tests/locks/lock-order detects such orders without the bad luck that an actual
# deadlock needs, in unit tests and in a daemon under attack.
# Covers: libglusterfs/base/lock-order.h, tests/locks/lock-order.c

. "$(dirname "$0")/../lib/own-root.sh"
. "$tests_dir/wire/attacks.sh"
[[ $BRICKD == kiln ]] || skip_all "its locks are not ours to order"
[[ -z $(attacks_sanitizer) ]] || skip_all "a sanitizer has functions of its own in these places"
command -v "${CC:-cc}" addr2line nm >/dev/null || skip_all "no compiler"
export CCACHE_DISABLE=1 # it would leave files where none may be

# Programs that the library has to abort, and programs that it must not abort. Each text is the program's main().
declare -A wrong=(
    [again]='lock(a); lock(a);'
    [around]='lock(a); lock(b); unlock(b); unlock(a); lock(b); lock(a);'
    [in a ring]='lock(a); lock(b); free_all(); lock(b); lock(c); free_all(); lock(c); lock(a);'
    [of a kind]='lock(one()); lock(one());'
    [waiting]='lock(a); lock(b); pthread_cond_wait(&cond, b);'
)
right='lock(a); lock(b); free_all(); lock(a); lock(c); free_all(); lock(b); if (pthread_mutex_trylock(a)) abort(); free_all(); lock(&stripes[3]); lock(&stripes[5]);'

build_lock_test() {
    cat >"$T/test.c" <<END
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t ma = PTHREAD_MUTEX_INITIALIZER, mb = PTHREAD_MUTEX_INITIALIZER, mc = PTHREAD_MUTEX_INITIALIZER, *a = &ma, *b = &mb, *c = &mc;
static pthread_mutex_t stripes[8], many[8][100];
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t *held[16];
static int count, made;
static void lock(pthread_mutex_t *m) { if (pthread_mutex_lock(m)) abort(); held[count++] = m; }
static void unlock(pthread_mutex_t *m) { pthread_mutex_unlock(m); count--; }
static void free_all(void) { pthread_mutex_unlock(a); pthread_mutex_unlock(b); pthread_mutex_unlock(c); count = 0; }
static pthread_mutex_t *one(void) { pthread_mutex_t *m = many[made++]; pthread_mutex_init(m, NULL); return m; }
int main(void) {
    for (int i = 0; i < 8; i++) pthread_mutex_init(&stripes[i], NULL);
    (void)cond, (void)one, (void)unlock, (void)free_all;
    $1
}
END
    "${CC:-cc}" -std=gnu17 -O0 -o "$T/test" "$T/test.c"
}

said_by() {
    timeout 60 env LD_PRELOAD="$T/lock-order.so" "$T/test" 2>&1 || true
}

"${CC:-cc}" -std=gnu17 -D_GNU_SOURCE -O1 -g -shared -fPIC -o "$T/lock-order.so" "$tests_dir/locks/lock-order.c" -ldl
for what in "${!wrong[@]}"; do
    build_lock_test "${wrong[$what]}"
    t "the library detects locks taken $what" grep '^LOCK ORDER' <(said_by)
done
build_lock_test "$right"
is "$(said_by)" "" "the library accepts locks taken in one order"

# A daemon with the library. On a finding the daemon aborts, and the script shows its output with the stacks.
printf '#!/bin/bash\nLD_PRELOAD=%q exec %q "$@"\n' "$T/lock-order.so" "$KILND" >"$T/kilnd"
chmod 755 "$T/kilnd"
KILND=$T/kilnd
attacks_run . '^(a_lock_outlives_its_client.*|removals_that_wait_take_no_slot|pieces_of_records_before_the_login)$'
for b in b0 b1; do
    place_tmpfs "$T/v/$b" 512m
    mount -o remount,nodev "$T/v/$b"
done
volume_daemon=
volume_new v 2x1
volume_start v
read -r brick other <<<"${volume_bricks[v]}"
include "a daemon with the library answers random calls" \
    python3 -B "$tests_dir/wire/live_fuzz.py" "$(cat "$T/v-$BRICKD.port")" "$brick" "$other" --minutes 0.4 --processes 3
t "the daemon listens after the calls" daemon_listens v-kiln
t_here "the daemon ends with status 0" daemon_stop v-kiln
is "$(grep -ha '^LOCK ORDER' "$T"/log/*.out)" "" "the library has found no wrong order in the daemon"
