/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-internal: declarations that the files of this folder share. No other folder includes it.
 *
 * Lock order, outermost first:
 *   mem_sweep_mutex      one sweep or trim at a time; magazines are freed only under it or by their holder
 *   mem_registry_mutex   the list of threads, the table of pools, owners; held while a thread is LOCKED
 *   depot.lock           one pool's full and empty magazines
 *   class.lock           one pool's (or magazine size's) spans
 *   reservation lock     2 MiB mappings
 * A thread inside its bracket (busy = 1) may take the last three, never the first two. */
#ifndef KILN_MEM_INTERNAL_H
#define KILN_MEM_INTERNAL_H

#ifdef MEM_TEST_HOOKS
enum mem_hook { O1, O2, OC, O3, O4, S1, S2, S3, S4 };
void mem_test_hook(enum mem_hook point);
#define MEM_HOOK(point) mem_test_hook(point)
#endif

#include "mem/mem-inline.h"
#include "mem/mem-pool.h"
#include "mem/mem-shared.h"

#include <assert.h>
#include <pthread.h>

#define MEM_IDS 256
#define MEM_OWNERS (MEM_OWNER_MAX + 1)
#define MEM_CAP_MAX 256 /* objects in the largest magazine */
#define MEM_BIG 4096    /* stride from which on each object has separate pages: such objects are aged and
                         * freed one by one */

/* ---- options (mem-option.c) ------------------------------------------------------------------ */

bool mem_option_bypasses(const char *pool_name);
void mem_option_fork(int step);

/* ---- spans (mem-span.c) ---------------------------------------------------------------------- */

struct mem_span;

#define MEM_FILLS 8 /* lists of partly free spans */

/* Slots of one size. */
struct mem_class {
    struct mem_lock lock;
    uint32_t id;               /* the pool's, 0 for magazines */
    uint32_t stride;           /* bytes from slot to slot */
    uint32_t offset;           /* from a slot's start to the object */
    uint32_t first;            /* from a span's start to its first slot */
    uint32_t span_bytes;       /* power of two; 0: every slot is a separate malloc */
    uint32_t per_span, align;
    uint64_t reciprocal;       /* of stride, for slot numbers */
    /* spans with some slots free, by the share of free slots, fullest first */
    struct mem_span *partial[MEM_FILLS];
    /* next span of a sweep's walk over the partial lists; NULL: no walk is running */
    struct mem_span *cursor;
    uint32_t walks;            /* number of walks so far */
    uint32_t fill_factor;      /* factor from a number of free slots to the list's number */
    struct mem_span *empty;    /* all slots free, waiting to be released */
    uint32_t spans, empties;
    uint64_t carved, returned; /* objects */
    uint64_t carved_swept;     /* carved at the last sweep */
    uint64_t returned_trimmed; /* returned when free slots last gave back their pages; sweep mutex */
};

/* header and trailer: bytes before and after the object in its slot */
void mem_class_init(struct mem_class *c, uint32_t id, size_t size, size_t align, size_t header,
                    size_t trailer, bool spread);
size_t mem_class_alloc(struct mem_class *c, void **objects, size_t n); /* returns the number of objects */
void mem_class_free(struct mem_class *c, void *const *objects, size_t n);
/* gives empty spans back to their reservation; returns bytes */
size_t mem_class_release(struct mem_class *c, bool all);
bool mem_class_idle(struct mem_class *c); /* true if no object was carved since the last call */
/* drops pages of free slots in used spans; returns bytes */
size_t mem_class_trim_pages(struct mem_class *c);
/* Drops free pages of spans from which no object was taken for a whole sweep, until mem_cpu_us() reaches
 * until_us. Sweep mutex held. */
uint64_t mem_cpu_us(void); /* CPU time of the calling thread */
size_t mem_class_age_pages(struct mem_class *c, uint64_t until_us);
void mem_magazines_age_pages(uint64_t until_us);
void mem_class_check(struct mem_class *c);
size_t mem_reservations_release(void); /* gives pages and mappings back to the system; returns bytes */

/* Finds the pool id of the span at p and the start of the object there; false if p is not in a span. */
bool mem_span_find(const void *p, uint32_t *id, void **object);

extern size_t mem_reserved_bytes, mem_resident_bytes;
extern uint64_t mem_released_bytes;
void mem_span_fork(int step); /* 0 prepare, 1 parent, 2 child */

void mem_magazines_init(void);
struct mem_magazine *mem_magazine_new(uint32_t cap);
void mem_magazine_free(struct mem_magazine *m);
size_t mem_magazines_release(bool all);
bool mem_magazines_quiet(void); /* true if no empty span is cached */

/* ---- depot (mem-depot.c) --------------------------------------------------------------------- */

struct mem_depot {
    struct mem_lock lock;
    uint32_t m;                      /* objects in a new magazine, adapts between m_base and m_max */
    uint32_t m_base, m_max;
    uint32_t contended, visits;      /* since m was last adapted */
    uint64_t visits_total, visits_swept, mark_us;
    struct mem_magazine *hot, *cold; /* with objects, mostly full */
    struct mem_magazine *empty;
    struct mem_magazine *doomed;     /* cold magazines handed in by threads, for the sweeper to free */
    uint32_t nhot, ncold, nempty;    /* magazines */
};

/* The part of getting and putting that is not in the fast path: one backend for each mode, chosen when a
 * pool is made.
 *
 *   lines   mode on: finds a magazine for the line of the calling thread (mem-pool.c)
 *   direct  mode on, MEM_POOL_NO_POOL: each object is a separate allocation, counted (mem-direct.c)
 *   malloc  mode off: malloc and free; an object knows no pool (mem-direct.c)
 *   debug   poison and trace: one chain of dead objects for all threads (mem-debug.c)
 *
 * get ends the caller's bracket, and returns NULL with errno. put gets a live object of that pool outside
 * of any bracket. site: the caller of mem_get or mem_put. */
struct mem_backend {
    void *(*get)(struct mem_pool *p, uint64_t owner, const void *site);
    void (*put)(struct mem_pool *p, void *object, const void *site);
};
extern const struct mem_backend mem_lines, mem_direct, mem_malloc, mem_debug;

struct mem_pool {
    /* read on every call */
    const struct mem_backend *backend;
    uint32_t id;
    uint32_t line;     /* offset from a thread's block to its line of this pool */
    uint64_t word;     /* of a live object without an owner */
    bool counts_owners; /* its objects are not in spans, so a scan would not find them */
    uint32_t flags;
    size_t size, zero_len, align;
    mem_object_fn ctor, reset;
    const char *name, *xlator;
    uint32_t prefill;
    uint8_t dying, dying_sweeps, gone_sweeps; /* destroyed; sweeps since; sweeps without an object left */

    struct mem_depot depot __attribute__((aligned(64)));
    struct mem_class class __attribute__((aligned(64)));

    /* sums of slow paths and of ended threads; several writers */
    uint64_t gets __attribute__((aligned(64)));
    uint64_t puts, bypass, hits_cold, hits_depot, system_allocs, sweep_freed, double_free, wrong_pool;
    uint64_t direct; /* live objects outside the class: MEM_POOL_NO_POOL */
    int64_t peak;

    /* poison and trace modes, under depot.lock */
    void **quarantine;
    uint32_t quarantine_at, quarantined;
    void *debug_free; /* chain of dead objects */
};

/* The word of an object of that pool in the given state. */
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
void mem_object_fresh(struct mem_pool *p, void *object); /* writes its header, dead, and runs its ctor */
size_t mem_pool_carve(struct mem_pool *p, void **objects, size_t n);
/* returns the magazines to be freed */
struct mem_magazine *mem_depot_age(struct mem_pool *p, bool all, bool lean);

/* ---- pools (mem-pool.c) ---------------------------------------------------------------------- */

extern struct mem_pool *mem_pools[MEM_IDS]; /* by id; written under the registry mutex */

static inline struct mem_pool *
mem_pool_by_id(unsigned id)
{
    return __atomic_load_n(&mem_pools[id], __ATOMIC_ACQUIRE);
}

/* The pool that a header names. */
static MEM_RAW inline struct mem_pool *
mem_pool_of(const struct mem_header *h)
{
    return h->id < MEM_IDS ? mem_pool_by_id(h->id) : NULL;
}

void mem_pool_free(struct mem_pool *p); /* a pool without objects; registry mutex held */

/* ---- threads (mem-thread.c) ------------------------------------------------------------------ */

enum { MEM_THREAD_UNATTACHED, MEM_THREAD_ATTACHED, MEM_THREAD_PRIVATE, MEM_THREAD_DETACHED };

#define MEM_THREAD_BYTES (MEM_IDS * sizeof(struct mem_line))

extern pthread_mutex_t mem_registry_mutex;
extern struct mem_thread *mem_threads;       /* registry */
extern struct mem_thread *mem_threads_cursor; /* next thread of the sweeper; moved when that thread exits */
extern uint64_t mem_threads_attached;

bool mem_thread_attach(void);
void mem_line_fold(const struct mem_line *l, struct mem_pool *p); /* adds its counts to the pool's */
bool mem_admit(struct mem_thread **t); /* true: inside the bracket; false: the lines must not be used */
void mem_thread_age_self(struct mem_thread *t);
/* true: the line still has cold objects */
bool mem_line_age(struct mem_line *l, bool all, struct mem_magazine **out);

#define MEM_EACH_USED(t, id)                                                                                 \
    for (unsigned w_ = 0; w_ < 4; w_++)                                                                      \
        for (uint64_t bits_ = (t)->used[w_];                                                                 \
             bits_ && ((id) = w_ * 64 + (unsigned)__builtin_ctzll(bits_), 1); bits_ &= bits_ - 1)

/* Called by a thread before it changes base and flow of its lines, which readers in other threads must see
 * together. The sweeper needs none of this: it holds the registry mutex then, as readers do. */
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

/* ---- sweeper (mem-sweep.c) ------------------------------------------------------------------- */

void mem_sweeper_kick(void);            /* requests a sweep soon */
void mem_sweeper_forget(void);          /* called in the child of fork */
bool mem_membarrier(void);
bool mem_membarrier_register(void);
extern int mem_over_cap;

/* ---- accounting (mem-account.c) -------------------------------------------------------------- */

void mem_owner_count(unsigned owner, unsigned id, uint32_t by); /* any thread; only for pools without spans */

/* Subtracts this object from its owner's count, if the pool counts owners. */
static inline void
mem_disown(const struct mem_pool *p, uint64_t word)
{
    if (p->counts_owners && mem_word_owner(word))
        mem_owner_count(mem_word_owner(word), p->id, -1u);
}

void mem_owners_scan(void);                /* sweep mutex held, as for the next two functions */
void mem_owner_dump(struct mem_pool *p, mem_dump_fn fn, void *arg);
void mem_owners_sweep(void);
void mem_pool_sum(struct mem_pool *p, uint64_t *gets, uint64_t *puts, uint64_t *hot, uint64_t *cold);
int64_t mem_pool_live(struct mem_pool *p); /* registry mutex held, as for mem_pool_sum() */
struct mem_figures {
    /* written under the sweep mutex, or atomically; read by any thread */
    uint64_t sweeps, last_us, membarrier_us_max, window_us_max, skipped, demotes, periodic, pressure, manual;
    size_t cached_bytes;
};
extern struct mem_figures mem_figures;

/* ---- debug modes (mem-debug.c, mem-trace.c) -------------------------------------------------- */

size_t mem_debug_header(void);  /* bytes before and after an object in this mode */
size_t mem_debug_trailer(void);
void mem_debug_sweep(struct mem_pool *p, bool all);
void mem_bad_put(void *object, const void *site); /* reports the error; aborts if so configured */
void mem_trace_get(struct mem_pool *p, void *object, unsigned owner);
void mem_trace_put(void *object);
void mem_trace_fork(int step);
bool mem_trace_oldest(unsigned owner, unsigned id, char *text, size_t n);

/* ---- pressure (mem-pressure.c) --------------------------------------------------------------- */

struct pollfd;
int mem_pressure_open(struct pollfd *fds, int max); /* returns the number of descriptors added */
/* returns 0 for no pressure, else the requested trim level */
int mem_pressure_level(struct pollfd *fds, int n);
void mem_pressure_close(struct pollfd *fds, int n);

#endif
