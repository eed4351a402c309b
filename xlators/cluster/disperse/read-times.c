/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/cluster/disperse/read-times.h"

#define MS UINT64_C(1000000)

enum { RISE = 4, FALL = 2 }; /* a longer time than the mean counts a quarter, a shorter time half */

void
read_time_begin(struct read_times *t, uint64_t now_ns)
{
    if (atomic_fetch_add_explicit(&t->waiting, 1, memory_order_relaxed) == 0)
        atomic_store_explicit(&t->progress_ns, now_ns, memory_order_relaxed);
}

void
read_time_end(struct read_times *t, uint64_t began_ns, uint64_t now_ns, bool has_failed)
{
    atomic_fetch_sub_explicit(&t->waiting, 1, memory_order_relaxed);
    atomic_store_explicit(&t->progress_ns, now_ns, memory_order_relaxed);
    if (has_failed)
        return;
    uint64_t took = now_ns > began_ns ? now_ns - began_ns : 1;
    uint64_t mean = atomic_load_explicit(&t->mean_ns, memory_order_relaxed);

    if (!mean)
        mean = took;
    else if (took > mean)
        mean += (took - mean) / RISE;
    else
        mean -= (mean - took) / FALL;
    atomic_store_explicit(&t->mean_ns, mean, memory_order_relaxed);
}

uint64_t
read_time_expected(const struct read_times *t, uint64_t now_ns)
{
    uint64_t mean = atomic_load_explicit(&t->mean_ns, memory_order_relaxed);
    uint64_t progress = atomic_load_explicit(&t->progress_ns, memory_order_relaxed);
    bool waits = atomic_load_explicit(&t->waiting, memory_order_relaxed) > 0;

    return waits && now_ns > progress && now_ns - progress > mean ? now_ns - progress : mean;
}

/* Returns the child of `set`, which is not empty, with the longest or shortest expected time. */
static unsigned
extreme_child(const struct read_times *of, child_set set, uint64_t now_ns, bool is_longest)
{
    unsigned found = child_first(set);
    uint64_t best = read_time_expected(&of[found], now_ns);

    for_each_child (i, set) {
        uint64_t time = read_time_expected(&of[i], now_ns);

        if (is_longest ? time > best : time < best) {
            best = time;
            found = i;
        }
    }
    return found;
}

static child_set
known_children(const struct read_times *of, child_set set)
{
    child_set known = 0;

    for_each_child (i, set)
        known |= atomic_load_explicit(&of[i].mean_ns, memory_order_relaxed) ? CHILD(i) : 0;
    return known;
}

/* Returns the child of `set` with the oldest answer; -1: all children have READs that wait. */
static int
oldest_child(const struct read_times *of, child_set set)
{
    uint64_t least = UINT64_MAX;
    int found = -1;

    for_each_child (i, set) {
        uint64_t progress = atomic_load_explicit(&of[i].progress_ns, memory_order_relaxed);

        if (atomic_load_explicit(&of[i].waiting, memory_order_relaxed) || progress >= least)
            continue;
        least = progress;
        found = (int)i;
    }
    return found;
}

/* Returns true to one caller every EXPLORE_MS. */
static bool
is_time_to_explore(_Atomic uint64_t *explored_ns, uint64_t now_ns)
{
    uint64_t last = atomic_load_explicit(explored_ns, memory_order_relaxed);

    return now_ns - last >= EXPLORE_MS * MS &&
           atomic_compare_exchange_strong_explicit(explored_ns, &last, now_ns, memory_order_relaxed,
                                                   memory_order_relaxed);
}

child_set
read_times_replace_slow(const struct read_times *of, child_set chosen, child_set spare, uint64_t now_ns,
                        _Atomic uint64_t *explored_ns)
{
    child_set all = chosen | spare, known = known_children(of, spare);

    if (!chosen || !spare)
        return chosen;
    while (known) {
        unsigned slow = extreme_child(of, chosen, now_ns, true);
        unsigned fast = extreme_child(of, known, now_ns, false);
        uint64_t limit = SLOW_TIMES * read_time_expected(&of[fast], now_ns) + SLOW_MIN_MS * MS;

        if (read_time_expected(&of[slow], now_ns) <= limit)
            break;
        chosen = (chosen & ~CHILD(slow)) | CHILD(fast);
        known &= ~CHILD(fast);
    }
    int oldest = oldest_child(of, all & ~chosen);

    if (oldest >= 0 && is_time_to_explore(explored_ns, now_ns))
        chosen = (chosen & ~CHILD(extreme_child(of, chosen, now_ns, true))) | CHILD((unsigned)oldest);
    return chosen;
}
