/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "mem/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem/mem-ids.h"

enum chunk_kind { CHUNK_SMALL, CHUNK_LARGE, CHUNK_MALLOC };

struct arena_chunk {
    struct arena_chunk *next;
    enum chunk_kind kind;
    _Alignas(16) char bytes[];
};

#define CHUNK_SMALL_BYTES 4096
#define CHUNK_LARGE_BYTES 65536

static struct mem_pool *small_pool, *large_pool;

int
arena_pools_init(void)
{
    int err = mem_pool_make(&small_pool, MEM_ID_ARENA_4K, CHUNK_SMALL_BYTES, "arena_chunk_4k");

    return err ? err : mem_pool_make(&large_pool, MEM_ID_ARENA_64K, CHUNK_LARGE_BYTES, "arena_chunk_64k");
}

static struct arena_chunk *
arena_chunk_get(size_t room)
{
    const size_t head = sizeof(struct arena_chunk);
    struct arena_chunk *c;

    if (room <= CHUNK_SMALL_BYTES - head) {
        if ((c = mem_get_t(MEM_ID_ARENA_4K)))
            c->kind = CHUNK_SMALL;
    } else if (room <= CHUNK_LARGE_BYTES - head) {
        if ((c = mem_get_t(MEM_ID_ARENA_64K)))
            c->kind = CHUNK_LARGE;
    } else if ((c = malloc(head + room))) {
        c->kind = CHUNK_MALLOC;
    }
    return c;
}

static void
arena_chunk_put(struct arena_chunk *c)
{
    switch (c->kind) {
    case CHUNK_SMALL:
        mem_put_t(MEM_ID_ARENA_4K, c);
        break;
    case CHUNK_LARGE:
        mem_put_t(MEM_ID_ARENA_64K, c);
        break;
    case CHUNK_MALLOC:
        free(c);
        break;
    }
}

void *
arena_alloc(struct arena *a, size_t size)
{
    /* NULL must mean "no memory", so a size of 0 gets memory, too */
    size_t need = size ? (size + 15) & ~(size_t)15 : 16;

    if (need < size)
        return NULL;
    if (need > (size_t)(a->end - a->at)) {
        /* An arena that has filled a small chunk continues with large ones, because a directory listing
         * takes many pieces. */
        size_t room = a->chunks && need < CHUNK_LARGE_BYTES - sizeof(struct arena_chunk)
                          ? CHUNK_LARGE_BYTES - sizeof(struct arena_chunk)
                          : need;
        struct arena_chunk *c = arena_chunk_get(room);

        if (!c)
            return NULL;
        c->next = a->chunks;
        a->chunks = c;
        if (c->kind == CHUNK_MALLOC) {
            /* this chunk holds only this piece; the room left in the previous chunk stays in use */
            return c->bytes;
        }
        a->at = c->bytes;
        a->end = (char *)c + (c->kind == CHUNK_SMALL ? CHUNK_SMALL_BYTES : CHUNK_LARGE_BYTES);
    }
    void *p = a->at;
    a->at += need;
    return p;
}

void *
arena_zalloc(struct arena *a, size_t size)
{
    void *p = arena_alloc(a, size);

    return p ? memset(p, 0, size) : NULL;
}

char *
arena_dup(struct arena *a, const void *bytes, size_t len)
{
    char *p = arena_alloc(a, len + 1);

    if (!p)
        return NULL;
    if (len)
        memcpy(p, bytes, len);
    p[len] = '\0';
    return p;
}

char *
arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    char text[512];

    va_start(ap, fmt);
    int len = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (len < 0)
        return NULL;
    if ((size_t)len < sizeof text)
        return arena_dup(a, text, (size_t)len);

    char *p = arena_alloc(a, (size_t)len + 1);
    if (!p)
        return NULL;
    va_start(ap, fmt);
    vsnprintf(p, (size_t)len + 1, fmt, ap);
    va_end(ap);
    return p;
}

void
arena_join(struct arena *a, struct arena *from)
{
    struct arena_object **dicts = &from->dicts;

    while (*dicts)
        dicts = &(*dicts)->next;
    *dicts = a->dicts;
    a->dicts = from->dicts;
    /* Goes behind the chunks of `a`, whose newest chunk stays the one in use. */
    if (a->chunks) {
        struct arena_chunk *last = a->chunks;

        while (last->next)
            last = last->next;
        last->next = from->chunks;
    } else {
        a->chunks = from->chunks;
        a->at = from->at;
        a->end = from->end;
    }
    arena_init(from);
}

void
arena_put_all(struct arena *a)
{
    for (struct arena_object *d = a->dicts, *next; d; d = next) {
        next = d->next;
        mem_put_t(MEM_ID_DICT, d);
    }
    for (struct arena_chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        arena_chunk_put(c);
    }
}
