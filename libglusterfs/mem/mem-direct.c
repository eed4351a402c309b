/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-direct: the two backends without caches: `direct`, whose objects are separate allocations with a
 * header and are counted, and `malloc` of mode off, which is malloc() without any addition. */
#include "mem/mem-internal.h"

#include <errno.h>
#include <stdlib.h>

/* ---- MEM_POOL_NO_POOL, KILN_POOL_BYPASS ------------------------------------------------------ */

static MEM_RAW void *
direct_get(struct mem_pool *p, uint64_t owner, const void *site)
{
    void *object;

    (void)site;
    mem_leave(mem_self);
    errno = ENOMEM;
    if (mem_test_fails())
        return NULL;
    object = aligned_alloc(p->class.align,
                           (p->class.stride + p->class.align - 1) / p->class.align * p->class.align);
    if (!object)
        return NULL;
    object = (char *)object + p->class.offset;
    mem_object_fresh(p, object);
    mem_word_write(mem_header_of(object), p->word | owner);
    MEM_ADD(p->gets, 1);
    MEM_ADD(p->direct, 1);
    MEM_ADD(p->system_allocs, 1);
    return object;
}

static MEM_RAW void
direct_put(struct mem_pool *p, void *object, const void *site)
{
    (void)site;
    if (p->reset)
        p->reset(object);
    mem_word_write(mem_header_of(object), mem_word(p, MEM_STATE_DEAD));
    MEM_ADD(p->puts, 1);
    MEM_ADD(p->direct, -(uint64_t)1);
    free((char *)object - p->class.offset);
}

const struct mem_backend mem_direct = { direct_get, direct_put };

/* ---- mode off -------------------------------------------------------------------------------- */

static void *
malloc_get(struct mem_pool *p, uint64_t owner, const void *site)
{
    void *object;

    (void)owner;
    (void)site;
    /* gives the thread a block of its own, so that threads don't share busy's cache line */
    if (MEM_UNLIKELY(mem_self->state == MEM_THREAD_UNATTACHED))
        mem_thread_attach();
    if (mem_test_fails())
        return NULL;
    if (p->align > 16)
        object = aligned_alloc(p->align, (p->size + p->align - 1) / p->align * p->align);
    else
        object = malloc(p->size);
    if (object && p->ctor)
        p->ctor(object);
    return object;
}

/* Objects without a header do not lead to this backend, so mem_put_slow calls free() itself. */
const struct mem_backend mem_malloc = { malloc_get, NULL };
