/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-shared: interface for another cache that ages together with the pools: coro/stack-pool. Only that
 * cache and mem-internal.h include it. */
#ifndef KILN_MEM_SHARED_H
#define KILN_MEM_SHARED_H

#include "mem/mem-inline.h"
#include "mem/mem-pool.h"

#include <pthread.h>

#if defined(__SANITIZE_THREAD__)
#define MEM_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MEM_TSAN 1
#endif
#endif
#ifndef MEM_TSAN
#define MEM_TSAN 0
#endif

/* Makes objects that pooled objects point to count as not leaked. Weak, because the program may be built
 * with ASan, and the library not. */
void __lsan_register_root_region(const void *p, size_t n) __attribute__((weak));
void __lsan_unregister_root_region(const void *p, size_t n) __attribute__((weak));
#define MEM_LSAN_ROOT(p, n) (__lsan_register_root_region ? __lsan_register_root_region((p), (n)) : (void)0)
#define MEM_LSAN_UNROOT(p, n)                                                                                \
    (__lsan_unregister_root_region ? __lsan_unregister_root_region((p), (n)) : (void)0)

/* ASan's functions to forbid and allow access to bytes. */
#if MEM_ASAN
void __asan_poison_memory_region(void const volatile *p, size_t n);
void __asan_unpoison_memory_region(void const volatile *p, size_t n);
#define MEM_ASAN_HIDE(p, n) __asan_poison_memory_region((p), (n))
#define MEM_ASAN_SHOW(p, n) __asan_unpoison_memory_region((p), (n))
#else
#define MEM_ASAN_HIDE(p, n) ((void)(p), (void)(n))
#define MEM_ASAN_SHOW(p, n) ((void)(p), (void)(n))
#endif

/* Relaxed access to counters that several threads add to, on slow paths only. */
#define MEM_ADD(counter, by) __atomic_fetch_add(&(counter), (by), __ATOMIC_RELAXED)
#define MEM_READ(counter) __atomic_load_n(&(counter), __ATOMIC_RELAXED)
#define MEM_WRITE(counter, v) __atomic_store_n(&(counter), (v), __ATOMIC_RELAXED)
#define MEM_BUMP(counter, by) MEM_WRITE(counter, MEM_READ(counter) + (by)) /* under the lock of its writers */

/* ---- a small lock (mem-lock.c) --------------------------------------------------------------- */

struct mem_lock {
    uint32_t word; /* 0 free, 1 held, 2 held and waited for */
};

/* The slow halves of mem_lock() and mem_unlock(): mem_lock_wait() sleeps until the caller has the lock;
 * mem_lock_wake() wakes a sleeping thread. */
void mem_lock_wait(struct mem_lock *l);
void mem_lock_wake(struct mem_lock *l);

/* Take and release the lock; mem_trylock(): true if the caller has it now. Any thread, no other errors,
 * not in a signal handler, not recursive. */
static inline bool
mem_trylock(struct mem_lock *l)
{
    uint32_t free = 0;

    return __atomic_compare_exchange_n(&l->word, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}
static inline void
mem_lock(struct mem_lock *l)
{
    if (!mem_trylock(l))
        mem_lock_wait(l);
}
static inline void
mem_unlock(struct mem_lock *l)
{
    if (__atomic_exchange_n(&l->word, 0, __ATOMIC_RELEASE) == 2)
        mem_lock_wake(l);
}

/* ---- options and mode (mem-option.c) --------------------------------------------------------- */

enum mem_mode { MEM_MODE_UNSET, MEM_MODE_ON, MEM_MODE_OFF, MEM_MODE_POISON, MEM_MODE_TRACE };

struct mem_settings {
    enum mem_mode mode;
    bool latched; /* the first pool was made, so mode and handshake are fixed */
    bool cooperative, abort_on_error, abort_set, pressure;
    bool valgrind;
    bool keeps; /* empty spans are not given back */
    uint32_t sweep_ms;
    uint32_t trace_every;
    size_t cap;
};
extern struct mem_settings mem_set;

void mem_settle(void); /* reads the environment and fixes mode and handshake; idempotent, any thread */
enum mem_mode mem_mode_now(void); /* returns the mode in force; fixes it */
/* Writes one line to the destination of messages (mem_pools_set_message_fn); any thread, with any lock of
 * the pools held. */
void mem_message(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes the nth allocation from the system fail, for tests (0 = none). */
extern int64_t mem_test_fail_at;
extern bool mem_test_fail_always; /* with fail_at > 0: all further allocations fail, too */
bool mem_test_fails(void);

uint64_t mem_now_us(void); /* monotonic */

/* ---- the sweeper and its followers (mem-sweep.c) --------------------------------------------- */

extern pthread_mutex_t mem_sweep_mutex; /* one sweep or trim at a time */

void mem_sweeper_rouse(void); /* called when a thread becomes active: ends dormancy */

/* Another cache that ages with the pools (stack-pool). sweep and fork run under the sweep mutex. */
struct mem_follower {
    /* 0: a period is over; 1 .. 3: a trim of that level. Returns the bytes given back */
    size_t (*sweep)(int level);
    bool (*quiet)(void);        /* true if the next sweep would find nothing to do */
    void (*fork)(int step);     /* 0 prepare, 1 parent, 2 child */
    struct mem_follower *next;
};
extern struct mem_follower *mem_followers;
void mem_sweep_follow(struct mem_follower *f); /* adds a follower, which is never removed */

#endif
