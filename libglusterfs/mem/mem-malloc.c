/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

#include "mem/mem-malloc.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "mem/mem-internal.h"

/* Function of jemalloc; NULL with another allocator. */
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

void
mem_malloc_serve(void)
{
    bool on = true;

    if (mallctl && strcmp(mem_pools_mode(), "off") == 0)
        mallctl("thread.tcache.enabled", NULL, NULL, &on, sizeof on);
}

bool
mem_malloc_look(void)
{
    uint64_t epoch = 1;

    return mallctl && mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) == 0;
}

bool
mem_malloc_figure(const char *name, size_t *bytes)
{
    size_t size = sizeof *bytes;
    char path[32];

    snprintf(path, sizeof path, "stats.%s", name);
    return mallctl && mallctl(path, bytes, &size, NULL, 0) == 0;
}
