/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-pool: fixed-size objects of one type, cached per thread, given back to the system when idle.
 *
 *      mem_get                                  mem_put
 *         |                                        |
 *    [ loaded ][ previous ]   hot: put here since the last sweep      one set per
 *    [ cold ...           ]   idle for one whole sweep                thread and pool
 *         |  whole magazines (arrays of pointers), never single objects
 *    [ depot: hot | cold | empties ]              one per pool, a small lock
 *         |
 *    [ spans, 64 KiB, out of 2 MiB reservations ] or malloc, per object
 *
 * A sweeper thread turns hot into cold and frees objects that were already cold, in idle and blocked
 * threads too, without waking them. The memory of a burst is therefore free after two sweep periods,
 * except for a few magazines in a pool that stays busy.
 *
 * The fast path takes no lock and no atomic read-modify-write; any thread may put an object that another
 * thread got. No function is async-signal-safe.
 *
 * Modes, chosen once, before the first pool is made and before mem_pools_init (environment KILN_POOLS or
 * mem_pools_set_mode):
 *   on       as above (default)
 *   off      malloc, calloc and free; no header, no accounting. Default under ASan and valgrind.
 *   poison   fill at put, verify at get, red zones, quarantine, both call sites kept; aborts on an error
 *   trace:K  every K-th get leaves a backtrace for the leak audit */
#ifndef KILN_MEM_POOL_H
#define KILN_MEM_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mem_pool;

/* ---- the process ----------------------------------------------------------------------------- */

/* Starts the sweeper. Pools may be made and used before, but no memory is given back to the system until
 * then. A program that daemonises calls mem_pools_init() after the last fork, because a child of fork has no
 * sweeper before such a call. Idempotent. 0 or -errno. */
int mem_pools_init(void);

/* Stops and joins the sweeper. Pools stay usable, objects stay valid. */
void mem_pools_fini(void);

/* For tests: stops the sweeper, frees every cached object and returns the number of live objects (0:
 * clean). All other threads that used a pool must have been joined. */
uint64_t mem_pools_fini_strict(void);

/* "on", "off", "poison", "trace:K". -EBUSY once a pool was made or mem_pools_init called, -EINVAL if unknown.
 */
int mem_pools_set_mode(const char *mode);

/* "on", "off", "poison" or "trace": the present mode, or the mode that a first pool would get now. */
const char *mem_pools_mode(void);

/* Run-time options, each also an environment variable read at first use:
 *   sweep      KILN_POOL_SWEEP      period in milliseconds, 0 = never (default 10000)   any time
 *   release    KILN_POOL_RELEASE    drop | keep: empty spans          (default drop)    any time
 *   cap        KILN_POOL_CAP        bytes cached in the whole process, 0 = no cap       any time
 *                                   (default: the larger of 64 MiB and RAM/256)
 *   handshake  KILN_POOL_HANDSHAKE  auto | cooperative                (default auto)    as the mode
 *   abort      KILN_POOL_ABORT      0 | 1: abort on a bad mem_put                       any time
 *                                   (default: 1 in poison and trace)
 *   pressure   KILN_POOL_PRESSURE   0 | 1: sweeper watches PSI and the memory cgroup    as the mode
 *                                   (default 1)
 *   bypass     KILN_POOL_BYPASS     names of pools, with commas between them, or *:     any time, for pools
 *                                   as if made with MEM_POOL_NO_POOL (default: none)    made from then on
 * 0, -EINVAL (unknown or malformed) or -EBUSY (too late). */
int mem_pools_set_option(const char *key, const char *value);

/* Sets the destination of messages (default: one line on stderr). level is a syslog level. Repeats are
 * folded before. fn may run in any thread and with pool-internal locks held: it must not use pools. */
typedef void (*mem_message_fn)(int level, const char *text);
void mem_pools_set_message_fn(mem_message_fn fn);

/* ---- a pool ---------------------------------------------------------------------------------- */

enum mem_pool_flags {
    MEM_POOL_CACHE_ALIGNED = 1u << 0, /* objects start on a cache line of their own */
    MEM_POOL_NO_POOL = 1u << 1,       /* never cached: every get and put goes to malloc, counted */
};

/* Runs on an object when it comes from the system (ctor), or at each mem_put (reset; not in mode off). A
 * pool with a ctor or reset keeps the object's contents from put to get, so mem_get0 is refused on it.
 * There is no destructor: a ctor sets up lists, locks and links inside the object and acquires no other
 * resource. */
typedef void (*mem_object_fn)(void *object);

struct mem_pool_opts {
    const char *name;     /* copied; shown in messages and statedumps */
    const char *xlator;   /* copied; owner of the pool, may be NULL */
    size_t size;          /* bytes of one object, 1 .. 16 MiB */
    size_t zero_len;      /* bytes that mem_get0 zeroes; 0 = size */
    size_t align;         /* power of two up to 4096; 0 = 16 */
    unsigned flags;       /* MEM_POOL_* */
    unsigned prefill;     /* a hint, used only by mem_pool_prefill */
    unsigned id;          /* 0 = any; MEM_ID_TYPED_MIN .. MAX = this id, for the inline forms */
    mem_object_fn ctor;
    mem_object_fn reset;  /* must be NULL in a pool with a fixed id */
};

/* Ids in this range are given only to pools that ask for them by number (mem/mem-inline.h). */
#define MEM_ID_TYPED_MIN 2
#define MEM_ID_TYPED_MAX 31

/* Makes a pool. NULL with errno: ENOMEM, EINVAL, ENOSPC (no id is free; 224 pools may leave the id open),
 * EEXIST (the fixed id is taken). */
struct mem_pool *mem_pool_new_opts(const struct mem_pool_opts *opts);
struct mem_pool *mem_pool_new_fn(size_t size, unsigned prefill, const char *name);
#define mem_pool_new(type, count) mem_pool_new_fn(sizeof(type), (count), #type)

/* Allocates the pool's prefill (or count, if not 0) objects now into the depot. 0 or -ENOMEM. */
int mem_pool_prefill(struct mem_pool *pool, unsigned count);

/* Ends the gets. Live objects stay valid and may still be put; the pool and its id are freed two sweeps
 * after the last put. Reported once if that takes longer. NULL is allowed. */
void mem_pool_destroy(struct mem_pool *pool);

/* ---- objects --------------------------------------------------------------------------------- */

/* Returns an object, contents undefined (or as ctor/reset left them).
 * thread: any; takes the object from the calling thread's own magazine
 * owner: the caller, until mem_put(); any thread may put the object
 * errors: NULL with errno ENOMEM, and one rate-limited message */
void *mem_get(struct mem_pool *pool);

/* Like mem_get(), with the first zero_len bytes zeroed. */
void *mem_get0(struct mem_pool *pool);

/* Like mem_get() and mem_get0(), counted against an owner (a brick) from mem_owner_new; 0 = none. */
void *mem_get_owner(struct mem_pool *pool, uint16_t owner);
void *mem_get0_owner(struct mem_pool *pool, uint16_t owner);

/* Gives an object back, in any thread. NULL is allowed. A pointer that is not a live object of a known
 * pool is reported with the pool's name and left alone. */
void mem_put(void *object);

/* Get and put n objects at once, for less than the cost of single calls. Get: all or nothing, 0 or
 * -ENOMEM. Put: objects of any pools, NULLs allowed; fastest where neighbours are from one pool. */
int mem_get_bulk(struct mem_pool *pool, void **objects, size_t n);
void mem_put_bulk(void **objects, size_t n);

/* Called by a wait loop before it blocks: executes a pending request of the sweeper to this thread. One
 * load when there is none. Needed only where membarrier is refused; harmless elsewhere. */
void mem_pool_idle(void);

/* Detaches the calling thread now, as its exit would. It may continue to use pools, more slowly. */
void mem_pool_thread_destructor(void);

/* ---- owners (bricks) ------------------------------------------------------------------------- */

enum { MEM_OWNER_MAX = 4095 };
/* Returns a new owner id (1 .. MEM_OWNER_MAX), or -errno. An id is not reused while objects are counted
 * against it. */
int mem_owner_new(const char *name);

/* Retires the owner; late puts still count down. Its id is free again at once if the last
 * mem_owner_audit() found nothing and no object has been got for it since, which the caller must ensure;
 * also in mode off, where nothing is counted. Otherwise the id is free once the balance was zero at two
 * sweeps in a row. */
void mem_owner_retire(uint16_t owner);

/* Number of objects that the owner still holds, in all pools or in one (pool NULL = all). Visits every
 * object, at some nanoseconds each, and waits for a running sweep; other threads get and put meanwhile.
 * Exact for owners that are quiet. */
int64_t mem_owner_balance(uint16_t owner, const struct mem_pool *pool);

/* Calls fn once per pool in which the owner still has objects; returns the number of such objects. where
 * is the oldest sampled backtrace in trace mode, else NULL. */
typedef void (*mem_audit_fn)(void *arg, const char *pool, int64_t count, uint64_t bytes, const char *where);
int64_t mem_owner_audit(uint16_t owner, mem_audit_fn fn, void *arg);

/* ---- sweeping and trimming ------------------------------------------------------------------- */

/* Runs one pass in the calling thread: hot becomes cold, cold is freed, except for a few magazines of a
 * busy pool. */
void mem_pools_sweep_now(void);

/* Gives memory back now; returns the bytes returned to the system. level 1: demotes, frees cold objects,
 * spare magazines and empty spans. 2: all cached objects. 3: also free pages inside used spans, and memory
 * cached by malloc (glibc: the heap's top; jemalloc: all free pages). */
size_t mem_pools_trim(int level);

/* ---- statistics ------------------------------------------------------------------------------ */

struct mem_pool_stats {
    const char *name, *xlator; /* valid as long as the pool */
    unsigned id;
    size_t size, stride; /* bytes: requested, and used per object */
    int64_t live;        /* got and not yet put */
    int64_t peak;        /* largest live seen at a sweep or by a reader of these statistics */
    uint64_t gets, puts;
    uint64_t hits_cold, hits_depot; /* gets served by promoting a cold magazine, and by the depot */
    uint64_t system_allocs;         /* objects fetched from a span or malloc */
    uint64_t sweep_freed;           /* objects given back to a span or malloc by the sweeper */
    uint64_t bypass;                /* operations that found the sweeper at work */
    uint64_t double_free, wrong_pool;
    uint64_t cached_hot, cached_cold; /* objects */
    uint64_t depot_hot, depot_cold;   /* magazines */
    unsigned magazine;                /* objects in one, now */
    uint64_t spans, spans_empty;
    size_t bytes_resident;
};

/* Fills *out. Exact for a quiet pool, else an approximation; stops no thread. */
void mem_pool_stats(struct mem_pool *pool, struct mem_pool_stats *out);

struct mem_process_stats {
    const char *mode, *handshake, *release;
    unsigned sweep_ms;
    uint64_t sweeps, sweep_last_us, membarrier_us_max, window_us_max;
    uint64_t threads, threads_skipped, demote_requests;
    uint64_t trims_periodic, trims_pressure, trims_manual;
    size_t cap_bytes, cached_bytes, resident_bytes, reserved_bytes;
    uint64_t released_bytes;
};
void mem_pools_stats(struct mem_process_stats *out);

/* Passes all statistics to fn as key and value, for a statedump. key "-----" separates pools. fn must not
 * use pools. */
typedef void (*mem_dump_fn)(void *arg, const char *key, const char *value);
void mem_pools_dump(mem_dump_fn fn, void *arg);

/* Walks every structure of a quiet process and asserts the invariants. For tests and debug builds. */
void mem_pools_check(void);

#ifdef __cplusplus
}
#endif
#endif
