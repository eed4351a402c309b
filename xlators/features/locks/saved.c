/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Locks outlive the program: a newer program grants the locks again before any client's call is read, so
 * no client can get a lock that another client holds. The new program receives the calls that wait for a lock
 * once more, and they wait again; calls of different clients may change their order. */
#include <errno.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/saved-brick.h"
#include "log/log.h"
#include "xlators/features/locks/locks-internal.h"

/* ---- saving ---------------------------------------------------------------------------------- */

struct saving {
    struct brick_saver *saver;
    unsigned waiting; /* locks and removals of clients */
};

static void
save_owner(struct parcel *to, const struct lk_owner *owner)
{
    parcel_put_bytes(to, owner->bytes, owner->len);
}

static void
save_lock(struct parcel *to, const struct lock *l, const char *domain)
{
    parcel_put_u32(to, 1);
    parcel_put_bytes(to, &l->client->id, sizeof l->client->id);
    parcel_put_u32(to, l->queue->kind);
    parcel_put_text(to, domain);
    parcel_put_u64(to, l->fd ? (uint64_t)fd_table_number(&l->client->fds, l->fd) : UINT64_MAX);
    parcel_put_u64(to, (uint64_t)l->fd_nr);
    parcel_put_u64(to, (uint64_t)l->start);
    parcel_put_u64(to, (uint64_t)l->end);
    parcel_put_u64(to, (uint64_t)l->since);
    parcel_put_u32(to, l->type);
    parcel_put_u32(to, (uint32_t)l->pid);
    save_owner(to, &l->owner);
    parcel_put_u32(to, l->flock.whence);
    parcel_put_u64(to, (uint64_t)l->flock.start);
    parcel_put_u64(to, (uint64_t)l->flock.len);
    parcel_put_u32(to, l->flock.pid);
    save_owner(to, &l->flock.owner);
    parcel_put_text(to, l->name);
}

static void
save_queue(struct saving *s, const struct lock_queue *q, const char *domain)
{
    const struct lock *l;

    cds_list_for_each_entry(l, &q->granted, link) {
        if (l->client) /* a lock of the daemon itself ends with the program */
            save_lock(s->saver->to, l, domain);
    }
    cds_list_for_each_entry(l, &q->waiting, link)
        s->waiting++;
}

static void
save_inode(struct inode *inode, void *ctx, void *arg)
{
    const struct lock_domain *domain;
    struct lock_inode *li = ctx;
    struct saving *s = arg;

    pthread_mutex_lock(&li->mutex);
    if (li->count) {
        parcel_put_u32(s->saver->to, 1);
        parcel_put_bytes(s->saver->to, &inode->gfid, sizeof inode->gfid);
        cds_list_for_each_entry(domain, &li->domains, link) {
            save_queue(s, &domain->inodelks, domain->name);
            save_queue(s, &domain->entrylks, domain->name);
        }
        save_queue(s, &li->posix, NULL);
        s->waiting += removal_waiting(li);
        parcel_put_u32(s->saver->to, 0);
    }
    pthread_mutex_unlock(&li->mutex);
}

/* The oldest first. A packed call is unpacked for good, because the saver reads its arguments. */
static int
keep_parked(struct locks *brick, struct brick_saver *saver, unsigned *count)
{
    struct call_stub *w;
    int err = 0;

    pthread_mutex_lock(&brick->parked_mutex);
    cds_list_for_each_entry(w, &brick->parked, of_brick) {
        struct call_stack *stk = call_stub_unpack(w);

        if (!stk) {
            err = -ENOMEM;
            break;
        }
        if ((err = saver->keep_call(saver, stk)))
            break;
        ++*count;
    }
    pthread_mutex_unlock(&brick->parked_mutex);
    return err;
}

int
locks_save(struct xlator *xl, struct brick_saver *saver)
{
    struct saving s = {.saver = saver};
    unsigned parked = 0;

    inode_table_each(xl->graph->inodes, xl, save_inode, &s);
    parcel_put_u32(saver->to, 0);
    int err = keep_parked(xl->private, saver, &parked);
    /* A call that has just been granted its lock is parked and waits no more. */
    return err ? err : parked == s.waiting ? 0 : -EAGAIN;
}

/* ---- restoring ------------------------------------------------------------------------------- */

static struct lk_owner
restore_owner(struct parcel *from)
{
    size_t count;
    const void *bytes = parcel_get_bytes(from, &count);

    if (count > LK_OWNER_MAX)
        from->is_broken = true;
    return from->is_broken ? (struct lk_owner){0} : (struct lk_owner){(uint32_t)count, bytes};
}

static int
grant_restored(struct xlator *xl, struct inode *inode, const char *domain_name, enum lock_kind kind,
               struct lock *l)
{
    struct lock_inode *li = lock_inode_get(xl, inode);
    struct lock_domain *domain = NULL;
    struct lock_batch b;

    if (!li)
        return -ENOMEM;
    lock_inode_enter(li, &b, xl);
    if (kind != LOCK_POSIX)
        domain = lock_domain_get(li, domain_name, xl);
    int err = kind != LOCK_POSIX && !domain ? -ENOMEM : 0;

    if (!err) {
        l->seq = ++li->last_seq;
        lock_hold_locked(li,
                         kind == LOCK_POSIX   ? &li->posix
                         : kind == LOCK_INODE ? &domain->inodelks
                                              : &domain->entrylks,
                         l);
    }
    lock_inode_leave(li, &b);
    return err;
}

/* The call that asked for the lock, as far as lock_new() reads it. */
static void
read_asker(struct parcel *from, struct call_stack *stk)
{
    struct fop_call *c = &stk->call;

    c->type = parcel_get_u32(from);
    stk->caller.pid = (int32_t)parcel_get_u32(from);
    stk->caller.lk_owner = restore_owner(from);
    c->flock.whence = parcel_get_u32(from);
    c->flock.start = (int64_t)parcel_get_u64(from);
    c->flock.len = (int64_t)parcel_get_u64(from);
    c->flock.pid = parcel_get_u32(from);
    c->flock.owner = restore_owner(from);
}

/* `inode` NULL: the object is gone, and the lock is only read. 0 or -errno. */
static int
restore_lock(struct xlator *xl, struct brick_restorer *r, struct inode *inode)
{
    struct parcel *from = r->from;
    struct call_stack stk;
    uint64_t id;

    call_stack_init(&stk);
    parcel_get_exactly(from, &id, sizeof id);
    struct brick_client *client = r->client(r, id);
    uint32_t kind = parcel_get_u32(from);
    const char *domain = parcel_get_text(from);
    int64_t number = (int64_t)parcel_get_u64(from);

    stk.call.fd_nr = (int64_t)parcel_get_u64(from);
    int64_t start = (int64_t)parcel_get_u64(from), end = (int64_t)parcel_get_u64(from);
    int64_t since = (int64_t)parcel_get_u64(from);
    read_asker(from, &stk);
    const char *name = parcel_get_text(from);

    if (from->is_broken || kind > LOCK_POSIX || (kind != LOCK_POSIX && !domain) ||
        (name && strlen(name) > FOP_NAME_MAX))
        return -EBADMSG;
    if (!client || !inode)
        return 0;
    stk.client = client;
    struct fd *fd = number >= 0 ? fd_table_get(&client->fds, number) : NULL;
    stk.call.fd = fd;
    struct lock *l = number >= 0 && !fd ? NULL : lock_new(xl, &stk, name);
    fd_unref(fd); /* the client's table has it, and the lock goes with the fd */
    if (!l)
        return -ENOMEM;
    l->start = start;
    l->end = end;
    if (kind == LOCK_ENTRY) {
        entrylk_range(name, &l->start, &l->end); /* another program has other tags */
        l->is_exclusive = true;
    }
    l->since = since;
    int err = grant_restored(xl, inode, domain, (enum lock_kind)kind, l);
    if (err)
        lock_free(l);
    return err;
}

int
locks_restore(struct xlator *xl, struct brick_restorer *r)
{
    int err = 0;

    while (!err && parcel_get_u32(r->from)) {
        struct gfid gfid;

        parcel_get_exactly(r->from, &gfid, sizeof gfid);
        struct inode *inode = r->from->is_broken ? NULL : r->inode(r, &gfid);

        if (!inode)
            log_event(LOG_ERROR, xl, "lock-object-gone", "%s: locks of an object that is gone are dropped",
                      GFID(&gfid));
        while (!err && parcel_get_u32(r->from))
            err = restore_lock(xl, r, inode);
        inode_unref(inode);
    }
    return err ? err : r->from->is_broken ? -EBADMSG : 0;
}
