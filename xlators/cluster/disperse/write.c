/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Changes of a file's data: WRITE, TRUNCATE, FALLOCATE, DISCARD, ZEROFILL.
 *
 *      join the hold       lock, version, size; dirty marks on all good children
 *      fill up             the first and the last stripe, where the write covers only a part: READ of the
 *                          old stripe (or this mount's copy of the last such stripe), zeros behind the
 *                          file's end
 *      encode, WRITE       each good child gets its fragment of the whole stripes
 *      judge               K equal answers; children outside are behind from now on, and the others record
 *                          that before the caller gets the reply (hold.c). With fewer answers than
 *                          quorum-count the caller gets EIO, and all else is as after a success
 *
 * Every byte of a fragment depends on every chunk of its stripe, so a write of one byte changes all
 * fragments: two writes of one stripe follow one another. Bytes between the file's end and the end of its
 * last stripe are zeros: a truncation writes them, and a write that fills up the stripe. Only a client that
 * died in a change leaves others, with its mark: an extension that leaves a hole behind them makes them zeros
 * first, without other users of the file.
 *
 * O_APPEND: this layer chooses the offset, under the lock. O_SYNC and O_DSYNC: bricks have the bytes on their
 * disks when they answer; a write behind the size that they are known to have is answered after an XATTROP of
 * the size and an FSYNC. hold.c says which states deaths leave. */
#include <errno.h>
#include <string.h>

#include "xlators/cluster/disperse/disperse-internal.h"

enum { FALLOCATE_KEEPS_SIZE = 1 };
#define DATA_NEEDS (NEEDS_INFO | COUNTS_DATA | MUST_MARK)

/* ---- stripes that this mount wrote in part --------------------------------------------------- */

/* Copies the stripe; false: not kept. */
static bool
stripe_find(struct ec_hold *h, uint64_t number, unsigned char *out)
{
    bool has = false;

    pthread_mutex_lock(&h->ei->lock);
    for (unsigned i = 0; i < STRIPES_CACHED_MAX && !has; i++) {
        if (!h->stripe[i].used || h->stripe[i].number != number)
            continue;
        memcpy(out, h->stripe[i].bytes->bytes, h->ei->d->stripe);
        h->stripe[i].used = ++h->uses;
        has = true;
    }
    pthread_mutex_unlock(&h->ei->lock);
    return has;
}

/* Forgets the stripes first to last. */
static void
stripes_drop(struct ec_hold *h, uint64_t first, uint64_t last)
{
    pthread_mutex_lock(&h->ei->lock);
    for (unsigned i = 0; i < STRIPES_CACHED_MAX; i++) {
        if (h->stripe[i].number >= first && h->stripe[i].number <= last)
            h->stripe[i].used = 0;
    }
    pthread_mutex_unlock(&h->ei->lock);
}

/* Keeps a stripe in place of the one that was used least recently. Without memory nothing is kept. */
static void
stripe_keep(struct ec_hold *h, uint64_t number, const unsigned char *bytes)
{
    const struct disperse *d = h->ei->d;
    const struct disperse_conf *conf = xlator_conf(d->xl);
    unsigned slots = (unsigned)conf->cached_stripes, oldest = 0;

    if (!slots)
        return;
    pthread_mutex_lock(&h->ei->lock);
    for (unsigned i = 0; i < slots; i++)
        oldest = h->stripe[i].used < h->stripe[oldest].used ? i : oldest;
    if (!h->stripe[oldest].bytes)
        h->stripe[oldest].bytes = iobuf_get(d->stripe);
    if (h->stripe[oldest].bytes) {
        memcpy(h->stripe[oldest].bytes->bytes, bytes, d->stripe);
        h->stripe[oldest].number = number;
        h->stripe[oldest].used = ++h->uses;
    }
    pthread_mutex_unlock(&h->ei->lock);
}

/* ---- a write of any range -------------------------------------------------------------------- */

struct stripe_write {
    struct ec_hold *h;
    struct inode *inode;
    uint64_t offset, size;      /* bytes of the file */
    const struct iovec *iov;    /* NULL: zeros */
    bool is_internal;           /* not the caller's own WRITE */
    uint64_t first, count;      /* stripes */
    uint64_t head, tail;        /* old bytes before and behind, in the first and last stripe */
    struct iobuf *plain, *fragments;
    size_t fragment_bytes;
};

/* Reads the old contents of a stripe of which the write covers a part. */
static int
fill_up(struct ec_op *op, struct stripe_write *w, uint64_t number)
{
    unsigned char *to = (unsigned char *)w->plain->bytes + (number - w->first) * op->d->stripe;
    uint64_t size = ec_size(w->h), end = w->offset + w->size, start = number * op->d->stripe;
    bool keeps_head = number == w->first && w->head && start < size;
    bool keeps_tail = number == w->first + w->count - 1 && w->tail && size > end;
    child_set failed = 0;

    if (!keeps_head && !keeps_tail) {
        memset(to, 0, op->d->stripe);
        return 0;
    }
    if (stripe_find(w->h, number, to))
        return 0;
    int err = read_stripes(op, w->inode, ec_good(w->h), number, 1, true, to, &failed);
    ec_blame(w->h, failed);
    if (size < start + op->d->stripe)
        memset(to + (size - start), 0, start + op->d->stripe - size);
    return err;
}

static int
fill_ends(struct ec_op *op, struct stripe_write *w)
{
    int err = w->head || (w->count == 1 && w->tail) ? fill_up(op, w, w->first) : 0;

    if (!err && w->count > 1 && w->tail)
        err = fill_up(op, w, w->first + w->count - 1);
    return err;
}

static void
copy_in(struct stripe_write *w)
{
    char *to = w->plain->bytes + w->head;
    uint64_t left = w->size;

    if (!w->iov)
        memset(to, 0, left);
    for (const struct iovec *v = w->iov; v && left; v++) {
        size_t n = v->iov_len < left ? v->iov_len : left;

        memcpy(to, v->iov_base, n);
        to += n;
        left -= n;
    }
}

static struct call_stack *
stripe_write_make(const struct ec_op *op, unsigned i, bool is_spare, const void *arg)
{
    const struct stripe_write *w = arg;
    struct call_stack *stk = w->is_internal ? ec_fd_call(op, FOP_writev, i, is_spare, w->inode, op->file)
                                            : ec_fork_held(op, i, is_spare, NULL);

    if (!stk)
        return NULL;
    iobuf_unref(stk->call.payload_iobuf);
    stk->call.payload_iobuf = iobuf_ref(w->fragments);
    stk->call.payload[0] = (struct iovec){w->fragments->bytes + i * w->fragment_bytes, w->fragment_bytes};
    stk->call.payload_count = 1;
    stk->call.payload_bytes = stk->call.size = w->fragment_bytes;
    stk->call.offset = w->first * CODEC_CHUNK;
    stk->call.flags &= ~(uint32_t)(O_APPEND | O_DIRECT);
    return stk;
}

static void
remember_ends(struct ec_op *op, const struct stripe_write *w)
{
    const unsigned char *plain = (const unsigned char *)w->plain->bytes;
    uint64_t last = w->first + w->count - 1;

    stripes_drop(w->h, w->first, last);
    if (w->head || (w->count == 1 && w->tail))
        stripe_keep(w->h, w->first, plain);
    if (w->tail && w->count > 1)
        stripe_keep(w->h, last, plain + (w->count - 1) * op->d->stripe);
}

/* Sends the fragments. Returns the number of the file's bytes that were written, or -errno; the caller's
 * reply gets the attributes if the call is its own. */
static int64_t
send_fragments(struct ec_op *op, struct stripe_write *w)
{
    struct disperse *d = op->d;
    child_set to = ec_good(w->h);
    struct fan f;
    int ret;

    codec_encode(d->data, to, (const unsigned char *)w->plain->bytes, w->count,
                 (unsigned char *)w->fragments->bytes);
    if (ec_ask(&f, op, to, stripe_write_make, w))
        return -ENOMEM;
    child_set good = answers_judge_change(op, &f, false, &ret);
    if (ret == -EIO)
        ret = answers_too_few(op, &f);
    if (ret >= 0 && ret % CODEC_CHUNK) {
        good = 0;
        ret = -EIO;
    }
    if (answers_show_waiter(&f, good))
        ec_hurry(w->h);
    if (ret >= 0 && !w->is_internal)
        ret = answers_take(op, &f, good) ? -ENOMEM : ret;
    ec_record(op, w->inode, COUNTS_DATA, f.sent & ~f.unread, good, ret >= 0);
    bool is_any_lost = false;
    for_each_child (i, f.sent)
        is_any_lost |= f.ret[i] == -ENOTCONN;
    fan_end(&f);
    if (!op->settles && is_any_lost)
        ec_torn_keep(w->h, w->first, w->count, w->plain, ret >= 0);
    if (ret < 0 || (size_t)ret != w->fragment_bytes) {
        stripes_drop(w->h, w->first, w->first + w->count - 1);
    } else {
        remember_ends(op, w);
    }
    if (ret < 0)
        return ret;
    uint64_t done = (uint64_t)ret / CODEC_CHUNK * d->stripe;
    return done <= w->head ? 0 : (int64_t)(done - w->head < w->size ? done - w->head : w->size);
}

/* Writes the range in whole stripes, under a hold that the caller has joined for it. The size does not
 * change. Returns as send_fragments(). */
static int64_t
write_range(struct ec_op *op, struct stripe_write *w)
{
    struct disperse *d = op->d;
    uint64_t end = w->offset + w->size;

    w->first = w->offset / d->stripe;
    w->count = (end + d->stripe - 1) / d->stripe - w->first;
    w->head = w->offset - w->first * d->stripe;
    w->tail = (w->first + w->count) * d->stripe - end;
    w->fragment_bytes = w->count * CODEC_CHUNK;
    w->plain = iobuf_get(w->count * d->stripe);
    w->fragments = iobuf_get(w->fragment_bytes * d->count);
    int64_t ret = w->plain && w->fragments ? fill_ends(op, w) : -ENOMEM;
    if (!ret) {
        copy_in(w);
        ret = send_fragments(op, w);
    }
    iobuf_unref(w->plain);
    iobuf_unref(w->fragments);
    return ret;
}

int
write_stripes_again(struct ec_op *op, struct ec_hold *h, uint64_t first, uint64_t count, struct iobuf *plain)
{
    struct disperse *d = op->d;
    struct stripe_write w = {.h = h,
                             .inode = op->inode,
                             .offset = first * d->stripe,
                             .size = count * d->stripe,
                             .is_internal = true,
                             .first = first,
                             .count = count,
                             .plain = plain,
                             .fragments = iobuf_get(count * CODEC_CHUNK * d->count),
                             .fragment_bytes = count * CODEC_CHUNK};
    int64_t ret = w.fragments ? send_fragments(op, &w) : -ENOMEM;

    iobuf_unref(w.fragments);
    return ret < 0 ? (int)ret : (uint64_t)ret < w.size ? -EIO : 0;
}

/* Writes zeros, as part of another change. */
static int
write_zeros(struct ec_op *op, struct ec_hold *h, uint64_t start, uint64_t end)
{
    struct stripe_write w = {
        .h = h, .inode = op->inode, .offset = start, .size = end - start, .is_internal = true};

    if (start >= end)
        return 0;
    int64_t ret = write_range(op, &w);
    return ret < 0 ? (int)ret : (uint64_t)ret < end - start ? -EIO : 0;
}

/* Returns whether a change that makes the file `end` bytes long, and writes from `start` on, would show bytes
 * behind the size that a dead client has left. `start` in another stripe than the size, or NO_WRITE. */
#define NO_WRITE UINT64_MAX

static bool
shows_rest(struct ec_hold *h, uint64_t start, uint64_t end)
{
    uint64_t size = ec_size(h), stripe = h->ei->d->stripe;

    return h->has_rest && size % stripe && end > size && start / stripe > size / stripe;
}

/* Makes these bytes zeros, under a hold joined for the whole file. Returns 0 or -errno. */
static int
clear_rest(struct ec_op *op, struct ec_hold *h, uint64_t start, uint64_t end)
{
    uint64_t size = ec_size(h), stripe = op->d->stripe;

    if (!shows_rest(h, start, end))
        return 0;
    int err = write_zeros(op, h, size, size / stripe * stripe + stripe);

    h->has_rest = err != 0;
    return err;
}

/* ---- WRITE ----------------------------------------------------------------------------------- */

static void
set_pre_and_post(struct ec_op *op, uint64_t before, uint64_t after)
{
    iatt_set_size(&op->stk->reply.pre, before);
    iatt_set_size(&op->stk->reply.post, after);
}

enum { WRITE_BYTES_MAX = 16 << 20 };

static bool
is_range_allowed(uint64_t offset, uint64_t size)
{
    return offset <= INT64_MAX && size <= INT64_MAX - offset;
}

static bool
ec_is_synchronous(const struct ec_op *op)
{
    return (op->stk->call.flags | (op->file ? op->file->flags : 0)) & (O_SYNC | O_DSYNC);
}

/* Joins the hold; for all of the file if the write would show bytes that a dead client has left, which then
 * are zeros, or is to be on the disks with a size that they may lack. Returns 0 or -errno. */
static int
join_for_write(struct ec_op *op, struct ec_user *u, bool appends)
{
    uint64_t start = op->stk->call.offset, end = start + op->stk->call.payload_bytes;
    int err = ec_join(op, op->inode, u, DATA_NEEDS);

    if (err || appends)
        return err;
    struct ec_hold *h = ec_hold_of(op->d, op->inode);
    if (!shows_rest(h, start, end) && !(ec_is_synchronous(op) && ec_is_size_unsure(h, end)))
        return 0;
    ec_leave(op, op->inode, u);
    *u = (struct ec_user){.end = UINT64_MAX};
    err = ec_join(op, op->inode, u, DATA_NEEDS);
    if (err)
        return err;
    err = clear_rest(op, ec_hold_of(op->d, op->inode), start, end);
    if (err)
        ec_leave(op, op->inode, u);
    return err;
}

static struct call_stack *
ec_sync_size_make(const struct ec_op *op, unsigned i, bool is_spare, const void *unused)
{
    (void)unused;
    return ec_fd_call(op, FOP_fsync, i, is_spare, op->inode, op->file);
}

/* Writes the size to the bricks' disks, for a write whose bytes are there, under a hold that the caller has
 * joined for all of the file. Returns 0 or -errno. */
static int
sync_size(struct ec_op *op, struct ec_hold *h)
{
    int ret, err = ec_hold_write_back(op, h);
    struct fan f;

    if (err || ec_ask(&f, op, ec_good(h), ec_sync_size_make, NULL))
        return err ? err : -ENOMEM;
    child_set good = answers_judge(op, &f, false, &ret);
    ec_record(op, op->inode, COUNTS_DATA, f.sent & ~f.unread, good, false);
    fan_end(&f);
    return ret < 0 ? ret : 0;
}

void
ec_writev_go(struct ec_op *op)
{
    const struct disperse_conf *conf = xlator_conf(op->d->xl);
    struct fop_call *call = &op->stk->call;
    uint64_t stripe = op->d->stripe, size = call->payload_bytes;
    bool appends = call->flags & O_APPEND || (op->file && op->file->flags & O_APPEND);
    struct ec_user u = {.end = UINT64_MAX};

    if (!size || size > WRITE_BYTES_MAX || !is_range_allowed(call->offset, size)) {
        ec_finish(op, size ? -EINVAL : 0);
        return;
    }
    if (!appends && conf->writes_in_parallel) {
        u.start = call->offset / stripe * stripe;
        u.end = (call->offset + size + stripe - 1) / stripe * stripe;
    }
    ec_fd_complete(op);
    int err = join_for_write(op, &u, appends);
    if (err) {
        ec_fail(op, err);
        return;
    }
    struct ec_hold *h = ec_hold_of(op->d, op->inode);
    uint64_t before = ec_size(h);
    bool is_sync = ec_is_synchronous(op);
    struct stripe_write w = {.h = h,
                             .inode = op->inode,
                             .offset = appends ? before : call->offset,
                             .size = size,
                             .iov = call->payload};
    int64_t ret = is_range_allowed(w.offset, size) ? write_range(op, &w) : -EFBIG;
    if (ret >= 0) {
        op->stk->reply.op_ret = (int32_t)ret;
        set_pre_and_post(op, before, ec_grow_size(h, ret ? w.offset + (uint64_t)ret : 0));
    }
    if (ret > 0 && is_sync && ec_is_size_unsure(h, w.offset + (uint64_t)ret))
        err = sync_size(op, h);
    ec_finish(op, ret < 0 ? (int)ret : err);
    ec_leave(op, op->inode, &u);
}

/* ---- TRUNCATE -------------------------------------------------------------------------------- */

struct size_change {
    enum fop fop;
    uint64_t offset, size; /* of the fragment */
    bool is_callers;       /* a copy of the caller's call */
};

static struct call_stack *
size_change_make(const struct ec_op *op, unsigned i, bool is_spare, const void *arg)
{
    const struct size_change *c = arg;
    struct call_stack *stk = c->is_callers ? ec_fork_held(op, i, is_spare, NULL)
                                           : ec_fd_call(op, c->fop, i, is_spare, op->inode, op->file);

    if (!stk)
        return NULL;
    stk->call.offset = c->offset;
    stk->call.size = c->size;
    return stk;
}

/* Sends one call to all good children, and judges. Returns 0 or -errno. */
static int
change_all(struct ec_op *op, struct ec_hold *h, const struct size_change *c)
{
    struct fan f;
    int ret;

    if (ec_ask(&f, op, ec_good(h), size_change_make, c))
        return -ENOMEM;
    child_set good = answers_judge_change(op, &f, false, &ret);
    int err = ret < 0 ? ret : c->is_callers ? answers_take(op, &f, good) : 0;
    ec_record(op, op->inode, COUNTS_DATA, f.sent & ~f.unread, good, ret >= 0);
    fan_end(&f);
    return err;
}

/* Cuts or extends the file under a hold that the caller has joined for all of it. */
static int
truncate_held(struct ec_op *op, struct ec_hold *h, uint64_t to, bool is_callers)
{
    struct disperse *d = op->d;
    uint64_t before = ec_size(h), stripe_end = (to + d->stripe - 1) / d->stripe * d->stripe;
    struct size_change c = {
        .fop = FOP_ftruncate, .offset = fragment_length(d, to), .is_callers = is_callers};
    int err = clear_rest(op, h, NO_WRITE, to);

    if (!err)
        err = change_all(op, h, &c);
    stripes_drop(h, to / d->stripe, UINT64_MAX);
    if (err)
        return err;
    if (to < before && to < stripe_end) {
        ec_set_size(h, stripe_end < before ? stripe_end : before); /* until the rest is zeros */
        err = write_zeros(op, h, to, stripe_end);
        stripes_drop(h, to / d->stripe, UINT64_MAX);
    }
    if (!err)
        ec_set_size(h, to);
    return err;
}

/* Writes a changed size to the bricks before the caller is answered: no FSYNC follows a truncate by name.
 * Of a WRITE the size is recorded by FLUSH and FSYNC. Returns 0 or -errno. */
static int
record_size(struct ec_op *op, struct ec_hold *h)
{
    return ec_has_new_size(h) ? ec_hold_write_back(op, h) : 0;
}

void
ec_truncate_go(struct ec_op *op)
{
    uint64_t to = op->stk->call.offset;
    struct ec_user u = {.end = UINT64_MAX};

    if (!is_range_allowed(to, op->d->stripe)) {
        ec_fail(op, -EFBIG);
        return;
    }
    ec_fd_complete(op);
    int err = ec_join(op, op->inode, &u, DATA_NEEDS);
    if (err) {
        ec_fail(op, err);
        return;
    }
    struct ec_hold *h = ec_hold_of(op->d, op->inode);
    uint64_t before = ec_size(h);
    err = truncate_held(op, h, to, true);
    if (!err)
        err = record_size(op, h);
    set_pre_and_post(op, before, to);
    ec_finish(op, err);
    ec_leave(op, op->inode, &u);
}

int
write_truncate_opened(struct ec_op *op)
{
    struct ec_user u = {.end = UINT64_MAX};
    int err = ec_join(op, op->inode, &u, DATA_NEEDS);

    if (err)
        return err;
    struct ec_hold *h = ec_hold_of(op->d, op->inode);
    err = truncate_held(op, h, 0, false);
    if (!err)
        err = record_size(op, h);
    ec_leave(op, op->inode, &u);
    return err;
}

/* ---- FALLOCATE, DISCARD ---------------------------------------------------------------------- */

/* Other modes (collapse, insert) are refused. */
void
ec_fallocate_go(struct ec_op *op)
{
    const struct fop_call *call = &op->stk->call;
    struct disperse *d = op->d;
    struct ec_user u = {.end = UINT64_MAX};
    uint64_t end = call->offset + call->size, first = call->offset / d->stripe;

    if (!call->size || !is_range_allowed(call->offset, call->size)) {
        ec_fail(op, call->size ? -EFBIG : -EINVAL);
        return;
    }
    if (call->flags & ~(uint32_t)FALLOCATE_KEEPS_SIZE) {
        ec_fail(op, -EOPNOTSUPP);
        return;
    }
    bool grows = !(call->flags & FALLOCATE_KEEPS_SIZE);
    struct size_change c = {.offset = first * CODEC_CHUNK, .is_callers = true};
    c.size = fragment_length(d, end) - c.offset;
    ec_fd_complete(op);
    int err = ec_join(op, op->inode, &u, DATA_NEEDS);
    if (err) {
        ec_fail(op, err);
        return;
    }
    struct ec_hold *h = ec_hold_of(d, op->inode);
    uint64_t before = ec_size(h);
    err = grows ? clear_rest(op, h, NO_WRITE, end) : 0;
    if (!err)
        err = change_all(op, h, &c);
    if (!err)
        set_pre_and_post(op, before, ec_grow_size(h, grows ? end : 0));
    if (!err)
        err = record_size(op, h);
    ec_finish(op, err);
    ec_leave(op, op->inode, &u);
}

/* Punches or zeroes [start, end): whole stripes by the caller's operation, parts of stripes by a write. */
static int
discard_held(struct ec_op *op, struct ec_hold *h, uint64_t start, uint64_t end)
{
    uint64_t stripe = op->d->stripe;
    uint64_t first = (start + stripe - 1) / stripe, last = end / stripe; /* whole stripes inside */

    if (first >= last)
        return write_zeros(op, h, start, end);
    struct size_change c = {
        .offset = first * CODEC_CHUNK, .size = (last - first) * CODEC_CHUNK, .is_callers = true};
    int err = write_zeros(op, h, start, first * stripe);
    if (!err)
        err = write_zeros(op, h, last * stripe, end);
    stripes_drop(h, first, last - 1);
    return err ? err : change_all(op, h, &c);
}

/* DISCARD, clipped to the file's end, because a fragment longer than the size says could not be healed; and
 * ZEROFILL, which may extend the file. */
void
ec_discard_go(struct ec_op *op)
{
    const struct fop_call *call = &op->stk->call;
    struct ec_user u = {.end = UINT64_MAX};
    uint64_t start = call->offset, end = start + call->size;

    if (!is_range_allowed(start, call->size)) {
        ec_fail(op, -EFBIG);
        return;
    }
    ec_fd_complete(op);
    int err = ec_join(op, op->inode, &u, DATA_NEEDS);
    if (err) {
        ec_fail(op, err);
        return;
    }
    struct ec_hold *h = ec_hold_of(op->d, op->inode);
    uint64_t size = ec_size(h);
    bool grows = op->fop == FOP_zerofill;
    end = !grows && end > size ? size : end;
    err = grows ? clear_rest(op, h, start, end) : 0;
    if (!err && start < end)
        err = discard_held(op, h, start, end);
    if (!err)
        set_pre_and_post(op, size, ec_grow_size(h, grows ? end : 0));
    if (!err)
        err = record_size(op, h);
    ec_finish(op, err);
    ec_leave(op, op->inode, &u);
}
