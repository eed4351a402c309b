/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Several fops in one record (rpc/xdr/sequence-program.h): one slot, one reply. */
#include <errno.h>
#include <string.h>

#include "rpc/client/rpc-client-internal.h"
#include "rpc/xdr/fop-codec.h"
#include "rpc/xdr/sequence-program.h"

/* ---- out ------------------------------------------------------------------------------------- */

/* A step on its way out, on the sender's stack. */
struct outgoing_step {
    struct sequence_step step;
    char cred[RPC_AUTH_BYTES_MAX];
};

static int
prepare_step(const struct outgoing *o, const struct rpc_step *from, struct outgoing_step *to)
{
    size_t bytes = fop_call_size(from->call->fop, from->call);
    int cred = cred_encode(o->cred_flavor, from->caller, to->cred, sizeof to->cred);

    if (cred < 0)
        return -EINVAL;
    if (bytes > SEQUENCE_BYTES_MAX || from->call->payload_bytes)
        return -EMSGSIZE;
    bool is_same = (uint32_t)cred == o->cred_bytes && memcmp(to->cred, o->cred, o->cred_bytes) == 0;

    to->step = (struct sequence_step){.fop = from->call->fop,
                                      .flags = from->always ? SEQUENCE_ALWAYS : 0,
                                      .fd_of = from->fd_of,
                                      .gfid_of = from->gfid_of,
                                      .cred = is_same ? NULL : to->cred,
                                      .cred_bytes = is_same ? 0 : (uint32_t)cred,
                                      .args_bytes = (uint32_t)bytes};
    return 0;
}

static int
prepare_steps(const struct outgoing *o, const struct rpc_step *steps, unsigned count,
              struct outgoing_step out[SEQUENCE_STEPS_MAX], size_t *bytes)
{
    int err = 0;

    *bytes = 4;
    for (unsigned i = 0; i < count && !err; i++) {
        err = prepare_step(o, &steps[i], &out[i]);
        *bytes += err ? 0 : sequence_step_size(out[i].step.cred_bytes, out[i].step.args_bytes);
    }
    return !err && *bytes > SEQUENCE_BYTES_MAX ? -EMSGSIZE : err;
}

static void
put_steps(struct xdr *x, const struct rpc_step *steps, unsigned count, const struct outgoing_step *out)
{
    xdr_put_u32(x, count);
    for (unsigned i = 0; i < count; i++) {
        struct xdr args;

        xdr_put_sequence_step(x, &out[i].step);
        xdr_init(&args, x->at, out[i].step.args_bytes, NULL);
        (void)fop_encode_call(steps[i].call->fop, &args, steps[i].call); /* fits: fop_call_size() */
        x->at += xdr_padded(out[i].step.args_bytes);                     /* fops are multiples of 4 */
    }
}

static void
count_steps(struct rpc_client *c, const struct rpc_step *steps, unsigned count, uint64_t by)
{
    for (unsigned i = 0; i < count; i++)
        atomic_fetch_add_explicit(&c->fops_sent[steps[i].call->fop], by, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->calls_joined, by * (count - 1), memory_order_relaxed);
}

int
rpc_client_sequence(struct rpc_client *c, const struct rpc_step *steps, unsigned count, unsigned timeout_s,
                    rpc_reply_fn cb, void *arg)
{
    struct outgoing_reply reply = {.cb = cb, .arg = arg, .timeout_s = timeout_s, .what = FOP_compound};
    struct outgoing_step out[SEQUENCE_STEPS_MAX];
    char small[RPC_SMALL_CALL_BYTES];
    struct iobuf *buf = NULL;
    struct outgoing o;
    struct xdr x;
    size_t bytes;
    int err;

    if (!count || count > SEQUENCE_STEPS_MAX)
        return -EMSGSIZE;
    err = outgoing_begin(&o, c, steps[0].caller, false);
    if (err)
        return err;
    err = prepare_steps(&o, steps, count, out, &bytes);
    if (err)
        return outgoing_cancel(&o, err);
    bytes += outgoing_head_bytes(&o);
    if (bytes > sizeof small && !(buf = iobuf_get(TRANSPORT_MARK_BYTES + bytes)))
        return outgoing_cancel(&o, -ENOMEM);
    xdr_init(&x, buf ? buf->bytes + TRANSPORT_MARK_BYTES : small, bytes, NULL);
    outgoing_put_head(&o, &x, SEQUENCE_PROGRAM, SEQUENCE_PROGRAM_VERSION, SEQUENCE_RUN);
    put_steps(&x, steps, count, out);
    /* counted before the calls may be answered; `steps` may be gone after the record is sent */
    count_steps(c, steps, count, 1);
    err = buf ? outgoing_send_iobuf(&o, &reply, buf, bytes)
              : outgoing_send(&o, &reply, small, bytes, NULL, NULL, 0);
    if (err)
        count_steps(c, steps, count, (uint64_t)-1);
    return err;
}

/* ---- replies --------------------------------------------------------------------------------- */

static void
set_not_run(struct fop_reply *out)
{
    memset(out, 0, sizeof *out);
    out->op_ret = -1;
    out->op_errno = ECANCELED;
    out->shortage = SHORTAGE_UNSENT;
}

/* Separate pieces are joined on the last call's arena. Returns 0 or -errno. */
static int
split_results(struct rpc_reply *r, const struct rpc_step_reply *replies, unsigned count,
              struct sequence_result *out)
{
    struct xdr *x = &r->results;

    if (r->err)
        return r->err;
    x->arena = replies[count - 1].arena;
    if (x->more_count)
        xdr_pull(x, xdr_left_total(x));
    xdr_get_sequence_results(x, out, count);
    return x->error;
}

void
rpc_reply_sequence(struct rpc_reply *r, const struct rpc_step_reply *replies, unsigned count)
{
    struct sequence_result results[SEQUENCE_STEPS_MAX];
    struct rpc_reply part = *r;
    int err = split_results(r, replies, count, results);

    if (err == -EBADMSG) {
        rpc_reply_is_garbage(r, "a sequence of calls");
        err = -ENOTCONN;
    }
    part.err = err;
    for (unsigned i = 0; i < count; i++) {
        if (!err && !results[i].size) {
            set_not_run(replies[i].out);
            continue;
        }
        if (!err)
            xdr_init(&part.results, results[i].bytes, results[i].size, NULL);
        rpc_reply_fop(&part, replies[i].fop, replies[i].out, replies[i].arena);
    }
}
