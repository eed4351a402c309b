/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* First form: every object goes to malloc. */
#include "mem/mem-pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct mem_pool {
    struct mem_pool_opts o;
    char *name;
};

int mem_pools_init(void) { return 0; }
void mem_pools_fini(void) {}
uint64_t mem_pools_fini_strict(void) { return 0; }
int mem_pools_set_mode(const char *mode) { return strcmp(mode, "off") ? -EINVAL : 0; }
const char *mem_pools_mode(void) { return "off"; }
int mem_pools_set_option(const char *key, const char *value) { (void)key; (void)value; return -EINVAL; }
void mem_pools_set_message_fn(mem_message_fn fn) { (void)fn; }

struct mem_pool *
mem_pool_new_opts(const struct mem_pool_opts *o)
{
    struct mem_pool *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->o = *o;
    p->name = strdup(o->name);
    p->o.name = p->name;
    if (!p->o.zero_len)
        p->o.zero_len = p->o.size;
    return p;
}

struct mem_pool *
mem_pool_new_fn(size_t size, unsigned prefill, const char *name)
{
    return mem_pool_new_opts(&(struct mem_pool_opts){ .name = name, .size = size, .prefill = prefill });
}

int mem_pool_prefill(struct mem_pool *pool, unsigned count) { (void)pool; (void)count; return 0; }

void
mem_pool_destroy(struct mem_pool *p)
{
    if (p)
        free(p->name);
    free(p);
}

void *
mem_get(struct mem_pool *p)
{
    size_t a = p->o.flags & MEM_POOL_CACHE_ALIGNED ? 64 : p->o.align;
    void *o = a > 16 ? aligned_alloc(a, (p->o.size + a - 1) / a * a) : malloc(p->o.size);

    if (o && p->o.ctor)
        p->o.ctor(o);
    return o;
}

void *
mem_get0(struct mem_pool *p)
{
    void *o = mem_get(p);

    return o ? memset(o, 0, p->o.zero_len) : NULL;
}

void *mem_get_owner(struct mem_pool *p, uint16_t owner) { (void)owner; return mem_get(p); }
void *mem_get0_owner(struct mem_pool *p, uint16_t owner) { (void)owner; return mem_get0(p); }
void mem_put(void *o) { free(o); }

int
mem_get_bulk(struct mem_pool *p, void **o, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        o[i] = mem_get(p);
        if (!o[i]) {
            mem_put_bulk(o, i);
            return -ENOMEM;
        }
    }
    return 0;
}

void
mem_put_bulk(void **o, size_t n)
{
    for (size_t i = 0; i < n; i++)
        mem_put(o[i]);
}

void mem_pool_idle(void) {}
void mem_pool_thread_destructor(void) {}
int mem_owner_new(const char *name) { static int n; (void)name; return __atomic_add_fetch(&n, 1, 0); }
void mem_owner_retire(uint16_t owner) { (void)owner; }
int64_t mem_owner_balance(uint16_t owner, const struct mem_pool *p) { (void)owner; (void)p; return 0; }
int64_t mem_owner_audit(uint16_t o, mem_audit_fn fn, void *arg) { (void)o; (void)fn; (void)arg; return 0; }
void mem_pools_sweep_now(void) {}
size_t mem_pools_trim(int level) { (void)level; return 0; }

void
mem_pool_stats(struct mem_pool *p, struct mem_pool_stats *out)
{
    *out = (struct mem_pool_stats){ .name = p->name, .size = p->o.size, .stride = p->o.size };
}

void mem_pools_stats(struct mem_process_stats *out) { *out = (struct mem_process_stats){ .mode = "off" }; }
void mem_pools_dump(mem_dump_fn fn, void *arg) { fn(arg, "mode", "off"); }
void mem_pools_check(void) {}
