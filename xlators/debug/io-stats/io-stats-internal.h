/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* What the files of io-stats share: io-stats.c counts, profile.c and top.c tell. */
#ifndef KILN_IO_STATS_INTERNAL_H
#define KILN_IO_STATS_INTERNAL_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/histogram.h"
#include "event/chore.h"
#include "fs/inode.h"
#include "stack/call-stack.h"
#include "stack/xlator.h"
#include "xlators/debug/io-stats/io-stats.h"

enum { STRIPES_MAX = 16, SIZE_CLASSES = 32 /* [2^i, 2^(i+1)) bytes */ };

/* Not fops, but a profile counts them: what was closed. */
enum ios_release { RELEASE_FILE, RELEASE_DIR, RELEASES };

enum { IOS_FORMAT_JSON, IOS_FORMAT_TEXT, IOS_FORMAT_DICT, IOS_FORMAT_SAMPLES };

struct ios_conf {
    bool latency_measurement, count_fop_hits, latency_histograms;
    int64_t ios_dump_interval; /* seconds; 0: no file of figures */
    int ios_dump_format;       /* IOS_FORMAT_* */
    char *log_level;
};

/* ---- counters: one set for a few threads each, added up when somebody asks ------------------- */

typedef _Atomic uint64_t counter;

struct stripe {
    _Alignas(64) counter hits[FOP_COUNT];
    counter releases[RELEASES];
    counter bytes_read, bytes_written;
    counter cpu_ns; /* event/charge.h: by samples */
    counter reads[SIZE_CLASSES], writes[SIZE_CLASSES];
};

/* A window of time over which least and most are kept; sums are told apart by what they were when it began.
 */
enum ios_window { WINDOW_CUMULATIVE, WINDOW_INTERVAL, WINDOW_FILE /* stats-file.c */, WINDOWS };

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
    uint64_t bytes_read, bytes_written, cpu_ns;
    uint64_t reads[SIZE_CLASSES], writes[SIZE_CLASSES];
    uint64_t calls[FOP_COUNT], sum[FOP_COUNT]; /* latencies */
    uint64_t seconds;                          /* CLOCK_MONOTONIC */
};

enum { FEW = 12 };

/* A histogram, of one fop of a brick; latency.c. */
struct spread {
    uint64_t sum;    /* ns */
    void **counters; /* of the octaves that have some: HISTOGRAM_SUB of uint8_t, uint16_t or uint64_t */
    struct {
        uint8_t place : 6; /* in `counters`, from 1; 0: none, the octave's calls are in `few` */
        uint8_t width : 2; /* 0, 1, 2: of one, two, eight bytes */
    } octave[HISTOGRAM_OCTAVES];
    uint8_t octaves; /* that have counters */
    uint8_t few_count;
    uint16_t few[FEW]; /* the buckets of single calls */
};

/* xl->private */
struct ios {
    pthread_mutex_t latency_lock; /* the next two; latency.c's */
    struct spread **spreads;      /* one a fop; NULL before the first call, also of a fop */
    struct slow_list *slow;       /* slow.c's; NULL before the first */
    _Alignas(64) unsigned stripes; /* a power of two */
    /* Ticks: a call is looked at by slow.c when it took longer than the one, or ends after the other. Written
     * under latency_lock. */
    _Atomic uint64_t slow_floor, slow_until;
    struct stripe *counters;
    _Atomic(struct latency_stripe *) latencies; /* made when latency-measurement is first on; NULL before */
    atomic_long open_now, open_most;            /* files */
    atomic_llong open_most_at;                  /* seconds since 1970 */
    pthread_mutex_t lock;                       /* the next two */
    struct figures since[WINDOWS];              /* where each window began */
    uint32_t interval;                          /* its number */
    struct xlator *xl;
    struct chore stats_chore; /* stats-file.c's, as the next */
    int stats_error;          /* -errno of the last file, which the log knows of. The chore's alone */
};

void ios_figures(struct ios *ios, struct figures *out);
/* A window begins now. Under ios->lock. */
void ios_window_begin(struct ios *ios, enum ios_window window);
/* Least and most of a fop in a window; 0: none. */
void ios_latency_bounds(const struct ios *ios, enum fop fop, enum ios_window window, uint64_t *min,
                        uint64_t *max);

/* ---- latency.c: the histograms --------------------------------------------------------------- */

enum { IOS_RING = 256 };

/* A call that has ended: how long it took (ticks) and the fop, the lowest 8 bits. */
struct ios_note {
    struct ios *ios;
    uint64_t what;
};
#define IOS_NOTE(ticks, fop) ((ticks) << 8 | (fop))
#define IOS_NOTE_FOP(what) ((what)&255)
#define IOS_NOTE_TICKS(what) ((uint64_t)((int64_t)(what) >> 8)) /* may be less than nothing */
static_assert(FOP_COUNT <= 256, "a fop has 8 bits in a note");

/* A thread's. It alone writes notes and `head`. Whoever has the lock moves `tail` up to `head`. */
struct ios_ring {
    _Alignas(64) _Atomic unsigned head, tail; /* count up; a note's place is its number % IOS_RING */
    struct ios_ring *next;                    /* under latency.c's lock of all */
    pthread_mutex_t lock;
    _Alignas(64) struct ios_note notes[IOS_RING];
};
extern _Thread_local struct ios_ring *ios_ring_mine; /* NULL before the thread's first call has ended */

/* Makes this thread's ring, or empties it, and notes the call. Without memory it goes into its histogram at
 * once. */
void ios_latency_note_slowly(struct ios *ios, uint64_t what);

static inline void
ios_ring_put(struct ios_ring *r, unsigned head, struct ios *ios, uint64_t what)
{
    r->notes[head % IOS_RING] = (struct ios_note){ios, what};
    atomic_store_explicit(&r->head, head + 1, memory_order_release);
}

/* A call of `fop` has taken `ticks`. Any thread. Inlined: each operation of the brick does it. */
static inline void
ios_latency_note(struct ios *ios, enum fop fop, uint64_t ticks)
{
    struct ios_ring *r = ios_ring_mine;
    unsigned head = r ? atomic_load_explicit(&r->head, memory_order_relaxed) : 0;

    if (__builtin_expect(!r || head - atomic_load_explicit(&r->tail, memory_order_acquire) == IOS_RING, 0))
        ios_latency_note_slowly(ios, IOS_NOTE(ticks, fop));
    else
        ios_ring_put(r, head, ios, IOS_NOTE(ticks, fop));
}

/* 0 or -errno. */
int ios_latency_init(struct ios *ios);
/* All calls have ended. */
void ios_latency_fini(struct ios *ios);

/* ---- stats-file.c: figures in a file --------------------------------------------------------- */

void ios_stats_file_init(struct ios *ios);
void ios_stats_file_fini(struct ios *ios);
/* The interval is another one now. */
void ios_stats_file_start(struct ios *ios);

/* ---- slow.c: the slowest calls --------------------------------------------------------------- */

void ios_slow_init(struct ios *ios);
void ios_slow_fini(struct ios *ios);
/* A call has ended that may be one of the slowest. */
void ios_slow_look(struct ios *ios, struct call_stack *stk, uint64_t now);
/* Lines of a statedump. */
void ios_slow_dump(struct xlator *xl, struct dump *dump);

/* `now`: ticks. Inlined: each operation of the brick does it. */
static inline void
ios_slow_note(struct ios *ios, struct call_stack *stk, uint64_t now)
{
    if (__builtin_expect(
            now - stk->arrived > atomic_load_explicit(&ios->slow_floor, memory_order_relaxed) ||
                now > atomic_load_explicit(&ios->slow_until, memory_order_relaxed),
            0))
        ios_slow_look(ios, stk, now);
}

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
