/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A size that the bricks lack: a hold has ended without recording it, because fewer than K children were
 * there. The writes that gave the file this size were acknowledged, and K children have their fragments. So
 * the mount keeps the size, and the next hold goes on with it and records it, as long as the bricks have the
 * size of before and fragments of the right length. If another client has changed these since, the size is
 * lost: the next FSYNC or FLUSH fails.
 *
 * A job takes such a hold when K children are back, also if the program makes no further call. If the mount
 * dies before, the file has the size of the bricks, as after a mount's death in hold.c. */
#include <stdlib.h>

#include "log/log.h"
#include "xlators/cluster/disperse/disperse-internal.h"

struct ec_debt_job {
    struct worker_job job;
    struct disperse *d;
    struct inode *inode;
};

enum { DEBT_PAUSE_MS = 500, DEBT_TRIES = 6 /* with K children that are up */ };

static bool
owes_size(struct ec_inode *ei)
{
    pthread_mutex_lock(&ei->lock);
    bool owes = ei->owes_size;

    pthread_mutex_unlock(&ei->lock);
    return owes;
}

static void
debt_job_end(struct ec_debt_job *j)
{
    struct ec_inode *ei = ec_hold_of(j->d, j->inode)->ei;
    struct graph *graph = j->d->xl->graph;

    pthread_mutex_lock(&ei->lock);
    ei->has_debt_job = false;
    pthread_mutex_unlock(&ei->lock);
    inode_unref(j->inode);
    free(j);
    graph_unpin(graph);
}

/* Records the size when the bricks are back, also if the program makes no further call. */
static void
debt_job_go(void *arg)
{
    struct ec_debt_job *j = arg;
    struct disperse *d = j->d;
    struct ec_inode *ei = ec_hold_of(d, j->inode)->ei;

    for (unsigned tries = 0; tries < DEBT_TRIES && !atomic_load(&d->is_stopping) && owes_size(ei);) {
        struct ec_op op = {.d = d, .inode = j->inode, .caller = {.pid = PID_INTERNAL}};
        struct ec_user u = {.end = UINT64_MAX};

        bool may_try = children_count(atomic_load(&d->up)) >= d->data;
        tries += may_try;
        if (!may_try || ec_join(&op, j->inode, &u, NEEDS_INFO)) {
            coro_pause(DEBT_PAUSE_MS);
            continue;
        }
        (void)ec_hold_write_back(&op, ec_hold_of(d, j->inode)); /* on failure the hold owes the size again */
        ec_leave(&op, j->inode, &u);
    }
    debt_job_end(j);
}

/* Without memory for a coroutine the next call that needs the size records it. */
static void
debt_job_start(struct worker_job *job)
{
    struct ec_debt_job *j = caa_container_of(job, struct ec_debt_job, job);

    if (coro_run(debt_job_go, j))
        debt_job_end(j);
}

void
ec_note_debt(struct ec_hold *h)
{
    struct ec_inode *ei = h->ei;

    if (atomic_load(&ei->d->is_stopping))
        return; /* there is no later hold */
    struct ec_debt_job *j = calloc(1, sizeof *j);
    bool starts = false;

    pthread_mutex_lock(&ei->lock);
    if (h->has_info && h->size > h->sure_size) {
        ei->owes_size = true;
        ei->owed_size = h->size;
        ei->owed_base = h->sure_size;
        starts = j && !ei->has_debt_job && graph_pin(ei->d->xl->graph);
        ei->has_debt_job |= starts;
    }
    pthread_mutex_unlock(&ei->lock);
    if (!starts) {
        free(j);
        return;
    }
    *j = (struct ec_debt_job){.job.run = debt_job_start, .d = ei->d, .inode = inode_ref(h->inode)};
    worker_post(&j->job);
}

void
ec_settle_size(struct ec_hold *h)
{
    struct ec_inode *ei = h->ei;
    bool is_lost = false;

    pthread_mutex_lock(&ei->lock);
    if (ei->owes_size && h->size < ei->owed_size) {
        is_lost = h->size != ei->owed_base || h->length < fragment_length(ei->d, ei->owed_size);
        if (is_lost) {
            ei->lost_err = -EIO;
        } else {
            h->size = ei->owed_size;
            h->grown_ns = clock_mono_ns();
        }
    }
    uint64_t owed = ei->owed_size;
    ei->owes_size = false;
    h->has_info = true; /* the size of the hold takes the place of the owed one without a gap */
    pthread_mutex_unlock(&ei->lock);
    if (is_lost)
        log_event(LOG_ERROR, ei->d->xl, "disperse-size-lost",
                  "%s: the bricks were lost before they had the size %llu, and another client has changed "
                  "the file since",
                  GFID(&h->inode->gfid), (unsigned long long)owed);
}

int
ec_take_lost_err(struct disperse *d, struct inode *inode)
{
    struct ec_inode *ei = ec_hold_of(d, inode)->ei;

    pthread_mutex_lock(&ei->lock);
    int err = ei->lost_err;

    ei->lost_err = 0;
    pthread_mutex_unlock(&ei->lock);
    return err;
}
