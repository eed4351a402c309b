/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The size of a file, which all clients add to and subtract from (XATTROP), and the lock that makes that
 * right.
 *
 * A stock client adds the growth of the file as far as the client knows: end of the write minus the size
 * that the client has seen last. If two stock clients extend a file at the same time, both add. Kiln's
 * clients take an inodelk on the base file, in a domain of their own, before a write that may extend the
 * file:
 *
 *   1. INODELK          2. FSTAT: the true size        3. the writes        4. XATTROP {end - size, 0,
 *                                                                           blocks, 0} 5. unlock
 *
 * The calls of one mount share the lock, so several writes are under way at a time, and one XATTROP serves
 * those that have ended meanwhile. A truncate takes the lock exclusively, so a file is never cut while
 * another client extends it. After SHARD_JOINS_MAX calls the mount gives the lock back, so that other clients
 * have their turn.
 *
 * Stock's clients do not know the lock. The reply of the XATTROP shows whether another client has added
 * meanwhile; then a second XATTROP corrects the sum. A stock client that believes in an old size still adds
 * too much, as it does beside another stock client.
 *
 * A write inside the file needs no lock. If another client has cut the file meanwhile, the write's replies or
 * the size show that, and the write is made again under the lock (data.c).
 *
 * Deaths: the brick drops the lock of a client that is gone. Between 3 and 4 the written bytes lie behind the
 * end of the file; no client reads them, the next write there replaces them, and a truncate or the removal of
 * the file removes them. (A client that extends the file later without writing these bytes, by a hole, may
 * show them: bytes that a user of the file has written, in a write that was never confirmed.) After 4 all is
 * done. A brick that restarts between 4 and its reply may have added or not: the size is read again. The
 * number of blocks, which is only shown, may then be wrong. The brick has forgotten the lock, so another
 * mount may have the lock at the same time until this one's calls have ended: then the sums of the XATTROPs
 * show the other's part, as beside a stock client. */
#include <errno.h>
#include <string.h>

#include "xlators/features/shard/shard-internal.h"

enum { SHARD_XATTROP_ADD64 = 1, SHARD_JOINS_MAX = 256, SHARD_SIZE_TRIES = 4 };

/* ---- the xattr ------------------------------------------------------------------------------- */

/* Adds, and reads the sum. */
static int
shard_size_add(const struct shard_op *o, uint64_t size, int64_t blocks, uint64_t *sum)
{
    struct call_stack *stk = shard_call_base(o, FOP_fxattrop, FOP_xattrop, true);
    struct dict *d = stk ? dict_new(&stk->arena) : NULL;
    uint8_t bytes[SHARD_SIZE_BYTES];
    uint64_t sum_blocks;
    int ret = -ENOMEM;

    shard_write_size(bytes, size, (uint64_t)blocks);
    if (d && !dict_set_bytes(d, DICT_KEY_SHARD_FILE_SIZE, bytes, sizeof bytes)) {
        stk->call.flags = SHARD_XATTROP_ADD64;
        stk->call.dict = d;
        ret = shard_call(o, stk);
    }
    if (ret >= 0 && !shard_read_size(stk->reply.dict, sum, &sum_blocks))
        ret = -EIO;
    if (ret >= 0) {
        pthread_mutex_lock(&o->f->lock);
        o->f->size = *sum;
        o->f->blocks = sum_blocks;
        pthread_mutex_unlock(&o->f->lock);
    }
    if (stk)
        call_stack_free(stk);
    return ret < 0 ? ret : 0;
}

/* As shard_size_add(). If the connection was lost, the brick has added or not: reads the size. Returns
 * -EAGAIN with the size in *sum. */
static int
shard_size_try(const struct shard_op *o, uint64_t size, int64_t blocks, uint64_t *sum)
{
    int err = shard_size_add(o, size, blocks, sum);

    if (err != -ENOTCONN)
        return err;
    err = shard_file_look(o, NULL);
    *sum = shard_file_size(o->f);
    return err ? err : -EAGAIN;
}

int
shard_blocks_add(const struct shard_op *o, int64_t blocks, uint64_t *size)
{
    int err = shard_size_try(o, 0, blocks, size);

    return err == -EAGAIN ? 0 : err; /* the number of blocks may be wrong then */
}

/* Makes the size, which was `*now`, at least `end`. A client without the lock may change the size meanwhile:
 * the sum shows that, and the size without this client's part decides. Updates *now. */
static int
shard_size_raise(const struct shard_op *o, uint64_t *now, uint64_t end, int64_t blocks)
{
    for (int i = 0; i < SHARD_SIZE_TRIES; i++, blocks = 0) {
        uint64_t add = *now < end ? end - *now : 0, sum;
        int err = shard_size_try(o, add, blocks, &sum);
        bool is_as_expected = !err && sum - add == *now;

        if (!err && !is_as_expected) {
            uint64_t right = sum - add > end ? sum - add : end;

            if (sum != right)
                err = shard_size_try(o, right - sum, 0, &sum);
        }
        if (err && err != -EAGAIN)
            return err;
        *now = sum;
        if (is_as_expected || (!err && sum >= end))
            return 0;
    }
    return *now >= end ? 0 : -EIO;
}

int
shard_size_set(const struct shard_op *o, uint64_t size, int64_t blocks)
{
    struct shard_hold *h = &o->f->hold; /* no other call uses it: the lock is exclusive */

    for (int i = 0; i < SHARD_SIZE_TRIES && (h->size != size || blocks); i++, blocks = 0) {
        int err = shard_size_try(o, size - h->size, blocks, &h->size);

        if (err && err != -EAGAIN)
            return err;
    }
    return h->size == size ? 0 : -EIO;
}

/* ---- several changes at a time --------------------------------------------------------------- */

struct shard_change {
    struct cds_list_head link;
    struct coroutine *self;
    uint64_t end;
    int64_t blocks;
    int err;
    bool is_done;
};

/* Ends the changes of `list`, and lets the first of those that came meanwhile make the next change. */
static void
shard_changes_end(struct shard_file *f, struct cds_list_head *list, const struct shard_change *own, int err)
{
    struct shard_change *c, *next;
    struct coroutine *leader = NULL;

    pthread_mutex_lock(&f->lock);
    if (cds_list_empty(&f->changes))
        f->is_changing = false;
    else
        leader = cds_list_first_entry(&f->changes, struct shard_change, link)->self;
    pthread_mutex_unlock(&f->lock);
    cds_list_for_each_entry_safe(c, next, list, link) {
        struct coroutine *self = c->self; /* the change is gone when its coroutine goes on */

        if (c == own)
            continue;
        c->err = err;
        c->is_done = true;
        coroutine_resume(self);
    }
    if (leader)
        coroutine_resume(leader);
}

static int
shard_changes_make(const struct shard_op *o, const struct shard_change *own)
{
    struct shard_file *f = o->f;
    struct shard_change *c;
    struct cds_list_head list;
    uint64_t end = 0;
    int64_t blocks = 0;

    CDS_INIT_LIST_HEAD(&list);
    pthread_mutex_lock(&f->lock);
    cds_list_splice(&f->changes, &list);
    CDS_INIT_LIST_HEAD(&f->changes);
    uint64_t now = f->hold.size;
    pthread_mutex_unlock(&f->lock);
    cds_list_for_each_entry(c, &list, link) {
        end = c->end > end ? c->end : end;
        blocks += c->blocks;
    }
    int err = end > now || blocks ? shard_size_raise(o, &now, end, blocks) : 0;

    pthread_mutex_lock(&f->lock);
    f->hold.size = now;
    pthread_mutex_unlock(&f->lock);
    shard_changes_end(f, &list, own, err);
    return err;
}

int
shard_size_extend(const struct shard_op *o, uint64_t end, int64_t blocks)
{
    struct shard_change c = {.self = coroutine_self(), .end = end, .blocks = blocks};
    struct shard_file *f = o->f;

    pthread_mutex_lock(&f->lock);
    cds_list_add_tail(&c.link, &f->changes);
    bool waits = f->is_changing;

    f->is_changing = true;
    pthread_mutex_unlock(&f->lock);
    if (waits)
        coroutine_yield();
    return c.is_done ? c.err : shard_changes_make(o, &c);
}

/* ---- the lock -------------------------------------------------------------------------------- */

struct shard_waiter {
    struct cds_list_head link;
    struct coroutine *self;
};

/* The unlock is made first, because without memory for it the lock would stay. */
static int
shard_hold_take(const struct shard_op *o)
{
    struct shard_hold *h = &o->f->hold;
    uint8_t owner[8];

    shard_owner_new(owner);
    h->unlock = shard_inodelk(o, o->s->size_domain, owner, SHARD_LOCK_DROP);
    int err = h->unlock ? shard_call_once(o, shard_inodelk(o, o->s->size_domain, owner, SHARD_LOCK_WAIT))
                        : -ENOMEM;

    if (err < 0) {
        if (h->unlock)
            call_stack_free(h->unlock);
        return err;
    }
    err = shard_file_look(o, NULL);
    if (err)
        shard_call_forget(o, h->unlock);
    return err;
}

/* Resumes all waiters, each of which tries again. */
static void
shard_hold_wake(struct cds_list_head *waiters)
{
    struct shard_waiter *w, *next;

    cds_list_for_each_entry_safe(w, next, waiters, link)
        coroutine_resume(w->self); /* the waiter is gone afterwards */
}

static void
shard_waiters_take_locked(struct shard_hold *h, struct cds_list_head *out)
{
    CDS_INIT_LIST_HEAD(out);
    cds_list_splice(&h->waiters, out);
    CDS_INIT_LIST_HEAD(&h->waiters);
}

static bool
shard_hold_may_join_locked(struct shard_hold *h, bool is_exclusive)
{
    return h->state == SHARD_HOLD_HELD && !is_exclusive && !h->is_exclusive && h->joins < SHARD_JOINS_MAX &&
           cds_list_empty(&h->waiters);
}

/* Ends SHARD_HOLD_TAKING. */
static void
shard_hold_taken(struct shard_file *f, bool is_exclusive, int err)
{
    struct shard_hold *h = &f->hold;
    struct cds_list_head waiters;

    pthread_mutex_lock(&f->lock);
    h->state = err ? SHARD_HOLD_NONE : SHARD_HOLD_HELD;
    h->is_exclusive = is_exclusive;
    h->users = h->joins = err ? 0 : 1;
    h->size = h->append = f->size;
    shard_waiters_take_locked(h, &waiters);
    pthread_mutex_unlock(&f->lock);
    shard_hold_wake(&waiters);
}

int
shard_hold_join(const struct shard_op *o, bool is_exclusive)
{
    struct shard_hold *h = &o->f->hold;
    struct shard_waiter w = {.self = coroutine_self()};

    for (;;) {
        pthread_mutex_lock(&o->f->lock);
        bool takes = h->state == SHARD_HOLD_NONE, joins = shard_hold_may_join_locked(h, is_exclusive);

        if (takes) {
            h->state = SHARD_HOLD_TAKING;
        } else if (joins) {
            h->users++;
            h->joins++;
        } else {
            cds_list_add_tail(&w.link, &h->waiters);
        }
        pthread_mutex_unlock(&o->f->lock);
        if (joins)
            return 0;
        if (takes) {
            int err = shard_hold_take(o);

            shard_hold_taken(o->f, is_exclusive, err);
            return err;
        }
        coroutine_yield();
    }
}

void
shard_hold_leave(const struct shard_op *o)
{
    struct shard_hold *h = &o->f->hold;
    struct cds_list_head waiters;

    CDS_INIT_LIST_HEAD(&waiters);
    pthread_mutex_lock(&o->f->lock);
    bool is_last = --h->users == 0;

    if (is_last)
        h->state = SHARD_HOLD_DROPPING;
    pthread_mutex_unlock(&o->f->lock);
    if (!is_last)
        return;
    shard_call_forget(o, h->unlock);
    pthread_mutex_lock(&o->f->lock);
    h->state = SHARD_HOLD_NONE;
    shard_waiters_take_locked(h, &waiters);
    pthread_mutex_unlock(&o->f->lock);
    shard_hold_wake(&waiters);
}

uint64_t
shard_hold_append(struct shard_file *f, uint64_t len)
{
    pthread_mutex_lock(&f->lock);
    uint64_t at = f->hold.append > f->hold.size ? f->hold.append : f->hold.size;

    f->hold.append = at + len;
    pthread_mutex_unlock(&f->lock);
    return at;
}
