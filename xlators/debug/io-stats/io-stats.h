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
    uint64_t cpu_ns; /* processor time of workers for its calls, by samples (event/charge.h) */
    long open; /* files, now */
};
void io_stats_counts(struct xlator *xl, struct io_stats_counts *out);
/* What threads still have of the durations of calls is put into the bricks' histograms: before those are
 * read. */
void io_stats_gather(void);
/* Adds the durations of the calls of a fop to `to`: from the call's arrival in this layer to its reply, time
 * that it was parked included. False: there are none (latency-histograms is off, or nobody has called).
 * thread  any that has the brick pinned */
bool io_stats_latencies(struct xlator *xl, enum fop fop, struct histogram *to);

/* What the time of a call went to, in the order in which it does. */
enum io_stats_stage {
    STAGE_WORKER, /* being read by its worker, or behind what came with it */
    STAGE_QUEUE,  /* until other calls had left the disk (io-threads) */
    STAGE_LOCKS,  /* for other clients' locks */
    STAGE_DISK,   /* all else in the brick: its layers and the disk */
    STAGE_REPLY,  /* until the reply was the kernel's */
    STAGES
};
extern const char *const io_stats_stage_names[STAGES]; /* "worker" ... */

/* One of the slowest calls. */
struct io_stats_slow {
    enum fop fop;
    int err;           /* what it was answered, positive; 0: well */
    bool is_sent;      /* false: when its reply left is not known (yet), and the last stage is 0 */
    uint64_t age_ns, total_ns, stage_ns[STAGES];
    uint64_t bytes;    /* of a READ or WRITE */
    int32_t pid;       /* the caller's */
    char client[160];  /* its uid, perhaps cut */
    char object[1024]; /* a path of the brick, perhaps cut, or "<gfid:...>" with a name behind it */
};
enum { IO_STATS_SLOW_MAX = 16 };
/* The slowest calls that have ended in the last ten minutes, of those that took 100 us or more; the slowest
 * first. How many.
 * thread  any that has the brick pinned */
unsigned io_stats_slowest(struct xlator *xl, struct io_stats_slow out[IO_STATS_SLOW_MAX]);
/* What those took, in nanoseconds, in no order. How many. As io_stats_slowest(), which also looks for their
 * names. */
unsigned io_stats_slowest_ns(struct xlator *xl, uint64_t out[IO_STATS_SLOW_MAX]);

/* Does the request ask for a test of the disk? Then io_stats_throughput() does it, for some ten or twenty
 * seconds at most, before io_stats_info() answers the rest. A disk that cannot be tested is logged: no error.
 * thread  one that may block, in no read section; the caller has a pin of the graph
 * errors  -ENOMEM */
bool io_stats_wants_throughput(struct xlator *xl, const struct dict *input);
int io_stats_throughput(struct xlator *xl, const struct dict *input, struct dict *output);

#endif
