/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* stack-internal: declarations that stack-pool.c and stack-slab.c share.
 *
 * Locks, inside mem_sweep_mutex (mem/mem-shared.h), outermost first:
 *   stack_pools_mutex   the list of pools; held during a sweep of them
 *   pool.slow           growing, and dropping the stacks of one slab: its holder knows that no stack is in
 *                       state DROPPING because of another thread
 *   pool.lock           all other members of a pool */
#ifndef KILN_CORO_STACK_INTERNAL_H
#define KILN_CORO_STACK_INTERNAL_H

#include "mem/mem-shared.h"
#include "coro/stack-pool.h"

enum {
    STACK_SLAB_FIRST = 8,
    STACK_SLAB_MAX = 256,
    STACK_UPPER = 16 << 10, /* bytes of a stack that remain when the lower part is dropped */
    STACK_WORDS = STACK_SLAB_MAX / 64,
};

enum stack_state { STACK_BARE, STACK_LIVE, STACK_CACHED, STACK_DROPPING };

struct stack_bits {
    uint64_t word[STACK_WORDS];
};

/* Lies at the start of its mapping. Fields from nbare on are under the pool's lock. */
struct stack_slab {
    struct stack_pool *pool;
    size_t map_bytes;
    uint32_t n;       /* stacks */
    uint32_t entries; /* in the process's memory map */
    uint32_t nbare, ncached;
    uint32_t bare_since; /* number of the sweep before which all stacks became bare */
    struct stack_slab *next, *prev;           /* all slabs of the pool */
    struct stack_slab *room_next, *room_prev; /* the slabs with bare stacks */
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
    /* map entries of other mappings; own entries when those were counted. Under slow */
    uint32_t others, others_at;
    uint64_t counted_us;
    bool is_mprotect;            /* written under slow; read without */

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
size_t stack_slab_drop(struct stack_slab *b, const struct stack_bits *which); /* returns bytes */
/* returns bytes; 0 if the lower part was never used, or there is none */
size_t stack_drop_lower(struct stack *s);
size_t stack_slab_resident(struct stack_slab *b);
uint32_t stack_slab_entries(const struct stack_pool *p, uint32_t n);
uint32_t stack_map_entries(void); /* of the process; 0 if it cannot be read */
uint32_t stack_map_limit(void);   /* vm.max_map_count */

#endif
