/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* An fd is opened again with its original flags, except those that create or truncate a file. An fd that
 * cannot be opened, or that had locks while `strict-locks` is on, stays dead: reads and writes of data then
 * use the gfid (fd number -2), unless locks were lost with the fd; all other calls get EBADFD.
 *
 * RELEASE gives the brick's number back, without waiting for the reply (late-release.c). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"
#include "mem/mem-pool.h"
#include "xlators/protocol/client/client-internal.h"

static struct mem_pool *pool;

int
remote_fd_pool_init(void)
{
    if (!pool)
        pool = mem_pool_new(struct remote_fd, 0);
    return pool ? 0 : -ENOMEM;
}

void
remote_fd_unref(struct remote_fd *r)
{
    if (refcount_put(&r->refs))
        mem_put(r);
}

/* ---- releasing ------------------------------------------------------------------------------- */

/* Returns whether the RELEASE may wait for another message: the brick takes sequences, and no other client
 * waits for a lock that was taken through the fd. */
static bool
may_release_late(const struct client *c, const struct remote_fd *r)
{
    const struct client_conf *conf = xlator_conf(c->xl);

    return atomic_load(&c->xl->brick_facts) & BRICK_SEQUENCES && conf->release_wait_ms &&
           !atomic_load(&r->has_locks);
}

void
remote_fd_release(struct client *c, struct remote_fd *r)
{
    struct brick_peer *peer = atomic_load(&c->peer);
    struct rpc_client *rpc = peer ? brick_peer_client(peer) : NULL;
    unsigned waiting = 0;

    if (rpc)
        rpc_client_hold(rpc);
    pthread_mutex_lock(&c->lock);
    const struct late_release l = {.gfid = r->gfid, .number = atomic_load(&r->number), .is_dir = r->is_dir};

    cds_list_del(&r->link);
    c->fd_count--;
    r->is_released = true;
    held_locks_released_locked(c, r);
    if (rpc && l.number != REMOTE_FD_DEAD && may_release_late(c, r))
        waiting = late_release_put_locked(c, &l);
    pthread_mutex_unlock(&c->lock);
    if (rpc) {
        if (waiting)
            late_release_waits(c, rpc, waiting);
        else if (l.number != REMOTE_FD_DEAD)
            late_release_send(rpc, &l);
        rpc_client_let_go(rpc);
    }
    remote_fd_unref(r);
}

/* Replaces the number. Returns the number to give back, or
 * REMOTE_FD_DEAD: none. */
static int64_t
replace_number(struct client *c, struct remote_fd *r, int64_t number)
{
    pthread_mutex_lock(&c->lock);
    int64_t before = atomic_exchange(&r->number, number);

    pthread_mutex_unlock(&c->lock);
    return before;
}

unsigned
remote_fd_close(struct client *c, struct fd *fd, struct late_release *out)
{
    struct remote_fd *r = fd_ctx(fd, c->xl);

    if (fd->is_anonymous || !r)
        return 0;
    *out = (struct late_release){
        .gfid = r->gfid, .number = replace_number(c, r, REMOTE_FD_DEAD), .is_dir = r->is_dir};
    return out->number != REMOTE_FD_DEAD;
}

/* ---- making ---------------------------------------------------------------------------------- */

/* Returns the fd's context: a new one, or the one of a concurrent call that has also opened the fd here.
 * NULL: out of memory. */
static struct remote_fd *
remote_fd_of(struct client *c, const struct call_stack *stk, struct fd *fd)
{
    struct remote_fd *r = mem_get0_owner(pool, c->owner), *other;

    if (!r)
        return NULL;
    r->client = c;
    refcount_init(&r->refs, 1);
    r->gfid = fd->inode->gfid;
    r->is_dir = stk->call.fop == FOP_opendir;
    r->flags = stk->call.flags & ~(uint32_t)(O_CREAT | O_EXCL | O_TRUNC);
    atomic_init(&r->number, stk->reply.fd_nr);
    pthread_mutex_lock(&c->lock);
    if ((other = fd_ctx_install(fd, c->xl, r)) == r) {
        cds_list_add(&r->link, &c->fds);
        c->fd_count++;
    }
    pthread_mutex_unlock(&c->lock);
    if (other != r)
        mem_put(r);
    return other;
}

/* A reply's callback runs before its connection is given up. */
static void
give_number_back(struct client *c, const struct call_stack *stk, int64_t number)
{
    struct brick_peer *peer = atomic_load(&c->peer);
    const struct gfid *gfid = stk->call.fop == FOP_create ? &stk->reply.stat.gfid : &stk->call.gfid;

    if (peer)
        late_release_send(brick_peer_client(peer),
                          &(struct late_release){*gfid, number, stk->call.fop == FOP_opendir});
}

/* Returns the fd that a layer has made for all its children, or a new one. NULL: out of memory. */
static struct fd *
call_or_new_fd(struct client *c, struct call_stack *stk)
{
    struct inode *inode;

    if (stk->call.fd)
        return fd_ref(stk->call.fd);
    if (stk->call.fop == FOP_create)
        inode = inode_link(c->xl->graph->inodes, NULL, NULL, &stk->reply.stat);
    else
        inode = stk->call.loc.inode ? inode_ref(stk->call.loc.inode) : NULL;
    struct fd *fd = inode ? fd_new(inode, stk->client, stk->call.flags, stk->call.fop == FOP_opendir) : NULL;

    inode_unref(inode);
    return fd;
}

int
remote_fd_make(struct client *c, struct call_stack *stk)
{
    struct fd *fd = call_or_new_fd(c, stk);
    struct remote_fd *r = fd ? fd_ctx(fd, c->xl) : NULL;

    if (fd && !r)
        r = remote_fd_of(c, stk, fd);
    if (!r) {
        give_number_back(c, stk, stk->reply.fd_nr);
        fd_unref(fd);
        return -ENOMEM;
    }
    int64_t before = replace_number(c, r, stk->reply.fd_nr);

    if (before != REMOTE_FD_DEAD && before != stk->reply.fd_nr)
        give_number_back(c, stk, before);
    stk->reply.fd = fd;
    return 0;
}

/* ---- using numbers --------------------------------------------------------------------------- */

/* Returns whether the call can use the gfid instead of the fd. */
static bool
goes_by_gfid(enum fop fop)
{
    switch (fop) {
    case FOP_readv:
    case FOP_writev:
    case FOP_fsync:
    case FOP_fstat:
    case FOP_ftruncate:
    case FOP_fallocate:
    case FOP_discard:
    case FOP_zerofill:
    case FOP_seek:
    case FOP_fxattrop:
    case FOP_fsetattr:
        return true;
    default:
        return false;
    }
}

int
remote_fd_number(struct client *c, enum fop fop, struct fd *fd, int64_t *out)
{
    struct remote_fd *r = fd_ctx(fd, c->xl);

    *out = FD_ANONYMOUS;
    if (fd->is_anonymous)
        return 0;
    if (!r)
        return -EBADFD;
    int64_t number = atomic_load(&r->number);
    if (number == REMOTE_FD_DEAD)
        return goes_by_gfid(fop) && !atomic_load(&r->has_locks) ? 0 : -EBADFD;
    *out = number;
    return 0;
}

/* ---- losing and reopening fds ---------------------------------------------------------------- */

void
remote_fds_lost(struct client *c)
{
    struct remote_fd *r;

    pthread_mutex_lock(&c->lock);
    cds_list_for_each_entry (r, &c->fds, link)
        atomic_store(&r->number, REMOTE_FD_DEAD);
    c->late_count = 0; /* the session has ended, and its fds */
    held_locks_lost_locked(c);
    pthread_mutex_unlock(&c->lock);
}

/* A callback runs before its connection is given up, so the number is valid until it returns. */
static void
fd_reopened(struct rpc_reply *reply, void *arg)
{
    struct remote_fd *r = arg;
    struct client *c = r->client;
    struct arena arena = {0};
    struct fop_reply answer;

    rpc_reply_fop(reply, r->is_dir ? FOP_opendir : FOP_open, &answer, &arena);
    pthread_mutex_lock(&c->lock);
    bool is_wanted = !r->is_released;

    if (is_wanted && answer.op_ret >= 0)
        atomic_store(&r->number, answer.fd_nr);
    pthread_mutex_unlock(&c->lock);
    if (is_wanted && answer.op_ret >= 0)
        held_locks_take_again(c, reply->client, r);
    if (answer.op_ret < 0)
        log_event(LOG_WARNING, c->xl, "client-fd-not-reopened", "the brick does not open file %s again: %s",
                  GFID(&r->gfid), strerror(answer.op_errno));
    else if (!is_wanted)
        late_release_send(reply->client, &(struct late_release){r->gfid, answer.fd_nr, r->is_dir});
    iobuf_unref(answer.iobuf);
    arena_release(&arena);
    remote_fd_unref(r);
    client_reopened(c);
}

/* The OPEN takes over the caller's reference. */
static void
reopen_fd(struct client *c, struct rpc_client *rpc, struct remote_fd *r)
{
    struct fop_call call = {.fop = r->is_dir ? FOP_opendir : FOP_open, .gfid = r->gfid, .flags = r->flags};
    int err = rpc_client_fop(rpc, &call, NULL, NULL, 0, fd_reopened, r);

    if (!err)
        return;
    log_event(LOG_WARNING, c->xl, "client-fd-open-not-sent",
              "file %s cannot be opened again, because the call cannot be sent: %s", GFID(&r->gfid),
              strerror(-err));
    remote_fd_unref(r);
    client_reopened(c);
}

/* Returns all current fds, with a reference each; `reopening` counts them already. NULL: no fds, or out of
 * memory. */
static struct remote_fd **
take_fds(struct client *c, unsigned *count)
{
    const struct client_conf *conf = xlator_conf(c->xl);
    struct remote_fd **fds, *r;
    unsigned n = 0;

    pthread_mutex_lock(&c->lock);
    fds = c->fd_count ? malloc(c->fd_count * sizeof *fds) : NULL; /* once for each connection */
    bool is_short = c->fd_count && !fds;

    if (fds) {
        cds_list_for_each_entry (r, &c->fds, link) {
            if (conf->strict_locks && atomic_load(&r->has_locks))
                continue;
            refcount_get(&r->refs);
            fds[n++] = r;
        }
    }
    c->reopening += n;
    pthread_mutex_unlock(&c->lock);
    if (is_short)
        log_event(LOG_ERROR, c->xl, "client-fds-not-reopened", "no memory: fds that were open stay dead");
    *count = n;
    return fds;
}

void
remote_fds_reopen(struct client *c, struct rpc_client *rpc)
{
    unsigned count;
    struct remote_fd **fds = take_fds(c, &count);

    for (unsigned i = 0; i < count; i++)
        reopen_fd(c, rpc, fds[i]);
    free(fds);
}
