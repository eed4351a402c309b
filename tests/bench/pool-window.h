/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* pool-window: force-included into the benchmark's own copy of mem-sweep.c, whose MEM_WINDOW is empty
 * otherwise. */
#ifndef KILN_POOL_WINDOW_H
#define KILN_POOL_WINDOW_H

#include <stdbool.h>

struct mem_thread;

void pool_window(const struct mem_thread *t, bool opens);

#define MEM_WINDOW(thread, opens) pool_window((thread), (opens))

#endif
