/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* pool-ways: the cases, once for each way to get and put an object. */
#include "pool-bench.h"

#define NAME(x) harness_##x
#define WAY "harness"
#define POOLS false
/* As many different objects as the loop has live are touched, in no order: that is the loop's cost, not an
 * allocator's. Each CPU has its own. */
static char object[2][256][320] __attribute__((aligned(64)));

static inline void *
any_object(void)
{
    static __thread unsigned at;

    at = (at * 5 + 3) & harness_mask;
    return object[my_place][at];
}

#define GET(type) any_object()
#define PUT(type, p) ((void)(p))
#define GET0() any_object()
#include "pool-cases.inc"

/* The least work of any cache of a thread: a LIFO of each type, no header, no checks, no exchange. The LIFO
 * never runs empty or full in its cases, because their flows are balanced.
 */
enum { FLOOR_ROOM = 8192, FLOOR_FILL = FLOOR_ROOM / 2 };

static __thread void **floor_top[TYPES];

static __attribute__((noinline)) void
floor_fill(unsigned type)
{
    size_t stride = (type_size[type] + 63) / 64 * 64;
    char *all = aligned_alloc(64, FLOOR_FILL * stride);

    floor_top[type] = malloc(FLOOR_ROOM * sizeof(void *));
    if (!all || !floor_top[type])
        abort();
    for (unsigned i = FLOOR_FILL; i-- > 0;)
        *floor_top[type]++ = all + i * stride;
}

static inline void *
floor_get(unsigned type)
{
    if (!floor_top[type])
        floor_fill(type);
    return *--floor_top[type];
}

static inline void
floor_put(unsigned type, void *p)
{
    *floor_top[type]++ = p;
}

#define NAME(x) floor_##x
#define WAY "floor"
#define POOLS false
#define GET(type) floor_get(type)
#define PUT(type, p) floor_put(type, p)
#define GET0() memset(floor_get(0), 0, type_size[0])
#include "pool-cases.inc"

#define NAME(x) malloc_##x
#define WAY "malloc"
#define POOLS false
#define GET(type) malloc(type_size[type])
#define PUT(type, p) free(p)
#define GET0() calloc(1, type_size[0])
#include "pool-cases.inc"

#define NAME(x) upstream_##x
#define WAY "upstream"
#define POOLS false
#define GET(type) upstream_get(type)
#define PUT(type, p) upstream_put(p)
#define GET0() memset(upstream_get(0), 0, type_size[0])
#include "pool-cases.inc"

#define NAME(x) seed_##x
#define WAY "seed"
#define POOLS false
#define GET(type) seed_get(type)
#define PUT(type, p) seed_put(type, p)
#define GET0() memset(seed_get(0), 0, type_size[0])
#include "pool-cases.inc"

#define NAME(x) pool_##x
#define WAY "pool"
#define POOLS true
#define GET(type) mem_get(pool[type])
#define PUT(type, p) mem_put(p)
#define GET0() mem_get0(pool[0])
#define GET_BULK(objects, n) mem_get_bulk(pool[0], objects, n)
#define PUT_BULK(objects, n) mem_put_bulk(objects, n)
#include "pool-cases.inc"

#define NAME(x) owner_##x
#define WAY "owner"
#define POOLS true
#define GET(type) mem_get_owner(pool[type], 1)
#define PUT(type, p) mem_put(p)
#define GET0() mem_get0_owner(pool[0], 1)
#include "pool-cases.inc"

#define NAME(x) inline_##x
#define WAY "inline"
#define POOLS true
#define GET(type) mem_get_t(MEM_ID_TYPED_MIN + (type))
#define PUT(type, p) mem_put_t(MEM_ID_TYPED_MIN + (type), p)
#define GET0() memset(mem_get_t(MEM_ID_TYPED_MIN), 0, type_size[0])
#include "pool-cases.inc"

/* The pool with a count that all threads share: the costs of knowing at every moment the number of live
 * objects of a type, and the maximum. */
static struct {
    int64_t live __attribute__((aligned(64)));
    int64_t peak;
} exact[TYPES];

static inline void *
counted_get(unsigned type)
{
    int64_t n = __atomic_add_fetch(&exact[type].live, 1, __ATOMIC_RELAXED);
    int64_t peak = __atomic_load_n(&exact[type].peak, __ATOMIC_RELAXED);

    while (n > peak && !__atomic_compare_exchange_n(&exact[type].peak, &peak, n, true, __ATOMIC_RELAXED,
                                                    __ATOMIC_RELAXED))
        ;
    return mem_get(pool[type]);
}

static inline void
counted_put(unsigned type, void *p)
{
    __atomic_sub_fetch(&exact[type].live, 1, __ATOMIC_RELAXED);
    mem_put(p);
}

#define NAME(x) exact_##x
#define WAY "exact"
#define POOLS true
#define GET(type) counted_get(type)
#define PUT(type, p) counted_put(type, p)
#define GET0() memset(counted_get(0), 0, type_size[0])
#include "pool-cases.inc"

const struct ways *
ways_named(const char *name)
{
    static const struct ways *const all[] = {&harness_ways,  &floor_ways,  &malloc_ways,
                                             &upstream_ways, &seed_ways,   &pool_ways,
                                             &owner_ways,    &inline_ways, &exact_ways};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (!strcmp(all[i]->name, name))
            return all[i];
    return NULL;
}
