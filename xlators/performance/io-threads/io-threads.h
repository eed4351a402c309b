/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* performance/io-threads: the load of a brick. */
#ifndef KILN_IO_THREADS_H
#define KILN_IO_THREADS_H

struct xlator;

/* Returns the number of calls below this layer, and of those that are parked until another call leaves. The
 * figures are of one moment; any thread that has the brick pinned. */
void io_threads_load(const struct xlator *xl, unsigned *running, unsigned *parked);

#endif
