/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-pool: getting and putting objects. The fast path is mem_get_fast and mem_put_fast in mem-inline.h;
 * this file has the calls around it, the slow path, which calls the pool's backend, and the backend of
 * mode on, which finds a magazine:
 *
 *   get   loaded is empty: previous, a cold magazine (of big objects: one object), the depot, half a
 *         magazine carved from spans
 *   put   loaded is full: previous, an empty magazine for a full one from the depot, else singly to the depot
 *
 * A thread that finds the sweeper at work (LOCKED) never waits: it takes the object from the depot, or
 * gives it to the depot, under the depot's lock. */
#include "mem/mem-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/probe.h"

enum { SWAP_KEEP = 16 };

struct mem_pool *mem_pools[MEM_IDS];

/* mem_get and mem_put end in a tail call of the slow path, in which this is then their caller; so the fast
 * path need not fetch it. */
#define SITE() __builtin_return_address(0)

/* ---- the public calls ------------------------------------------------------------------------ */

MEM_RAW MEM_INLINE void *
get_shown(struct mem_pool *pool, uint16_t owner, const void *site)
{
    void *p = mem_get_fast(pool->line, (uint64_t)owner << MEM_OWNER_SHIFT, site);

    if (MEM_ASAN && p)
        MEM_ASAN_SHOW(p, pool->size);
    return p;
}

void *
mem_get(struct mem_pool *pool)
{
    return get_shown(pool, 0, NULL);
}

void *
mem_get0(struct mem_pool *pool)
{
    void *p;

    assert(!pool->ctor && !pool->reset);
    if (MEM_UNLIKELY(mem_set.mode == MEM_MODE_OFF) && pool->align <= 16 && !mem_test_fails())
        return calloc(1, pool->size);
    p = get_shown(pool, 0, SITE());
    /* a length known to the compiler would become a string store, four times slower than the libc call */
    return MEM_LIKELY(p != NULL) ? memset(p, 0, pool->zero_len) : NULL;
}

/* For a pool whose objects are not in spans. Their puts must take the slow path, to be counted, so their
 * word matches no line. */
static MEM_RAW __attribute__((noinline)) void *
get_counted(struct mem_pool *pool, uint16_t owner)
{
    void *p = get_shown(pool, owner, SITE());

    if (p && owner && mem_set.mode != MEM_MODE_OFF) {
        mem_owner_count(owner, pool->id, 1);
        mem_word_write(mem_header_of(p),
                       (uint32_t)mem_word_read(mem_header_of(p)) | (uint64_t)owner << MEM_OWNER_SHIFT);
    }
    return p;
}

void *
mem_get_owner(struct mem_pool *pool, uint16_t owner)
{
    return MEM_LIKELY(!pool->counts_owners) ? get_shown(pool, owner, NULL) : get_counted(pool, owner);
}

void *
mem_get0_owner(struct mem_pool *pool, uint16_t owner)
{
    void *p = mem_get_owner(pool, owner);

    assert(!pool->ctor && !pool->reset);
    return MEM_LIKELY(p != NULL) ? memset(p, 0, pool->zero_len) : NULL;
}

void *
mem_get_by_id(unsigned id)
{
    struct mem_pool *p = mem_pool_by_id(id);

    return p ? mem_get(p) : mem_get_slow(id, 0, SITE()); /* refuses the get */
}

#if MEM_ASAN
/* Hides the body before another thread can get it. The header names the pool; mode off has no header. */
static MEM_RAW void
asan_hide(void *object)
{
    struct mem_pool *p = mem_set.mode == MEM_MODE_ON ? mem_pool_of(mem_header_of(object)) : NULL;

    if (p && p->backend == &mem_lines && !p->reset &&
        (uint32_t)mem_header_of(object)->word == (uint32_t)p->word)
        MEM_ASAN_HIDE(object, p->class.stride - p->class.offset);
}
#else
#define asan_hide(object) ((void)(object))
#endif

MEM_RAW void
mem_put(void *object)
{
    if (MEM_UNLIKELY(!object))
        return;
    asan_hide(object);
    mem_put_fast(object, 0, NULL);
}

/* Takes the objects that the loaded magazine has, up to n, in one bracket. Their headers are written
 * outside of it, because the objects already belong to the caller. */
static MEM_RAW size_t
take_some(struct mem_pool *pool, void **objects, size_t n)
{
    struct mem_thread *t = mem_self;
    struct mem_line *l = (struct mem_line *)(void *)((char *)t + pool->line);
    uint64_t word = 0;
    size_t have = 0;

    if (mem_enter(t)) {
        void **top = MEM_READ(l->top);

        have = (size_t)(top - l->base) < n ? (size_t)(top - l->base) : n;
        for (size_t i = 0; i < have; i++)
            objects[i] = *--top;
        MEM_WRITE(l->top, top);
        mem_bump64(&l->gets, have);
        word = l->word;
    }
    mem_leave(t);
    for (size_t i = 0; i < have; i++) {
        mem_word_write(mem_header_of(objects[i]), word);
        if (MEM_ASAN)
            MEM_ASAN_SHOW(objects[i], pool->size);
    }
    return have;
}

int
mem_get_bulk(struct mem_pool *pool, void **objects, size_t n)
{
    for (size_t i = 0; i < n;) {
        i += take_some(pool, objects + i, n - i);
        if (i == n)
            break;
        objects[i] = mem_get(pool); /* fills the magazine */
        if (!objects[i]) {
            mem_put_bulk(objects, i);
            return -ENOMEM;
        }
        i++;
    }
    return 0;
}

/* Puts the first objects of the list that are live, belong to the same pool and fit in the loaded magazine,
 * in a single bracket. Returns their number. */
static MEM_RAW size_t
give_some(void **objects, size_t n)
{
    struct mem_thread *t = mem_self;
    size_t given = 0;

    if (objects[0] && mem_enter(t)) { /* in the modes without lines there is no header to read */
        struct mem_line *l = mem_line_in(t, mem_word_read(mem_header_of(objects[0])));
        void **top = MEM_READ(l->top);
        size_t room = (size_t)(l->end - top) < n ? (size_t)(l->end - top) : n;
        uint64_t live = l->word;

        /* The line must match too: an object that is counted for an owner has none. */
        while (given < room && objects[given] &&
               mem_word_matches(mem_word_read(mem_header_of(objects[given])), live)) {
            asan_hide(objects[given]);
            mem_word_write(mem_header_of(objects[given]), live ^ (MEM_STATE_LIVE ^ MEM_STATE_DEAD));
            *top++ = objects[given++];
        }
        if (given)
            MEM_WRITE(l->top, top);
    }
    mem_leave(t);
    return given;
}

void
mem_put_bulk(void **objects, size_t n)
{
    for (size_t i = 0; i < n;) {
        i += give_some(objects + i, n - i);
        if (i < n)
            mem_put(objects[i++]); /* makes room, or reports the error */
    }
}

void
mem_pool_idle(void)
{
    struct mem_thread *t = mem_self;

    if (MEM_UNLIKELY(MEM_READ(t->req) == MEM_REQ_DEMOTE) && mem_admit(&t))
        mem_leave(t);
}

/* ---- objects from the system ----------------------------------------------------------------- */

MEM_RAW void
mem_object_fresh(struct mem_pool *p, void *object)
{
    struct mem_header *h = mem_header_of(object);

    mem_word_write(h, mem_word(p, MEM_STATE_DEAD));
    h->id = p->id;
    h->traced = 0;
    if (p->ctor) {
        MEM_ASAN_SHOW(object, p->size);
        p->ctor(object);
    }
}

/* Returns the number of objects, dead, that it could get. */
size_t
mem_pool_carve(struct mem_pool *p, void **objects, size_t n)
{
    size_t got = mem_class_alloc(&p->class, objects, n);

    for (size_t i = 0; i < got; i++)
        mem_object_fresh(p, objects[i]);
    MEM_ADD(p->system_allocs, got);
    return got;
}

void *
mem_pool_carve_one(struct mem_pool *p)
{
    void *object;

    return mem_pool_carve(p, &object, 1) == 1 ? object : NULL;
}

/* ---- get, slow ------------------------------------------------------------------------------- */

/* Called by the line's own thread. Puts minus gets stay the same. */
static void
line_load(struct mem_line *l, struct mem_magazine *m, uint32_t count)
{
    struct mem_thread *t = mem_self;
    uint32_t flow = l->flow + (uint32_t)(l->top - l->base) - count;

    mem_changes_begin(t);
    MEM_WRITE(l->base, m->slot);
    MEM_WRITE(l->end, m->slot + m->cap);
    MEM_WRITE(l->top, m->slot + count);
    MEM_WRITE(l->flow, flow);
    mem_changes_end(t);
}

static struct mem_magazine *
line_loaded(const struct mem_line *l)
{
    return l->base ? (struct mem_magazine *)(void *)((char *)l->base - offsetof(struct mem_magazine, slot))
                   : NULL;
}

/* Marks the first use of this pool by this thread. */
static void
line_begin(struct mem_thread *t, struct mem_line *l, struct mem_pool *p)
{
    if (MEM_LIKELY(l->word))
        return;
    l->word = p->word;
    __atomic_fetch_or(&t->used[p->id / 64], (uint64_t)1 << (p->id % 64), __ATOMIC_RELAXED);
}

/* Exchanges the loaded magazine (empty or full) and previous, but moves a few objects of the fuller one to
 * the other: otherwise a thread whose number of live objects goes up and down by a few would come here
 * every time. Not so many that the other becomes full: it may be smaller, made before magazines grew, and
 * a put needs room in it. */
static void
swap_previous(struct mem_line *l)
{
    struct mem_magazine *m = line_loaded(l), *prev = l->previous, *from, *to;
    uint32_t keep;

    m->count = (uint32_t)(l->top - l->base);
    from = m->count ? m : prev;
    to = m->count ? prev : m;
    keep = from->cap / 4 < SWAP_KEEP ? from->cap / 4 : SWAP_KEEP;
    if (to->count < keep && keep < to->cap && from->count >= 2 * keep) {
        uint32_t n = keep - to->count;

        from->count -= n;
        memcpy(to->slot + to->count, from->slot + from->count, n * sizeof(to->slot[0]));
        to->count = keep;
    }
    l->previous = m;
    MEM_WRITE(l->nprevious, (uint16_t)m->count);
    line_load(l, prev, prev->count);
}

/* Loads m, which has objects; the loaded magazine, if any, is empty, and so is previous. */
static void
load_over_empty(struct mem_line *l, struct mem_magazine *m)
{
    struct mem_magazine *old = line_loaded(l);

    if (old && !l->previous) {
        old->count = 0;
        l->previous = old;
        MEM_WRITE(l->nprevious, 0);
    }
    line_load(l, m, m->count);
}

/* Returns the magazine for a big object from the cold chain: an empty one, so that the other objects of m
 * stay cold. NULL: m itself is as good, or there is no magazine. */
static struct mem_magazine *
room_for_one(struct mem_line *l, struct mem_pool *p, const struct mem_magazine *m)
{
    if (m->count == 1 || p->class.stride < MEM_BIG)
        return NULL;
    return line_loaded(l) ? line_loaded(l) : mem_depot_put(p, NULL);
}

static bool
refill_cold(struct mem_line *l, struct mem_pool *p)
{
    struct mem_magazine *m = l->cold, *old, *one;

    if (!m)
        return false;
    MEM_ADD(p->hits_cold, 1);
    one = room_for_one(l, p, m);
    if (one) {
        one->slot[0] = m->slot[--m->count];
        MEM_WRITE(l->ncold, (uint16_t)(l->ncold - 1));
        line_load(l, one, 1);
        return true;
    }
    l->cold = m->next;
    MEM_WRITE(l->ncold, (uint16_t)(l->ncold - m->count));
    m->next = NULL;
    old = l->previous ? line_loaded(l) : NULL;
    load_over_empty(l, m);
    if (old)
        mem_depot_put_empty(p, old);
    return true;
}

static bool
refill_depot(struct mem_line *l, struct mem_pool *p)
{
    struct mem_magazine *old = l->previous ? line_loaded(l) : NULL; /* the surplus empty magazine */
    struct mem_magazine *m = mem_depot_get(p, old);

    if (!m)
        return false;
    load_over_empty(l, m);
    MEM_ADD(p->hits_depot, 1);
    return true;
}

static bool
refill_carve(struct mem_line *l, struct mem_pool *p)
{
    struct mem_magazine *old = line_loaded(l), *m = old;
    size_t got;

    /* a magazine of the present size, so that this is called less often */
    if (!m || m->cap < MEM_READ(p->depot.m))
        m = mem_depot_put(p, NULL);
    if (!m)
        m = old;
    if (!m)
        return false;
    got = mem_pool_carve(p, m->slot, (m->cap + 1) / 2);
    m->count = (uint32_t)got;
    line_load(l, m, m->count);
    if (old && m != old)
        mem_depot_put_empty(p, old);
    return got > 0;
}

/* Loads objects. The loaded magazine is empty or missing: a thread that could not enter the fast path
 * finds its lines aged. */
static bool
line_refill(struct mem_line *l, struct mem_pool *p)
{
    assert(l->top == l->base);
    if (l->nprevious) {
        swap_previous(l);
        return true;
    }
    return refill_cold(l, p) || refill_depot(l, p) || refill_carve(l, p);
}

static MEM_RAW void *
go_live(struct mem_pool *p, void *object, uint64_t owner)
{
    mem_word_write(mem_header_of(object), p->word | owner);
    return object;
}

/* Gets without the lines: the sweeper has them, the thread is not (or no longer) attached, or memory is
 * short. */
static void *
get_bypass(struct mem_pool *p, uint64_t owner)
{
    void *object = mem_depot_get_one(p);

    if (!object)
        object = mem_pool_carve_one(p);
    if (!object) {
        mem_pools_trim(2);
        object = mem_pool_carve_one(p);
    }
    if (!object) {
        mem_message(LOG_ERR, "mem-pool %s: out of memory (%zu bytes)", p->name, p->size);
        errno = ENOMEM;
        return NULL;
    }
    MEM_ADD(p->gets, 1);
    MEM_ADD(p->bypass, 1);
    return go_live(p, object, owner);
}

static __attribute__((noinline)) void *
get_in_vain(struct mem_pool *p, unsigned id, const void *site)
{
    mem_message(LOG_CRIT, "mem-pool: get from %s (id %u, at %p)", p ? p->name : "a pool that does not exist",
                id, site);
    errno = EINVAL;
    return NULL;
}

static void *
lines_get(struct mem_pool *p, uint64_t owner, const void *site)
{
    struct mem_thread *t = mem_self;
    struct mem_line *l;
    void *object;

    (void)site;
    mem_leave(t);
    PROBE2(pool_get_slow, p->name, p->id);
    if (!mem_admit(&t))
        return get_bypass(p, owner);
    l = mem_line_of(t, p->id);
    line_begin(t, l, p);
    if (!line_refill(l, p)) {
        mem_leave(t);
        return get_bypass(p, owner); /* tries once more after a trim, and reports */
    }
    object = *(l->top - 1);
    MEM_WRITE(l->top, l->top - 1);
    mem_bump64(&l->gets, 1);
    mem_leave(t);
    return go_live(p, object, owner);
}

void *
mem_get_slow(unsigned id, uint64_t owner, const void *site)
{
    struct mem_pool *p = mem_pool_by_id(id);

    if (MEM_UNLIKELY(!p || MEM_READ(p->dying))) {
        mem_leave(mem_self);
        return get_in_vain(p, id, site ? site : SITE());
    }
    return p->backend->get(p, owner, site ? site : SITE());
}

/* ---- put, slow ------------------------------------------------------------------------------- */

/* Makes room for one object in the loaded magazine; false if no magazine is available. */
static bool
line_make_room(struct mem_line *l, struct mem_pool *p)
{
    struct mem_magazine *m, *full;

    if (l->top != l->end)
        return true;
    if (l->previous && l->nprevious < l->previous->cap) {
        swap_previous(l);
        return true;
    }
    full = l->previous;
    m = mem_depot_put(p, full);
    if (full) { /* `full` is in the depot now, even if no magazine came back */
        l->previous = NULL;
        MEM_WRITE(l->nprevious, 0);
    }
    if (!m)
        return false;
    if (line_loaded(l)) {
        l->previous = line_loaded(l);
        l->previous->count = (uint32_t)(l->top - l->base);
        MEM_WRITE(l->nprevious, (uint16_t)l->previous->count);
    }
    line_load(l, m, 0);
    return true;
}

static MEM_RAW void
lines_put(struct mem_pool *p, void *object, const void *site)
{
    struct mem_thread *t = mem_self;
    struct mem_line *l;

    (void)site;
    if (p->reset)
        p->reset(object);
    mem_word_write(mem_header_of(object), mem_word(p, MEM_STATE_DEAD));
    if (mem_admit(&t)) {
        l = mem_line_of(t, p->id);
        line_begin(t, l, p);
        if (line_make_room(l, p)) {
            *l->top = object;
            MEM_WRITE(l->top, l->top + 1);
            mem_leave(t);
            return;
        }
        mem_leave(t);
    }
    MEM_ADD(p->puts, 1);
    MEM_ADD(p->bypass, 1);
    if (!mem_depot_put_one(p, object))
        mem_class_free(&p->class, &object, 1);
}

const struct mem_backend mem_lines = { lines_get, lines_put };

MEM_RAW void
mem_put_slow(void *object, const void *site)
{
    struct mem_header *h = mem_header_of(object);
    struct mem_pool *p;

    if (mem_set.mode == MEM_MODE_OFF) { /* there is no header that names the pool */
        free(object);
        return;
    }
    mem_leave(mem_self);
    p = mem_pool_of(h);
    if (!p || (uint32_t)mem_word_read(h) != (uint32_t)p->word) {
        mem_bad_put(object, site ? site : SITE());
        return;
    }
    mem_disown(p, mem_word_read(h));
    p->backend->put(p, object, site ? site : SITE());
}
