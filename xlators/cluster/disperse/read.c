/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* READ and SEEK.
 *
 *      join the hold       version and size are known, and no change of these stripes is under way
 *      ask K children      from the child that the gfid chooses on, so that all clients spread files alike,
 *                          without slow ones (read-times.h); for a child that fails, or returns another
 *                          length, the next good one. With ec-read-mask, children of the mask; others only
 *                          where the mask has too few good children for K fragments (a stock mount answers
 *                          EIO then). The mask is for READs, also those of a write that covers a part of a
 *                          stripe, and for nothing else, as in stock
 *      decode              the K fragments, of any indexes, give the stripes
 *      cut                 to the request and to the file's size
 *
 * While fewer than K children are good for the file the answer is EIO. A child that is behind is never
 * asked. */
#include <errno.h>
#include <string.h>

#include "xlators/cluster/disperse/disperse-internal.h"

/* ---- decoding plans -------------------------------------------------------------------------- */

static void
plan_of(struct disperse *d, child_set from, struct codec_plan *out)
{
    unsigned index[CODEC_DATA_MAX], n = 0;

    pthread_mutex_lock(&d->lock);
    for (unsigned i = 0; i < PLANS_KEPT; i++) {
        if (d->plans[i].from == from) {
            *out = d->plans[i].plan;
            pthread_mutex_unlock(&d->lock);
            return;
        }
    }
    pthread_mutex_unlock(&d->lock);
    for_each_child (i, from)
        index[n++] = i;
    codec_plan_make(out, d->data, index);
    pthread_mutex_lock(&d->lock);
    d->plans[d->next_plan].from = from;
    d->plans[d->next_plan].plan = *out;
    d->next_plan = (d->next_plan + 1) % PLANS_KEPT;
    pthread_mutex_unlock(&d->lock);
}

/* ---- asking ---------------------------------------------------------------------------------- */

unsigned
read_first_child(struct disperse *d, const struct inode *inode)
{
    const struct disperse_conf *conf = xlator_conf(d->xl);

    if (conf->read_policy == READ_BY_TURNS)
        return atomic_fetch_add(&d->turn, 1) % d->count;
    return gfid_super_fast_hash(&inode->gfid) % d->count;
}

/* Returns `wanted` children of `from`, or fewer, from `first` on. */
static child_set
choose_children(const struct disperse *d, child_set from, unsigned first, unsigned wanted)
{
    child_set chosen = 0;

    for (unsigned n = 0; n < d->count && wanted; n++) {
        child_set next = CHILD((first + n) % d->count) & from;

        chosen |= next;
        wanted -= next ? 1 : 0;
    }
    return chosen;
}

/* The same for READs: other children than those of ec-read-mask are chosen only if these are too few. Sets
 * *spare to the children that may stand in for slow ones. */
static child_set
choose_readers(struct disperse *d, child_set left, unsigned first, unsigned wanted, child_set *spare)
{
    child_set masked = left & atomic_load(&d->read_mask);
    child_set chosen = choose_children(d, masked, first, wanted);

    if (children_count(chosen) < wanted && left & ~masked) {
        chosen |= choose_children(d, left & ~masked, first, wanted - children_count(chosen));
        atomic_fetch_add(&d->reads_beside_mask, 1);
        masked = left;
    }
    *spare = masked & ~chosen;
    return chosen;
}

struct fragment_read {
    struct inode *inode;
    uint64_t offset, size; /* of the fragment */
    bool is_internal;
};

static xl_verdict
fragment_answered(struct frame *f, struct call_stack *stk)
{
    struct disperse *d = f->xl->private;

    read_time_end(&d->read_times[f->local.u64[0]], f->local.u64[1], clock_mono_ns(), stk->reply.op_ret < 0);
    return XL_PASS;
}

static void
fragment_wind(struct fan *f, struct disperse *d, unsigned i, struct call_stack *stk, uint64_t now_ns)
{
    struct frame *frame = stk ? frame_push(stk, d->xl, fragment_answered) : NULL;

    if (frame) {
        frame->local.u64[0] = i;
        frame->local.u64[1] = now_ns;
        read_time_begin(&d->read_times[i], now_ns);
    }
    fan_wind_to(f, d->xl, i, stk);
}

static struct call_stack *
fragment_read_make(const struct ec_op *op, unsigned i, const struct fragment_read *r)
{
    struct call_stack *stk = r->is_internal ? ec_fd_call(op, FOP_readv, i, false, r->inode, NULL)
                                            : ec_fork(op, i, false, NULL);

    if (!stk)
        return NULL;
    stk->call.offset = r->offset;
    stk->call.size = r->size;
    if (!r->is_internal)
        return stk;
    stk->caller.uid = stk->caller.gid = 0;
    if (call_xdata(stk) && !dict_set_str(stk->call.xdata, DICT_KEY_INTERNAL_FOP, "yes"))
        return stk;
    call_stack_free(stk);
    return NULL;
}

/* Returns the largest set of children that returned the same length, in whole chunks. */
static child_set
equal_lengths(const struct fan *f)
{
    child_set best = 0;

    for_each_child (i, f->good) {
        child_set same = 0;

        if (f->ret[i] % CODEC_CHUNK)
            continue;
        for_each_child (k, f->good)
            same |= f->ret[k] == f->ret[i] ? CHILD(k) : 0;
        if (children_count(same) > children_count(best))
            best = same;
    }
    return best;
}

/* Asks for fragments until K children have returned the same length. Sets *out to K children. The caller
 * calls fan_end() in any case. */
static int
ask_for_fragments(struct ec_op *op, struct fan *f, const struct fragment_read *r, child_set from,
                  child_set *out)
{
    struct disperse *d = op->d;
    unsigned first = read_first_child(d, r->inode);
    child_set same = 0;

    fan_begin(f);
    for (;;) {
        child_set left = from & ~f->sent, spare;
        child_set next = choose_readers(d, left, first, d->data - children_count(same), &spare);
        uint64_t now_ns = clock_mono_ns();

        next = read_times_replace_slow(d->read_times, next, spare, now_ns, &d->explored_ns);
        for_each_child (i, next)
            fragment_wind(f, d, i, fragment_read_make(op, i, r), now_ns);
        fan_wait(f);
        if (fan_is_short(f))
            return -ENOMEM;
        same = equal_lengths(f);
        if (children_count(same) >= d->data)
            break;
        if (!(from & ~f->sent))
            return answers_too_few(op, f);
        fan_again(f);
    }
    *out = choose_children(d, same, first, d->data);
    return 0;
}

static void
decode_fragments(struct disperse *d, const struct fan *f, child_set from, size_t count, unsigned char *out)
{
    const unsigned char *in[CODEC_DATA_MAX];
    struct codec_plan plan;
    unsigned n = 0;
    size_t stripes = (size_t)f->ret[child_first(from)] / CODEC_CHUNK;

    if (stripes > count)
        stripes = count;
    for_each_child (i, from)
        in[n++] = f->stk[i]->reply.payload.iov_base;
    if (stripes) {
        plan_of(d, from, &plan);
        codec_decode(&plan, in, stripes, out);
    }
    memset(out + stripes * d->stripe, 0, (count - stripes) * d->stripe);
}

/* Reads and decodes, and keeps the replies in *f, for fan_end(). */
static int
read_and_decode(struct ec_op *op, struct fan *f, const struct fragment_read *r, child_set from,
                unsigned char *out, child_set *used, child_set *failed)
{
    int err = ask_for_fragments(op, f, r, from, used);

    if (err != -ENOMEM)
        *failed |= f->sent & ~equal_lengths(f);
    if (!err)
        decode_fragments(op->d, f, *used, r->size / CODEC_CHUNK, out);
    return err;
}

int
read_stripes(struct ec_op *op, struct inode *inode, child_set from, uint64_t first, size_t count,
             bool is_internal, unsigned char *out, child_set *failed)
{
    struct fragment_read r = {.inode = inode,
                              .offset = first * CODEC_CHUNK,
                              .size = count * CODEC_CHUNK,
                              .is_internal = is_internal};
    child_set used = 0;
    struct fan f;
    int err = read_and_decode(op, &f, &r, from, out, &used, failed);

    fan_end(&f);
    return err;
}

/* ---- READ ------------------------------------------------------------------------------------ */

/* Reads [start, end), a part of the file, into the caller's reply. */
static int
read_to_reply(struct ec_op *op, struct ec_hold *h, uint64_t start, uint64_t end)
{
    struct disperse *d = op->d;
    struct fop_reply *reply = &op->stk->reply;
    uint64_t first = start / d->stripe, count = (end + d->stripe - 1) / d->stripe - first;
    struct fragment_read r = {
        .inode = op->inode, .offset = first * CODEC_CHUNK, .size = count * CODEC_CHUNK};
    struct iobuf *buf = iobuf_get(count * d->stripe);
    child_set used = 0, failed = 0;
    struct fan f;

    if (!buf)
        return -ENOMEM;
    int err = read_and_decode(op, &f, &r, ec_good(h), (unsigned char *)buf->bytes, &used, &failed);
    ec_blame(h, failed);
    if (!err)
        answers_join_iatt(d, &f, used, offsetof(struct fop_reply, stat), &reply->stat);
    fan_end(&f);
    if (err) {
        iobuf_unref(buf);
        return err;
    }
    reply->iobuf = buf;
    reply->payload = (struct iovec){buf->bytes + (start - first * d->stripe), end - start};
    reply->op_ret = (int32_t)(end - start);
    return 0;
}

enum { READ_BYTES_MAX = 16 << 20 };

void
ec_readv_go(struct ec_op *op)
{
    const struct fop_call *call = &op->stk->call;
    struct disperse *d = op->d;
    uint64_t start = call->offset, end = start + call->size;
    struct ec_user u = {.is_shared = true};

    if (end < start || call->size > READ_BYTES_MAX) {
        ec_fail(op, -EINVAL);
        return;
    }
    u.start = start / d->stripe * d->stripe;
    u.end = (end + d->stripe - 1) / d->stripe * d->stripe;
    int err = ec_join(op, op->inode, &u, NEEDS_INFO);
    if (err) {
        ec_fail(op, err);
        return;
    }
    struct ec_hold *h = ec_hold_of(d, op->inode);
    uint64_t size = ec_size(h);
    op->stk->reply.op_errno = end >= size ? ENOENT : 0; /* the file's end */
    end = end < size ? end : size;
    if (start < end)
        err = read_to_reply(op, h, start, end);
    iatt_set_size(&op->stk->reply.stat, size);
    ec_finish(op, err);
    ec_leave(op, op->inode, &u);
}

/* ---- SEEK ------------------------------------------------------------------------------------ */

/* A hole of the file is a hole in all fragments, because zeros decode from zeros. */
void
ec_seek_go(struct ec_op *op)
{
    struct disperse *d = op->d;
    uint64_t offset = op->stk->call.offset;
    struct ec_user u = {.end = UINT64_MAX, .is_shared = true};
    int err = ec_join(op, op->inode, &u, NEEDS_INFO);

    if (err) {
        ec_fail(op, err);
        return;
    }
    struct ec_hold *h = ec_hold_of(d, op->inode);
    uint64_t size = ec_size(h);
    child_set left = ec_good(h);
    err = offset >= size ? -ENXIO : -EIO;
    while (offset < size && left && (err == -EIO || err == -ENOTCONN)) {
        unsigned i = child_first(choose_children(d, left, read_first_child(d, op->inode), 1));

        op->stk->call.offset = offset / d->stripe * CODEC_CHUNK;
        err = ec_call_child(op, i);
        left &= ~CHILD(i);
    }
    if (err == -ENXIO && offset < size) { /* the fragment's end: a hole to the file's end */
        err = op->stk->call.cmd == 0 ? -ENXIO : 0;
        op->stk->reply.op_ret = 0;
        op->stk->reply.offset = size;
    } else if (err >= 0) {
        uint64_t at = op->stk->reply.offset / CODEC_CHUNK * d->stripe;

        op->stk->reply.offset = at < offset ? offset : at > size ? size : at;
    }
    ec_finish(op, err);
    ec_leave(op, op->inode, &u);
}
