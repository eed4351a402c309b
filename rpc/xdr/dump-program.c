/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/xdr/dump-program.h"

void
xdr_put_dump_call(struct xdr *x)
{
    xdr_put_u64(x, DUMP_GFS_ID);
}

void
xdr_get_dump_call(struct xdr *x)
{
    (void)xdr_get_u64(x);
}

void
xdr_put_dump_reply(struct xdr *x, const struct dump_reply *r)
{
    xdr_put_u64(x, 0);
    xdr_put_i32(x, r->op_ret);
    xdr_put_i32(x, r->op_errno);
    for (const struct dump_entry *e = r->programs; e; e = e->next) {
        xdr_put_u32(x, 1);
        xdr_put_string(x, e->name);
        xdr_put_u64(x, e->number);
        xdr_put_u64(x, e->version);
    }
    xdr_put_u32(x, 0);
}

void
xdr_get_dump_reply(struct xdr *x, struct dump_reply *out)
{
    struct dump_entry **last = &out->programs;

    *out = (struct dump_reply){0};
    (void)xdr_get_u64(x);
    out->op_ret = xdr_get_i32(x);
    out->op_errno = xdr_get_i32(x);
    while (xdr_get_bool(x)) {
        struct dump_entry *e = arena_zalloc(x->arena, sizeof *e);

        if (!e) {
            xdr_fail(x, -ENOMEM);
            return;
        }
        xdr_get_string(x, &e->name, DUMP_NAME_MAX, -EBADMSG);
        e->number = xdr_get_u64(x);
        e->version = xdr_get_u64(x);
        if (x->error)
            return;
        *last = e;
        last = &e->next;
    }
}
