/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/xdr/sequence-program.h"

#include "rpc/xdr/rpc-message.h"
#include "stack/fop.h"

void
xdr_put_sequence_step(struct xdr *x, const struct sequence_step *s)
{
    xdr_put_u32(x, s->fop);
    xdr_put_u32(x, s->flags);
    xdr_put_u32(x, s->fd_of);
    xdr_put_u32(x, s->gfid_of);
    xdr_put_opaque(x, s->cred, s->cred ? s->cred_bytes : 0);
    xdr_put_u32(x, s->args_bytes);
}

static bool
is_step_valid(const struct sequence_step *s, unsigned before)
{
    return s->fop != FOP_null && s->fop < FOP_COUNT && !(s->flags & ~SEQUENCE_ALWAYS) &&
           s->fd_of <= before && s->gfid_of <= before;
}

static void
xdr_get_sequence_step(struct xdr *x, struct sequence_step *s, unsigned before)
{
    s->fop = xdr_get_u32(x);
    s->flags = xdr_get_u32(x);
    s->fd_of = xdr_get_u32(x);
    s->gfid_of = xdr_get_u32(x);
    s->cred = (char *)xdr_get_opaque(x, RPC_AUTH_BYTES_MAX, &s->cred_bytes);
    s->args = (char *)xdr_get_opaque(x, SEQUENCE_BYTES_MAX, &s->args_bytes);
    if (!x->error && !is_step_valid(s, before))
        xdr_fail(x, -EBADMSG);
    if (!s->cred_bytes)
        s->cred = NULL;
}

unsigned
xdr_get_sequence(struct xdr *x, struct sequence_step out[SEQUENCE_STEPS_MAX])
{
    uint32_t count = xdr_get_u32(x);

    if (!count || count > SEQUENCE_STEPS_MAX || xdr_left(x) > SEQUENCE_BYTES_MAX)
        xdr_fail(x, -EBADMSG);
    for (unsigned i = 0; i < count && !x->error; i++)
        xdr_get_sequence_step(x, &out[i], i);
    if (xdr_left(x))
        xdr_fail(x, -EBADMSG);
    return x->error ? 0 : count;
}

size_t
xdr_sequence_results_size(const struct sequence_result *r, unsigned count)
{
    size_t n = 4;

    for (unsigned i = 0; i < count; i++)
        n += xdr_opaque_size(r[i].size);
    return n;
}

void
xdr_put_sequence_results(struct xdr *x, const struct sequence_result *r, unsigned count)
{
    xdr_put_u32(x, count);
    for (unsigned i = 0; i < count; i++)
        xdr_put_opaque(x, r[i].bytes, r[i].size);
}

void
xdr_get_sequence_results(struct xdr *x, struct sequence_result *out, unsigned count)
{
    if (xdr_get_u32(x) != count)
        xdr_fail(x, -EBADMSG);
    for (unsigned i = 0; i < count; i++)
        out[i].bytes = (char *)xdr_get_opaque(x, SEQUENCE_BYTES_MAX, &out[i].size);
    if (xdr_left(x))
        xdr_fail(x, -EBADMSG);
}
