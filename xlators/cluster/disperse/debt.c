/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A size that the bricks lack: a hold has ended without recording it, because fewer than K children were
 * there. The writes that gave the file this size were acknowledged, and K children have their fragments. So
 * the mount keeps the size, and the next hold goes on with it and records it, as long as the bricks have no
 * smaller size than before and fragments of the right length. If another client has changed these since, the
 * size is lost: the next FSYNC or FLUSH fails.
 *
 * Torn stripes: the children were lost during a write, so that some have the new fragments of a stripe, and
 * others the old ones. The stripe also has bytes of acknowledged writes, and no K fragments of different
 * ages give these bytes back. The mount keeps the plain bytes of the stripe. The next hold reads all
 * fragments of the stripe, and writes new ones if the fragments do not belong together. A stripe that
 * belongs together stays: no child has written, all have, or another client has changed the stripe since. (A
 * healer that comes first makes a stripe belong together by the majority of fragments, and cuts fragments to
 * the size; so healers leave such files alone for some seconds, heal-data.c.)
 *
 * A job takes such a hold when K good children are back, also if the program makes no further call. If the
 * mount dies before, the file has the size and the stripes of the bricks, as after a mount's death in
 * hold.c. */
#include <errno.h>
#include <stdlib.h>

#include "log/log.h"
#include "xlators/cluster/disperse/heal-data.h"

struct ec_debt_job {
    struct worker_job job;
    struct disperse *d;
    struct inode *inode;
};

/* DEBT_TRIES: with K children that are up, some of which may lack changes. */
enum { DEBT_PAUSE_MS = 200, DEBT_PAUSE_MAX_MS = 1000, DEBT_TRIES = 300 };

/* Stripes that children have written in part. */
struct ec_torn {
    struct ec_torn *next;
    uint64_t first, count;
    struct iobuf *plain; /* a reference */
    bool is_done; /* K have written them, and the hold has not ended yet */
};

static bool
has_debt(struct ec_inode *ei)
{
    pthread_mutex_lock(&ei->lock);
    bool owes = ei->owes_size || ei->torn;

    pthread_mutex_unlock(&ei->lock);
    return owes;
}

bool
ec_pays_debt(const struct disperse *d, struct inode *inode)
{
    struct ec_inode *ei = inode_ctx(inode, d->xl);

    if (!ei)
        return false;
    pthread_mutex_lock(&ei->lock);
    bool is = ei->has_debt_job;
    pthread_mutex_unlock(&ei->lock);
    return is;
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

/* Records the size, and mends stripes (ec_join()). After a failure the hold owes them again. */
static int
pay_debt(const struct ec_debt_job *j)
{
    struct ec_op op = {.d = j->d, .inode = j->inode, .caller = {.pid = PID_INTERNAL}};
    struct ec_user u = {.end = UINT64_MAX};
    int err = ec_join(&op, j->inode, &u, NEEDS_INFO);

    if (err)
        return err;
    err = ec_hold_write_back(&op, ec_hold_of(j->d, j->inode));
    ec_leave(&op, j->inode, &u);
    return err;
}

/* Waits for the bricks, also if the program makes no further call. */
static void
debt_job_go(void *arg)
{
    struct ec_debt_job *j = arg;
    struct disperse *d = j->d;
    struct ec_inode *ei = ec_hold_of(d, j->inode)->ei;
    uint32_t generation = 0, pause_ms = DEBT_PAUSE_MS;
    unsigned tries = 0;
    bool is_gone = false;

    while (!atomic_load(&d->is_stopping) && has_debt(ei) && !is_gone && tries < DEBT_TRIES) {
        child_set up = atomic_load(&d->up);
        uint32_t now = atomic_load(&d->generation);

        if (children_count(up) >= d->data) {
            int err = pay_debt(j);

            /* a child alone may lack a new file */
            is_gone = up == d->all && (err == -ESTALE || err == -ENOENT);
            tries++;
        }
        pause_ms = now != generation ? DEBT_PAUSE_MS : 2 * pause_ms;
        pause_ms = pause_ms < DEBT_PAUSE_MAX_MS ? pause_ms : DEBT_PAUSE_MAX_MS;
        generation = now;
        if (has_debt(ei) && !is_gone)
            coro_pause(pause_ms);
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
    }
    for (struct ec_torn *t = ei->torn; t; t = t->next)
        t->is_done = false; /* no version tells which children lack it */
    if (ei->owes_size || ei->torn) {
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
        /* the bricks may have taken a size on the way whose answer was lost */
        is_lost = h->size < ei->owed_base || h->length < fragment_length(ei->d, ei->owed_size);
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

/* ---- torn stripes ---------------------------------------------------------------------------- */

void
ec_torn_keep(struct ec_hold *h, uint64_t first, uint64_t count, struct iobuf *plain, bool is_done)
{
    struct ec_torn *t = malloc(sizeof *t);

    if (!t)
        return;
    *t = (struct ec_torn){.first = first, .count = count, .plain = iobuf_ref(plain), .is_done = is_done};
    pthread_mutex_lock(&h->ei->lock);
    t->next = h->ei->torn;
    h->ei->torn = t;
    pthread_mutex_unlock(&h->ei->lock);
}

static void
torn_free(struct ec_torn *t)
{
    iobuf_unref(t->plain);
    free(t);
}

void
ec_torn_free(struct ec_inode *ei)
{
    while (ei->torn) {
        struct ec_torn *t = ei->torn;

        ei->torn = t->next;
        torn_free(t);
    }
}

/* Mends the stripes within the file, under a hold of the whole file. Returns 0 or -errno. */
static int
torn_mend(struct ec_op *op, struct ec_hold *h, const struct ec_torn *t)
{
    struct disperse *d = op->d;
    uint64_t end = (ec_size(h) + d->stripe - 1) / d->stripe;
    uint64_t count = t->first + t->count <= end ? t->count : t->first < end ? end - t->first : 0;
    child_set good = ec_good(h);
    bool belongs = false;
    struct ec_heal look;
    int err = 0;

    if (!count)
        return 0;
    if (children_count(good) > d->data) { /* else each choice of fragments seems right */
        ec_heal_begin(&look, d, h->inode);
        err = ec_block_belongs(&look, good, t->first, count, &belongs);
        ec_heal_end(&look);
    }
    if (err || belongs)
        return err;
    err = write_stripes_again(op, h, t->first, count, t->plain);
    log_event(LOG_INFO, d->xl, "disperse-torn-mended",
              "%s: %llu stripes from %llu on, in which the bricks were lost, are written again: %s",
              GFID(&h->inode->gfid), (unsigned long long)count, (unsigned long long)t->first,
              err ? strerror(-err) : "done");
    return err;
}

static void
torn_remove(struct ec_inode *ei, struct ec_torn *t)
{
    struct ec_torn **at = &ei->torn;

    pthread_mutex_lock(&ei->lock);
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    pthread_mutex_unlock(&ei->lock);
    torn_free(t);
}

void
ec_torn_end(struct ec_inode *ei)
{
    struct ec_torn **at = &ei->torn, *done = NULL, *t;

    pthread_mutex_lock(&ei->lock);
    while ((t = *at)) {
        if (!t->is_done) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        t->next = done;
        done = t;
    }
    pthread_mutex_unlock(&ei->lock);
    while ((t = done)) {
        done = t->next;
        torn_free(t);
    }
}

static struct ec_torn *
torn_first(struct ec_inode *ei)
{
    pthread_mutex_lock(&ei->lock);
    struct ec_torn *t = ei->torn;

    pthread_mutex_unlock(&ei->lock);
    return t;
}

int
ec_torn_settle(struct disperse *d, struct inode *inode)
{
    struct ec_inode *ei = ec_inode(d, inode);
    struct ec_op op = {.d = d, .inode = inode, .caller = {.pid = PID_SELF_HEAL}, .settles = true};
    struct ec_user u = {.end = UINT64_MAX};
    struct ec_torn *t;
    int err = 0;

    if (!ei || !torn_first(ei))
        return 0;
    err = ec_join(&op, inode, &u, NEEDS_INFO | COUNTS_DATA | MUST_MARK);
    if (err)
        return err;
    while (!err && (t = torn_first(ei))) {
        err = torn_mend(&op, ec_hold_of(d, inode), t);
        err = err == -EIO ? -ENOTCONN : err; /* too few children answer */
        if (err == -ENOTCONN || err == -ENOMEM)
            break; /* the next hold */
        torn_remove(ei, t);
        err = 0;
    }
    ec_leave(&op, inode, &u);
    return err;
}

bool
ec_has_torn(struct disperse *d, struct inode *inode)
{
    struct ec_inode *ei = ec_inode(d, inode);

    return ei && torn_first(ei);
}
