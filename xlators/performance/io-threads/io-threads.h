/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* performance/io-threads: how much a brick has to do. */
#ifndef KILN_IO_THREADS_H
#define KILN_IO_THREADS_H

struct xlator;

/* Calls that are below this layer, and those that wait for others to leave it. A moment's figures; any thread
 * that has the brick pinned. */
void io_threads_load(const struct xlator *xl, unsigned *running, unsigned *parked);

#endif
