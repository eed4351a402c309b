/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* mem-malloc: the allocator below the pools also caches freed pages. jemalloc looks at them only when it
 * is called, so in a process that has become idle they would stay for ever. With another allocator only
 * mem_malloc_trim() has an effect. thread: any. */
#ifndef KILN_MEM_MALLOC_H
#define KILN_MEM_MALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* Gives back pages that were unused for some seconds; when the process falls asleep, all free pages. */
void mem_malloc_age(bool falls_asleep);
/* Gives back all free pages, with any malloc. */
void mem_malloc_trim(void);
/* Called once by a thread that is to serve calls. Turns off the allocator's cache of this thread, because
 * operations do not call the allocator; with pools off they do, so then the cache stays on. */
void mem_malloc_serve(void);
/* Reads the present statistics of the allocator. False: there are none. */
bool mem_malloc_look(void);
/* Returns a number of the last mem_malloc_look() ("allocated", "resident" ...), in bytes. False: no such
 * number. */
bool mem_malloc_figure(const char *name, size_t *bytes);

#endif
