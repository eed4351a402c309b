/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-debug: poison and trace, the modes that check every object, and the reports about a bad put.
 *
 * In these modes threads have no lines: every get and put comes here and goes through a list under the
 * depot's lock. A slot then has this layout, with the header at its usual place:
 *
 *   [ call sites of get and put | zone | header ] object [ zone up to the slot's end ]
 *
 * poison fills dead bodies and checks the fill when it gives the object out again, when the object leaves
 * the quarantine (256 objects a pool, in the order of their puts) and at each sweep. Under valgrind or
 * ASan the dead body is hidden from the program instead. */
#include "mem/mem-internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_NOACCESS(p, n) ((void)0)
#define VALGRIND_MAKE_MEM_UNDEFINED(p, n) ((void)0)
#define VALGRIND_MAKE_MEM_DEFINED(p, n) ((void)0)
#define VALGRIND_CREATE_MEMPOOL(p, r, z) ((void)0)
#define VALGRIND_MEMPOOL_ALLOC(p, o, n) ((void)0)
#define VALGRIND_MEMPOOL_FREE(p, o) ((void)0)
#define VALGRIND_MEMPOOL_EXISTS(p) 1
#endif

enum { QUARANTINE = 256, ZONE = 16, FILL_DEAD = 0xdb, FILL_ZONE = 0xfd };

struct sites {
    void *next; /* of a dead object: next in the chain of objects that can be given out */
    const void *get, *put;
    uint64_t unused; /* keeps objects aligned to 16 bytes */
    uint8_t zone[ZONE];
};

size_t
mem_debug_header(void)
{
    size_t n = sizeof(struct mem_header);

    if (mem_set.mode == MEM_MODE_POISON || mem_set.mode == MEM_MODE_TRACE)
        n += sizeof(struct sites);
    return n;
}

size_t
mem_debug_trailer(void)
{
    return mem_set.mode == MEM_MODE_POISON ? ZONE : 0;
}

static struct sites *
sites_of(void *object)
{
    return (struct sites *)(void *)mem_header_of(object) - 1;
}

static bool
is_poison(void)
{
    return mem_set.mode == MEM_MODE_POISON;
}

/* Is the fill meaningful? Not where a tool hides the body, nor where the contents must survive. */
static bool
is_filled(const struct mem_pool *p)
{
    return is_poison() && !mem_set.valgrind && !MEM_ASAN && !p->ctor && !p->reset;
}

/* ---- reports --------------------------------------------------------------------------------- */

static void
abort_if_set(void)
{
    if (mem_set.abort_on_error)
        abort();
}

static MEM_RAW void
report_object(struct mem_pool *p, void *object, const char *what, const void *site)
{
    struct sites *s = sites_of(object);

    mem_message(LOG_CRIT, "mem-pool %s: %s: object %p, got at %p, put at %p, noticed at %p", p->name, what,
                object, s->get, s->put, site);
    abort_if_set();
}

static bool
has_sites(void)
{
    return mem_debug_header() > sizeof(struct mem_header);
}

/* Returns the pool of the slot that contains the pointer, or NULL; *start is the object in that slot. */
static struct mem_pool *
pool_at(void *object, void **start)
{
    uint32_t id;

    if (!mem_span_find(object, &id, start) || !id)
        return NULL;
    return mem_pool_by_id(id);
}

MEM_RAW void
mem_bad_put(void *object, const void *site)
{
    void *start = object;
    struct mem_pool *p = pool_at(object, &start);
    struct mem_header *h = mem_header_of(object);
    uint32_t state;

    if (!p) {
        mem_message(LOG_CRIT, "mem-pool: foreign pointer %p put at %p: in no pool's memory", object, site);
        abort_if_set();
        return;
    }
    if (start != object) {
        MEM_ADD(p->wrong_pool, 1);
        mem_message(LOG_CRIT, "mem-pool %s: foreign pointer %p put at %p: it points into object %p", p->name,
                    object, site, start);
        abort_if_set();
        return;
    }
    state = (uint32_t)(h->word ^ p->word) ^ MEM_STATE_LIVE;
    if (state == MEM_STATE_DEAD || state == MEM_STATE_QUARANTINE) {
        MEM_ADD(p->double_free, 1);
        if (has_sites())
            report_object(p, object, "double free", site);
        else
            mem_message(LOG_CRIT, "mem-pool %s: double free of %p, at %p (mode poison shows the first place)",
                        p->name, object, site);
    } else {
        MEM_ADD(p->wrong_pool, 1);
        if (has_sites())
            report_object(p, object, "header overwritten or wrong pool", site);
        else
            mem_message(LOG_CRIT,
                        "mem-pool %s: header of %p overwritten, or object of a destroyed pool; put at %p",
                        p->name, object, site);
    }
    abort_if_set();
}

/* ---- zones and fill -------------------------------------------------------------------------- */

/* Compares the bytes with themselves one byte on, which libc does in big steps. */
static bool
all_bytes(const uint8_t *p, size_t n, uint8_t byte)
{
    return !n || (p[0] == byte && memcmp(p, p + 1, n - 1) == 0);
}

static size_t
tail_bytes(const struct mem_pool *p)
{
    return p->class.stride - p->class.offset - p->size;
}

static MEM_RAW void
zones_set(struct mem_pool *p, void *object)
{
    if (MEM_ASAN) /* all bytes but the object are poisoned already */
        return;
    memset(sites_of(object)->zone, FILL_ZONE, ZONE);
    memset((char *)object + p->size, FILL_ZONE, tail_bytes(p));
}

static MEM_RAW void
zones_verify(struct mem_pool *p, void *object, const void *site)
{
    if (MEM_ASAN || !is_poison())
        return;
    if (!all_bytes(sites_of(object)->zone, ZONE, FILL_ZONE))
        report_object(p, object, "bytes before the object overwritten", site);
    if (!all_bytes((uint8_t *)object + p->size, tail_bytes(p), FILL_ZONE))
        report_object(p, object, "overrun: bytes after the object overwritten", site);
}

static void
fill_verify(struct mem_pool *p, void *object, const void *site)
{
    if (is_filled(p) && !all_bytes(object, p->size, FILL_DEAD))
        report_object(p, object, "use after put", site);
}

static void
hide_body(struct mem_pool *p, void *object)
{
    if (is_filled(p))
        memset(object, FILL_DEAD, p->size);
    if (p->ctor || p->reset)
        return;
    if (mem_set.valgrind)
        VALGRIND_MEMPOOL_FREE(p, object);
    MEM_ASAN_HIDE(object, p->size);
}

static void
show_body(struct mem_pool *p, void *object)
{
    MEM_ASAN_SHOW(object, p->size);
    if (!mem_set.valgrind || p->ctor || p->reset)
        return;
    if (!VALGRIND_MEMPOOL_EXISTS(p))
        VALGRIND_CREATE_MEMPOOL(p, 0, 0);
    VALGRIND_MEMPOOL_ALLOC(p, object, p->size);
}

/* ---- get and put ----------------------------------------------------------------------------- */

/* Adds to the chain of dead objects; depot.lock held. A leak checker can follow the chain only if its
 * pointer is not poisoned. */
static MEM_RAW void
free_push(struct mem_pool *p, void *object)
{
    sites_of(object)->next = p->debug_free;
    MEM_ASAN_SHOW(&sites_of(object)->next, sizeof(void *));
    p->debug_free = object;
}

static MEM_RAW void *
take_free(struct mem_pool *p)
{
    void *object;

    mem_lock(&p->depot.lock);
    object = p->debug_free;
    if (object) {
        p->debug_free = sites_of(object)->next;
        MEM_ASAN_HIDE(&sites_of(object)->next, sizeof(void *));
    }
    mem_unlock(&p->depot.lock);
    return object;
}

static MEM_RAW void *
debug_get(struct mem_pool *p, uint64_t owner, const void *site)
{
    static uint32_t turn;
    void *object;

    mem_leave(mem_self);
    if (mem_self->state == MEM_THREAD_UNATTACHED)
        mem_thread_attach();
    object = take_free(p);
    if (object) {
        fill_verify(p, object, site);
    } else {
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
    }
    zones_set(p, object);
    sites_of(object)->get = site;
    sites_of(object)->put = NULL;
    mem_word_write(mem_header_of(object), p->word | owner);
    MEM_ADD(p->gets, 1);
    show_body(p, object);
    if (mem_set.mode == MEM_MODE_TRACE && MEM_ADD(turn, 1) % mem_set.trace_every == 0)
        mem_trace_get(p, object, mem_word_owner(owner));
    return object;
}

static MEM_RAW void
give_free(struct mem_pool *p, void *object)
{
    mem_word_write(mem_header_of(object), mem_word(p, MEM_STATE_DEAD));
    mem_lock(&p->depot.lock);
    free_push(p, object);
    mem_unlock(&p->depot.lock);
}

/* Puts the object into the quarantine; returns the oldest one, which leaves it, or NULL. */
static MEM_RAW void *
quarantine_put(struct mem_pool *p, void *object)
{
    void *old;

    mem_lock(&p->depot.lock);
    if (!p->quarantine && !mem_test_fails())
        p->quarantine = calloc(QUARANTINE, sizeof(void *));
    if (!p->quarantine) {
        mem_unlock(&p->depot.lock);
        return object;
    }
    mem_word_write(mem_header_of(object), mem_word(p, MEM_STATE_QUARANTINE));
    old = p->quarantine[p->quarantine_at];
    p->quarantine[p->quarantine_at] = object;
    p->quarantine_at = (p->quarantine_at + 1) % QUARANTINE;
    p->quarantined += !old;
    mem_unlock(&p->depot.lock);
    return old;
}

static MEM_RAW void
debug_put(struct mem_pool *p, void *object, const void *site)
{
    struct mem_header *h = mem_header_of(object);

    zones_verify(p, object, site);
    if (h->traced)
        mem_trace_put(object);
    h->traced = 0;
    if (p->reset)
        p->reset(object);
    sites_of(object)->put = site;
    mem_word_write(h, mem_word(p, MEM_STATE_DEAD));
    hide_body(p, object);
    MEM_ADD(p->puts, 1);
    if (is_poison())
        object = quarantine_put(p, object);
    if (!object)
        return;
    fill_verify(p, object, site); /* before another thread can get it */
    give_free(p, object);
}

const struct mem_backend mem_debug = { debug_get, debug_put };

/* ---- sweep ----------------------------------------------------------------------------------- */

MEM_RAW void
mem_debug_sweep(struct mem_pool *p, bool all)
{
    void *list;

    if (mem_set.mode != MEM_MODE_POISON && mem_set.mode != MEM_MODE_TRACE)
        return;
    mem_lock(&p->depot.lock);
    for (unsigned i = 0; p->quarantine && i < QUARANTINE; i++) {
        void *object = p->quarantine[i];

        if (!object)
            continue;
        fill_verify(p, object, NULL);
        if (!all)
            continue;
        mem_word_write(mem_header_of(object), mem_word(p, MEM_STATE_DEAD));
        free_push(p, object);
        p->quarantine[i] = NULL;
        p->quarantined--;
    }
    list = p->debug_free;
    p->debug_free = NULL;
    mem_unlock(&p->depot.lock);
    for (void *next; list; list = next) {
        next = sites_of(list)->next;
        MEM_ASAN_HIDE(&sites_of(list)->next, sizeof(void *));
        fill_verify(p, list, NULL);
        MEM_ADD(p->sweep_freed, 1);
        mem_class_free(&p->class, &list, 1);
    }
}
