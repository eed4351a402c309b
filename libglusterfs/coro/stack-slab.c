/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* stack-slab: mappings with stacks and guards in them, and madvise() for their pages. */
#include "coro/stack-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define VALGRIND_STACK_REGISTER(low, high) 0
#define VALGRIND_STACK_DEREGISTER(id) ((void)(id))
#endif

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102 /* Linux 6.13 */
#endif

/* Tops of neighbours lie a cache line apart, because otherwise the busiest lines of all stacks would share
 * one set of the caches: measured with 8192 coroutines in turn, a resume and yield takes 44 ns with this,
 * and 68 to 106 ns without. */
enum { COLOURS = 16, COLOUR_BYTES = 64 };

static size_t
round_up_to(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static size_t
head_bytes(const struct stack_pool *p, uint32_t n)
{
    return round_up_to(sizeof(struct stack_slab) + n * sizeof(struct stack), p->page);
}

uint32_t
stack_slab_entries(const struct stack_pool *p, uint32_t n)
{
    return p->is_mprotect ? 2 * n + 1 : 1;
}

/* ---- map ------------------------------------------------------------------------------------- */

static int
guard_one(struct stack_pool *p, char *page)
{
    if (!p->is_mprotect) {
        if (madvise(page, p->page, MADV_GUARD_INSTALL) == 0)
            return 0;
        if (errno != EINVAL) /* no such advice, or the memory is locked */
            return -ENOMEM;
        MEM_WRITE(p->is_mprotect, true);
    }
    return mprotect(page, p->page, PROT_NONE) == 0 ? 0 : -ENOMEM;
}

static void
stack_init(struct stack_slab *b, uint32_t i, char *slot)
{
    struct stack_pool *p = b->pool;
    struct stack *s = &b->stack[i];

    s->low = slot + p->page;
    s->top = s->low + p->bytes - i % COLOURS * COLOUR_BYTES;
    s->slab = b;
    s->index = (uint16_t)i;
    s->valgrind_id = VALGRIND_STACK_REGISTER(s->low, s->top);
    b->bare.word[i / 64] |= (uint64_t)1 << (i % 64);
}

int
stack_slab_map(struct stack_pool *p, uint32_t n, struct stack_slab **out)
{
    size_t slot = p->page + p->bytes, head = head_bytes(p, n), bytes = head + n * slot;
    struct stack_slab *b;
    char *map;

    if (mem_test_fails())
        return -ENOMEM;
    map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK,
               -1, 0);
    if (map == MAP_FAILED)
        return -ENOMEM;
    /* A huge page would make 30 stacks resident at once. The call fails on kernels without huge pages,
     * which is harmless. */
    (void)madvise(map, bytes, MADV_NOHUGEPAGE);
    MEM_ASAN_SHOW(map, bytes);
    for (uint32_t i = 0; i < n; i++) {
        if (guard_one(p, map + head + i * slot) < 0) {
            munmap(map, bytes);
            return -ENOMEM;
        }
    }
    b = (struct stack_slab *)(void *)map; /* zeroed */
    b->pool = p;
    b->map_bytes = bytes;
    b->n = b->nbare = n;
    b->entries = stack_slab_entries(p, n);
    for (uint32_t i = 0; i < n; i++)
        stack_init(b, i, map + head + i * slot);
    *out = b;
    return 0;
}

void
stack_slab_unmap(struct stack_slab *b)
{
    for (uint32_t i = 0; i < b->n; i++)
        VALGRIND_STACK_DEREGISTER(b->stack[i].valgrind_id);
    MEM_ASAN_SHOW(b, b->map_bytes);
    munmap(b, b->map_bytes);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void
drop_pages(char *from, size_t bytes)
{
    madvise(from, bytes, MADV_DONTNEED); /* the guards inside stay */
}

static bool
has_bit(const struct stack_bits *bits, uint32_t i)
{
    return bits->word[i / 64] >> (i % 64) & 1;
}

/* Drops runs of neighbours in one call. */
size_t
stack_slab_drop(struct stack_slab *b, const struct stack_bits *which)
{
    size_t bytes = 0;

    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t first = i;

        while (i < b->n && has_bit(which, i))
            i++;
        if (i == first)
            continue;
        char *from = b->stack[first].low, *to = b->stack[i - 1].low + b->pool->bytes;

        drop_pages(from, (size_t)(to - from));
        bytes += (i - first) * b->pool->bytes;
    }
    return bytes;
}

/* The kernel tells which pages are in memory. A canary word below the upper part would take as long,
 * because its page must be mapped first; it would leave the zero page there, and miss frames that leave
 * holes. */
size_t
stack_drop_lower(struct stack *s)
{
    struct stack_pool *p = s->slab->pool;
    unsigned char in_memory[64];
    size_t upper = round_up_to(STACK_UPPER, p->page), used = 0;
    char *end = s->low + (p->bytes > upper ? p->bytes - upper : 0);

    for (char *at = s->low; at < end; at += sizeof(in_memory) * p->page) {
        size_t bytes = (size_t)(end - at) < sizeof(in_memory) * p->page ? (size_t)(end - at)
                                                                        : sizeof(in_memory) * p->page;

        if (mincore(at, bytes, in_memory) != 0)
            continue;
        for (size_t i = 0; i < bytes / p->page; i++)
            used += in_memory[i] & 1;
    }
    if (used)
        drop_pages(s->low, (size_t)(end - s->low));
    return used * p->page;
}

size_t
stack_slab_resident(struct stack_slab *b)
{
    const size_t page = b->pool->page, head = head_bytes(b->pool, b->n);
    unsigned char in_memory[256];
    size_t pages = 0;

    for (char *at = (char *)b + head, *end = (char *)b + b->map_bytes; at < end;
         at += sizeof(in_memory) * page) {
        size_t n =
            (size_t)(end - at) / page < sizeof(in_memory) ? (size_t)(end - at) / page : sizeof(in_memory);

        if (mincore(at, n * page, in_memory) != 0)
            continue;
        for (size_t i = 0; i < n; i++)
            pages += in_memory[i] & 1;
    }
    return pages * page;
}

/* ---- the process's memory map ---------------------------------------------------------------- */

uint32_t
stack_map_entries(void)
{
    char text[2048]; /* small, because this may run on a coroutine's stack */
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    uint32_t lines = 0;
    ssize_t n;

    if (fd < 0)
        return 0;
    while ((n = read(fd, text, sizeof(text))) > 0)
        for (const char *at = text; (at = memchr(at, '\n', (size_t)(text + n - at))); at++)
            lines++;
    close(fd);
    return lines;
}

uint32_t
stack_map_limit(void)
{
    const uint32_t usual = 65530;
    char text[32];
    int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return usual;
    text[n] = 0;
    unsigned long limit = strtoul(text, NULL, 10);
    return limit == 0 ? usual : limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit;
}
