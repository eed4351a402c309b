/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The declarations that the files of io-stats share: io-stats.c counts, profile.c and top.c report. */
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

enum { STRIPES_MAX = 16, SIZE_CLASSES = 32 /* class i: [2^i, 2^(i+1)) bytes */ };

/* Closes of files and directories. They are not fops, but a profile counts them. */
enum ios_release { RELEASE_FILE, RELEASE_DIR, RELEASES };

enum { IOS_FORMAT_JSON, IOS_FORMAT_TEXT, IOS_FORMAT_DICT, IOS_FORMAT_SAMPLES };

struct ios_conf {
    bool latency_measurement, count_fop_hits, latency_histograms;
    int64_t ios_dump_interval; /* seconds; 0: no statistics file */
    int ios_dump_format;       /* IOS_FORMAT_* */
    char *log_level;
};

/* ---- counters: one set for a few threads each, added up on reading --------------------------- */

typedef _Atomic uint64_t counter;

struct stripe {
    _Alignas(64) counter hits[FOP_COUNT];
    counter releases[RELEASES];
    counter bytes_read, bytes_written;
    counter cpu_ns; /* event/charge.h: by samples */
    counter reads[SIZE_CLASSES], writes[SIZE_CLASSES];
};

/* A window of time with its own minima and maxima. The sums of a window are differences to the sums at its
 * beginning.
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

/* A histogram of one fop of a brick; latency.c. */
struct spread {
    uint64_t sum;    /* ns */
    void **counters; /* of the octaves that have counters: HISTOGRAM_SUB of uint8_t, uint16_t or uint64_t */
    struct {
        uint8_t place : 6; /* index in `counters`, from 1; 0: no counters, the octave's calls are in `few` */
        uint8_t width : 2; /* 0, 1, 2: one, two, eight bytes */
    } octave[HISTOGRAM_OCTAVES];
    uint8_t octaves; /* number of octaves with counters */
    uint8_t few_count;
    uint16_t few[FEW]; /* the buckets of single calls */
};

/* xl->private */
struct ios {
    pthread_mutex_t latency_lock; /* protects the next two fields; latency.c's */
    struct spread **spreads;      /* one per fop; NULL before the first call, also per fop */
    struct slow_list *slow;       /* slow.c's; NULL before the first slow call */
    _Alignas(64) unsigned stripes; /* a power of two */
    /* Ticks: slow.c examines a call that took longer than slow_floor, or that ends after slow_until. Written
     * under latency_lock. */
    _Atomic uint64_t slow_floor, slow_until;
    struct stripe *counters;
    atomic_bool is_used; /* set at the first call for a user: healers and tools have negative pids */
    /* created when latency-measurement is first switched on; NULL before */
    _Atomic(struct latency_stripe *) latencies;
    atomic_long open_now, open_most;            /* number of files */
    atomic_llong open_most_at;                  /* seconds since 1970 */
    pthread_mutex_t lock;                       /* protects the next two fields */
    struct figures since[WINDOWS];              /* the sums at the beginning of each window */
    uint32_t interval;                          /* number of the current interval */
    struct xlator *xl;
    struct chore stats_chore; /* stats-file.c's, as the next field */
    int stats_error;          /* -errno of the last file, already logged. Only the chore uses it */
};

void ios_figures(struct ios *ios, struct figures *out);
/* Begins a window now. Under ios->lock. */
void ios_window_begin(struct ios *ios, enum ios_window window);
/* Minimum and maximum of a fop in a window; 0: none. */
void ios_latency_bounds(const struct ios *ios, enum fop fop, enum ios_window window, uint64_t *min,
                        uint64_t *max);

/* ---- latency.c: the histograms --------------------------------------------------------------- */

enum { IOS_RING = 256 };

/* A call that has ended: its duration (ticks), and in the lowest 8 bits its fop. */
struct ios_note {
    struct ios *ios;
    uint64_t what;
};
#define IOS_NOTE(ticks, fop) ((ticks) << 8 | (fop))
#define IOS_NOTE_FOP(what) ((what)&255)
#define IOS_NOTE_TICKS(what) ((uint64_t)((int64_t)(what) >> 8)) /* may be negative */
static_assert(FOP_COUNT <= 256, "a fop has 8 bits in a note");

/* The ring of one thread. Only that thread writes notes and `head`. The holder of the lock moves `tail` up to
 * `head`. */
struct ios_ring {
    _Alignas(64) _Atomic unsigned head, tail; /* count up; the place of a note is its number % IOS_RING */
    struct ios_ring *next;                    /* under latency.c's rings_lock */
    pthread_mutex_t lock;
    _Alignas(64) struct ios_note notes[IOS_RING];
};
extern _Thread_local struct ios_ring *ios_ring_mine; /* NULL before the thread's first call has ended */

/* Creates or empties this thread's ring, and notes the call. Without memory for a ring, adds the call to its
 * histogram at once. */
void ios_latency_note_slowly(struct ios *ios, uint64_t what);

static inline void
ios_ring_put(struct ios_ring *r, unsigned head, struct ios *ios, uint64_t what)
{
    r->notes[head % IOS_RING] = (struct ios_note){ios, what};
    atomic_store_explicit(&r->head, head + 1, memory_order_release);
}

/* Notes that a call of `fop` took `ticks`. Any thread. Inlined, because each operation of the brick calls it.
 */
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

/* Returns 0 or -errno. */
int ios_latency_init(struct ios *ios);
/* Runs after all calls have ended. */
void ios_latency_fini(struct ios *ios);

/* ---- stats-file.c: figures in a file --------------------------------------------------------- */

void ios_stats_file_init(struct ios *ios);
void ios_stats_file_fini(struct ios *ios);
/* Applies a changed interval. */
void ios_stats_file_start(struct ios *ios);

/* ---- slow.c: the slowest calls --------------------------------------------------------------- */

void ios_slow_init(struct ios *ios);
void ios_slow_fini(struct ios *ios);
/* Examines an ended call that may be one of the slowest. */
void ios_slow_look(struct ios *ios, struct call_stack *stk, uint64_t now);
/* Writes lines of a statedump. */
void ios_slow_dump(struct xlator *xl, struct dump *dump);

/* `now`: ticks. Inlined, because each operation of the brick calls it. */
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

/* The best rate seen and its time, in one word: MB/s (20 bits), seconds since 1970 (32), 4096ths of a second
 * (12). */
#define RATE_MAX ((UINT64_C(1) << 20) - 1)
#define RATE_SPEED(word) ((word) >> 44)
#define RATE_SECONDS(word) ((word) >> 12 & UINT32_MAX)
#define RATE_MICROSECONDS(word) (((word) & 4095) * 1000000 / 4096)

struct ios_inode {
    _Atomic uint32_t counts[COUNTS];
    _Atomic uint64_t best[RATES];
};

/* Creates the pool of ios_inode. Returns 0 or -ENOMEM. */
int ios_pools_init(void);
/* Counts one more `what` on this inode. Without memory it is not counted. */
void ios_inode_count(struct xlator *xl, struct inode *inode, enum ios_count what);
/* Notes a transfer of `bytes` in `ns`. */
void ios_inode_rate(struct xlator *xl, struct inode *inode, enum ios_rate which, uint64_t bytes, uint64_t ns);
void ios_inode_forget(struct xlator *xl, struct inode *inode, void *ctx);

/* Operations of a management request: "op", and "top-op" of IOS_OP_TOP. */
enum { IOS_OP_START = 1, IOS_OP_STOP, IOS_OP_INFO, IOS_OP_TOP };
enum top_op { TOP_OPEN = 1, TOP_READ, TOP_WRITE, TOP_OPENDIR, TOP_READDIR, TOP_READ_PERF, TOP_WRITE_PERF };

int ios_top(struct xlator *xl, const struct dict *input, struct dict *output);
int ios_profile(struct xlator *xl, const struct dict *input, struct dict *output);

/* Returns a number of a management request; `otherwise` if it is absent or not a number. */
int64_t ios_input(const struct dict *input, const char *key, int64_t otherwise);

#endif
