/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Applications' locks that the brick has granted. When the connection is lost, and with it all locks, this
 * list allows the client to take them again: after the lock's fd is open again, and before any other call
 * is sent.
 *
 *      LK, granted          the range is removed from the owner's older locks, the new lock is noted
 *      unlock               the range is removed
 *      FLUSH                the owner's locks of the file are dropped
 *      release of the fd    locks taken through the fd are dropped
 *
 * The client does not wait for a lock that another client has got meanwhile: that lock is lost, which is
 * logged. It stays in the list, because the owner still relies on it, and after the next reconnection the
 * client asks again. With strict-locks on no lock is taken again, and the fd stays dead (remote-fd.c).
 * Locks that a change of graphs has moved to this client are not in the list, nor are locks whose owner has
 * a long name. */
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "mem/mem-pool.h"
#include "stack/lock-cmd.h"
#include "xlators/protocol/client/client-internal.h"

enum { OWNER_MAX = 16 };

/* Under the client's lock. */
struct held_lock {
    struct cds_list_head link; /* in the client's `held` */
    /* the fd that the lock was taken through; no reference, because the fd's release drops this lock */
    struct remote_fd *fd;
    uint64_t start, end;       /* `end` is the last byte */
    uint32_t type;
    uint32_t pid, uid, gid;
    uint32_t owner_len;
    uint8_t owner[OWNER_MAX];
    bool is_asked; /* requested again since the brick came back */
};

static struct mem_pool *pool;

int
held_locks_init(struct client *c)
{
    if (!pool)
        pool = mem_pool_new(struct held_lock, 0);
    for (unsigned i = 0; i < HELD_BUCKETS; i++)
        CDS_INIT_LIST_HEAD(&c->held[i]);
    return pool ? 0 : -ENOMEM;
}

static struct cds_list_head *
held_bucket(struct client *c, const struct gfid *gfid)
{
    return &c->held[gfid->b[15] % HELD_BUCKETS];
}

static void
held_lock_free(struct held_lock *l)
{
    cds_list_del(&l->link);
    mem_put(l);
}

static bool
is_of(const struct held_lock *l, const struct gfid *gfid, const struct lk_owner *owner)
{
    return gfid_equal(&l->fd->gfid, gfid) && l->owner_len == owner->len &&
           memcmp(l->owner, owner->bytes, owner->len) == 0;
}

/* ---- noting locks ---------------------------------------------------------------------------- */

/* Removes the range from the lock. `spare` gets the part after the range if two parts are left. Returns
 * true if `spare` was used. */
static bool
cut_lock(struct held_lock *l, uint64_t start, uint64_t end, struct held_lock *spare)
{
    bool is_before = l->start < start, is_behind = l->end > end;

    if (l->end < start || end < l->start)
        return false;
    if (is_before && is_behind) {
        struct cds_list_head link = spare->link;

        *spare = *l;
        spare->link = link;
        spare->start = end + 1;
        cds_list_add(&spare->link, &l->link);
    }
    if (is_before)
        l->end = start - 1;
    else if (is_behind)
        l->start = end + 1;
    else
        held_lock_free(l);
    return is_before && is_behind;
}

/* Removes the range from all of the owner's locks. Returns true if `spare` was used. */
static bool
cut_owner_locks_locked(struct client *c, const struct remote_fd *r, const struct fop_flock *k, uint64_t end,
                 struct held_lock *spare)
{
    struct held_lock *l, *next;
    bool is_used = false;

    cds_list_for_each_entry_safe (l, next, held_bucket(c, &r->gfid), link) {
        if (is_of(l, &r->gfid, &k->owner))
            /* at most once, because the locks do not overlap */
            is_used |= cut_lock(l, (uint64_t)k->start, end, spare);
    }
    return is_used;
}

void
held_locks_note(struct client *c, const struct call_stack *stk, struct remote_fd *r)
{
    const struct fop_flock *k = &stk->call.flock;
    uint64_t end = k->len ? (uint64_t)k->start + (uint64_t)k->len - 1 : INT64_MAX;

    if (k->owner.len > OWNER_MAX || k->whence || k->start < 0 || k->len < 0)
        return;
    struct held_lock *fresh = mem_get0_owner(pool, c->owner), *spare = mem_get0_owner(pool, c->owner);

    if (!fresh || !spare) {
        log_event(LOG_ERROR, c->xl, "client-lock-not-noted", "%s: no memory", GFID(&r->gfid));
        mem_put(fresh);
        mem_put(spare);
        return;
    }
    *fresh = (struct held_lock){.fd = r, .start = (uint64_t)k->start, .end = end, .type = k->type,
                                .pid = (uint32_t)stk->caller.pid, .uid = stk->caller.uid,
                                .gid = stk->caller.gid, .owner_len = k->owner.len, .is_asked = true};
    memcpy(fresh->owner, k->owner.bytes, k->owner.len);
    pthread_mutex_lock(&c->lock);
    if (cut_owner_locks_locked(c, r, k, end, spare))
        spare = NULL;
    if (k->type != FLOCK_UNLOCK && !r->is_released) {
        cds_list_add(&fresh->link, held_bucket(c, &r->gfid));
        fresh = NULL;
    }
    pthread_mutex_unlock(&c->lock);
    mem_put(fresh);
    mem_put(spare);
}

void
held_locks_flushed(struct client *c, const struct gfid *gfid, const struct lk_owner *owner)
{
    struct held_lock *l, *next;

    pthread_mutex_lock(&c->lock);
    cds_list_for_each_entry_safe (l, next, held_bucket(c, gfid), link) {
        if (is_of(l, gfid, owner))
            held_lock_free(l);
    }
    pthread_mutex_unlock(&c->lock);
}

void
held_locks_released_locked(struct client *c, const struct remote_fd *r)
{
    struct held_lock *l, *next;

    cds_list_for_each_entry_safe (l, next, held_bucket(c, &r->gfid), link) {
        if (l->fd == r)
            held_lock_free(l);
    }
}

/* ---- taking locks again ---------------------------------------------------------------------- */

void
held_locks_lost_locked(struct client *c)
{
    struct held_lock *l;

    for (unsigned i = 0; i < HELD_BUCKETS; i++) {
        cds_list_for_each_entry (l, &c->held[i], link)
            l->is_asked = false;
    }
}

/* Copies the next lock that was not requested again yet, and counts it as an OPEN to wait for. */
static bool
next_to_ask(struct client *c, const struct remote_fd *r, struct held_lock *out)
{
    bool is_found = false;
    struct held_lock *l;

    pthread_mutex_lock(&c->lock);
    cds_list_for_each_entry (l, held_bucket(c, &r->gfid), link) {
        if (l->fd != r || l->is_asked)
            continue;
        l->is_asked = true;
        *out = *l;
        c->reopening++;
        is_found = true;
        break;
    }
    pthread_mutex_unlock(&c->lock);
    return is_found;
}

static void
tell_lost(const struct client *c, const struct gfid *gfid, int err)
{
    log_event(LOG_WARNING, c->xl, "client-lock-lost", "a lock of %s was lost with the connection: %s",
              GFID(gfid), strerror(err));
}

static void
lock_retaken(struct rpc_reply *reply, void *arg)
{
    struct remote_fd *r = arg;
    struct client *c = r->client;
    struct arena arena = {0};
    struct fop_reply answer;

    rpc_reply_fop(reply, FOP_lk, &answer, &arena);
    if (answer.op_ret < 0)
        tell_lost(c, &r->gfid, answer.op_errno);
    iobuf_unref(answer.iobuf);
    arena_release(&arena);
    remote_fd_unref(r);
    client_reopened(c);
}

void
held_locks_take_again(struct client *c, struct rpc_client *rpc, struct remote_fd *r)
{
    struct held_lock l;

    while (next_to_ask(c, r, &l)) {
        const struct lk_owner owner = {.len = l.owner_len, .bytes = l.owner};
        const struct caller caller = {.pid = (int32_t)l.pid, .uid = l.uid, .gid = l.gid, .lk_owner = owner};
        struct fop_call call = {.fop = FOP_lk,
                                .gfid = r->gfid,
                                .fd_nr = atomic_load(&r->number),
                                .cmd = LK_SET,
                                .type = l.type,
                                .flock = {.type = l.type, .start = (int64_t)l.start, .pid = l.pid}};

        call.flock.owner = owner;
        call.flock.len = l.end == INT64_MAX ? 0 : (int64_t)(l.end - l.start + 1);
        refcount_get(&r->refs);
        int err = rpc_client_fop(rpc, &call, &caller, NULL, 0, lock_retaken, r);

        if (!err)
            continue;
        tell_lost(c, &r->gfid, -err);
        remote_fd_unref(r);
        client_reopened(c);
    }
}

/* ---- a newer program ------------------------------------------------------------------------- */

void
held_locks_save(struct client *c, const struct remote_fd *r, struct parcel *to)
{
    struct parcel own = {0};
    const struct held_lock *l;

    pthread_mutex_lock(&c->lock);
    cds_list_for_each_entry (l, held_bucket(c, &r->gfid), link) {
        if (l->fd != r)
            continue;
        parcel_put_u64(&own, l->start);
        parcel_put_u64(&own, l->end);
        parcel_put_u32(&own, l->type);
        parcel_put_u32(&own, l->pid);
        parcel_put_u32(&own, l->uid);
        parcel_put_u32(&own, l->gid);
        parcel_put_bytes(&own, l->owner, l->owner_len);
    }
    pthread_mutex_unlock(&c->lock);
    parcel_put_bytes(to, own.bytes, own.used);
    to->is_broken |= own.is_broken;
    parcel_free(&own);
}

static void
held_lock_restore(struct client *c, struct remote_fd *r, struct parcel *from, bool is_held)
{
    struct held_lock *l = mem_get0_owner(pool, c->owner);
    struct held_lock read = {.fd = r, .is_asked = is_held};
    size_t len;

    read.start = parcel_get_u64(from);
    read.end = parcel_get_u64(from);
    read.type = parcel_get_u32(from);
    read.pid = parcel_get_u32(from);
    read.uid = parcel_get_u32(from);
    read.gid = parcel_get_u32(from);
    const void *owner = parcel_get_bytes(from, &len);

    if (!l || from->is_broken || len > OWNER_MAX) {
        log_event(LOG_ERROR, c->xl, "client-saved-lock", "%s: a lock of the earlier program is not noted",
                  GFID(&r->gfid));
        mem_put(l);
        return;
    }
    memcpy(read.owner, owner, len);
    read.owner_len = (uint32_t)len;
    *l = read;
    pthread_mutex_lock(&c->lock);
    cds_list_add(&l->link, held_bucket(c, &r->gfid));
    pthread_mutex_unlock(&c->lock);
}

void
held_locks_restore(struct client *c, struct remote_fd *r, const void *bytes, size_t size, bool is_held)
{
    struct parcel from = {.bytes = (char *)(uintptr_t)bytes, .used = size, .room = size};

    while (from.at < from.used && !from.is_broken)
        held_lock_restore(c, r, &from, is_held);
}
