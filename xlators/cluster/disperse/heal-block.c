/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A range of stripes of a data heal.
 *
 *      READ        from all sources: more than K fragments show whether they belong together
 *      decode      the first K, encode again, compare with the others
 *      mend        a stripe whose fragments do not belong together is one that a client died in, while it
 *                  wrote: old on some children, new on others. Of all choices of K fragments the one that
 *                  agrees with most others gives the contents. If only K agree, the choice is arbitrary:
 *                  bytes that no caller has seen written, and bytes beside them in the stripe, are lost
 *      clear       bytes behind the end of the file, in its last stripe: a client died after an extending
 *                  write, before it recorded the size
 *      WRITE       to the sinks, and to sources that did not agree
 *
 * A healer that dies between the writes leaves the state that it found: a stripe that does not belong
 * together, of a file with a dirty mark. */
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/disperse/heal-data.h"

enum { CHOICES_MAX = 5000 }; /* of K fragments; 8+3 has 165 */

/* Fragments of all children side by side, `bytes` each. */
struct ec_block {
    struct ec_heal *h;
    child_set has; /* children whose fragments were read */
    uint64_t first;
    size_t count, bytes;
    struct iobuf *plain, *read, *fragments; /* decoded; as read; encoded from `plain` */
    struct iobuf *stripe;                   /* one stripe, encoded for all children */
};

static unsigned char *
block_bytes(struct iobuf *buf)
{
    return (unsigned char *)buf->bytes;
}

static int
block_begin(struct ec_block *b, struct ec_heal *h, uint64_t first, size_t count)
{
    const struct disperse *d = h->op.d;

    *b = (struct ec_block){.h = h, .first = first, .count = count, .bytes = count * CODEC_CHUNK};
    b->plain = iobuf_get(count * d->stripe);
    b->read = iobuf_get(b->bytes * d->count);
    b->fragments = iobuf_get(b->bytes * d->count);
    b->stripe = iobuf_get((size_t)d->count * CODEC_CHUNK);
    return b->plain && b->read && b->fragments && b->stripe ? 0 : -ENOMEM;
}

static void
block_end(struct ec_block *b)
{
    iobuf_unref(b->plain);
    iobuf_unref(b->read);
    iobuf_unref(b->fragments);
    iobuf_unref(b->stripe);
}

/* ---- reading --------------------------------------------------------------------------------- */

static struct call_stack *
block_read_make(const struct ec_op *op, unsigned i, bool is_spare, const void *arg)
{
    const struct ec_block *b = arg;
    struct call_stack *stk = ec_fd_call(op, FOP_readv, i, is_spare, op->inode, NULL);

    if (!stk)
        return NULL;
    stk->call.offset = b->first * CODEC_CHUNK;
    stk->call.size = b->bytes;
    if (call_xdata(stk) && !dict_set_str(stk->call.xdata, DICT_KEY_INTERNAL_FOP, "yes"))
        return stk;
    call_stack_free(stk);
    return NULL;
}

/* Reads the fragments; bytes behind a fragment's end are zeros. */
static int
block_read(struct ec_block *b, child_set from)
{
    struct fan f;
    int err = ec_ask(&f, &b->h->op, from, block_read_make, b);

    if (err)
        return err;
    for_each_child (i, f.good) {
        unsigned char *to = block_bytes(b->read) + i * b->bytes;
        size_t len = (size_t)f.ret[i];

        if (f.ret[i] % CODEC_CHUNK || len > b->bytes)
            continue; /* the answer of no fragment */
        memcpy(to, f.stk[i]->reply.payload.iov_base, len);
        memset(to + len, 0, b->bytes - len);
        b->has |= CHILD(i);
    }
    err = fan_is_short(&f) ? -ENOMEM : 0;
    fan_end(&f);
    return err ? err : children_count(b->has) < b->h->op.d->data ? -EIO : 0;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* Decodes `count` stripes from stripe `at` of the block on, from the K children `from`, and encodes them for
 * all children of the block and `also`. */
static void
block_decode(struct ec_block *b, child_set from, child_set also, size_t at, size_t count,
             unsigned char *coded)
{
    const struct disperse *d = b->h->op.d;
    const unsigned char *in[CODEC_DATA_MAX];
    unsigned index[CODEC_DATA_MAX], n = 0;
    struct codec_plan plan;

    for_each_child (i, from) {
        in[n] = block_bytes(b->read) + i * b->bytes + at * CODEC_CHUNK;
        index[n++] = i;
    }
    codec_plan_make(&plan, d->data, index);
    codec_decode(&plan, in, count, block_bytes(b->plain) + at * d->stripe);
    codec_encode(d->data, b->has | also, block_bytes(b->plain) + at * d->stripe, count, coded);
}

/* Returns the children whose fragments of stripe `at` are those of the coded stripe. */
static child_set
block_agreeing(const struct ec_block *b, size_t at, const unsigned char *coded, size_t coded_bytes)
{
    child_set same = 0;

    for_each_child (i, b->has) {
        const unsigned char *got = block_bytes(b->read) + i * b->bytes + at * CODEC_CHUNK;

        same |= memcmp(got, coded + i * coded_bytes, CODEC_CHUNK) == 0 ? CHILD(i) : 0;
    }
    return same;
}

static child_set
block_first_children(child_set of, unsigned count)
{
    child_set first = 0;

    for_each_child (i, of) {
        if (count) {
            first |= CHILD(i);
            count--;
        }
    }
    return first;
}

/* Returns the next set of equally many children in the order of sets as numbers. */
static child_set
block_next_choice(child_set c)
{
    child_set low = c & -c, ripple = c + low;

    return ripple ? ripple | (((c ^ ripple) / low) >> 2) : 0;
}

/* Mends one stripe: leaves its contents in `plain`, and returns the children that do not agree. */
static child_set
block_mend(struct ec_block *b, size_t at)
{
    struct disperse *d = b->h->op.d;
    unsigned char *coded = block_bytes(b->stripe);
    child_set best_from = block_first_children(b->has, d->data), best = 0;
    child_set c = CHILD(d->data) - 1;

    for (unsigned tried = 0; c && c <= d->all && tried < CHOICES_MAX; c = block_next_choice(c)) {
        if (c & ~b->has)
            continue;
        tried++;
        block_decode(b, c, 0, at, 1, coded);
        child_set same = block_agreeing(b, at, coded, CODEC_CHUNK);
        if (children_count(same) > children_count(best)) {
            best = same;
            best_from = c;
        }
    }
    block_decode(b, best_from, 0, at, 1, coded);
    best = block_agreeing(b, at, coded, CODEC_CHUNK);
    log_event(children_count(best) > d->data ? LOG_INFO : LOG_WARNING, d->xl, "disperse-stripe-mended",
              "%s: a client died while it wrote stripe %llu: its fragments on %u of %u bricks agree%s",
              GFID(&b->h->op.inode->gfid), (unsigned long long)(b->first + at), children_count(best),
              children_count(b->has), children_count(best) > d->data ? "" : ", which decides nothing");
    return b->has & ~best;
}

/* Decodes the whole block into `plain`. Returns the children that have other fragments in any stripe. */
static child_set
block_compare(struct ec_block *b, child_set also, bool mends)
{
    struct disperse *d = b->h->op.d;
    child_set odd = 0;

    block_decode(b, block_first_children(b->has, d->data), also, 0, b->count, block_bytes(b->fragments));
    for (size_t at = 0; at < b->count; at++) {
        child_set same = block_agreeing(b, at, block_bytes(b->fragments) + at * CODEC_CHUNK, b->bytes);

        if (same != b->has)
            odd |= mends ? block_mend(b, at) : b->has & ~same;
    }
    if (odd && mends)
        codec_encode(d->data, odd | also, block_bytes(b->plain), b->count, block_bytes(b->fragments));
    return odd;
}

int
ec_block_belongs(struct ec_heal *h, child_set of, uint64_t first, size_t count, bool *is)
{
    struct ec_block b;
    int err = block_begin(&b, h, first, count);

    if (!err)
        err = block_read(&b, of);
    *is = !err && b.has == of && !block_compare(&b, 0, false);
    block_end(&b);
    return err;
}

/* ---- writing --------------------------------------------------------------------------------- */

static struct call_stack *
block_write_make(const struct ec_op *op, unsigned i, bool is_spare, const void *arg)
{
    const struct ec_block *b = arg;
    struct call_stack *stk = ec_fd_call(op, FOP_writev, i, is_spare, op->inode, NULL);

    if (!stk)
        return NULL;
    stk->call.payload_iobuf = iobuf_ref(b->fragments);
    stk->call.payload[0] = (struct iovec){b->fragments->bytes + i * b->bytes, b->bytes};
    stk->call.payload_count = 1;
    stk->call.payload_bytes = stk->call.size = b->bytes;
    stk->call.offset = b->first * CODEC_CHUNK;
    return stk;
}

static int
block_write(struct ec_data_heal *x, struct ec_block *b, child_set to)
{
    struct fan f;
    int err = ec_ask(&f, &x->h->op, to, block_write_make, b);

    if (err)
        return err;
    for_each_child (i, f.sent) {
        bool is_done = f.ret[i] >= 0 && (size_t)f.ret[i] == b->bytes;

        x->sinks &= is_done ? x->sinks : ~CHILD(i);
        if (!is_done && x->sources & CHILD(i))
            err = f.ret[i] < 0 ? f.ret[i] : -EIO;
    }
    fan_end(&f);
    return err;
}

int
ec_heal_block(struct ec_data_heal *x, uint64_t first, size_t count)
{
    struct ec_block b;
    int err = block_begin(&b, x->h, first, count);

    if (!err)
        err = block_read(&b, x->sources);
    child_set odd = err ? 0 : block_compare(&b, x->sinks, true);
    if (!err && (odd | x->sinks))
        err = block_write(x, &b, odd | x->sinks);
    block_end(&b);
    return err;
}

/* ---- the end of the file --------------------------------------------------------------------- */

/* Makes the bytes of a block of one stripe from `from` on zeros. Returns the children whose fragments change:
 * all or none. */
static child_set
block_clear(struct ec_block *b, child_set also, size_t from)
{
    const struct disperse *d = b->h->op.d;
    unsigned char *plain = block_bytes(b->plain);
    bool is_clear = true;

    for (size_t i = from; i < d->stripe; i++)
        is_clear &= !plain[i];
    if (is_clear)
        return 0;
    memset(plain + from, 0, d->stripe - from);
    codec_encode(d->data, b->has | also, plain, 1, block_bytes(b->fragments));
    return b->has;
}

int
ec_heal_last_stripe(struct ec_data_heal *x)
{
    uint64_t stripe = x->h->op.d->stripe;
    struct ec_block b;

    if (x->size % stripe == 0)
        return 0;
    int err = block_begin(&b, x->h, x->size / stripe, 1);
    if (!err)
        err = block_read(&b, x->sources);
    child_set odd = err ? 0 : block_compare(&b, x->sinks, true);
    if (!err)
        odd |= block_clear(&b, x->sinks, x->size % stripe);
    if (!err && odd)
        err = block_write(x, &b, odd | x->sinks);
    block_end(&b);
    return err;
}
