/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/xdr/handshake-program.h"

void
xdr_put_common_reply(struct xdr *x, const struct common_reply *r)
{
    xdr_put_i32(x, r->op_ret);
    xdr_put_i32(x, r->op_errno);
    xdr_put_old_dict(x, r->dict);
}

void
xdr_get_common_reply(struct xdr *x, struct common_reply *out)
{
    out->op_ret = xdr_get_i32(x);
    out->op_errno = xdr_get_i32(x);
    out->dict = xdr_get_old_dict(x);
}

void
xdr_put_getspec_call(struct xdr *x, const struct getspec_call *c)
{
    xdr_put_u32(x, c->flags);
    xdr_put_string(x, c->key);
    xdr_put_old_dict(x, c->xdata);
}

void
xdr_get_getspec_call(struct xdr *x, struct getspec_call *out)
{
    out->flags = xdr_get_u32(x);
    xdr_get_string(x, &out->key, HANDSHAKE_TEXT_MAX, -EBADMSG);
    out->xdata = xdr_get_old_dict(x);
}

void
xdr_put_getspec_reply(struct xdr *x, const struct getspec_reply *r)
{
    xdr_put_i32(x, r->op_ret);
    xdr_put_i32(x, r->op_errno);
    xdr_put_string(x, r->spec);
    xdr_put_old_dict(x, r->xdata);
}

void
xdr_get_getspec_reply(struct xdr *x, struct getspec_reply *out)
{
    out->op_ret = xdr_get_i32(x);
    out->op_errno = xdr_get_i32(x);
    xdr_get_string(x, &out->spec, GETSPEC_TEXT_MAX, -EBADMSG);
    out->xdata = xdr_get_old_dict(x);
}

void
xdr_put_volume_info_reply(struct xdr *x, const struct volume_info_reply *r)
{
    xdr_put_i32(x, r->op_ret);
    xdr_put_i32(x, r->op_errno);
    xdr_put_string(x, r->op_errstr);
    xdr_put_old_dict(x, r->dict);
}

void
xdr_get_set_lk_ver_call(struct xdr *x, struct set_lk_ver *out)
{
    xdr_get_string(x, &out->uid, HANDSHAKE_TEXT_MAX, -EBADMSG);
    out->version = xdr_get_i32(x);
}

void
xdr_put_set_lk_ver_reply(struct xdr *x, int32_t version)
{
    xdr_put_i32(x, 0);
    xdr_put_i32(x, 0);
    xdr_put_i32(x, version);
}
