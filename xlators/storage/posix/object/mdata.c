/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/storage/posix/object/mdata.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* ---- on the disk: version 1, flags, then ctime, mtime, atime; big endian --------------------- */

static uint8_t *
put_u64(uint8_t *at, uint64_t v)
{
    v = htobe64(v);
    memcpy(at, &v, sizeof v);
    return at + sizeof v;
}

static uint64_t
get_u64(const uint8_t *at)
{
    uint64_t v;

    memcpy(&v, at, sizeof v);
    return be64toh(v);
}

void
posix_mdata_encode(const struct mdata *m, uint8_t bytes[POSIX_MDATA_BYTES])
{
    uint8_t *at = bytes;

    *at++ = 1;
    at = put_u64(at, 0);
    at = put_u64(at, (uint64_t)m->ctime);
    at = put_u64(at, m->ctime_nsec);
    at = put_u64(at, (uint64_t)m->mtime);
    at = put_u64(at, m->mtime_nsec);
    at = put_u64(at, (uint64_t)m->atime);
    put_u64(at, m->atime_nsec);
}

int
posix_mdata_decode(const void *bytes, size_t len, struct mdata *out)
{
    const uint8_t *at = bytes;

    if (len != POSIX_MDATA_BYTES || at[0] != 1)
        return -EINVAL;
    *out = (struct mdata){
        .ctime = (int64_t)get_u64(at + 9),
        .ctime_nsec = (uint32_t)get_u64(at + 17),
        .mtime = (int64_t)get_u64(at + 25),
        .mtime_nsec = (uint32_t)get_u64(at + 33),
        .atime = (int64_t)get_u64(at + 41),
        .atime_nsec = (uint32_t)get_u64(at + 49),
    };
    return 0;
}

void
posix_mdata_apply(const struct mdata *m, struct iatt *iatt)
{
    iatt->atime = m->atime;
    iatt->atime_nsec = m->atime_nsec;
    iatt->mtime = m->mtime;
    iatt->mtime_nsec = m->mtime_nsec;
    iatt->ctime = m->ctime;
    iatt->ctime_nsec = m->ctime_nsec;
}

/* Returns 1, 0 (absent) or -errno. An invalid mdata xattr counts as absent: the next change writes a valid
 * one. */
static int
mdata_read(struct posix_obj *obj, struct mdata *out)
{
    uint8_t bytes[POSIX_MDATA_BYTES];
    ssize_t n = posix_obj_getxattr(obj, POSIX_XATTR_MDATA, bytes, sizeof bytes);

    if (n >= 0)
        return posix_mdata_decode(bytes, (size_t)n, out) == 0;
    return n == -ENODATA || n == -ERANGE ? 0 : (int)n;
}

static int
mdata_write(struct posix_obj *obj, const struct mdata *m)
{
    uint8_t bytes[POSIX_MDATA_BYTES];

    posix_mdata_encode(m, bytes);
    return posix_obj_setxattr(obj, POSIX_XATTR_MDATA, bytes, sizeof bytes, 0);
}

/* Notes the disk's mdata, or that there is none. */
static void
note_mdata_locked(struct posix_inode *ctx, const struct mdata *m)
{
    ctx->is_mdata_known = true;
    ctx->has_mdata = m != NULL;
    ctx->mdata = m ? *m : (struct mdata){0};
    atomic_store_explicit(&ctx->is_without_mdata, !m, memory_order_relaxed);
}

/* Loads the stored times from the context or the disk. ctx may be NULL; otherwise it is locked. */
static int
mdata_load_locked(struct posix_obj *obj, struct posix_inode *ctx, struct mdata *out)
{
    if (ctx && ctx->is_mdata_known) {
        *out = ctx->mdata;
        return ctx->has_mdata;
    }
    int r = mdata_read(obj, out);

    if (ctx && r >= 0)
        note_mdata_locked(ctx, r > 0 ? out : NULL);
    return r;
}

static int
mdata_store_locked(struct posix_obj *obj, struct posix_inode *ctx, const struct mdata *m)
{
    int r = mdata_write(obj, m);

    if (r == 0 && ctx)
        note_mdata_locked(ctx, m);
    return r;
}

/* ---- changes --------------------------------------------------------------------------------- */

static bool
is_later(int64_t sec_a, uint32_t nsec_a, int64_t sec_b, uint32_t nsec_b)
{
    return sec_a != sec_b ? sec_a > sec_b : nsec_a > nsec_b;
}

static bool
mdata_is_same(const struct mdata *a, const struct mdata *b)
{
    return a->ctime == b->ctime && a->ctime_nsec == b->ctime_nsec && a->mtime == b->mtime &&
           a->mtime_nsec == b->mtime_nsec && a->atime == b->atime && a->atime_nsec == b->atime_nsec;
}

static bool
raise(int64_t *sec, uint32_t *nsec, int64_t to_sec, uint32_t to_nsec)
{
    if (!is_later(to_sec, to_nsec, *sec, *nsec))
        return false;
    *sec = to_sec;
    *nsec = to_nsec;
    return true;
}

/* A change of the stored times. `change` returns true if it changed *m, which has the stored times if `has`.
 */
struct mdata_change {
    bool (*change)(const struct mdata_change *c, struct mdata *m, bool has);
    const struct caller *caller;
    const struct mdata *given;
    const struct iatt *iatt;
    uint32_t flags;
    int valid;
};

static struct posix_inode *
ctx_lock(struct xlator *xl, struct inode *inode)
{
    struct posix_inode *ctx = inode ? posix_inode_get(xl, inode) : NULL;

    /* Without memory for a context only the disk is used. */
    if (ctx)
        pthread_mutex_lock(&ctx->mdata_lock);
    return ctx;
}

static void
ctx_unlock(struct posix_inode *ctx)
{
    if (ctx)
        pthread_mutex_unlock(&ctx->mdata_lock);
}

/* `pre` and `post` (may be NULL) receive the times before and after the change. */
static int
mdata_change_around(struct xlator *xl, struct posix_obj *obj, struct inode *inode,
                    const struct mdata_change *c, struct iatt *pre, struct iatt *post)
{
    if (!posix_conf(xl)->ctime)
        return 0;
    struct posix_inode *ctx = ctx_lock(xl, inode);
    struct mdata m = {0};
    int has = mdata_load_locked(obj, ctx, &m);
    int r = has < 0 ? has : 0;

    if (has > 0 && pre)
        posix_mdata_apply(&m, pre);
    if (has >= 0 && c->change(c, &m, has > 0)) {
        r = mdata_store_locked(obj, ctx, &m);
        has = r == 0;
    }
    ctx_unlock(ctx);
    if (r == 0 && has > 0 && post)
        posix_mdata_apply(&m, post);
    return r;
}

static int
mdata_change(struct xlator *xl, struct posix_obj *obj, struct inode *inode, const struct mdata_change *c,
             struct iatt *post)
{
    return mdata_change_around(xl, obj, inode, c, NULL, post);
}

static bool
change_nothing(const struct mdata_change *c, struct mdata *m, bool has)
{
    (void)c;
    (void)m;
    (void)has;
    return false;
}

static void
all_times(struct mdata *m, const struct caller *caller)
{
    *m = (struct mdata){caller->ctime_sec,  caller->ctime_sec,  caller->ctime_sec,
                        caller->ctime_nsec, caller->ctime_nsec, caller->ctime_nsec};
}

static bool
change_flagged(const struct mdata_change *c, struct mdata *m, bool has)
{
    int64_t sec = c->caller->ctime_sec;
    uint32_t nsec = c->caller->ctime_nsec;
    bool is_changed = false;

    if (!has) {
        all_times(m, c->caller);
        return true;
    }
    if (c->flags & TIME_CTIME)
        is_changed |= raise(&m->ctime, &m->ctime_nsec, sec, nsec);
    if (c->flags & TIME_MTIME)
        is_changed |= raise(&m->mtime, &m->mtime_nsec, sec, nsec);
    if (c->flags & TIME_ATIME)
        is_changed |= raise(&m->atime, &m->atime_nsec, sec, nsec);
    return is_changed;
}

static bool
change_merge(const struct mdata_change *c, struct mdata *m, bool has)
{
    const struct mdata *g = c->given;

    if (!has) {
        *m = *g;
        return true;
    }
    bool is_changed = raise(&m->ctime, &m->ctime_nsec, g->ctime, g->ctime_nsec);
    is_changed |= raise(&m->mtime, &m->mtime_nsec, g->mtime, g->mtime_nsec);
    is_changed |= raise(&m->atime, &m->atime_nsec, g->atime, g->atime_nsec);
    return is_changed;
}

static bool
change_setattr(const struct mdata_change *c, struct mdata *m, bool has)
{
    const struct iatt *g = c->iatt;
    struct mdata old = *m;

    /* A change of attributes gives mdata to an object without mdata, but a change of only the times does not
     * (brick 3.4). */
    if (!has) {
        if (!(c->flags & TIME_CTIME))
            return false;
        all_times(m, c->caller);
    }
    if (c->valid & SETATTR_ATIME)
        m->atime = g->atime, m->atime_nsec = g->atime_nsec;
    if (c->valid & SETATTR_MTIME)
        m->mtime = g->mtime, m->mtime_nsec = g->mtime_nsec;
    if (c->valid & SETATTR_CTIME)
        raise(&m->ctime, &m->ctime_nsec, g->ctime, g->ctime_nsec);
    if (c->flags & TIME_CTIME || c->valid & (SETATTR_ATIME | SETATTR_MTIME))
        raise(&m->ctime, &m->ctime_nsec, c->caller->ctime_sec, c->caller->ctime_nsec);
    return !has || !mdata_is_same(&old, m);
}

/* ---- entry points ---------------------------------------------------------------------------- */

int
posix_mdata_get(struct xlator *xl, struct posix_obj *obj, struct inode *inode, struct mdata *out)
{
    if (!posix_conf(xl)->ctime)
        return 0;
    struct posix_inode *ctx = ctx_lock(xl, inode);
    int r = mdata_load_locked(obj, ctx, out);

    ctx_unlock(ctx);
    return r;
}

int
posix_mdata_update(struct xlator *xl, const struct caller *caller, struct posix_obj *obj, struct inode *inode,
                   struct iatt *post)
{
    uint32_t flags = caller->time_flags & (TIME_CTIME | TIME_MTIME | TIME_ATIME);

    if (flags == 0)
        return 0;
    return mdata_change(xl, obj, inode,
                        &(struct mdata_change){.change = change_flagged, .caller = caller, .flags = flags},
                        post);
}

int
posix_mdata_update_around(struct xlator *xl, const struct caller *caller, struct posix_obj *obj,
                          struct inode *inode, struct iatt *pre, struct iatt *post)
{
    uint32_t flags = caller->time_flags & (TIME_CTIME | TIME_MTIME | TIME_ATIME);
    const struct mdata_change c = {
        .change = flags ? change_flagged : change_nothing, .caller = caller, .flags = flags};

    return mdata_change_around(xl, obj, inode, &c, pre, post);
}

int
posix_mdata_update_parent(struct xlator *xl, const struct caller *caller, struct posix_obj *dir,
                          struct inode *inode, struct iatt *post)
{
    uint32_t flags = 0;

    if (caller->time_flags & TIME_PARENT_CTIME)
        flags |= TIME_CTIME;
    if (caller->time_flags & TIME_PARENT_MTIME)
        flags |= TIME_MTIME;
    if (caller->time_flags & TIME_PARENT_ATIME)
        flags |= TIME_ATIME;
    if (flags == 0)
        return 0;
    return mdata_change(xl, dir, inode,
                        &(struct mdata_change){.change = change_flagged, .caller = caller, .flags = flags},
                        post);
}

int
posix_mdata_create(struct xlator *xl, const struct caller *caller, struct posix_obj *obj, struct mdata *out)
{
    if (!posix_conf(xl)->ctime || !(caller->time_flags & (TIME_CTIME | TIME_MTIME | TIME_ATIME)))
        return 0;
    all_times(out, caller);
    int r = mdata_write(obj, out);

    return r < 0 ? r : 1;
}

void
posix_mdata_seed(struct xlator *xl, struct inode *inode, const struct mdata *m)
{
    struct posix_inode *ctx = ctx_lock(xl, inode);

    /* If the context is filled already, a later call has changed the times that were written here. */
    if (ctx && !ctx->is_mdata_known)
        note_mdata_locked(ctx, m);
    ctx_unlock(ctx);
}

int
posix_mdata_merge(struct xlator *xl, struct posix_obj *obj, struct inode *inode, const struct mdata *given)
{
    return mdata_change(xl, obj, inode, &(struct mdata_change){.change = change_merge, .given = given}, NULL);
}

int
posix_mdata_setattr(struct xlator *xl, const struct caller *caller, struct posix_obj *obj,
                    struct inode *inode, int valid, const struct iatt *given, struct iatt *post)
{
    uint32_t flags = caller->time_flags & TIME_CTIME;

    if (flags == 0 && !(valid & (SETATTR_ATIME | SETATTR_MTIME | SETATTR_CTIME)))
        return 0;
    return mdata_change(xl, obj, inode,
                        &(struct mdata_change){.change = change_setattr, .caller = caller, .iatt = given,
                                               .flags = flags, .valid = valid}, post);
}
