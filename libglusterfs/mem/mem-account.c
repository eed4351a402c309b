/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-account: statistics of pools and owners. Every thread counts in words that only this thread writes; a
 * reader adds the words of all threads. A thread's difference of gets and puts may be negative: only the sum
 * is meaningful. */
#include "mem/mem-span.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct owner {
    char *name;
    bool retired, in_use;
    bool is_clean; /* the last audit found nothing; under the sweep mutex, and read when the owner retires */
    unsigned zero_sweeps;
    uint32_t found[MEM_IDS];   /* by the last scan; sweep mutex */
    uint32_t outside[MEM_IDS]; /* objects that are not in spans, counted one by one; atomic */
};

/* never freed but reused; made and named under the registry mutex, read without */
static struct owner *owners[MEM_OWNERS];

static struct owner *
owner_at(unsigned id)
{
    return __atomic_load_n(&owners[id], __ATOMIC_ACQUIRE);
}

/* ---- pools ----------------------------------------------------------------------------------- */

/* Reads a thread's loaded magazine and flow, both of the same moment. The thread may be changing both, for a
 * few instructions. If the thread is stopped there, the reader takes the line with an error of at most a
 * magazine. */
static void
read_line(const struct mem_thread *t, const struct mem_line *l, int64_t *loaded, uint32_t *flow)
{
    enum { TRIES = 100 };

    for (int i = 0; i < TRIES; i++) {
        uint64_t changes = __atomic_load_n(&t->changes, __ATOMIC_ACQUIRE);

        *loaded = MEM_READ(l->top) - MEM_READ(l->base);
        *flow = MEM_READ(l->flow);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (!(changes & 1) && MEM_READ(t->changes) == changes)
            return;
        sched_yield();
    }
    if (*loaded < 0 || *loaded > MEM_CAP_MAX) /* top of one magazine, base of another */
        *loaded = 0;
}

/* Registry mutex held. hot and cold: objects in threads' magazines. */
void
mem_pool_sum(struct mem_pool *p, uint64_t *gets, uint64_t *puts, uint64_t *hot, uint64_t *cold)
{
    *gets = MEM_READ(p->gets);
    *puts = MEM_READ(p->puts);
    uint32_t sum = 0;

    *hot = *cold = 0;
    for (struct mem_thread *t = mem_threads; t; t = t->next) {
        struct mem_line *l = mem_line_of(t, p->id);

        if (!(MEM_READ(t->used[p->id / 64]) & ((uint64_t)1 << (p->id % 64))))
            continue;
        int64_t loaded;
        uint32_t flow;
        uint64_t n = MEM_READ(l->gets);

        read_line(t, l, &loaded, &flow);
        *hot += (uint64_t)loaded + MEM_READ(l->nprevious);
        *cold += MEM_READ(l->ncold);
        *gets += n;
        *puts += n;
        sum += (uint32_t)loaded + flow;
    }
    /* Flows are counted modulo 2^32; fewer than 2^31 objects are live. */
    *puts = *gets - (uint64_t)(int64_t)(int32_t)((uint32_t)*gets - (uint32_t)*puts - sum);
}

/* Registry mutex held. */
int64_t
mem_pool_live(struct mem_pool *p)
{
    uint64_t gets, puts, hot, cold;
    int64_t live;

    mem_pool_sum(p, &gets, &puts, &hot, &cold);
    live = (int64_t)(gets - puts);
    if (live > p->peak)
        MEM_WRITE(p->peak, live);
    return live;
}

void
mem_pool_stats(struct mem_pool *p, struct mem_pool_stats *out)
{
    uint64_t hot, cold;

    *out = (struct mem_pool_stats){ .name = p->name, .xlator = p->xlator, .id = p->id, .size = p->size,
                                    .stride = p->class.stride };
    pthread_mutex_lock(&mem_registry_mutex);
    out->live = mem_pool_live(p);
    mem_pool_sum(p, &out->gets, &out->puts, &hot, &cold);
    pthread_mutex_unlock(&mem_registry_mutex);
    out->peak = MEM_READ(p->peak);
    out->hits_cold = MEM_READ(p->hits_cold);
    out->hits_depot = MEM_READ(p->hits_depot);
    out->system_allocs = MEM_READ(p->system_allocs);
    out->sweep_freed = MEM_READ(p->sweep_freed);
    out->bypass = MEM_READ(p->bypass);
    out->double_free = MEM_READ(p->double_free);
    out->wrong_pool = MEM_READ(p->wrong_pool);
    mem_lock(&p->depot.lock);
    for (struct mem_magazine *m = p->depot.hot; m; m = m->next)
        hot += m->count;
    for (struct mem_magazine *m = p->depot.cold; m; m = m->next)
        cold += m->count;
    for (struct mem_magazine *m = p->depot.doomed; m; m = m->next)
        cold += m->count;
    out->depot_hot = p->depot.nhot;
    out->depot_cold = p->depot.ncold;
    out->magazine = p->depot.m;
    mem_unlock(&p->depot.lock);
    out->cached_hot = hot;
    out->cached_cold = cold;
    mem_lock(&p->class.lock);
    out->spans = p->class.spans;
    out->spans_empty = p->class.empties;
    out->bytes_resident =
        p->class.span_bytes
            ? (size_t)p->class.spans * p->class.span_bytes
            : (size_t)(MEM_READ(p->class.carved) - MEM_READ(p->class.returned)) * p->class.stride;
    mem_unlock(&p->class.lock);
}

void
mem_pools_stats(struct mem_process_stats *out)
{
    mem_settle();
    pthread_mutex_lock(&mem_registry_mutex);
    size_t cached = 0;
    for (unsigned id = 0; id < MEM_IDS; id++) {
        struct mem_pool *p = mem_pools[id];
        int64_t held =
            p ? (int64_t)(MEM_READ(p->class.carved) - MEM_READ(p->class.returned)) - mem_pool_live(p) : 0;

        cached += held > 0 ? (size_t)held * p->class.stride : 0;
    }
    pthread_mutex_unlock(&mem_registry_mutex);
    *out = (struct mem_process_stats){
        .mode = mem_pools_mode(),
        .handshake = mem_set.cooperative ? "cooperative" : "asymmetric",
        .release = MEM_READ(mem_set.keeps) ? "keep" : "drop",
        .sweep_ms = MEM_READ(mem_set.sweep_ms),
        .sweeps = MEM_READ(mem_figures.sweeps),
        .sweep_last_us = MEM_READ(mem_figures.last_us),
        .membarrier_us_max = MEM_READ(mem_figures.membarrier_us_max),
        .window_us_max = MEM_READ(mem_figures.window_us_max),
        .threads = MEM_READ(mem_threads_attached),
        .threads_skipped = MEM_READ(mem_figures.skipped),
        .demote_requests = MEM_READ(mem_figures.demotes),
        .trims_periodic = MEM_READ(mem_figures.periodic),
        .trims_pressure = MEM_READ(mem_figures.pressure),
        .trims_manual = MEM_READ(mem_figures.manual),
        .cap_bytes = MEM_READ(mem_set.cap),
        .cached_bytes = cached,
        .resident_bytes = MEM_READ(mem_resident_bytes),
        .reserved_bytes = MEM_READ(mem_reserved_bytes),
        .released_bytes = MEM_READ(mem_released_bytes),
    };
}

/* ---- owners ---------------------------------------------------------------------------------- */

int
mem_owner_new(const char *name)
{
    char *copy = mem_test_fails() ? NULL : strdup(name);
    int id = 1;

    if (!copy)
        return -ENOMEM;
    pthread_mutex_lock(&mem_registry_mutex);
    while (id < MEM_OWNERS && owners[id] && owners[id]->in_use)
        id++;
    if (id < MEM_OWNERS && !owners[id])
        __atomic_store_n(&owners[id], calloc(1, sizeof(struct owner)), __ATOMIC_RELEASE);
    if (id == MEM_OWNERS || !owners[id]) {
        id = id == MEM_OWNERS ? -ENOSPC : -ENOMEM;
        free(copy);
    } else {
        free(owners[id]->name);
        owners[id]->name = copy;
        MEM_WRITE(owners[id]->retired, false);
        MEM_WRITE(owners[id]->in_use, true);
        owners[id]->zero_sweeps = 0;
        MEM_WRITE(owners[id]->is_clean, false);
    }
    pthread_mutex_unlock(&mem_registry_mutex);
    return id;
}

void
mem_owner_retire(uint16_t id)
{
    pthread_mutex_lock(&mem_registry_mutex);
    assert(id < MEM_OWNERS && owners[id]);
    assert(owners[id]->in_use && !owners[id]->retired);
    MEM_WRITE(owners[id]->retired, true);
    /* in mode off objects are not counted, and no sweep would find the balance zero */
    bool is_free = MEM_READ(owners[id]->is_clean) || mem_set.mode == MEM_MODE_OFF;
    if (is_free)
        MEM_WRITE(owners[id]->in_use, false);
    pthread_mutex_unlock(&mem_registry_mutex);
    if (!is_free)
        mem_sweeper_rouse();
}

/* Counts the live objects of a span for their owners, which are in their headers. So gets and puts need
 * not count; a reader visits all objects. */
static MEM_RAW void
scan_span(struct mem_span *s, void *arg)
{
    struct mem_pool *p = mem_pool_by_id(s->id);
    struct mem_class *c = s->class;

    (void)arg;
    if (!p || c != &p->class)
        return; /* magazines */
    mem_lock(&c->lock);
    for (uint32_t i = 0; i < c->per_span; i++) {
        uint64_t word;
        unsigned o;

        if (s->free[i / 64] & ((uint64_t)1 << (i % 64)))
            continue;
        word = mem_word_read(mem_header_of(mem_object_at(c, s, i)));
        o = mem_word_owner(word);
        if (o && (uint32_t)word == (uint32_t)p->word && o < MEM_OWNERS && owner_at(o))
            owner_at(o)->found[s->id]++;
    }
    mem_unlock(&c->lock);
}

/* Sweep mutex held, so no span is released. */
void
mem_owners_scan(void)
{
    struct owner *o;

    for (unsigned i = 1; i < MEM_OWNERS && (o = owner_at(i)); i++)
        memset(o->found, 0, sizeof(o->found));
    mem_spans_each(scan_span, NULL);
}

/* Sweep mutex held, after a scan. */
static int64_t
balance_in(unsigned owner, unsigned id)
{
    return (int64_t)owners[owner]->found[id] + (int32_t)MEM_READ(owners[owner]->outside[id]);
}

static int64_t
balance_all(unsigned owner)
{
    int64_t n = 0;

    for (unsigned id = 0; id < MEM_IDS; id++)
        n += balance_in(owner, id);
    return n;
}

static bool
owner_known(unsigned owner)
{
    return owner < MEM_OWNERS && __atomic_load_n(&owners[owner], __ATOMIC_ACQUIRE);
}

int64_t
mem_owner_balance(uint16_t owner, const struct mem_pool *pool)
{
    int64_t n;

    if (!owner_known(owner))
        return 0;
    pthread_mutex_lock(&mem_sweep_mutex);
    mem_owners_scan();
    n = pool ? balance_in(owner, pool->id) : balance_all(owner);
    pthread_mutex_unlock(&mem_sweep_mutex);
    return n;
}

int64_t
mem_owner_audit(uint16_t owner, mem_audit_fn fn, void *arg)
{
    int64_t count[MEM_IDS] = { 0 }, total = 0;

    if (!owner_known(owner))
        return 0;
    pthread_mutex_lock(&mem_sweep_mutex);
    mem_owners_scan();
    for (unsigned id = 0; id < MEM_IDS; id++)
        total += count[id] = balance_in(owner, id);
    MEM_WRITE(owners[owner]->is_clean, total == 0);
    pthread_mutex_unlock(&mem_sweep_mutex);
    for (unsigned id = 0; id < MEM_IDS; id++) {
        char where[512], name[128];
        size_t stride = 0;

        if (!count[id])
            continue;
        pthread_mutex_lock(&mem_registry_mutex);
        if (mem_pools[id]) {
            snprintf(name, sizeof(name), "%s", mem_pools[id]->name);
            stride = mem_pools[id]->class.stride;
        }
        pthread_mutex_unlock(&mem_registry_mutex);
        if (stride) /* else the pool has been freed meanwhile, with its last object */
            fn(arg, name, count[id], (uint64_t)count[id] * stride,
               mem_trace_oldest(owner, id, where, sizeof(where)) ? where : NULL);
    }
    return total;
}

/* Counts an object that is not in a span. */
void
mem_owner_count(unsigned owner, unsigned id, uint32_t by)
{
    assert(owner_known(owner)); /* else mem_owner_new has never returned this id */
    MEM_ADD(owners[owner]->outside[id], by);
}

/* Frees the ids of retired owners whose balance stayed zero. Sweep mutex held. */
void
mem_owners_sweep(void)
{
    bool any = false;

    for (unsigned i = 1; i < MEM_OWNERS && owner_at(i) && !any; i++)
        any = MEM_READ(owner_at(i)->in_use) && MEM_READ(owner_at(i)->retired);
    if (!any)
        return;
    mem_owners_scan();
    pthread_mutex_lock(&mem_registry_mutex);
    for (unsigned i = 1; i < MEM_OWNERS && owners[i]; i++) {
        struct owner *o = owners[i];
        bool zero = true;

        if (!o->in_use || !o->retired)
            continue;
        for (unsigned id = 0; id < MEM_IDS && zero; id++)
            zero = balance_in(i, id) == 0;
        o->zero_sweeps = zero ? o->zero_sweeps + 1 : 0;
        if (o->zero_sweeps >= 2)
            MEM_WRITE(o->in_use, false);
    }
    pthread_mutex_unlock(&mem_registry_mutex);
}

/* Passes one line per owner that has objects of this pool: "id 3, brick b0, active 12, bytes 3840". Sweep
 * mutex held, after a scan. */
void
mem_owner_dump(struct mem_pool *p, mem_dump_fn fn, void *arg)
{
    for (unsigned i = 1; i < MEM_OWNERS && owner_known(i); i++) {
        int64_t n = balance_in(i, p->id);
        char text[256];

        if (!n)
            continue;
        pthread_mutex_lock(&mem_registry_mutex);
        snprintf(text, sizeof(text), "id %u, brick %s, active %lld, bytes %lld", i, owners[i]->name,
                 (long long)n, (long long)n * p->class.stride);
        pthread_mutex_unlock(&mem_registry_mutex);
        fn(arg, "owner", text);
    }
}
