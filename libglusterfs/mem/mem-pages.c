/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-pages: gives pages between live objects back to the system.
 *
 * A burst leaves spans with few live objects and many free slots. The sweeper gives back the pages of free
 * slots, regardless of the load on other pools and by other users of the same pool, because it decides
 * about one span at a time:
 *
 *   taken_in  an object was taken since the last sweep's walk: the span is in use, and is left alone
 *   given     its free pages were given back, and no object was put into it since: nothing to do
 *   regrets   its pages were given back and needed again in the next sweep, this many times in a row. From
 *             two on the span is left alone for 2, 4, 8 .. 64 sweeps
 *
 * Objects come from the fullest spans that have room (mem-span.c), so that sparse spans are not used and
 * become empty. A sweep spends at most a twentieth of its period of CPU time here, and at least 50 ms; the
 * next sweep continues.
 *
 * Locks: all fields of a span except `class` and `reservation`, and the lists of the class, are under the
 * class's lock. The sweeper holds that lock while it looks for a span and while it links the span again,
 * not over madvise(2): meanwhile the span `is_held` and in no list, so no object is taken from it and its
 * free slots stay free; a put into it only sets the slot's bit. Sixteen spans of a class are held at a
 * time, and only under the sweep mutex, which fork(2) takes too. */
#include "mem/mem-span.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>

enum { PAGE = 4096, LOOK_AT = 64, HELD_MAX = 16, RUNS_MAX = 512 /* a span has at most half of that */ };
static_assert(RESERVATION / PAGE / 2 <= RUNS_MAX / 2, "runs of one span");

/* Newer than the headers of Debian 12. */
#ifndef PIDFD_SELF
#define PIDFD_SELF (-10000)
#endif

uint64_t
mem_cpu_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* Runs of pages to be given back, and the spans that are held for them. */
struct batch {
    struct mem_span *span[HELD_MAX];
    uint32_t nfree[HELD_MAX]; /* slots that were free when the span was taken */
    uint32_t spans, runs;
    struct iovec run[RUNS_MAX];
};

/* Adds the pages of a span that hold only free slots. Lock held. */
static void
add_runs(const struct mem_class *c, struct mem_span *s, struct batch *b)
{
    uint32_t run = 0;

    for (uint32_t i = 0; i <= c->per_span; i++) {
        if (i < c->per_span && (s->free[i / 64] & ((uint64_t)1 << (i % 64)))) {
            run++;
            continue;
        }
        uintptr_t from = (uintptr_t)(mem_object_at(c, s, i - run) - c->offset);
        uintptr_t to = (uintptr_t)(mem_object_at(c, s, i) - c->offset);

        from = (from + PAGE - 1) / PAGE * PAGE;
        to = to / PAGE * PAGE;
        if (run && to > from)
            b->run[b->runs++] = (struct iovec){ (void *)from, to - from };
        run = 0;
    }
}

/* Drops all runs in one call, if the kernel accepts that from a process for itself (Linux 6.14): 1.6 us a
 * page, where one call for each run took 36 us on a virtual machine. */
static size_t
drop_runs(struct batch *b)
{
    size_t wanted = 0, bytes = 0;

    for (uint32_t i = 0; i < b->runs; i++)
        wanted += b->run[i].iov_len;
    if (!wanted || process_madvise(PIDFD_SELF, b->run, b->runs, MADV_DONTNEED, 0) == (ssize_t)wanted)
        return wanted;
    for (uint32_t i = 0; i < b->runs; i++)
        if (madvise(b->run[i].iov_base, b->run[i].iov_len, MADV_DONTNEED) == 0)
            bytes += b->run[i].iov_len;
    return bytes;
}

/* The lock is held over the calls, which takes 13 us for a span of 64 KiB with eight free pages between
 * others (a bare loop of madvise). A thread that gets an object of the class waits for it. That is rare,
 * because the sweeper trims only classes that have carved nothing since its last visit, and other classes
 * are trimmed only when memory is short. In that case holding the spans outside of the lock would cost the
 * getting thread a new span, or ENOMEM. */
size_t
mem_class_trim_pages(struct mem_class *c)
{
    struct batch b;
    size_t bytes = 0;

    if (!c->span_bytes)
        return 0;
    mem_lock(&c->lock);
    for (int fill = 0; fill < MEM_FILLS; fill++) {
        for (struct mem_span *s = c->partial[fill]; s; s = s->next) {
            b.runs = 0;
            if (!s->is_given)
                add_runs(c, s, &b);
            bytes += drop_runs(&b);
            s->is_given = true;
        }
    }
    MEM_ADD(mem_released_bytes, bytes);
    mem_unlock(&c->lock);
    return bytes;
}

/* ---- ageing by a sweep ----------------------------------------------------------------------- */

/* Updates the span for a sweep. True: its pages should be given back. */
static bool
is_ripe(const struct mem_class *c, struct mem_span *s)
{
    if (s->taken_in == c->walks)
        return false;
    if (s->is_given)
        s->regrets = 0; /* not needed for a whole sweep */
    if (s->wait > 0)
        s->wait--;
    return !s->is_given && s->wait == 0;
}

/* Takes the next spans of the walk whose pages should be given back out of their lists; lock held. False:
 * the walk is over. */
static bool
hold_ripe(struct mem_class *c, int *fill, struct batch *b)
{
    for (int looked = 0; looked < LOOK_AT && b->spans < HELD_MAX && b->runs <= RUNS_MAX / 2; looked++) {
        struct mem_span *s = c->cursor;

        if (!s && ++*fill == MEM_FILLS)
            return false;
        if (!s) {
            c->cursor = c->partial[*fill];
            continue;
        }
        c->cursor = s->next;
        if (!is_ripe(c, s))
            continue;
        mem_partial_unlink(c, s);
        s->is_held = true;
        b->nfree[b->spans] = s->nfree;
        b->span[b->spans++] = s;
        add_runs(c, s, b);
    }
    return true;
}

/* Links the held spans again. Spans into which objects were put meanwhile do not count as given; lock
 * held. */
static void
end_hold(struct mem_class *c, const struct batch *b)
{
    for (uint32_t i = 0; i < b->spans; i++) {
        struct mem_span *s = b->span[i];

        s->is_held = false;
        s->is_given = s->nfree == b->nfree[i];
        mem_span_file(c, s);
    }
}

size_t
mem_class_age_pages(struct mem_class *c, uint64_t until_us)
{
    struct batch b;
    size_t bytes = 0;
    int fill = -1;
    bool goes_on = c->span_bytes && !mem_set.keeps;

    while (goes_on && mem_cpu_us() < until_us) {
        b.spans = b.runs = 0;
        mem_lock(&c->lock);
        if (fill < 0)
            c->cursor = c->partial[fill = 0];
        goes_on = hold_ripe(c, &fill, &b);
        mem_unlock(&c->lock);
        if (!b.spans)
            continue;
        bytes += drop_runs(&b);
        mem_lock(&c->lock);
        end_hold(c, &b);
        mem_unlock(&c->lock);
    }
    if (c->span_bytes) {
        mem_lock(&c->lock);
        c->cursor = NULL;
        c->walks++;
        mem_unlock(&c->lock);
    }
    MEM_ADD(mem_released_bytes, bytes);
    return bytes;
}
