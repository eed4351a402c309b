/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* stack-pool: stacks for coroutines, kept warm while they are in use again and again, given back when idle.
 *
 *      a slab, one mapping:   [ descriptors | guard | stack 0 | guard | stack 1 | ... ]
 *
 *      stack_take                                   stack_release
 *          |                                              |
 *      [ cached, newest first:  hot ...... | cold ...... ]      hot: released since the last sweep
 *      [ bare: never used, or their pages were dropped   ]      a bitmap in each slab
 *      [ a new slab of 8, 16, 32 ... 256 stacks          ]
 *
 * The sweeper of mem-pool drops the pages of what was already cold, in runs of neighbouring stacks, and
 * unmaps slabs that have been bare for another period. Under memory pressure (a trim of level 1) it also
 * drops the lower parts, below 16 KiB from the top, of the other cached stacks that ever used theirs; from
 * level 2 on all goes.
 *
 * Below each stack lies a guard page: an overflow is a SIGSEGV there, never a write into the neighbour. Where
 * the kernel has guard advice (Linux 6.13) a slab stays one entry in the process' memory map; elsewhere a
 * guard is made with mprotect and costs two entries a stack, and the pool stops growing at half of
 * vm.max_map_count. (A frame larger than a page may step over a guard unless it is built with
 * -fstack-clash-protection.)
 *
 * Why not magazines in each thread, as mem-pool has them: a thread's four magazines of stacks would keep
 * megabytes of touched pages out of the others' reach, the cap could not be exact, and what they save, an
 * uncontended lock of some ten nanoseconds, cannot be seen beside the operation that a coroutine is made for.
 *
 * With pools off (KILN_POOLS=off; the default under ASan and valgrind) each stack is mapped when it is taken
 * and unmapped when it is released, so that these tools see every use of a stack that is gone.
 *
 * All functions may be called in any thread, none in a signal handler. A child of fork goes on using the
 * pool; it sees the stacks that other threads had taken as live for ever.
 */
#ifndef KILN_CORO_STACK_POOL_H
#define KILN_CORO_STACK_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/mem-pool.h"

struct stack_pool;
struct stack_slab;

/* One stack. Its owner reads the first two fields; the rest is the pool's, under its lock. */
struct stack {
    char *low; /* the lowest usable byte; the guard page ends here */
    char *top; /* one past the highest, on a cache line */
    struct stack_slab *slab;
    struct stack *newer, *older; /* among the cached ones */
    uint32_t stamp;              /* number of the sweep that it was released before */
    uint16_t index;              /* in its slab */
    uint8_t state;
    uint8_t unused;
    uint32_t valgrind_id;
};

struct stack_pool_opts {
    const char *name;         /* copied; shown in messages and statedumps */
    size_t bytes; /* of one stack without its guard: 16 KiB .. 16 MiB, rounded up to pages; 0 = 64 KiB.
                   * Up to 1 KiB of them stay unused, so that tops fall on different cache sets. */
    uint32_t cap;             /* stacks at most, live and cached together; 0 = 32768 */
    /* do not grow past this many map entries of the process; 0 = vm.max_map_count / 2 */
    uint32_t map_entries_max;
    bool is_mprotect;         /* guards by mprotect even where the kernel has guard advice */
};

/* opts NULL: all defaults. -ENOMEM, or -EINVAL for a size out of range. */
int stack_pool_new(const struct stack_pool_opts *opts, struct stack_pool **out);

/* Unmaps everything; the number of stacks still live (0: clean). Their slabs, and the pool, go away when the
 * last of them is released. Nobody may take any more. NULL is allowed: 0. */
uint32_t stack_pool_destroy(struct stack_pool *p);

/* A stack, contents undefined.
 * owner   the caller, until stack_release()
 * cost    a lock and a pop; a mapping in one of 8 .. 256 calls while the number of live stacks grows
 * errors  -EAGAIN  cap reached, or too many map entries: try again when some have been released
 *         -ENOMEM  the system has no memory or address space
 *         *out is untouched then, and nothing is held
 */
int stack_take(struct stack_pool *p, struct stack **out);

/* Give a stack back, in whichever thread, but not on the stack itself. One that is not live is reported and
 * left alone. */
void stack_release(struct stack *s);

struct stack_pool_stats {
    const char *name;  /* valid as long as the pool */
    const char *guard; /* "advice" or "mprotect" */
    uint32_t cap, live, peak; /* peak is exact */
    uint32_t cached_hot, cached_cold;
    uint32_t stacks, slabs;
    uint32_t map_entries;  /* of the process, caused by this pool: at most that many */
    uint64_t bytes_mapped;
    uint64_t takes, reused; /* reused: takes that were served with a cached stack */
    uint64_t refused_cap, refused_maps, no_memory;
    uint64_t dropped, dropped_lower; /* stacks whose pages, or only the lower part of them, were given back */
    uint64_t unmapped;               /* slabs */
};
/* From any thread; takes the pool's lock for a moment. */
void stack_pool_stats(struct stack_pool *p, struct stack_pool_stats *out);

/* Bytes of all stacks that are in memory now. Asks the kernel about each page: milliseconds for 10,000
 * stacks, in which no sweep goes on. */
size_t stack_pool_resident(struct stack_pool *p);

/* Sets the policy for stacks that are released, in all pools from now on; any thread:
 *   age   kept warm; a sweep gives back the pages of those that were already cold (default)
 *   keep  kept; only a trim gives their pages back
 *   drop  the pages go back at each release, for some microseconds
 * 0, or -EINVAL for another word. */
int stack_pools_set_policy(const char *word);
const char *stack_pools_policy(void);

/* Every pool's figures as key and value, for a statedump; key "-----" comes before each. fn must not use
 * stack pools. */
void stack_pools_dump(mem_dump_fn fn, void *arg);

/* Walk all structures of a quiet pool; asserts the invariants. Tests. */
void stack_pool_check(struct stack_pool *p);

#endif
