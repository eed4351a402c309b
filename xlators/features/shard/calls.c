/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Calls that an operation needs, and its locks.
 *
 * Bricks keep an object with a lock of another client from being removed, unless the lock is of pid -4
 * (client 2.24). All locks of this layer are taken as pid -4, so that a client that waits for a lock here
 * never stops a removal there. */
#include <errno.h>
#include <string.h>

#include "stack/lock-cmd.h"
#include "xlators/features/shard/shard-internal.h"

struct shard_op
shard_op_of(struct xlator *xl, struct call_stack *stk)
{
    struct fd *fd = stk->call.fd;

    return (struct shard_op){
        .s = xl->private, .stk = stk, .fd = fd, .base = fd ? fd->inode : stk->call.loc.inode};
}

void
shard_owner_new(uint8_t owner[8])
{
    /* Not an address, because an unlock may be under way when the next operation has the same memory. */
    static _Atomic uint64_t owners;
    uint64_t mine = atomic_fetch_add_explicit(&owners, 1, memory_order_relaxed) + 1;

    memcpy(owner, &mine, sizeof mine);
}

/* ---- making calls ---------------------------------------------------------------------------- */

struct call_stack *
shard_call_new(const struct shard_op *o, enum fop fop)
{
    struct call_stack *stk = coro_call_new();

    if (!stk)
        return NULL;
    stk->caller = o->stk->caller; /* borrows data from the caller's call */
    stk->call.fop = fop;
    return stk;
}

struct call_stack *
shard_call_root(const struct shard_op *o, enum fop fop)
{
    struct call_stack *stk = shard_call_new(o, fop);

    if (stk)
        stk->caller.uid = stk->caller.gid = stk->caller.group_count = 0;
    return stk;
}

struct call_stack *
shard_call_internal(const struct shard_op *o, enum fop fop)
{
    struct call_stack *stk = shard_call_root(o, fop);

    if (stk)
        stk->caller.pid = PID_INTERNAL;
    return stk;
}

struct call_stack *
shard_call_inode(struct call_stack *stk, struct inode *inode)
{
    if (stk)
        stk->call.loc.inode = inode_ref(inode);
    return stk;
}

struct call_stack *
shard_call_name(struct call_stack *stk, struct inode *parent, const char *name)
{
    if (stk) {
        stk->call.loc.parent = inode_ref(parent);
        stk->call.loc.name = name;
    }
    return stk;
}

struct call_stack *
shard_call_fd(struct call_stack *stk, struct fd *fd)
{
    if (stk)
        stk->call.fd = fd_ref(fd);
    return shard_call_inode(stk, fd->inode);
}

struct call_stack *
shard_call_base(const struct shard_op *o, enum fop by_fd, enum fop by_inode, bool is_internal)
{
    enum fop fop = o->fd ? by_fd : by_inode;
    struct call_stack *stk = is_internal ? shard_call_internal(o, fop) : shard_call_new(o, fop);

    return o->fd ? shard_call_fd(stk, o->fd) : shard_call_inode(stk, o->base);
}

/* Returns the call's xdata, made on first use. */
static struct dict *
shard_call_xdata(struct call_stack *stk)
{
    if (!stk->call.xdata)
        stk->call.xdata = dict_new(&stk->arena);
    return stk->call.xdata;
}

static struct call_stack *
shard_unless_short(struct call_stack *stk, int err)
{
    if (!err)
        return stk;
    call_stack_free(stk);
    return NULL;
}

struct call_stack *
shard_call_put_uint(struct call_stack *stk, enum dict_key key, uint64_t value)
{
    struct dict *d = stk ? shard_call_xdata(stk) : NULL;

    return stk ? shard_unless_short(stk, d ? dict_set_uint(d, key, value) : -ENOMEM) : NULL;
}

struct call_stack *
shard_call_put_bytes(struct call_stack *stk, enum dict_key key, const void *bytes, size_t len)
{
    struct dict *d = stk ? shard_call_xdata(stk) : NULL;

    return stk ? shard_unless_short(stk, d ? dict_set_bytes(d, key, bytes, (uint32_t)len) : -ENOMEM) : NULL;
}

struct call_stack *
shard_call_put_gfid(struct call_stack *stk, enum dict_key key, const struct gfid *gfid)
{
    struct dict *d = stk ? shard_call_xdata(stk) : NULL;

    return stk ? shard_unless_short(stk, d ? dict_set_gfid(d, key, gfid) : -ENOMEM) : NULL;
}

int
shard_ask(struct call_stack *stk)
{
    struct dict *d = shard_call_xdata(stk);

    if (!d)
        return -ENOMEM;
    int err = dict_set_uint(d, DICT_KEY_SHARD_BLOCK_SIZE, SHARD_BLOCK_SIZE_BYTES);

    return err ? err : dict_set_uint(d, DICT_KEY_SHARD_FILE_SIZE, SHARD_SIZE_BYTES);
}

struct call_stack *
shard_call_ask(struct call_stack *stk)
{
    return stk ? shard_unless_short(stk, shard_ask(stk)) : NULL;
}

/* ---- sending --------------------------------------------------------------------------------- */

int
shard_call(const struct shard_op *o, struct call_stack *stk)
{
    return stk ? coro_call(stk, o->s->xl->children[0]) : -ENOMEM;
}

int
shard_call_once(const struct shard_op *o, struct call_stack *stk)
{
    return coro_call_once(stk, o->s->xl->children[0]);
}

void
shard_op_take(const struct shard_op *o, struct call_stack *stk)
{
    struct call_stack *to = o->stk;

    if (!to->call.loc.inode && stk->call.loc.inode)
        to->call.loc.inode = inode_ref(stk->call.loc.inode);
    coro_call_take_reply(to, stk);
}

static void
shard_call_ended(struct call_stack *stk)
{
    struct graph *g = stk->owner;

    call_stack_free(stk);
    graph_unpin(g);
}

/* The call must not point to memory of the operation. */
void
shard_call_forget(const struct shard_op *o, struct call_stack *stk)
{
    struct graph *g = o->s->xl->graph;

    if (!stk)
        return;
    if (!graph_pin(g)) { /* the connections end soon, and the locks with them */
        call_stack_free(stk);
        return;
    }
    stk->done = shard_call_ended;
    stk->owner = g;
    call_stack_wind(stk, o->s->xl->children[0]);
}

/* ---- locks ----------------------------------------------------------------------------------- */

/* Copies the owner and the text, because an unlock outlives its operation. */
static struct call_stack *
shard_lock_by(struct call_stack *stk, const char *domain, const uint8_t *owner)
{
    uint8_t *bytes = stk ? arena_alloc(&stk->arena, 8) : NULL;

    if (!bytes)
        return stk ? shard_unless_short(stk, -ENOMEM) : NULL;
    memcpy(bytes, owner, 8);
    stk->caller.lk_owner = (struct lk_owner){.len = 8, .bytes = bytes};
    stk->caller.time_flags = 0;
    stk->caller.groups = NULL;
    stk->call.volume = domain;
    return stk;
}

struct call_stack *
shard_inodelk(const struct shard_op *o, const char *domain, const uint8_t *owner, enum shard_lock_how how)
{
    struct call_stack *stk =
        shard_lock_by(shard_call_base(o, FOP_finodelk, FOP_inodelk, true), domain, owner);

    if (!stk)
        return NULL;
    stk->call.cmd = how == SHARD_LOCK_WAIT ? LK_SET_WAIT : LK_SET;
    stk->call.type = how == SHARD_LOCK_DROP ? FLOCK_UNLOCK : FLOCK_WRITE;
    stk->call.flock.type = stk->call.type;
    return stk;
}

struct call_stack *
shard_entrylk(const struct shard_op *o, struct inode *dir, const char *name, const uint8_t *owner,
              enum shard_lock_how how)
{
    struct call_stack *stk = shard_lock_by(shard_call_inode(shard_call_internal(o, FOP_entrylk), dir),
                                           o->s->xl->name, owner);
    size_t size = strlen(name) + 1;
    char *copy = stk ? arena_alloc(&stk->arena, size) : NULL;

    if (!copy)
        return stk ? shard_unless_short(stk, -ENOMEM) : NULL;
    stk->call.name = memcpy(copy, name, size);
    stk->call.has_name = 1;
    stk->call.cmd = how == SHARD_LOCK_DROP  ? ENTRYLK_UNLOCK
                    : how == SHARD_LOCK_TRY ? ENTRYLK_TRY
                                            : ENTRYLK_WAIT;
    stk->call.type = FLOCK_WRITE;
    return stk;
}
