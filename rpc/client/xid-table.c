/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/client/xid-table.h"

#include <assert.h>
#include <stdlib.h>

#define INDEX_MASK ((1u << XID_INDEX_BITS) - 1)

/* EXPIRING: xid_expire() is copying the call's data. OVERTAKEN: the reply came during that copy. */
enum { TAKEN, WAITING, EXPIRING, OVERTAKEN, EXPIRED };

static uint64_t
slot_word(unsigned state, uint32_t xid)
{
    return (uint64_t)state << 32 | xid;
}

static bool
change_state(struct xid_slot *s, unsigned from, unsigned to, uint32_t xid)
{
    uint64_t was = slot_word(from, xid);

    return atomic_compare_exchange_strong(&s->word, &was, slot_word(to, xid));
}

static unsigned
block_of(unsigned index)
{
    unsigned above = index >> XID_FIRST_BITS;

    return above ? 32 - (unsigned)__builtin_clz(above) : 0;
}

/* The index of the first slot of a block: also the number of slots in all blocks before. */
static unsigned
block_first(unsigned block)
{
    return block ? 1u << (XID_FIRST_BITS + block - 1) : 0;
}

/* NULL: no such slot. */
static struct xid_slot *
slot_at(struct xid_table *t, unsigned index)
{
    unsigned b = block_of(index);
    struct xid_slot *block = atomic_load_explicit(&t->blocks[b], memory_order_acquire);

    return block ? &block[index - block_first(b)] : NULL;
}

void
xid_table_init(struct xid_table *t, unsigned max)
{
    atomic_init(&t->free, 0);
    atomic_init(&t->made, 0);
    t->max = max < XID_CALLS_MAX ? max : XID_CALLS_MAX;
    pthread_mutex_init(&t->grow, NULL);
    for (unsigned i = 0; i < XID_BLOCKS; i++)
        atomic_init(&t->blocks[i], NULL);
}

void
xid_table_fini(struct xid_table *t)
{
    for (unsigned i = 0; i < XID_BLOCKS; i++)
        free(atomic_load(&t->blocks[i]));
    pthread_mutex_destroy(&t->grow);
}

/* ---- the free list --------------------------------------------------------------------------- */

/* The upper half counts changes, so that a list whose head was taken and put back meanwhile does not look
 * unchanged. */
static void
push_free(struct xid_table *t, struct xid_slot *first, struct xid_slot *last)
{
    uint64_t head = atomic_load_explicit(&t->free, memory_order_relaxed), fresh;

    do {
        atomic_store_explicit(&last->next, (uint32_t)head, memory_order_relaxed);
        fresh = ((head >> 32) + 1) << 32 | (first->index + 1);
    } while (!atomic_compare_exchange_weak_explicit(&t->free, &head, fresh, memory_order_release,
                                                    memory_order_relaxed));
}

static struct xid_slot *
pop_free(struct xid_table *t)
{
    uint64_t head = atomic_load_explicit(&t->free, memory_order_acquire), fresh;
    struct xid_slot *s;

    do {
        if ((uint32_t)head == 0)
            return NULL;
        s = slot_at(t, (uint32_t)head - 1); /* slots are never freed while the table lives */
        fresh = ((head >> 32) + 1) << 32 | atomic_load_explicit(&s->next, memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(&t->free, &head, fresh, memory_order_acquire,
                                                    memory_order_acquire));
    return s;
}

static struct xid_slot *
add_block_locked(struct xid_table *t)
{
    unsigned made = atomic_load(&t->made), b = block_of(made), count = block_first(b + 1) - made;
    struct xid_slot *block = made < t->max ? calloc(count, sizeof *block) : NULL;

    if (!block)
        return NULL;
    for (unsigned i = 0; i < count; i++) {
        block[i].index = made + i;
        atomic_init(&block[i].next, made + i + 2);
    }
    atomic_store_explicit(&t->blocks[b], block, memory_order_release);
    atomic_store(&t->made, made + count);
    push_free(t, &block[1], &block[count - 1]);
    return block;
}

static struct xid_slot *
pop_or_grow(struct xid_table *t)
{
    struct xid_slot *s = pop_free(t);

    if (s)
        return s;
    pthread_mutex_lock(&t->grow);
    s = pop_free(t); /* another thread may have added a block meanwhile */
    if (!s)
        s = add_block_locked(t);
    pthread_mutex_unlock(&t->grow);
    return s;
}

/* ---- one call -------------------------------------------------------------------------------- */

struct xid_slot *
xid_take(struct xid_table *t)
{
    struct xid_slot *s = pop_or_grow(t);

    if (!s)
        return NULL;
    do {
        s->xid = ++s->uses << XID_INDEX_BITS | s->index;
    } while (s->xid == 0);
    return s;
}

bool
xid_is_full(struct xid_table *t)
{
    return atomic_load(&t->made) >= t->max;
}

void
xid_publish(struct xid_slot *s)
{
    atomic_store(&s->word, slot_word(WAITING, s->xid));
}

void
xid_put(struct xid_table *t, struct xid_slot *s)
{
    push_free(t, s, s);
}

struct xid_slot *
xid_claim(struct xid_table *t, uint32_t xid, bool *was_late)
{
    struct xid_slot *s = slot_at(t, xid & INDEX_MASK);

    *was_late = false;
    if (!s)
        return NULL;
    if (change_state(s, WAITING, TAKEN, xid))
        return s;
    /* In this order, a call that expires meanwhile is found in one of these states. */
    if (change_state(s, EXPIRING, OVERTAKEN, xid)) {
        *was_late = true; /* xid_expire() will free it */
    } else if (change_state(s, EXPIRED, TAKEN, xid)) {
        *was_late = true;
        xid_put(t, s);
    }
    return NULL;
}

/* ---- all calls ------------------------------------------------------------------------------- */

static bool
slot_is_due(const struct xid_slot *s, uint32_t now)
{
    uint32_t deadline = atomic_load_explicit(&s->deadline, memory_order_relaxed);

    return deadline != XID_NO_DEADLINE && (int32_t)(deadline - now) <= 0;
}

bool
xid_expire(struct xid_table *t, uint32_t now, unsigned *from, bool *waiting, struct xid_expired *out)
{
    for (; *from < atomic_load(&t->made); ++*from) {
        struct xid_slot *s = slot_at(t, *from);
        uint64_t word = atomic_load(&s->word);
        uint32_t xid = (uint32_t)word;

        if (word >> 32 != WAITING)
            continue;
        if (!slot_is_due(s, now)) {
            *waiting = true;
            continue;
        }
        if (!change_state(s, WAITING, EXPIRING, xid))
            continue;
        *out = (struct xid_expired){.cb = s->cb, .arg = s->arg, .xid = xid, .what = s->what};
        if (!change_state(s, EXPIRING, EXPIRED, xid)) {
            atomic_store(&s->word, slot_word(TAKEN, xid));
            xid_put(t, s);
        }
        return true;
    }
    return false;
}

struct xid_slot *
xid_claim_any(struct xid_table *t, unsigned *from)
{
    for (; *from < atomic_load(&t->made); ++*from) {
        struct xid_slot *s = slot_at(t, *from);
        uint64_t word = atomic_load(&s->word);
        bool was_late;

        if (word >> 32 == TAKEN)
            continue;
        s = xid_claim(t, (uint32_t)word, &was_late);
        if (s)
            return s;
    }
    return NULL;
}

void
xid_count(struct xid_table *t, unsigned *waiting, unsigned *expired)
{
    *waiting = *expired = 0;
    for (unsigned i = 0; i < atomic_load(&t->made); i++) {
        unsigned state = (unsigned)(atomic_load(&slot_at(t, i)->word) >> 32);

        *waiting += state == WAITING;
        *expired += state == EXPIRED;
    }
}
