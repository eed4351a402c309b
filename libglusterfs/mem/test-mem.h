/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* test-mem: what the tests of the pool in one thread share: a settled mode, messages kept, figures. */
#ifndef KILN_TEST_MEM_H
#define KILN_TEST_MEM_H

#include "mem/mem-internal.h"

#include <check.h>
#include <stdio.h>

static char last_message[600];
static int messages;

static inline void
keep_message(int level, const char *text)
{
    (void)level;
    snprintf(last_message, sizeof(last_message), "%s", text);
    messages++;
}

static inline void
setup(void)
{
    ck_assert_int_eq(mem_pools_set_mode("on"), 0);
    ck_assert_int_eq(mem_pools_set_option("abort", "0"), 0);
    mem_pools_set_message_fn(keep_message);
}

static inline void
teardown(void)
{
    mem_pools_check();
}

static inline struct mem_pool_stats
stats(struct mem_pool *p)
{
    struct mem_pool_stats s;

    mem_pool_stats(p, &s);
    return s;
}

static inline void
get_many(struct mem_pool *p, void **o, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        ck_assert_ptr_nonnull(o[i] = mem_get(p));
}

#endif
