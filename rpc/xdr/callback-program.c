/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/xdr/callback-program.h"

void
xdr_put_cache_invalidation(struct xdr *x, const struct cache_invalidation *c)
{
    char text[GFID_TEXT_SIZE];

    xdr_put_string(x, gfid_text(&c->gfid, text));
    xdr_put_u32(x, c->event_type);
    xdr_put_u32(x, c->flags);
    xdr_put_u32(x, c->expire_seconds);
    xdr_put_old_iatt(x, &c->stat);
    xdr_put_old_iatt(x, &c->parent);
    xdr_put_old_iatt(x, &c->old_parent);
    xdr_put_old_dict(x, c->xdata);
}

void
xdr_get_cache_invalidation(struct xdr *x, struct cache_invalidation *out)
{
    uint32_t len;
    const char *text = xdr_get_opaque(x, GFID_TEXT_SIZE - 1, &len);

    if (text && gfid_parse(text, len, &out->gfid) != 0)
        xdr_fail(x, -EBADMSG);
    out->event_type = xdr_get_u32(x);
    out->flags = xdr_get_u32(x);
    out->expire_seconds = xdr_get_u32(x);
    xdr_get_old_iatt(x, &out->stat);
    xdr_get_old_iatt(x, &out->parent);
    xdr_get_old_iatt(x, &out->old_parent);
    out->xdata = xdr_get_old_dict(x);
}

void
xdr_put_inodelk_contention(struct xdr *x, const struct inodelk_contention *c)
{
    xdr_put_gfid(x, &c->gfid);
    xdr_put_flock(x, &c->flock);
    xdr_put_u32(x, c->pid);
    xdr_put_string(x, c->domain);
    xdr_put_old_dict(x, c->xdata);
}

void
xdr_get_inodelk_contention(struct xdr *x, struct inodelk_contention *out)
{
    xdr_get_gfid(x, &out->gfid);
    xdr_get_flock(x, &out->flock);
    out->pid = xdr_get_u32(x);
    xdr_get_string(x, &out->domain, FOP_LOCK_DOMAIN_MAX, -EBADMSG);
    out->xdata = xdr_get_old_dict(x);
}

size_t
xdr_inodelk_contention_size(const struct inodelk_contention *c)
{
    return GFID_BYTES + xdr_flock_size(&c->flock) + 4 + xdr_string_size(c->domain) +
           xdr_old_dict_size(c->xdata);
}

void
xdr_put_entrylk_contention(struct xdr *x, const struct entrylk_contention *c)
{
    xdr_put_gfid(x, &c->gfid);
    xdr_put_u32(x, c->type);
    xdr_put_u32(x, c->pid);
    xdr_put_string(x, c->name);
    xdr_put_string(x, c->domain);
    xdr_put_old_dict(x, c->xdata);
}

void
xdr_get_entrylk_contention(struct xdr *x, struct entrylk_contention *out)
{
    xdr_get_gfid(x, &out->gfid);
    out->type = xdr_get_u32(x);
    out->pid = xdr_get_u32(x);
    xdr_get_string(x, &out->name, FOP_NAME_MAX, -EBADMSG);
    xdr_get_string(x, &out->domain, FOP_LOCK_DOMAIN_MAX, -EBADMSG);
    out->xdata = xdr_get_old_dict(x);
}

size_t
xdr_entrylk_contention_size(const struct entrylk_contention *c)
{
    return GFID_BYTES + 8 + xdr_string_size(c->name) + xdr_string_size(c->domain) +
           xdr_old_dict_size(c->xdata);
}

void
xdr_put_recall_lease(struct xdr *x, const struct recall_lease *c)
{
    xdr_put_gfid(x, &c->gfid);
    xdr_put_u32(x, c->lease_type);
    xdr_put_bytes(x, c->tid, sizeof c->tid);
    xdr_put_old_dict(x, c->xdata);
}

void
xdr_get_recall_lease(struct xdr *x, struct recall_lease *out)
{
    const char *tid;

    xdr_get_gfid(x, &out->gfid);
    out->lease_type = xdr_get_u32(x);
    tid = xdr_take(x, sizeof out->tid);
    if (tid)
        memcpy(out->tid, tid, sizeof out->tid);
    out->xdata = xdr_get_old_dict(x);
}
