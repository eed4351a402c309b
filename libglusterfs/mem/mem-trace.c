/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-trace: call sites of sampled live objects, for the leak audit. */
#include "mem/mem-internal.h"

#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEPTH = 12, SKIP = 3, BUCKETS = 4096 };

struct trace {
    struct trace *next;
    void *object;
    uint64_t serial;
    uint32_t id, owner;
    int n;
    void *pc[DEPTH + SKIP];
};

static struct mem_lock lock;
static struct trace *table[BUCKETS];
static uint64_t serial;

static struct trace **
trace_bucket(const void *object)
{
    return &table[((uintptr_t)object >> 6) * 0x9e3779b97f4a7c15u >> 52];
}

MEM_RAW void
mem_trace_get(struct mem_pool *p, void *object, unsigned owner)
{
    struct trace *t = mem_test_fails() ? NULL : malloc(sizeof(*t));

    if (!t)
        return; /* one sample fewer */
    t->object = object;
    t->id = p->id;
    t->owner = owner;
    t->n = backtrace(t->pc, DEPTH + SKIP);
    mem_lock(&lock);
    t->serial = ++serial;
    t->next = *trace_bucket(object);
    *trace_bucket(object) = t;
    mem_unlock(&lock);
    mem_header_of(object)->traced = 1;
}

void
mem_trace_put(void *object)
{
    struct trace *t, **at = trace_bucket(object);

    mem_lock(&lock);
    while (*at && (*at)->object != object)
        at = &(*at)->next;
    t = *at;
    if (t)
        *at = t->next;
    mem_unlock(&lock);
    free(t);
}

/* Writes the backtrace of the oldest sample of an owner and pool, as "module(function+offset) ..." words. */
bool
mem_trace_oldest(unsigned owner, unsigned id, char *text, size_t n)
{
    struct trace found = { .serial = UINT64_MAX };
    size_t at = 0;
    char **names;

    mem_lock(&lock);
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct trace *t = table[i]; t; t = t->next)
            if (t->owner == owner && t->id == id && t->serial < found.serial)
                found = *t;
    mem_unlock(&lock);
    if (!found.object)
        return false;
    names = backtrace_symbols(found.pc, found.n);
    text[0] = 0;
    for (int i = SKIP; i < found.n && at < n; i++)
        at += (size_t)(names ? snprintf(text + at, n - at, "%s%s", at ? " < " : "", names[i])
                             : snprintf(text + at, n - at, "%s%p", at ? " < " : "", found.pc[i]));
    free(names);
    return true;
}

void
mem_trace_fork(int step)
{
    if (step == 0)
        mem_lock(&lock);
    else
        mem_unlock(&lock);
}
