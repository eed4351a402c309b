/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-dump: all statistics as key and value, with GlusterFS's keys first, and the check of all structures. */
#include "mem/mem-internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct out {
    mem_dump_fn fn;
    void *arg;
};

static void
dump_number(const struct out *o, const char *key, uint64_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%" PRIu64, value);
    o->fn(o->arg, key, text);
}

static void
dump_process(const struct out *o)
{
    struct mem_process_stats s;
    char text[160];

    mem_pools_stats(&s);
    o->fn(o->arg, "mode", s.mode);
    o->fn(o->arg, "handshake", s.handshake);
    o->fn(o->arg, "pool-release", s.release);
    dump_number(o, "sweep-interval-ms", s.sweep_ms);
    dump_number(o, "sweep-count", s.sweeps);
    dump_number(o, "sweep-last-us", s.sweep_last_us);
    dump_number(o, "membarrier-us-max", s.membarrier_us_max);
    dump_number(o, "bypass-window-us-max", s.window_us_max);
    dump_number(o, "threads-attached", s.threads);
    dump_number(o, "threads-skipped", s.threads_skipped);
    dump_number(o, "demote-requests", s.demote_requests);
    snprintf(text, sizeof(text), "periodic %" PRIu64 ", pressure %" PRIu64 ", manual %" PRIu64,
             s.trims_periodic, s.trims_pressure, s.trims_manual);
    o->fn(o->arg, "trim-count", text);
    dump_number(o, "cap-bytes", s.cap_bytes);
    dump_number(o, "cached-bytes", s.cached_bytes);
    dump_number(o, "resident-bytes", s.resident_bytes);
    dump_number(o, "reserved-bytes", s.reserved_bytes);
    dump_number(o, "released-bytes", s.released_bytes);
}

static uint64_t
hits_hot(const struct mem_pool_stats *s)
{
    uint64_t other = s->hits_cold + s->hits_depot + s->bypass;

    return s->gets > other ? s->gets - other : 0;
}

static void
dump_pool(const struct out *o, struct mem_pool *p)
{
    struct mem_pool_stats s;

    mem_pool_stats(p, &s);
    o->fn(o->arg, "-----", "-----");
    o->fn(o->arg, "pool-name", s.name);
    o->fn(o->arg, "xlator-name", s.xlator ? s.xlator : "");
    dump_number(o, "active-count", s.live > 0 ? (uint64_t)s.live : 0);
    dump_number(o, "sizeof-type", s.size);
    dump_number(o, "padded-sizeof", s.stride);
    dump_number(o, "size", s.bytes_resident);
    o->fn(o->arg, "shared-pool", s.name);
    dump_number(o, "padding-bytes", s.live > 0 ? (uint64_t)s.live * (s.stride - s.size) : 0);
    dump_number(o, "peak-sampled", s.peak > 0 ? (uint64_t)s.peak : 0);
    dump_number(o, "cached-hot", s.cached_hot);
    dump_number(o, "cached-cold", s.cached_cold);
    dump_number(o, "depot-magazines", s.depot_hot);
    dump_number(o, "depot-cold-magazines", s.depot_cold);
    dump_number(o, "magazine-size", s.magazine);
    dump_number(o, "gets", s.gets);
    dump_number(o, "puts", s.puts);
    dump_number(o, "hits-hot", hits_hot(&s));
    dump_number(o, "hits-cold", s.hits_cold);
    dump_number(o, "hits-depot", s.hits_depot);
    dump_number(o, "system-allocs", s.system_allocs);
    dump_number(o, "sweep-freed", s.sweep_freed);
    dump_number(o, "bypass", s.bypass);
    dump_number(o, "double-free", s.double_free);
    dump_number(o, "wrong-pool", s.wrong_pool);
    dump_number(o, "spans", s.spans);
    dump_number(o, "spans-empty", s.spans_empty);
    dump_number(o, "bytes-resident", s.bytes_resident);
    mem_owner_dump(p, o->fn, o->arg);
}

/* The sweep mutex keeps pools from being freed meanwhile. */
void
mem_pools_dump(mem_dump_fn fn, void *arg)
{
    struct out o = { fn, arg };

    dump_process(&o);
    if (mem_mode_now() == MEM_MODE_OFF)
        return;
    pthread_mutex_lock(&mem_sweep_mutex);
    mem_owners_scan();
    for (unsigned id = 0; id < MEM_IDS; id++) {
        struct mem_pool *p = mem_pool_by_id(id);

        if (p)
            dump_pool(&o, p);
    }
    pthread_mutex_unlock(&mem_sweep_mutex);
}

/* ---- invariants ------------------------------------------------------------------------------ */

static MEM_RAW uint64_t
check_chain(struct mem_pool *p, struct mem_magazine *m, bool empty)
{
    uint64_t n = 0;

    for (; m; m = m->next) {
        assert(m->count <= m->cap);
        assert(!empty || !m->count);
        for (uint32_t i = 0; i < m->count; i++) {
            assert(mem_word_read(mem_header_of(m->slot[i])) == mem_word(p, MEM_STATE_DEAD));
            assert(mem_header_of(m->slot[i])->id == p->id);
        }
        n += m->count;
    }
    return n;
}

static uint64_t
check_line(struct mem_pool *p, struct mem_line *l)
{
    uint64_t loaded = (uint64_t)(l->top - l->base), cold, previous = 0;

    assert(l->word == p->word);
    assert(l->base <= l->top && l->top <= l->end);
    if (l->base) {
        struct mem_magazine *m =
            (struct mem_magazine *)(void *)((char *)l->base - offsetof(struct mem_magazine, slot));

        assert(l->end == l->base + m->cap);
        m->count = (uint32_t)loaded;
        assert(!m->next);
        check_chain(p, m, false);
    }
    cold = check_chain(p, l->cold, false);
    assert(cold == l->ncold);
    if (l->previous) {
        assert(!l->previous->next);
        previous = check_chain(p, l->previous, false);
    }
    assert(previous == l->nprevious);
    return loaded + previous + cold;
}

static void
check_pool(struct mem_pool *p)
{
    struct mem_depot *d = &p->depot;
    uint64_t cached;

    mem_class_check(&p->class);
    if (mem_set.mode != MEM_MODE_ON)
        return;
    mem_lock(&d->lock);
    cached =
        check_chain(p, d->hot, false) + check_chain(p, d->cold, false) + check_chain(p, d->doomed, false);
    check_chain(p, d->empty, true);
    mem_unlock(&d->lock);
    for (struct mem_thread *t = mem_threads; t; t = t->next)
        if (t->used[p->id / 64] & ((uint64_t)1 << (p->id % 64)))
            cached += check_line(p, mem_line_of(t, p->id));
    /* Every object is either live or in exactly one magazine. */
    assert(MEM_READ(p->class.carved) - MEM_READ(p->class.returned) ==
           cached + (uint64_t)mem_pool_live(p) - MEM_READ(p->direct));
}

void
mem_pools_check(void)
{
    if (mem_mode_now() == MEM_MODE_OFF)
        return;
    pthread_mutex_lock(&mem_sweep_mutex);
    pthread_mutex_lock(&mem_registry_mutex);
    for (unsigned id = 0; id < MEM_IDS; id++)
        if (mem_pools[id])
            check_pool(mem_pools[id]);
    pthread_mutex_unlock(&mem_registry_mutex);
    pthread_mutex_unlock(&mem_sweep_mutex);
}
