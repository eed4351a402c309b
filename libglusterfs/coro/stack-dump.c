/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* stack-dump: statistics of the stack pools, and a check of all their structures. */
#include "coro/stack-internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static size_t
mapped_locked(struct stack_pool *p)
{
    size_t bytes = 0;

    for (struct stack_slab *b = p->slabs; b; b = b->next)
        bytes += b->map_bytes;
    return bytes;
}

void
stack_pool_stats(struct stack_pool *p, struct stack_pool_stats *out)
{
    mem_lock(&p->lock);
    *out = (struct stack_pool_stats){
        .name = p->name,
        .guard = MEM_READ(p->is_mprotect) ? "mprotect" : "advice",
        .cap = p->cap,
        .live = p->live,
        .peak = p->peak,
        .cached_hot = p->hot,
        .cached_cold = p->cached - p->hot,
        .stacks = p->total,
        .slabs = p->nslabs,
        .map_entries = p->entries,
        .bytes_mapped = mapped_locked(p),
        .takes = p->takes,
        .reused = p->reused,
        .refused_cap = p->refused_cap,
        .refused_maps = p->refused_maps,
        .no_memory = p->no_memory,
        .dropped = p->dropped,
        .dropped_lower = p->dropped_lower,
        .unmapped = p->unmapped,
    };
    mem_unlock(&p->lock);
}

/* Pools mutex held, so no sweep unmaps a slab meanwhile. With pools off a release unmaps slabs, so then
 * the pool's lock is held. */
static size_t
pool_resident_locked(struct stack_pool *p)
{
    size_t bytes = 0;

    mem_lock(&p->lock);
    struct stack_slab *b = p->slabs;
    if (!p->is_direct)
        mem_unlock(&p->lock);
    for (; b; b = b->next)
        bytes += stack_slab_resident(b);
    if (p->is_direct)
        mem_unlock(&p->lock);
    return bytes;
}

size_t
stack_pool_resident(struct stack_pool *p)
{
    size_t bytes;

    pthread_mutex_lock(&stack_pools_mutex);
    bytes = pool_resident_locked(p);
    pthread_mutex_unlock(&stack_pools_mutex);
    return bytes;
}

/* The keys of a pool in a statedump, besides its name. */
#define U32(key, field) { key, offsetof(struct stack_pool_stats, field), sizeof(uint32_t) }
#define U64(key, field) { key, offsetof(struct stack_pool_stats, field), sizeof(uint64_t) }
static const struct {
    const char *key;
    size_t at, bytes;
} keys[] = {
    U32("cap", cap), U32("live", live), U32("peak", peak), U32("cached-hot", cached_hot),
    U32("cached-cold", cached_cold), U32("stacks", stacks), U32("slabs", slabs),
    U32("map-entries", map_entries), U64("bytes-mapped", bytes_mapped), U64("takes", takes),
    U64("reused", reused), U64("refused-cap", refused_cap), U64("refused-map-entries", refused_maps),
    U64("no-memory", no_memory), U64("sweep-dropped", dropped), U64("sweep-dropped-lower", dropped_lower),
    U64("slabs-unmapped", unmapped),
};

void
stack_pools_dump(mem_dump_fn fn, void *arg)
{
    pthread_mutex_lock(&stack_pools_mutex);
    for (struct stack_pool *p = stack_pools; p; p = p->next) {
        struct stack_pool_stats s;
        char text[32];

        stack_pool_stats(p, &s);
        fn(arg, "-----", "");
        fn(arg, "stack-pool", s.name);
        fn(arg, "guard", s.guard);
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
            const void *field = (const char *)&s + keys[i].at;

            snprintf(text, sizeof(text), "%" PRIu64,
                     keys[i].bytes == sizeof(uint32_t) ? *(const uint32_t *)field : *(const uint64_t *)field);
            fn(arg, keys[i].key, text);
        }
        snprintf(text, sizeof(text), "%zu", pool_resident_locked(p));
        fn(arg, "bytes-resident", text);
    }
    pthread_mutex_unlock(&stack_pools_mutex);
}

/* ---- check ----------------------------------------------------------------------------------- */

static void
check_slab(const struct stack_pool *p, const struct stack_slab *b, uint32_t count[4])
{
    uint32_t here[4] = { 0 }, bits = 0;

    assert(b->pool == p && b->n >= 1 && b->n <= STACK_SLAB_MAX);
    for (unsigned w = 0; w < STACK_WORDS; w++)
        bits += (uint32_t)__builtin_popcountll(b->bare.word[w]);
    for (uint32_t i = 0; i < b->n; i++) {
        const struct stack *s = &b->stack[i];

        assert(s->slab == b && s->index == i && s->state <= STACK_DROPPING);
        assert((s->state == STACK_BARE) == (b->bare.word[i / 64] >> (i % 64) & 1));
        here[s->state]++;
        count[s->state]++;
    }
    assert(here[STACK_BARE] == b->nbare && bits == b->nbare && here[STACK_CACHED] == b->ncached);
}

static void
check_lists(const struct stack_pool *p)
{
    uint32_t n = 0, hot = 0, bare = 0;
    bool is_tail = false;

    for (const struct stack *s = p->newest, *newer = NULL; s; newer = s, s = s->older) {
        assert(s->state == STACK_CACHED && s->newer == newer && (!newer || newer->stamp >= s->stamp));
        assert(s->older || p->oldest == s);
        hot += s->stamp == p->sweeps;
        n++;
    }
    assert(n == p->cached && hot == p->hot);
    for (const struct stack_slab *b = p->room, *prev = NULL; b; prev = b, b = b->room_next) {
        assert(b->room_prev == prev && b->nbare > 0 && (b->room_next || p->room_last == b));
        assert(!is_tail || b->nbare == b->n);
        is_tail = b->nbare == b->n;
        bare += b->nbare;
    }
    assert(bare == p->nbare);
}

void
stack_pool_check(struct stack_pool *p)
{
    uint32_t count[4] = { 0 }, slabs = 0, entries = 0;

    mem_lock(&p->lock);
    for (const struct stack_slab *b = p->slabs, *prev = NULL; b; prev = b, b = b->next) {
        assert(b->prev == prev);
        check_slab(p, b, count);
        slabs++;
        entries += b->entries;
    }
    check_lists(p);
    assert(slabs == p->nslabs && entries == p->entries);
    assert(count[STACK_BARE] == p->nbare && count[STACK_LIVE] == p->live && count[STACK_CACHED] == p->cached);
    assert(count[STACK_DROPPING] == p->dropping);
    assert(p->total == p->nbare + p->live + p->cached + p->dropping && p->total <= p->cap);
    mem_unlock(&p->lock);
}
