/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* debug/io-stats: the figures of a brick for `volume profile`, `volume top` and the metrics (management 4.7,
 * 4.8). */
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

/* Totals of the brick since its start. The totals are read while the brick works, so they belong to slightly
 * different moments. Each only grows, except `open`. thread any that has the brick pinned */
struct io_stats_counts {
    uint64_t calls[FOP_COUNT];
    uint64_t bytes_read, bytes_written;
    uint64_t cpu_ns; /* processor time that workers spent on the brick's calls, by samples (event/charge.h) */
    long open; /* files open now */
    bool is_used; /* a client has sent a call for a user, not for itself (pid below 0) */
};
void io_stats_counts(struct xlator *xl, struct io_stats_counts *out);
/* Moves the durations that threads still hold into the bricks' histograms. Call it before reading histograms.
 */
void io_stats_gather(void);
/* Adds the durations of the calls of a fop to `to`: from the call's arrival in this layer to its reply,
 * including the time in which it was parked. Returns false if there are none (latency-histograms is off, or
 * there was no call).
 * thread  any that has the brick pinned */
bool io_stats_latencies(struct xlator *xl, enum fop fop, struct histogram *to);

/* The stages of a call, in order of time. */
enum io_stats_stage {
    STAGE_WORKER, /* read by its worker, or queued behind other requests that arrived with it */
    STAGE_QUEUE,  /* waited until other calls had left the disk (io-threads) */
    STAGE_LOCKS,  /* waited for other clients' locks */
    STAGE_DISK,   /* the remaining time in the brick: its layers and the disk */
    STAGE_REPLY,  /* until the kernel had taken the reply */
    STAGES
};
extern const char *const io_stats_stage_names[STAGES]; /* "worker" ... */

/* One of the slowest calls. */
struct io_stats_slow {
    enum fop fop;
    int err;           /* errno of the reply, positive; 0: success */
    bool is_sent; /* false: the time at which the reply left is not known (yet), and the last stage is 0 */
    uint64_t age_ns, total_ns, stage_ns[STAGES];
    uint64_t bytes;    /* of a READ or WRITE */
    int32_t pid;       /* the caller's */
    char client[160];  /* the client's uid, possibly truncated */
    char object[1024]; /* path in the brick, possibly truncated, or "<gfid:...>" with a name behind it */
};
enum { IO_STATS_SLOW_MAX = 16 };
/* Returns the slowest calls of 100 us or more that have ended in the last ten minutes, the slowest first.
 * Returns their count.
 * thread  any that has the brick pinned */
unsigned io_stats_slowest(struct xlator *xl, struct io_stats_slow out[IO_STATS_SLOW_MAX]);
/* Returns only the durations of those calls in nanoseconds, unordered, and their count. io_stats_slowest()
 * also looks up the names of the objects. */
unsigned io_stats_slowest_ns(struct xlator *xl, uint64_t out[IO_STATS_SLOW_MAX]);

/* True if the request asks for a test of the disk. io_stats_throughput() then runs the test, for at most ten
 * or twenty seconds, before io_stats_info() answers the other parts. If the disk cannot be tested, that is
 * logged and is not an error.
 * thread  may block, so not in a read section; the caller has a pin of the graph
 * errors  -ENOMEM */
bool io_stats_wants_throughput(struct xlator *xl, const struct dict *input);
int io_stats_throughput(struct xlator *xl, const struct dict *input, struct dict *output);

#endif
