/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* stack-internal: what stack-pool.c and stack-slab.c share.
 *
 * Locks, inside mem_sweep_mutex (mem/mem-shared.h), outermost first:
 *   stack_pools_mutex   the list of pools; held during a sweep of them
 *   pool.slow           growing, and dropping the stacks of one slab: who holds it knows that no stack is in
 *                       between
 *   pool.lock           everything else in a pool
 */
#ifndef KILN_CORO_STACK_INTERNAL_H
#define KILN_CORO_STACK_INTERNAL_H

#include "mem/mem-shared.h"
#include "coro/stack-pool.h"

enum {
    STACK_SLAB_FIRST = 8,
    STACK_SLAB_MAX = 256,
    STACK_UPPER = 16 << 10, /* what a stack keeps when the lower part is dropped */
    STACK_WORDS = STACK_SLAB_MAX / 64,
};

enum stack_state { STACK_BARE, STACK_LIVE, STACK_CACHED, STACK_DROPPING };

struct stack_bits {
    uint64_t word[STACK_WORDS];
};

/* At the start of its mapping. Fields from nbare on are under the pool's lock. */
struct stack_slab {
    struct stack_pool *pool;
    size_t map_bytes;
    uint32_t n;       /* stacks */
    uint32_t entries; /* of the memory map */
    uint32_t nbare, ncached;
    uint32_t bare_since; /* number of the sweep before which all became bare */
    struct stack_slab *next, *prev;           /* all of the pool */
    struct stack_slab *room_next, *room_prev; /* those with bare stacks */
    struct stack_bits bare;
    struct stack stack[] __attribute__((aligned(64)));
};

struct stack_pool {
    struct mem_lock lock;
    uint32_t live, cached, hot, nbare, total; /* stacks; total also counts a slab that is being mapped */
    struct stack *newest, *oldest;            /* cached, in the order of their release */
    struct stack_slab *room, *room_last, *slabs;
    uint32_t nslabs, entries, sweeps, dropping, peak;
    bool is_dying;
    uint64_t takes, reused, refused_cap, refused_maps, no_memory, dropped, dropped_lower, unmapped;

    pthread_mutex_t slow __attribute__((aligned(64)));
    uint32_t others, others_at;  /* map entries that are not ours; our own when they were counted. slow */
    uint64_t counted_us;
    bool is_mprotect;            /* slow; read without */

    /* constant */
    char *name;
    size_t bytes, page;
    uint32_t cap, entries_max, slab_max;
    bool is_direct; /* a mapping for each stack, as with pools off */
    struct stack_pool *next;
};

extern pthread_mutex_t stack_pools_mutex;
extern struct stack_pool *stack_pools;

/* ---- one mapping; no lock is needed (stack-slab.c) ------------------------------------------- */

int stack_slab_map(struct stack_pool *p, uint32_t n, struct stack_slab **out); /* slow held. 0 or -ENOMEM */
void stack_slab_unmap(struct stack_slab *b);
size_t stack_slab_drop(struct stack_slab *b, const struct stack_bits *which); /* bytes */
size_t stack_drop_lower(struct stack *s); /* 0 if it never used its lower part, or has none */
size_t stack_slab_resident(struct stack_slab *b);
uint32_t stack_slab_entries(const struct stack_pool *p, uint32_t n);
uint32_t stack_map_entries(void); /* of the process; 0 if that cannot be read */
uint32_t stack_map_limit(void);   /* vm.max_map_count */

#endif
