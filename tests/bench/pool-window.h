/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* pool-window: force-included into the benchmark's copy of mem-sweep.c. Elsewhere MEM_WINDOW of mem-sweep.c
 * is empty. */
#ifndef KILN_POOL_WINDOW_H
#define KILN_POOL_WINDOW_H

#include <stdbool.h>

struct mem_thread;

void pool_window(const struct mem_thread *t, bool opens);

#define MEM_WINDOW(thread, opens) pool_window((thread), (opens))

#endif
