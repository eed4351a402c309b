/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Locks and leases (spec: wire 5.5, 5.6, 6.2 "lock list"). */
#include "fs/brick-client.h"
#include "rpc/xdr/xdr-types.h"

enum { FLOCK_FIXED_BYTES = 4 + 4 + 8 + 8 + 4 };

void
xdr_get_flock(struct xdr *x, struct fop_flock *out)
{
    out->type = xdr_get_u32(x);
    out->whence = xdr_get_u32(x);
    out->start = xdr_get_i64(x);
    out->len = xdr_get_i64(x);
    out->pid = xdr_get_u32(x);
    out->owner.bytes = xdr_get_opaque(x, LK_OWNER_MAX, &out->owner.len);
}

void
xdr_put_flock(struct xdr *x, const struct fop_flock *f)
{
    xdr_put_u32(x, f->type);
    xdr_put_u32(x, f->whence);
    xdr_put_i64(x, f->start);
    xdr_put_i64(x, f->len);
    xdr_put_u32(x, f->pid);
    xdr_put_opaque(x, f->owner.bytes, f->owner.len);
}

size_t
xdr_flock_size(const struct fop_flock *f)
{
    return FLOCK_FIXED_BYTES + xdr_opaque_size(f->owner.len);
}

void
xdr_get_lease(struct xdr *x, struct fop_lease *out)
{
    const char *id;

    out->cmd = xdr_get_u32(x);
    out->type = xdr_get_u32(x);
    id = xdr_take(x, sizeof out->id);
    if (id)
        memcpy(out->id, id, sizeof out->id);
    out->flags = xdr_get_u32(x);
}

void
xdr_put_lease(struct xdr *x, const struct fop_lease *l)
{
    xdr_put_u32(x, l->cmd);
    xdr_put_u32(x, l->type);
    xdr_put_bytes(x, l->id, sizeof l->id);
    xdr_put_u32(x, l->flags);
}

/* Reads the chain of optional pointers in a loop, because recursion over a long chain would overflow the
 * stack. Each lock takes at least 44 bytes of the record, so the bound of a record also bounds the list. */
struct active_lock *
xdr_get_active_locks(struct xdr *x)
{
    struct active_lock *first = NULL, **last = &first;

    while (xdr_get_bool(x)) {
        struct active_lock *lock = arena_zalloc(x->arena, sizeof *lock);

        if (!lock) {
            xdr_fail(x, -ENOMEM);
            break;
        }
        xdr_get_flock(x, &lock->flock);
        xdr_get_string(x, &lock->client_uid, BRICK_CLIENT_UID_MAX, -EINVAL);
        lock->flags = xdr_get_u32(x);
        if (x->error)
            break;
        *last = lock;
        last = &lock->next;
    }
    return x->error ? NULL : first;
}

void
xdr_put_active_locks(struct xdr *x, const struct active_lock *list)
{
    for (; list; list = list->next) {
        xdr_put_u32(x, 1);
        xdr_put_flock(x, &list->flock);
        xdr_put_string(x, list->client_uid);
        xdr_put_u32(x, list->flags);
    }
    xdr_put_u32(x, 0);
}

size_t
xdr_active_locks_size(const struct active_lock *list)
{
    size_t n = 4;

    for (; list; list = list->next)
        n += 4 + xdr_flock_size(&list->flock) + xdr_string_size(list->client_uid) + 4;
    return n;
}
