/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* debug/io-stats: what `volume profile` and `volume top` ask a brick (management 4.7, 4.8). */
#ifndef KILN_IO_STATS_H
#define KILN_IO_STATS_H

#include <stdbool.h>

#include "stack/fop.h"

struct dict;
struct histogram;
struct xlator;

/* Answers a request of the management: `input` and `output` are the dicts of brick operation XLATOR_INFO.
 * thread  any, in a read section
 * errors  -EINVAL: neither profile nor top, -ENOMEM */
int io_stats_info(struct xlator *xl, const struct dict *input, struct dict *output);

/* What the brick has done so far. Read while it works: the figures are not of one moment, and each only
 * grows, but for `open`.
 * thread  any that has the brick pinned */
struct io_stats_counts {
    uint64_t calls[FOP_COUNT];
    uint64_t bytes_read, bytes_written;
    long open; /* files, now */
};
void io_stats_counts(struct xlator *xl, struct io_stats_counts *out);
/* Adds the durations of the calls of a fop to `to`: from the call's arrival in this layer to its reply, time
 * that it was parked included. False: there are none (latency-histograms is off, or nobody has called).
 * thread  any that has the brick pinned */
bool io_stats_latencies(struct xlator *xl, enum fop fop, struct histogram *to);

/* Does the request ask for a test of the disk? Then io_stats_throughput() does it, for some ten or twenty
 * seconds at most, before io_stats_info() answers the rest. A disk that cannot be tested is logged: no error.
 * thread  one that may block, in no read section; the caller has a pin of the graph
 * errors  -ENOMEM */
bool io_stats_wants_throughput(struct xlator *xl, const struct dict *input);
int io_stats_throughput(struct xlator *xl, const struct dict *input, struct dict *output);

#endif
