/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-internal: what the files of this folder share. Nothing outside includes it.
 *
 * Lock order, outermost first:
 *   mem_sweep_mutex      one sweep or trim at a time; magazines are freed only under it or by their holder
 *   mem_registry_mutex   the list of threads, the table of pools, owners; held while a thread is LOCKED
 *   depot.lock           one pool's full and empty magazines
 *   class.lock           one pool's (or magazine size's) spans
 *   reservation lock     2 MiB mappings
 * A thread inside its bracket (busy = 1) may take the last three, never the first two.
 */
#ifndef KILN_MEM_INTERNAL_H
#define KILN_MEM_INTERNAL_H

#ifdef MEM_TEST_HOOKS
enum mem_hook { O1, O2, OC, O3, O4, S1, S2, S3, S4 };
void mem_test_hook(enum mem_hook point);
#define MEM_HOOK(point) mem_test_hook(point)
#endif

#include "mem/mem-inline.h"
#include "mem/mem-pool.h"

#include <assert.h>
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

#define MEM_IDS 256
#define MEM_OWNERS 4096
#define MEM_CAP_MAX 256 /* objects in the largest magazine */

/* What pooled objects point to is not leaked. Weak: the program may be built with ASan, and the library not. */
void __lsan_register_root_region(const void *p, size_t n) __attribute__((weak));
void __lsan_unregister_root_region(const void *p, size_t n) __attribute__((weak));
#define MEM_LSAN_ROOT(p, n) (__lsan_register_root_region ? __lsan_register_root_region((p), (n)) : (void)0)
#define MEM_LSAN_UNROOT(p, n) (__lsan_unregister_root_region ? __lsan_unregister_root_region((p), (n)) : (void)0)

#if MEM_ASAN
void __asan_poison_memory_region(void const volatile *p, size_t n);
void __asan_unpoison_memory_region(void const volatile *p, size_t n);
#define MEM_ASAN_HIDE(p, n) __asan_poison_memory_region((p), (n))
#define MEM_ASAN_SHOW(p, n) __asan_unpoison_memory_region((p), (n))
#else
#define MEM_ASAN_HIDE(p, n) ((void)(p), (void)(n))
#define MEM_ASAN_SHOW(p, n) ((void)(p), (void)(n))
#endif

/* Relaxed figures that several threads add to, on slow paths only. */
#define MEM_ADD(counter, by) __atomic_fetch_add(&(counter), (by), __ATOMIC_RELAXED)
#define MEM_READ(counter) __atomic_load_n(&(counter), __ATOMIC_RELAXED)
#define MEM_WRITE(counter, v) __atomic_store_n(&(counter), (v), __ATOMIC_RELAXED)
#define MEM_BUMP(counter, by) MEM_WRITE(counter, MEM_READ(counter) + (by)) /* under the lock of its writers */

/* ---- a small lock (mem-lock.c) ---------------------------------------------------------------- */

struct mem_lock {
    uint32_t word; /* 0 free, 1 held, 2 held and waited for */
};

void mem_lock_wait(struct mem_lock *l);
void mem_lock_wake(struct mem_lock *l);

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

/* ---- options and mode (mem-option.c) ---------------------------------------------------------- */

enum mem_mode { MEM_MODE_UNSET, MEM_MODE_ON, MEM_MODE_OFF, MEM_MODE_POISON, MEM_MODE_TRACE };
enum mem_release { MEM_RELEASE_KEEP, MEM_RELEASE_LAZY, MEM_RELEASE_DROP, MEM_RELEASE_UNMAP };

struct mem_settings {
    enum mem_mode mode;
    bool latched; /* the first object was taken: mode, backend and handshake are settled */
    bool malloc_backend, cooperative, abort_on_error, abort_set, pressure;
    bool valgrind;
    enum mem_release release;
    uint32_t sweep_ms;
    uint32_t trace_every;
    size_t cap;
};
extern struct mem_settings mem_set;

void mem_settle(void); /* read the environment and latch; idempotent, any thread */
enum mem_mode mem_mode_now(void);
bool mem_option_bypasses(const char *pool_name);
void mem_option_fork(int step);
void mem_message(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Tests make the nth allocation from the system fail (0 = none). */
extern int64_t mem_test_fail_at;
extern bool mem_test_fail_always; /* from the first on, with fail_at > 0 */
bool mem_test_fails(void);

/* ---- spans (mem-span.c) ----------------------------------------------------------------------- */

struct mem_span;

/* Slots of one size. */
struct mem_class {
    struct mem_lock lock;
    uint32_t id;               /* the pool's, 0 for magazines */
    uint32_t stride;           /* bytes from slot to slot */
    uint32_t offset;           /* from a slot's start to the object */
    uint32_t first;            /* from a span's start to its first slot */
    uint32_t span_bytes;       /* power of two; 0: every slot is a malloc of its own */
    uint32_t per_span, align;
    uint64_t reciprocal;       /* of stride, for slot numbers */
    struct mem_span *partial_head, *partial_tail; /* some slots free; fuller ones first */
    struct mem_span *empty;    /* all slots free, waiting to be released */
    uint32_t spans, empties;
    uint64_t carved, returned; /* objects */
    uint64_t carved_swept;     /* carved at the last sweep */
};

/* header and trailer: bytes kept before and after the object in its slot */
void mem_class_init(struct mem_class *c, uint32_t id, size_t size, size_t align, size_t header, size_t trailer,
                    bool spread);
size_t mem_class_alloc(struct mem_class *c, void **objects, size_t n); /* how many it got */
void mem_class_free(struct mem_class *c, void *const *objects, size_t n);
size_t mem_class_release(struct mem_class *c, bool all); /* empty spans back to their reservation; bytes */
bool mem_class_idle(struct mem_class *c); /* nothing carved since the last call */
size_t mem_class_trim_pages(struct mem_class *c);        /* pages of free slots in used spans; bytes */
void mem_class_check(struct mem_class *c);
size_t mem_reservations_release(void); /* pages and mappings back to the system; bytes */

/* What lies at p: the pool id of its span and the start of the object there; false if not in a span. */
bool mem_span_find(const void *p, uint32_t *id, void **object);

extern size_t mem_reserved_bytes, mem_resident_bytes;
extern uint64_t mem_released_bytes;
void mem_span_fork(int step); /* 0 prepare, 1 parent, 2 child */

void mem_magazines_init(void);
struct mem_magazine *mem_magazine_new(uint32_t cap);
void mem_magazine_free(struct mem_magazine *m);
size_t mem_magazines_release(bool all);
bool mem_magazines_quiet(void); /* no empty span is kept */

/* ---- depot (mem-depot.c) ---------------------------------------------------------------------- */

struct mem_depot {
    struct mem_lock lock;
    uint32_t m;                      /* objects in a new magazine, adapts between m_base and m_max */
    uint32_t m_base, m_max;
    uint32_t contended, visits;      /* since m was last looked at */
    uint64_t visits_total, visits_swept, mark_us;
    struct mem_magazine *hot, *cold; /* with objects, mostly full */
    struct mem_magazine *empty;
    struct mem_magazine *doomed;     /* cold ones handed in by threads, for the sweeper to free */
    uint32_t nhot, ncold, nempty;    /* magazines */
};

struct mem_pool {
    /* read on every call */
    uint32_t id;
    uint32_t line;     /* from a thread's block to its line of this pool */
    uint64_t word;     /* of a live object without an owner */
    bool counts_owners; /* its objects lie in no span, where a scan would find them */
    uint32_t flags;
    size_t size, zero_len, align;
    mem_object_fn ctor, reset;
    const char *name, *xlator;
    uint32_t prefill;
    uint8_t dying, dying_sweeps, gone_sweeps; /* destroyed; sweeps since; sweeps without an object left */

    struct mem_depot depot __attribute__((aligned(64)));
    struct mem_class class __attribute__((aligned(64)));

    /* figures of slow paths and of threads that are gone; several writers */
    uint64_t gets __attribute__((aligned(64)));
    uint64_t puts, bypass, hits_cold, hits_depot, system_allocs, sweep_freed, double_free, wrong_pool;
    uint64_t passthru; /* live objects outside the class: MEM_POOL_NO_POOL */
    int64_t peak;

    /* poison and trace modes, under depot.lock */
    void **quarantine;
    uint32_t quarantine_at, quarantined;
    void *debug_free; /* chain of dead objects */
};

/* The word of an object of that pool in another state. */
static inline uint64_t
mem_word(const struct mem_pool *p, uint32_t state)
{
    return p->word ^ MEM_STATE_LIVE ^ state;
}

/* The owner in a word. */
static inline unsigned
mem_word_owner(uint64_t word)
{
    return (unsigned)(word >> MEM_OWNER_SHIFT);
}

struct mem_magazine *mem_depot_get(struct mem_pool *p, struct mem_magazine *empty);
struct mem_magazine *mem_depot_put(struct mem_pool *p, struct mem_magazine *full);
void mem_depot_put_empty(struct mem_pool *p, struct mem_magazine *empty);
void mem_depot_put_chain(struct mem_pool *p, struct mem_magazine *chain, bool cold);
void mem_depot_doom(struct mem_pool *p, struct mem_magazine *chain);
void *mem_depot_get_one(struct mem_pool *p);
bool mem_depot_put_one(struct mem_pool *p, void *object);
void *mem_pool_carve_one(struct mem_pool *p);
size_t mem_pool_carve(struct mem_pool *p, void **objects, size_t n);
struct mem_magazine *mem_depot_age(struct mem_pool *p, bool all, bool lean); /* what is to be freed */
uint64_t mem_now_us(void);

/* ---- pools (mem-pool.c) ----------------------------------------------------------------------- */

extern struct mem_pool *mem_pools[MEM_IDS]; /* by id; written under the registry mutex */

static inline struct mem_pool *
mem_pool_by_id(unsigned id)
{
    return __atomic_load_n(&mem_pools[id], __ATOMIC_ACQUIRE);
}

/* The pool that a header claims. */
static MEM_RAW inline struct mem_pool *
mem_pool_of(const struct mem_header *h)
{
    return h->id < MEM_IDS ? mem_pool_by_id(h->id) : NULL;
}

void mem_pool_free(struct mem_pool *p); /* a pool without objects; registry mutex held */

/* ---- threads (mem-thread.c) ------------------------------------------------------------------- */

enum { MEM_THREAD_UNATTACHED, MEM_THREAD_ATTACHED, MEM_THREAD_PRIVATE, MEM_THREAD_DETACHED };

#define MEM_THREAD_BYTES (MEM_IDS * sizeof(struct mem_line))

extern pthread_mutex_t mem_sweep_mutex, mem_registry_mutex;
extern struct mem_thread *mem_threads;       /* registry */
extern struct mem_thread *mem_threads_cursor; /* where the sweeper goes on; moved when that thread exits */
extern uint64_t mem_threads_attached;

bool mem_thread_attach(void);
void mem_line_fold(const struct mem_line *l, struct mem_pool *p); /* its figures into the pool's */
bool mem_admit(struct mem_thread **t); /* true: inside the bracket; false: keep out of the lines */
void mem_thread_age_self(struct mem_thread *t);
bool mem_line_age(struct mem_line *l, bool all, struct mem_magazine **out); /* true: something stays */

#define MEM_EACH_USED(t, id)                                                                              \
    for (unsigned w_ = 0; w_ < 4; w_++)                                                                   \
        for (uint64_t bits_ = (t)->used[w_]; bits_ && ((id) = w_ * 64 + (unsigned)__builtin_ctzll(bits_), 1); \
             bits_ &= bits_ - 1)

/* A thread is about to change base and flow of its lines, which readers elsewhere want to see together. The
 * sweeper needs none of this: it holds the registry mutex then, as readers do. */
static inline void
mem_changes_begin(struct mem_thread *t)
{
    MEM_WRITE(t->changes, t->changes + 1);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

static inline void
mem_changes_end(struct mem_thread *t)
{
    __atomic_store_n(&t->changes, t->changes + 1, __ATOMIC_RELEASE);
}

/* ---- sweeper (mem-sweep.c) -------------------------------------------------------------------- */

void mem_sweeper_kick(void);            /* sweep soon */
void mem_sweeper_rouse(void);           /* a thread became active: leave dormancy */
void mem_sweeper_forget(void);          /* child of fork */
bool mem_membarrier(void);
bool mem_membarrier_register(void);
extern int mem_over_cap;

/* A cache of another kind that ages with the pools (stack-pool). sweep and fork run under the sweep mutex. */
struct mem_follower {
    size_t (*sweep)(int level); /* 0: a period is over; 1 .. 3: a trim of that level. Bytes given back */
    bool (*quiet)(void);        /* the next sweep would find nothing to do */
    void (*fork)(int step);     /* 0 prepare, 1 parent, 2 child */
    struct mem_follower *next;
};
extern struct mem_follower *mem_followers;
void mem_sweep_follow(struct mem_follower *f); /* for ever */

/* ---- accounting (mem-account.c) --------------------------------------------------------------- */

void mem_owner_count(unsigned owner, unsigned id, uint32_t by); /* any thread; only of pools without spans */

/* This object's owner has one fewer, if that is counted. */
static inline void
mem_disown(const struct mem_pool *p, uint64_t word)
{
    if (p->counts_owners && mem_word_owner(word))
        mem_owner_count(mem_word_owner(word), p->id, -1u);
}

void mem_owners_scan(void);                /* sweep mutex held, as for the two below */
void mem_owner_dump(struct mem_pool *p, mem_dump_fn fn, void *arg);
void mem_owners_sweep(void);
void mem_pool_sum(struct mem_pool *p, uint64_t *gets, uint64_t *puts, uint64_t *hot, uint64_t *cold);
int64_t mem_pool_live(struct mem_pool *p); /* registry mutex held, as for the one above */
struct mem_figures {
    /* written under the sweep mutex, or atomically; read by anybody */
    uint64_t sweeps, last_us, membarrier_us_max, window_us_max, skipped, demotes, periodic, pressure, manual;
    size_t cached_bytes;
};
extern struct mem_figures mem_figures;

/* ---- debug modes (mem-debug.c, mem-trace.c) --------------------------------------------------- */

size_t mem_debug_header(void);  /* bytes before and after an object in this mode */
size_t mem_debug_trailer(void);
void *mem_debug_get(struct mem_pool *p, uint64_t owner, const void *site);
void mem_debug_put(void *object, const void *site);
void mem_debug_sweep(struct mem_pool *p, bool all);
void mem_bad_put(void *object, const void *site); /* says what is wrong; aborts if so set */
void mem_trace_get(struct mem_pool *p, void *object, unsigned owner);
void mem_trace_put(void *object);
void mem_trace_fork(int step);
bool mem_trace_oldest(unsigned owner, unsigned id, char *text, size_t n);

/* ---- pressure (mem-pressure.c) ---------------------------------------------------------------- */

struct pollfd;
int mem_pressure_open(struct pollfd *fds, int max); /* how many descriptors were added */
int mem_pressure_level(struct pollfd *fds, int n); /* 0 none, else the trim level asked for */
void mem_pressure_close(struct pollfd *fds, int n);

#endif
