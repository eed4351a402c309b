/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* mem-malloc: what lies beneath the pools keeps pages that were freed to it, too. jemalloc looks at them only
 * when somebody calls it, so those of a process that has fallen idle would stay for ever. With another
 * allocator only mem_malloc_trim() does something.
 * thread: any. */
#ifndef KILN_MEM_MALLOC_H
#define KILN_MEM_MALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* Pages unused for some seconds go; all that are free when the process falls asleep. */
void mem_malloc_age(bool falls_asleep);
/* All that are free, whichever malloc it is. */
void mem_malloc_trim(void);
/* For a thread that is to serve calls, once, by itself. No thread keeps what it has freed, for operations do
 * not call the allocator; without pools they do, so there it does. */
void mem_malloc_serve(void);
/* Takes the figures of all memory as they are now. False: there are none. */
bool mem_malloc_look(void);
/* One of those taken last ("allocated", "resident" ...), in bytes. False: it has none such. */
bool mem_malloc_figure(const char *name, size_t *bytes);

#endif
