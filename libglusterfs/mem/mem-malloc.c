/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-malloc: what lies beneath the pools keeps pages that were freed to it, too. jemalloc looks at them only
 * when somebody calls it, so those of a process that has fallen idle would stay for ever. */
#include "mem/mem-internal.h"

#include <malloc.h>

/* jemalloc's; NULL with another allocator. */
extern int mallctl(const char *name, void *out, size_t *out_size, void *in, size_t in_size)
    __attribute__((weak));

/* 4096 stands for all arenas. */
void
mem_malloc_age(bool falls_asleep)
{
    if (mallctl)
        mallctl(falls_asleep ? "arena.4096.purge" : "arena.4096.decay", NULL, NULL, NULL, 0);
}

void
mem_malloc_trim(void)
{
    if (mallctl)
        mem_malloc_age(true);
    else
        malloc_trim(0);
}
