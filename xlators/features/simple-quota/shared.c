/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* shared: the usage of one folder on all bricks of a volume in this process, as of now. Bricks behind
 * distribute check their limit against the sum of these figures, so that their usage cannot pass the limit
 * between two sums of the daemon (volumes/quota.c). A brick writes its own cell only, without a lock. */
#include <stdlib.h>

#include "xlators/features/simple-quota/squota-internal.h"

struct squota_shared {
    atomic_uint refs;
    unsigned bricks, replica;
    _Atomic int64_t cells[]; /* bytes: usage and reservations of each brick */
};

struct squota_shared *
simple_quota_shared_new(unsigned bricks, unsigned replica)
{
    struct squota_shared *s = calloc(1, sizeof *s + bricks * sizeof s->cells[0]);

    if (s) {
        s->refs = 1;
        s->bricks = bricks;
        s->replica = replica;
    }
    return s;
}

struct squota_shared *
simple_quota_shared_ref(struct squota_shared *s)
{
    if (s)
        atomic_fetch_add(&s->refs, 1);
    return s;
}

void
simple_quota_shared_unref(struct squota_shared *s)
{
    if (s && atomic_fetch_sub(&s->refs, 1) == 1)
        free(s);
}

void
simple_quota_shared_set(struct squota_shared *s, unsigned cell, int64_t bytes)
{
    if (cell < s->bricks)
        atomic_store(&s->cells[cell], bytes);
}

int64_t
squota_shared_put(struct squota_shared *s, int cell, int64_t bytes)
{
    int64_t sum = cell < 0 ? bytes : 0, fullest = 0;

    if (cell >= 0)
        simple_quota_shared_set(s, (unsigned)cell, bytes);
    /* The store above comes before the loads in the order of all atomics, in each brick. */
    for (unsigned i = 0; i < s->bricks; i++) {
        int64_t one = atomic_load(&s->cells[i]);

        fullest = i % s->replica == 0 || one > fullest ? one : fullest;
        if (i % s->replica == s->replica - 1)
            sum += fullest > 0 ? fullest : 0;
    }
    return sum;
}
