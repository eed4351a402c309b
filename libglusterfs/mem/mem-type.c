/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-type: making, filling and destroying pools. */
#include "mem/mem-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MAX_OBJECT ((size_t)16 << 20)

static uint32_t
power_below(size_t n)
{
    return n <= 1 ? 1 : 1u << (31 - __builtin_clz((uint32_t)n));
}

/* clamp(32 KiB / stride, 8, 64), but fewer if eight objects take much memory. */
static void
magazine_sizes(struct mem_depot *d, size_t stride)
{
    size_t base = 32768 / stride, max = ((size_t)256 << 10) / stride;

    if (base < 8)
        base = max < 8 ? (max ? max : 1) : 8;
    if (base > 64)
        base = 64;
    if (max < base)
        max = base;
    d->m_base = power_below(base);
    d->m_max = power_below(max > MEM_CAP_MAX ? MEM_CAP_MAX : max);
    d->m = d->m_base;
}

static bool
opts_are_valid(const struct mem_pool_opts *o)
{
    if (!o->name || !o->size || o->size > SIZE_MAX_OBJECT || o->zero_len > o->size)
        return false;
    if (o->align & (o->align - 1) || o->align > 4096)
        return false;
    if (o->flags & ~(unsigned)(MEM_POOL_CACHE_ALIGNED | MEM_POOL_NO_POOL))
        return false;
    if (o->id && o->reset) /* an inline put would not call reset */
        return false;
    return !o->id || (o->id >= MEM_ID_TYPED_MIN && o->id <= MEM_ID_TYPED_MAX);
}

/* Registry mutex held. */
static int
pool_publish(struct mem_pool *p, unsigned want)
{
    unsigned id = want ? want : MEM_ID_TYPED_MAX + 1;

    while (!want && id < MEM_IDS && mem_pools[id])
        id++;
    if (id == MEM_IDS)
        return -ENOSPC;
    if (mem_pools[id])
        return -EEXIST;
    static uint32_t serial;
    uint32_t cookie = 1u << 31 | ++serial * 0x9e3779b1u; /* no MEM_STATE has this bit, so no word is ever 0 */

    p->id = id;
    p->class.id = id;
    p->line = (uint32_t)(id * sizeof(struct mem_line));
    /* Gives no line to pools whose puts must do more than fill a magazine. */
    p->word = (MEM_STATE_LIVE ^ cookie) | (uint64_t)(p->reset || p->backend == &mem_direct ? 0 : p->line)
                                              << MEM_LINE_SHIFT;
    __atomic_store_n(&mem_pools[id], p, __ATOMIC_RELEASE);
    return 0;
}

static const struct mem_backend *
backend_of(unsigned flags)
{
    if (mem_set.mode == MEM_MODE_OFF)
        return &mem_malloc;
    if (mem_set.mode != MEM_MODE_ON)
        return &mem_debug;
    return flags & MEM_POOL_NO_POOL ? &mem_direct : &mem_lines;
}

struct mem_pool *
mem_pool_new_opts(const struct mem_pool_opts *o)
{
    struct mem_pool *p;
    size_t align = o->align > 16 ? o->align : 16;
    char *name, *xlator;
    int err;

    if (!opts_are_valid(o)) {
        errno = EINVAL;
        return NULL;
    }
    mem_settle();
    p = mem_test_fails() ? NULL : aligned_alloc(64, sizeof(*p));
    name = strdup(o->name);
    xlator = o->xlator ? strdup(o->xlator) : NULL;
    if (!p || !name || (o->xlator && !xlator)) {
        err = -ENOMEM;
        goto fail;
    }
    memset(p, 0, sizeof(*p));
    if (o->flags & MEM_POOL_CACHE_ALIGNED && align < 64)
        align = 64;
    p->flags = o->flags | (mem_option_bypasses(o->name) ? MEM_POOL_NO_POOL : 0u);
    p->backend = backend_of(p->flags);
    p->size = o->size;
    p->align = align;
    p->zero_len = o->zero_len ? o->zero_len : o->size;
    p->ctor = o->ctor;
    p->reset = o->reset;
    p->name = name;
    p->xlator = xlator;
    p->prefill = o->prefill;
    mem_class_init(&p->class, 0, o->size, align, mem_debug_header(), mem_debug_trailer(), true);
    p->counts_owners = !p->class.span_bytes || p->backend == &mem_direct;
    magazine_sizes(&p->depot, p->class.stride);
    pthread_mutex_lock(&mem_registry_mutex);
    err = pool_publish(p, o->id);
    pthread_mutex_unlock(&mem_registry_mutex);
    if (!err)
        return p;
fail:
    free(xlator);
    free(name);
    free(p);
    errno = -err;
    return NULL;
}

struct mem_pool *
mem_pool_new_fn(size_t size, unsigned prefill, const char *name)
{
    return mem_pool_new_opts(&(struct mem_pool_opts){ .name = name, .size = size, .prefill = prefill });
}

int
mem_pool_prefill(struct mem_pool *p, unsigned count)
{
    unsigned left = count ? count : p->prefill;

    if (p->backend != &mem_lines)
        return 0;
    while (left) {
        struct mem_magazine *m = mem_magazine_new(MEM_READ(p->depot.m));
        uint32_t want;

        if (!m)
            return -ENOMEM;
        want = left < m->cap ? left : m->cap;
        m->count = (uint32_t)mem_pool_carve(p, m->slot, want);
        left -= m->count;
        bool ok = m->count == want;
        mem_depot_put_chain(p, m, false);
        if (!ok)
            return -ENOMEM;
    }
    return 0;
}

void
mem_pool_destroy(struct mem_pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&mem_registry_mutex);
    assert(!p->dying);
    MEM_WRITE(p->dying, 1);
    /* objects have no reference to the pool, so there is nothing to wait for */
    if (mem_set.mode == MEM_MODE_OFF)
        mem_pool_free(p);
    pthread_mutex_unlock(&mem_registry_mutex);
    mem_sweeper_rouse();
}

/* Two sweeps found no object and no thread with a line for the pool, so no magazine can have been put here
 * since. */
void
mem_pool_free(struct mem_pool *p)
{
    assert(!p->depot.hot && !p->depot.cold);
    assert(!p->depot.doomed && !p->depot.empty);
    mem_class_release(&p->class, true);
    __atomic_store_n(&mem_pools[p->id], NULL, __ATOMIC_RELEASE);
    free(p->quarantine);
    free((char *)p->name);
    free((char *)p->xlator);
    free(p);
}
