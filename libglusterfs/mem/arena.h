/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* arena: the memory of one operation, given back all at once.
 *
 * A request's strings, directory entries, dict values and small replies come from here. Chunks come from two
 * pools (4 KiB and 64 KiB); only a single piece above 64 KiB is a malloc of its own. Nothing is freed one by
 * one: arena_release() gives everything back, also the dicts made on the arena.
 *
 * thread: one at a time; whoever runs the operation. Lifetime: that of the object it is embedded in.
 */
#ifndef KILN_MEM_ARENA_H
#define KILN_MEM_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena_chunk;

/* The first member of a pooled object that goes with the arena. */
struct arena_object {
    struct arena_object *next;
};

struct arena {
    char *at, *end;             /* free room of the newest chunk */
    struct arena_chunk *chunks; /* newest first */
    struct arena_object *dicts; /* objects of the pool MEM_ID_DICT, put when the arena is released */
};

/* An all-zero arena is an empty one; this is for embedding objects that come uninitialised. */
static inline void
arena_init(struct arena *a)
{
    *a = (struct arena){0};
}

/* `size` bytes, aligned to 16, contents undefined. NULL: no memory, nothing changed. */
void *arena_alloc(struct arena *a, size_t size);

/* The same, zeroed. */
void *arena_zalloc(struct arena *a, size_t size);

/* A copy of `len` bytes and a NUL behind them. NULL: no memory. */
char *arena_dup(struct arena *a, const void *bytes, size_t len);

/* Formatted text, NUL-terminated. NULL: no memory. */
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What is on `from` lives as long as `a` from now on; `from` is empty. A dict that was made on it takes no
 * more pairs until its `arena` is `a`. */
void arena_join(struct arena *a, struct arena *from);

/* Gives everything back. The arena is empty and may be used again. */
void arena_release(struct arena *a);

/* Once, before the first arena is used (mem_pools_init() first). 0 or -ENOMEM. */
int arena_pools_init(void);

#endif
