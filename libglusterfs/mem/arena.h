/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* arena: the memory of one operation, given back all at once.
 *
 * A request's strings, directory entries, dict values and small replies come from its arena. Chunks come
 * from two pools (4 KiB and 64 KiB); only a single piece above 64 KiB is a separate malloc. Pieces are not
 * freed one by one: arena_release() gives everything back, also the dicts made on the arena.
 *
 * thread: one at a time: the thread that runs the operation. Lifetime: that of the object it is embedded
 * in. */
#ifndef KILN_MEM_ARENA_H
#define KILN_MEM_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena_chunk;

/* The first member of a pooled object that is released with the arena. */
struct arena_object {
    struct arena_object *next;
};

struct arena {
    char *at, *end;             /* free room of the newest chunk */
    struct arena_chunk *chunks; /* newest first */
    struct arena_object *dicts; /* objects of the pool MEM_ID_DICT, put when the arena is released */
};

/* Initialises an arena in an object whose memory is uninitialised. (An all-zero arena is empty, too.) */
static inline void
arena_init(struct arena *a)
{
    *a = (struct arena){0};
}

/* Returns `size` bytes, aligned to 16, contents undefined. NULL: no memory, nothing changed. */
void *arena_alloc(struct arena *a, size_t size);

/* Like arena_alloc(), zeroed. */
void *arena_zalloc(struct arena *a, size_t size);

/* Returns a copy of `len` bytes with a NUL behind them. NULL: no memory. */
char *arena_dup(struct arena *a, const void *bytes, size_t len);

/* Returns formatted text, NUL-terminated. NULL: no memory. */
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Moves all memory of `from` to `a`, and extends its life to that of `a`; `from` becomes empty. A dict
 * that was made on `from` accepts no more pairs until its `arena` is set to `a`. */
void arena_join(struct arena *a, struct arena *from);

/* Gives the chunks and dicts back: for arena_release(). */
void arena_put_all(struct arena *a);

/* Gives everything back. The arena is empty and may be used again. */
static inline void
arena_release(struct arena *a)
{
    if (a->chunks || a->dicts)
        arena_put_all(a);
    arena_init(a);
}

/* Called once, before the first arena is used (mem_pools_init() first). 0 or -ENOMEM. */
int arena_pools_init(void);

#endif
