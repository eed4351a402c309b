/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fuzz-memory: allocations that fail, for fuzz targets that are linked with --wrap=malloc, calloc,
 * reallocarray and strdup. Included by one source of a program. No other thread may allocate meanwhile. */
#ifndef KILN_FUZZ_MEMORY_H
#define KILN_FUZZ_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);
char *__wrap_strdup(const char *text);

static unsigned allocations_left; /* the allocation that makes the count 0 fails; 0: none fails */

static bool
allocation_fails(void)
{
    return allocations_left && --allocations_left == 0;
}

void *
__wrap_malloc(size_t size)
{
    return allocation_fails() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t count, size_t size)
{
    return allocation_fails() ? NULL : __real_calloc(count, size);
}

void *
__wrap_reallocarray(void *old, size_t count, size_t size)
{
    return allocation_fails() ? NULL : __real_reallocarray(old, count, size);
}

char *
__wrap_strdup(const char *text)
{
    return allocation_fails() ? NULL : __real_strdup(text);
}

/* Which one, by the input: 1 to 16. */
static inline unsigned
failing_allocation(const uint8_t *data, size_t size)
{
    unsigned sum = (unsigned)size;

    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + data[i];
    return 1 + (sum >> 8) % 16;
}

#endif
