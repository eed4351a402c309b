/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* stack-pool: stacks for coroutines, kept warm while in frequent use, given back when idle.
 *
 *      a slab, one mapping:   [ descriptors | guard | stack 0 | guard | stack 1 | ... ]
 *
 *      stack_take                                   stack_release
 *          |                                              |
 *      [ cached, newest first:  hot ...... | cold ...... ]      hot: released since the last sweep
 *      [ bare: never used, or their pages were dropped   ]      a bitmap in each slab
 *      [ a new slab of 8, 16, 32 ... 256 stacks          ]
 *
 * The sweeper of mem-pool drops the pages of stacks that were already cold, in runs of neighbouring
 * stacks, and unmaps slabs that have been bare for another period. Under memory pressure (a trim of level
 * 1) it also drops the lower parts, below 16 KiB from the top, of the other cached stacks whose lower part
 * was ever used; from level 2 on it drops all cached stacks.
 *
 * Below each stack lies a guard page: an overflow is a SIGSEGV there, never a write into the neighbour.
 * Where the kernel has guard advice (Linux 6.13) a slab stays one entry in the process's memory map;
 * elsewhere a guard is made with mprotect and costs two entries a stack, and the pool stops growing at
 * half of vm.max_map_count. (A frame larger than a page may step over a guard unless the code is built
 * with -fstack-clash-protection.)
 *
 * The pool has no magazines in each thread, unlike mem-pool: a thread's four magazines of stacks would
 * keep megabytes of touched pages out of the reach of other threads, the cap could not be exact, and the
 * saving, an uncontended lock of some ten nanoseconds, is invisible next to the operation that a coroutine
 * is made for.
 *
 * With pools off (KILN_POOLS=off; the default under ASan and valgrind) each stack is mapped when it is
 * taken and unmapped when it is released, so that these tools see every use of a freed stack.
 *
 * All functions may be called in any thread, none in a signal handler. A child of fork can go on using the
 * pool; the stacks that other threads had taken stay live for ever in the child. */
#ifndef KILN_CORO_STACK_POOL_H
#define KILN_CORO_STACK_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/mem-pool.h"

struct stack_pool;
struct stack_slab;

/* A stack. The owner of the stack reads the first two fields. The other fields belong to the pool, under its
 * lock. */
struct stack {
    char *low; /* the lowest usable byte; the guard page ends here */
    char *top; /* one past the highest, on a cache line */
    struct stack_slab *slab;
    struct stack *newer, *older; /* neighbours in the list of cached stacks */
    uint32_t stamp;              /* number of the first sweep after its release */
    uint16_t index;              /* in its slab */
    uint8_t state;
    uint8_t unused;
    uint32_t valgrind_id;
};

struct stack_pool_opts {
    const char *name;         /* copied; shown in messages and statedumps */
    /* size of one stack without its guard: 16 KiB .. 16 MiB, rounded up to pages; 0 = 64 KiB. Up to 1 KiB
     * of it stays unused, so that tops fall on different cache sets. */
    size_t bytes;
    uint32_t cap;             /* most stacks, live and cached together; 0 = 32768 */
    /* most map entries of the process up to which the pool may grow; 0 = vm.max_map_count / 2 */
    uint32_t map_entries_max;
    bool is_mprotect;         /* guards by mprotect even where the kernel has guard advice */
};

/* Makes a pool. opts NULL: all defaults. -ENOMEM, or -EINVAL for a size out of range. */
int stack_pool_new(const struct stack_pool_opts *opts, struct stack_pool **out);

/* Unmaps all stacks that are not live. Returns the number of live stacks (0: clean). Their slabs, and the
 * pool, go when the last of them is released. stack_take() must not be called any more. NULL is allowed:
 * 0. */
uint32_t stack_pool_destroy(struct stack_pool *p);

/* Lends a stack, contents undefined. owner   the caller, until stack_release() cost    a lock and a pop; a
 * mapping in one of 8 .. 256 calls while the number of live stacks grows errors  -EAGAIN  cap reached, or
 * too many map entries: try again when stacks have been released
 *         -ENOMEM  the system has no memory or address space
 *         *out is unchanged then, and nothing is held */
int stack_take(struct stack_pool *p, struct stack **out);

/* Gives a stack back, in any thread, but not on the stack itself. A stack that is not live is reported and
 * left alone. */
void stack_release(struct stack *s);

struct stack_pool_stats {
    const char *name;  /* valid as long as the pool */
    const char *guard; /* "advice" or "mprotect" */
    uint32_t cap, live, peak; /* peak is exact */
    uint32_t cached_hot, cached_cold;
    uint32_t stacks, slabs;
    uint32_t map_entries;  /* upper bound of the process's map entries caused by this pool */
    uint64_t bytes_mapped;
    uint64_t takes, reused; /* reused: takes that got a cached stack */
    uint64_t refused_cap, refused_maps, no_memory;
    /* stacks of which all pages, or only those of the lower part, were given back */
    uint64_t dropped, dropped_lower;
    uint64_t unmapped;               /* slabs */
};
/* Fills *out. From any thread; takes the pool's lock for a moment. */
void stack_pool_stats(struct stack_pool *p, struct stack_pool_stats *out);

/* Bytes of all stacks that are in memory now. Queries the kernel about each page: takes milliseconds for
 * 10,000 stacks, and no sweep runs meanwhile. */
size_t stack_pool_resident(struct stack_pool *p);

/* Sets the policy for released stacks, in all pools from now on; any thread:
 *   age   cached; a sweep gives back the pages of stacks that were already cold (default)
 *   keep  cached; only a trim gives their pages back
 *   drop  the pages are given back at each release, which takes some microseconds
 * 0, or -EINVAL for another word. */
int stack_pools_set_policy(const char *word);
const char *stack_pools_policy(void);

/* Passes every pool's statistics to fn as key and value, for a statedump; key "-----" comes before each
 * pool. fn must not use stack pools. */
void stack_pools_dump(mem_dump_fn fn, void *arg);

/* Walks all structures of a quiet pool and asserts the invariants. For tests. */
void stack_pool_check(struct stack_pool *p);

#endif
