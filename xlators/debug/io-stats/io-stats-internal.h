/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* What the files of io-stats share: io-stats.c counts, profile.c and top.c tell. */
#ifndef KILN_IO_STATS_INTERNAL_H
#define KILN_IO_STATS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/histogram.h"
#include "fs/inode.h"
#include "stack/xlator.h"
#include "xlators/debug/io-stats/io-stats.h"

enum { STRIPES_MAX = 16, SIZE_CLASSES = 32 /* [2^i, 2^(i+1)) bytes */ };

/* Not fops, but a profile counts them: what was closed. */
enum ios_release { RELEASE_FILE, RELEASE_DIR, RELEASES };

struct ios_conf {
    bool latency_measurement, count_fop_hits, latency_histograms;
    char *log_level;
};

/* ---- counters: one set for a few threads each, added up when somebody asks ------------------- */

typedef _Atomic uint64_t counter;

struct spread;

struct stripe {
    _Alignas(64) counter hits[FOP_COUNT];
    counter releases[RELEASES];
    counter bytes_read, bytes_written;
    counter reads[SIZE_CLASSES], writes[SIZE_CLASSES];
    _Atomic(struct spread *) spreads[FOP_COUNT]; /* latency.c's; NULL before the first call */
};

/* A window of time over which least and most are kept; sums are told apart by what they were when it began.
 */
enum ios_window { WINDOW_CUMULATIVE, WINDOW_INTERVAL, WINDOWS };

/* Nanoseconds. */
struct latency {
    counter calls, sum;
    counter min[WINDOWS], max[WINDOWS]; /* min: 0 before the first call */
};

struct latency_stripe {
    _Alignas(64) struct latency fops[FOP_COUNT];
};

/* The sum of all stripes at one moment. */
struct figures {
    uint64_t hits[FOP_COUNT];
    uint64_t releases[RELEASES];
    uint64_t bytes_read, bytes_written;
    uint64_t reads[SIZE_CLASSES], writes[SIZE_CLASSES];
    uint64_t calls[FOP_COUNT], sum[FOP_COUNT]; /* latencies */
    uint64_t seconds;                          /* CLOCK_MONOTONIC */
};

/* xl->private */
struct ios {
    unsigned stripes;
    struct stripe *counters;
    _Atomic(struct latency_stripe *) latencies; /* made when latency-measurement is first on; NULL before */
    atomic_long open_now, open_most;            /* files */
    atomic_llong open_most_at;                  /* seconds since 1970 */
    pthread_mutex_t lock;                       /* the next two */
    struct figures since[WINDOWS];              /* where each window began */
    uint32_t interval;                          /* its number */
};

void ios_figures(struct ios *ios, struct figures *out);
/* A window begins now. Under ios->lock. */
void ios_window_begin(struct ios *ios, enum ios_window window);
/* Least and most of a fop in a window; 0: none. */
void ios_latency_bounds(const struct ios *ios, enum fop fop, enum ios_window window, uint64_t *min,
                        uint64_t *max);

/* latency.c: the histograms. Its pools: 0 or -ENOMEM. */
int ios_latency_pools_init(void);
/* Installed with a compare and swap, and then there until the layer ends; read at any time. */
struct octave {
    counter buckets[HISTOGRAM_SUB];
};

struct spread {
    counter sum; /* ns */
    _Atomic(struct octave *) octaves[HISTOGRAM_OCTAVES];
};

/* The first of its octave: makes what is missing. Without memory it is not counted. */
void ios_latency_count_first(struct xlator *xl, struct stripe *s, enum fop fop, uint64_t ns);

/* A call of `fop` has taken `ns`. Any thread. Inlined: each operation of the brick does it. */
static inline void
ios_latency_count(struct xlator *xl, struct stripe *s, enum fop fop, uint64_t ns)
{
    unsigned bucket = histogram_bucket(ns);
    struct spread *spread = atomic_load_explicit(&s->spreads[fop], memory_order_acquire);
    struct octave *octave =
        spread ? atomic_load_explicit(&spread->octaves[bucket / HISTOGRAM_SUB], memory_order_acquire) : NULL;

    if (__builtin_expect(!octave, 0)) {
        ios_latency_count_first(xl, s, fop, ns);
        return;
    }
    atomic_fetch_add_explicit(&spread->sum, ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&octave->buckets[bucket % HISTOGRAM_SUB], 1, memory_order_relaxed);
}
/* All calls have ended. */
void ios_latency_free(struct ios *ios);

/* ---- per inode: for `top` -------------------------------------------------------------------- */

enum ios_count { COUNT_OPEN, COUNT_READ, COUNT_WRITE, COUNT_OPENDIR, COUNT_READDIR, COUNTS };
enum ios_rate { RATE_READ, RATE_WRITE, RATES };

/* The best rate seen and when, in one word: MB/s (20 bits), seconds since 1970 (32), 4096ths of one (12). */
#define RATE_MAX ((UINT64_C(1) << 20) - 1)
#define RATE_SPEED(word) ((word) >> 44)
#define RATE_SECONDS(word) ((word) >> 12 & UINT32_MAX)
#define RATE_MICROSECONDS(word) (((word) & 4095) * 1000000 / 4096)

struct ios_inode {
    _Atomic uint32_t counts[COUNTS];
    _Atomic uint64_t best[RATES];
};

/* The pool of ios_inode. 0 or -ENOMEM. */
int ios_pools_init(void);
/* One more of `what` on this inode. Without memory it is not counted. */
void ios_inode_count(struct xlator *xl, struct inode *inode, enum ios_count what);
/* `bytes` have taken `ns`. */
void ios_inode_rate(struct xlator *xl, struct inode *inode, enum ios_rate which, uint64_t bytes, uint64_t ns);
void ios_inode_forget(struct xlator *xl, struct inode *inode, void *ctx);

/* What a request of the management asks for: "op", and "top-op" of IOS_OP_TOP. */
enum { IOS_OP_START = 1, IOS_OP_STOP, IOS_OP_INFO, IOS_OP_TOP };
enum top_op { TOP_OPEN = 1, TOP_READ, TOP_WRITE, TOP_OPENDIR, TOP_READDIR, TOP_READ_PERF, TOP_WRITE_PERF };

int ios_top(struct xlator *xl, const struct dict *input, struct dict *output);
int ios_profile(struct xlator *xl, const struct dict *input, struct dict *output);

/* A number in a request of the management; `otherwise` if it is absent or no number. */
int64_t ios_input(const struct dict *input, const char *key, int64_t otherwise);

#endif
