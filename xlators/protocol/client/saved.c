/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/protocol/client/saved.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"
#include "mem/mem-pool.h"
#include "xlators/protocol/client/client-internal.h"

extern const struct xlator_type protocol_client_xlator;

/* One of the mount's files, as the brick knows the file. */
struct saved_fd {
    int64_t number; /* REMOTE_FD_DEAD: the brick has no such fd */
    uint32_t flags;
    bool is_there, is_dir, has_locks;
    struct gfid gfid;
    const void *locks; /* held-locks.c; in the parcel */
    size_t lock_bytes;
};

struct saved_client {
    struct parcel parcel; /* of this client */
    bool has_connection;
    size_t count;
    struct saved_fd fds[];
};

/* ---- all clients of a graph ------------------------------------------------------------------ */

int
clients_each(struct graph *g, int (*fn)(struct xlator *xl, void *arg), void *arg)
{
    int err = 0;

    for (unsigned i = 0; i < g->layer_count && !err; i++)
        if (g->layers[i].type == &protocol_client_xlator)
            err = fn(&g->layers[i], arg);
    return err;
}

static struct rpc_client *
rpc_of(const struct xlator *xl)
{
    struct client *c = xl->private;
    struct brick_peer *peer = atomic_load(&c->peer);

    return peer ? brick_peer_client(peer) : NULL;
}

static int
pause_client(struct xlator *xl, void *arg)
{
    struct rpc_client *rpc = rpc_of(xl);

    if (rpc && *(const bool *)arg)
        client_releases_send(xl->private);
    if (rpc)
        rpc_client_pause(rpc, *(const bool *)arg);
    return 0;
}

void
clients_pause(struct graph *g, bool pauses)
{
    (void)clients_each(g, pause_client, &pauses);
}

static int
must_rest(struct xlator *xl, void *arg)
{
    struct rpc_client *rpc = rpc_of(xl);
    struct client *c = xl->private;

    (void)arg;
    pthread_mutex_lock(&c->lock);
    bool releases = c->late_count || c->batch_count;
    pthread_mutex_unlock(&c->lock);
    return rpc && (releases || !rpc_client_rests(rpc)) ? -EBUSY : 0;
}

bool
clients_rest(struct graph *g)
{
    return clients_each(g, must_rest, NULL) == 0;
}

static int
keep_client(struct xlator *xl, void *arg)
{
    struct rpc_client *rpc = rpc_of(xl);

    return rpc ? rpc_client_keep_open(rpc, *(const bool *)arg) : 0;
}

int
clients_keep_open(struct graph *g, bool keeps)
{
    return clients_each(g, keep_client, &keeps);
}

static int
must_serve(struct xlator *xl, void *arg)
{
    struct client *c = xl->private;

    (void)arg;
    return atomic_load(&c->is_serving) ? 0 : -ENOTCONN;
}

bool
clients_are_up(struct graph *g)
{
    return clients_each(g, must_serve, NULL) == 0;
}

/* ---- the old program's side ------------------------------------------------------------------ */

struct save_clients {
    struct fd *const *files;
    size_t count;
    struct parcel *to;
};

/* The fd that the layer gets for this fd of the top layer; lent. NULL: not open there. */
static struct fd *
fd_at(const struct xlator *xl, struct fd *top)
{
    const struct xlator *parent = xl->parent;
    struct fd *fd = parent ? fd_at(parent, top) : top;
    unsigned i = 0;

    if (!fd || !parent || !parent->type->fd_of_child)
        return fd;
    while (parent->children[i] != xl)
        i++;
    return parent->type->fd_of_child(parent, fd, i);
}

static void
save_fd(struct client *c, struct fd *top, struct parcel *to)
{
    struct fd *fd = top ? fd_at(c->xl, top) : NULL;
    struct remote_fd *r = fd ? fd_ctx(fd, c->xl) : NULL;

    parcel_put_u32(to, r != NULL);
    if (!r)
        return;
    parcel_put_u64(to, (uint64_t)atomic_load(&r->number));
    parcel_put_u32(to, r->flags);
    parcel_put_u32(to, r->is_dir);
    parcel_put_u32(to, atomic_load(&r->has_locks));
    parcel_put_bytes(to, &r->gfid, sizeof r->gfid);
    held_locks_save(c, r, to);
}

static int
save_client(struct xlator *xl, void *arg)
{
    const struct save_clients *s = arg;
    struct client *c = xl->private;
    struct brick_peer *peer = atomic_load(&c->peer);
    struct parcel own = {0};

    parcel_put_text(s->to, xl->name);
    parcel_put_u32(&own, atomic_load(&xl->brick_facts));
    parcel_put_u32(&own, (uint32_t)s->count);
    for (size_t i = 0; i < s->count; i++)
        save_fd(c, s->files[i], &own);
    parcel_put_u32(&own, peer && atomic_load(&c->is_serving));
    if (peer)
        brick_peer_save(peer, &own);
    parcel_put_bytes(s->to, own.bytes, own.used);
    int err = own.is_broken || s->to->is_broken ? -ENOMEM : 0;

    parcel_free(&own);
    return err;
}

int
clients_save(struct graph *g, struct fd *const *files, size_t count, struct parcel *to)
{
    struct save_clients s = {.files = files, .count = count, .to = to};

    return clients_each(g, save_client, &s);
}

/* ---- the new program's side ------------------------------------------------------------------ */

static void
read_fd(struct parcel *from, struct saved_fd *f)
{
    f->is_there = parcel_get_u32(from);
    if (!f->is_there)
        return;
    f->number = (int64_t)parcel_get_u64(from);
    f->flags = parcel_get_u32(from);
    f->is_dir = parcel_get_u32(from);
    f->has_locks = parcel_get_u32(from);
    parcel_get_exactly(from, &f->gfid, sizeof f->gfid);
    f->locks = parcel_get_bytes(from, &f->lock_bytes);
}

/* The number is that of the parcel's end at most, because each file has at least four bytes. */
static struct saved_client *
saved_client_new(const void *bytes, size_t size, uint32_t *facts)
{
    struct parcel p = {0};

    parcel_put_raw(&p, bytes, size);
    *facts = parcel_get_u32(&p);
    size_t count = parcel_get_u32(&p);
    bool is_possible = !p.is_broken && count <= size / sizeof(uint32_t);
    struct saved_client *s = is_possible ? calloc(1, sizeof *s + count * sizeof s->fds[0]) : NULL;

    if (!s) {
        parcel_free(&p);
        return NULL;
    }
    s->count = count;
    for (size_t i = 0; i < count; i++)
        read_fd(&p, &s->fds[i]);
    s->has_connection = parcel_get_u32(&p);
    s->parcel = p; /* at the connection */
    return s;
}

static int
restore_client(struct xlator *xl, void *arg)
{
    struct parcel *from = arg;
    struct client *c = xl->private;
    const char *name = parcel_get_text(from);
    size_t size;
    const void *bytes = parcel_get_bytes(from, &size);
    uint32_t facts;

    if (!name || strcmp(name, xl->name) != 0)
        return -EBADMSG;
    c->saved = saved_client_new(bytes, size, &facts);
    if (!c->saved)
        return -ENOMEM;
    atomic_store(&xl->brick_facts, facts);
    return c->saved->parcel.is_broken ? -EBADMSG : 0;
}

int
clients_restore(struct graph *g, struct parcel *from)
{
    return clients_each(g, restore_client, from);
}

bool
client_start_saved(struct client *c, struct brick_peer *peer)
{
    struct saved_client *s = c->saved;

    if (!s || !s->has_connection)
        return false;
    s->has_connection = brick_peer_restore(peer, &s->parcel);
    if (!s->has_connection)
        return false;
    pthread_mutex_lock(&c->lock);
    c->is_up = true;
    pthread_mutex_unlock(&c->lock);
    atomic_store(&c->is_serving, true);
    return true;
}

void
client_saved_free(struct client *c)
{
    if (c->saved)
        parcel_free(&c->saved->parcel);
    free(c->saved);
    c->saved = NULL;
}

static int
forget_saved(struct xlator *xl, void *arg)
{
    (void)arg;
    client_saved_free(xl->private);
    return 0;
}

void
clients_restored(struct graph *g)
{
    (void)clients_each(g, forget_saved, NULL);
}

/* ---- calls about saved files ----------------------------------------------------------------- */

/* NULL: the call is not about a saved file of this brick. */
static const struct saved_fd *
saved_fd_of(const struct client *c, const struct call_stack *stk)
{
    const struct saved_client *s = c->saved;
    int32_t pid = stk->caller.pid;

    if (!s || pid < 1 || (size_t)pid > s->count)
        return NULL;
    const struct saved_fd *f = &s->fds[pid - 1];
    const struct gfid *gfid = stk->call.fd           ? &stk->call.fd->inode->gfid
                              : stk->call.loc.inode ? &stk->call.loc.inode->gfid
                                                    : NULL;

    return f->is_there && gfid && gfid_equal(gfid, &f->gfid) ? f : NULL;
}

void
client_opened_again(struct client *c, struct call_stack *stk)
{
    const struct saved_fd *f = saved_fd_of(c, stk);
    struct brick_peer *peer = atomic_load(&c->peer);
    struct remote_fd *r = f && stk->reply.fd ? fd_ctx(stk->reply.fd, c->xl) : NULL;

    if (!r)
        return;
    r->flags = f->flags;
    atomic_store(&r->has_locks, f->has_locks);
    held_locks_restore(c, r, f->locks, f->lock_bytes, c->saved->has_connection);
    if (c->saved->has_connection || !peer)
        return;
    pthread_mutex_lock(&c->lock);
    c->reopening++; /* client_reopened() counts the locks and this */
    pthread_mutex_unlock(&c->lock);
    held_locks_take_again(c, brick_peer_client(peer), r);
    client_reopened(c);
}

static void
lookup_by_fd_arrived(struct rpc_reply *r, void *arg)
{
    struct call_stack *stk = arg;

    rpc_reply_fop(r, FOP_fstat, &stk->reply, &stk->arena);
    if (stk->reply.op_ret >= 0 && !gfid_equal(&stk->reply.stat.gfid, &stk->call.gfid))
        call_stack_fail(stk, ESTALE);
    else
        call_stack_unwind(stk);
}

static xl_verdict
lookup_by_fd(struct client *c, struct call_stack *stk, int64_t number)
{
    struct rpc_client *rpc = rpc_of(c->xl);
    struct fop_call call = {.fop = FOP_fstat, .gfid = stk->call.loc.inode->gfid, .fd_nr = number};
    const struct caller root = {0};

    stk->call.gfid = call.gfid;
    rpc_client_hold(rpc);
    int err = rpc_client_fop(rpc, &call, &root, NULL, 0, lookup_by_fd_arrived, stk);
    rpc_client_let_go(rpc);
    return err ? err : XL_OWNED;
}

xl_verdict
client_answer_saved(struct client *c, struct call_stack *stk)
{
    const struct saved_fd *f = saved_fd_of(c, stk);

    if (!f || !c->saved->has_connection || f->number == REMOTE_FD_DEAD || !rpc_of(c->xl))
        return XL_PASS;
    switch (stk->call.fop) {
    case FOP_lookup:
        return stk->call.loc.parent ? XL_PASS : lookup_by_fd(c, stk, f->number);
    case FOP_open:
    case FOP_opendir:
        stk->reply = (struct fop_reply){.fd_nr = f->number};
        stk->call.gfid = f->gfid;
        int err = remote_fd_make(c, stk);

        if (!err)
            client_opened_again(c, stk);
        return err ? err : XL_DONE;
    default:
        return XL_PASS;
    }
}
