/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-option: mode and options, from calls and from the environment, and the messages. */
#include "mem/mem-internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

struct mem_settings mem_set = { .sweep_ms = 10000, .cap = SIZE_MAX, .pressure = true };

static pthread_mutex_t set_mutex = PTHREAD_MUTEX_INITIALIZER;
static bool env_read;

/* ---- values ---------------------------------------------------------------------------------- */

static int
parse_number(const char *text, uint64_t max, uint64_t *out)
{
    char *end;
    unsigned long long v;

    if (*text < '0' || *text > '9')
        return -EINVAL;
    errno = 0;
    v = strtoull(text, &end, 10);
    if (errno || *end || v > max)
        return -EINVAL;
    *out = v;
    return 0;
}

static int
parse_word(const char *text, const char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(text, words[i]))
            return i;
    return -EINVAL;
}

static int
set_pools_mode(const char *text)
{
    uint64_t every;

    if (mem_set.latched)
        return -EBUSY;
    if (!strcmp(text, "on"))
        mem_set.mode = MEM_MODE_ON;
    else if (!strcmp(text, "off"))
        mem_set.mode = MEM_MODE_OFF;
    else if (!strcmp(text, "poison"))
        mem_set.mode = MEM_MODE_POISON;
    else if (!strncmp(text, "trace:", 6) && !parse_number(text + 6, UINT32_MAX, &every) && every) {
        mem_set.mode = MEM_MODE_TRACE;
        mem_set.trace_every = (uint32_t)every;
    } else
        return -EINVAL;
    return 0;
}

static const char *const release_words[] = { "drop", "keep" };
static const char *const handshake_words[] = { "auto", "cooperative" };
static const char *const flag_words[] = { "0", "1" };

static int
set_release(const char *text)
{
    int w = parse_word(text, release_words, 2);

    if (w >= 0)
        MEM_WRITE(mem_set.keeps, w);
    return w < 0 ? w : 0;
}

/* Sets an option that can be chosen only before the first pool is made. */
static int
set_early(bool *where, const char *text, const char *const *words)
{
    int w = parse_word(text, words, 2);

    if (w < 0)
        return w;
    if (mem_set.latched)
        return -EBUSY;
    *where = w;
    return 0;
}

static int
set_sweep(const char *text)
{
    uint64_t ms;

    if (parse_number(text, 24 * 3600 * 1000, &ms))
        return -EINVAL;
    MEM_WRITE(mem_set.sweep_ms, (uint32_t)ms);
    mem_sweeper_kick();
    return 0;
}

static int
set_cap(const char *text)
{
    uint64_t bytes;

    if (parse_number(text, SIZE_MAX / 2, &bytes))
        return -EINVAL;
    MEM_WRITE(mem_set.cap, (size_t)bytes);
    return 0;
}

static int
set_abort(const char *text)
{
    int w = parse_word(text, flag_words, 2);

    if (w < 0)
        return w;
    mem_set.abort_on_error = w;
    mem_set.abort_set = true;
    return 0;
}

/* Names of pools, with commas between them. set_mutex held. */
static char bypass[1024];

static int
set_bypass(const char *text)
{
    if (strlen(text) >= sizeof(bypass))
        return -EINVAL;
    strcpy(bypass, text);
    return 0;
}

/* Should a pool of that name be made without caches? */
bool
mem_option_bypasses(const char *name)
{
    const size_t len = strlen(name);
    bool found = false;

    pthread_mutex_lock(&set_mutex);
    for (const char *at = bypass; *at && !found;) {
        size_t n = strcspn(at, ",");

        found = (n == len && !memcmp(at, name, n)) || (n == 1 && *at == '*');
        at += n + (at[n] == ',');
    }
    pthread_mutex_unlock(&set_mutex);
    return found;
}

static int
set_one(const char *key, const char *value)
{
    if (!strcmp(key, "mode"))
        return set_pools_mode(value);
    if (!strcmp(key, "sweep"))
        return set_sweep(value);
    if (!strcmp(key, "release"))
        return set_release(value);
    if (!strcmp(key, "cap"))
        return set_cap(value);
    if (!strcmp(key, "abort"))
        return set_abort(value);
    if (!strcmp(key, "bypass"))
        return set_bypass(value);
    if (!strcmp(key, "handshake"))
        return set_early(&mem_set.cooperative, value, handshake_words);
    if (!strcmp(key, "pressure"))
        return set_early(&mem_set.pressure, value, flag_words);
    return -EINVAL;
}

/* ---- the environment ------------------------------------------------------------------------- */

static void
read_environment(void)
{
    static const char *const names[][2] = {
        { "mode", "KILN_POOLS" },           { "sweep", "KILN_POOL_SWEEP" },
        { "release", "KILN_POOL_RELEASE" }, { "cap", "KILN_POOL_CAP" },
        { "handshake", "KILN_POOL_HANDSHAKE" }, { "abort", "KILN_POOL_ABORT" },
        { "pressure", "KILN_POOL_PRESSURE" }, { "bypass", "KILN_POOL_BYPASS" },
    };

    if (env_read)
        return;
    env_read = true;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = secure_getenv(names[i][1]);

        if (value && *value && set_one(names[i][0], value))
            mem_message(LOG_WARNING, "mem-pool: %s=%s is not understood, ignored", names[i][1], value);
    }
}

/* Defined under ASan. Under ASan or valgrind, pools would hide the errors that the tool looks for. */
void __asan_init(void) __attribute__((weak));

static void
settle_locked(void)
{
    read_environment();
    if (mem_set.latched)
        return;
    mem_set.valgrind = RUNNING_ON_VALGRIND;
    if (mem_set.mode == MEM_MODE_UNSET)
        mem_set.mode = mem_set.valgrind || __asan_init ? MEM_MODE_OFF : MEM_MODE_ON;
    if (!mem_set.abort_set)
        mem_set.abort_on_error = mem_set.mode == MEM_MODE_POISON || mem_set.mode == MEM_MODE_TRACE;
    if (mem_set.cap == SIZE_MAX) {
        long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
        size_t share = pages > 0 && page > 0 ? (size_t)pages * (size_t)page / 256 : 0;

        mem_set.cap = share > ((size_t)64 << 20) ? share : (size_t)64 << 20;
    }
    if (!mem_membarrier_register())
        mem_set.cooperative = true;
    mem_magazines_init();
    __atomic_store_n(&mem_set.latched, true, __ATOMIC_RELEASE);
}

void
mem_settle(void)
{
    if (__atomic_load_n(&mem_set.latched, __ATOMIC_ACQUIRE))
        return;
    pthread_mutex_lock(&set_mutex);
    settle_locked();
    pthread_mutex_unlock(&set_mutex);
}

enum mem_mode
mem_mode_now(void)
{
    mem_settle();
    return mem_set.mode;
}

/* A call overrides the environment, which is therefore read first. */
int
mem_pools_set_option(const char *key, const char *value)
{
    pthread_mutex_lock(&set_mutex);
    read_environment();
    int err = set_one(key, value);
    pthread_mutex_unlock(&set_mutex);
    return err;
}

int
mem_pools_set_mode(const char *mode)
{
    return mem_pools_set_option("mode", mode);
}

const char *
mem_pools_mode(void)
{
    static const char *const names[] = { "on", "on", "off", "poison", "trace" };

    pthread_mutex_lock(&set_mutex);
    read_environment();
    enum mem_mode mode = mem_set.mode;
    pthread_mutex_unlock(&set_mutex);
    if (mode == MEM_MODE_UNSET && (RUNNING_ON_VALGRIND || __asan_init))
        mode = MEM_MODE_OFF;
    return names[mode];
}

/* ---- messages -------------------------------------------------------------------------------- */

enum { FOLD_SLOTS = 16, FOLD_BURST = 10, FOLD_US = 10000000 };

static struct {
    const char *format;
    uint64_t since_us;
    uint32_t said, folded;
} fold[FOLD_SLOTS];
static struct mem_lock fold_lock;
static mem_message_fn message_fn;

void
mem_pools_set_message_fn(mem_message_fn fn)
{
    __atomic_store_n(&message_fn, fn, __ATOMIC_RELEASE);
}

/* Decides whether a message is written: ten of a kind in ten seconds; further ones are counted. */
static bool
message_allowed(const char *format, uint32_t *folded)
{
    uint64_t now = mem_now_us();
    unsigned i = (unsigned)((uintptr_t)format >> 4) % FOLD_SLOTS;
    bool allowed;

    mem_lock(&fold_lock);
    if (fold[i].format != format || now - fold[i].since_us > FOLD_US) {
        *folded = fold[i].format == format ? fold[i].folded : 0;
        fold[i].format = format;
        fold[i].since_us = now;
        fold[i].said = fold[i].folded = 0;
    }
    allowed = fold[i].said < FOLD_BURST;
    fold[i].said += allowed;
    fold[i].folded += !allowed;
    mem_unlock(&fold_lock);
    return allowed;
}

void
mem_message(int level, const char *format, ...)
{
    mem_message_fn fn = __atomic_load_n(&message_fn, __ATOMIC_ACQUIRE);
    char text[512];
    uint32_t folded = 0;
    va_list args;
    int n;

    if (!message_allowed(format, &folded))
        return;
    va_start(args, format);
    n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (folded && n > 0 && (size_t)n < sizeof(text))
        snprintf(text + n, sizeof(text) - (size_t)n, " (%u more like this were not shown)", folded);
    if (fn)
        fn(level, text);
    else
        dprintf(STDERR_FILENO, "%s\n", text);
}

void
mem_option_fork(int step)
{
    if (step == 0) {
        pthread_mutex_lock(&set_mutex);
        mem_lock(&fold_lock);
        return;
    }
    mem_unlock(&fold_lock);
    pthread_mutex_unlock(&set_mutex);
}

/* ---- fault injection ------------------------------------------------------------------------- */

int64_t mem_test_fail_at;
bool mem_test_fail_always;

bool
mem_test_fails(void)
{
    if (MEM_READ(mem_test_fail_at) <= 0)
        return false;
    return __atomic_sub_fetch(&mem_test_fail_at, 1, __ATOMIC_RELAXED) == 0 || mem_test_fail_always;
}
