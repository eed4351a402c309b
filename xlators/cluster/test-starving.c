/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Allocation functions that fail when scene_starve() says so, in the places of the product's functions (the
 * linker's option --wrap, WRAP_FOR_STARVING in xlators/cluster/replicate/local.mk). Pools count their own
 * allocations (mem_test_fails); an arena and a coroutine get most of their memory without a pool. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "coro/coroutine.h"
#include "mem/arena.h"
#include "mem/mem-shared.h"

void *__real_arena_alloc(struct arena *a, size_t size);
void *__real_arena_zalloc(struct arena *a, size_t size);
char *__real_arena_dup(struct arena *a, const void *bytes, size_t len);
int __real_coroutine_new(struct stack_pool *stacks, coroutine_fn fn, void *arg, struct coroutine **out);
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_reallocarray(void *block, size_t count, size_t size);

void *__wrap_arena_alloc(struct arena *a, size_t size);
void *__wrap_arena_zalloc(struct arena *a, size_t size);
char *__wrap_arena_dup(struct arena *a, const void *bytes, size_t len);
char *__wrap_arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int __wrap_coroutine_new(struct stack_pool *stacks, coroutine_fn fn, void *arg, struct coroutine **out);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_reallocarray(void *block, size_t count, size_t size);

void *
__wrap_arena_alloc(struct arena *a, size_t size)
{
    return mem_test_fails() ? NULL : __real_arena_alloc(a, size);
}

void *
__wrap_arena_zalloc(struct arena *a, size_t size)
{
    return mem_test_fails() ? NULL : __real_arena_zalloc(a, size);
}

char *
__wrap_arena_dup(struct arena *a, const void *bytes, size_t len)
{
    return mem_test_fails() ? NULL : __real_arena_dup(a, bytes, len);
}

char *
__wrap_arena_printf(struct arena *a, const char *fmt, ...)
{
    char text[4096];
    va_list ap;

    if (mem_test_fails())
        return NULL;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return __real_arena_dup(a, text, strlen(text));
}

int
__wrap_coroutine_new(struct stack_pool *stacks, coroutine_fn fn, void *arg, struct coroutine **out)
{
    return mem_test_fails() ? -ENOMEM : __real_coroutine_new(stacks, fn, arg, out);
}

void *
__wrap_malloc(size_t size)
{
    return mem_test_fails() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t count, size_t size)
{
    return mem_test_fails() ? NULL : __real_calloc(count, size);
}

void *
__wrap_reallocarray(void *block, size_t count, size_t size)
{
    return mem_test_fails() ? NULL : __real_reallocarray(block, count, size);
}
