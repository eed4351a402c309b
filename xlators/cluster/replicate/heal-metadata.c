/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Heal of attributes: owner, mode, times, extended attributes.
 *
 *      lock       the range that changes of attributes lock (metadata.c), on all children
 *      look       who accuses whom of metadata
 *      decide     a child that nobody accuses is the source, rather one on which a change was begun. Those
 *                 that are accused are mended, and those whose owner, mode or xattrs are not the source's, or
 *                 all if a change was begun and nobody knows of its end
 *      mend       SETATTR of owner and mode; the sink's own xattrs that the source has not are removed, the
 *                 source's are set; SETATTR of the times
 *      count back, unlock
 *
 * Replicas that differ although no copy is accused are left by a mount that died in a change together with a
 * brick, while all bricks were there: no mark tells the self-heal daemon of them. So each mount that finds
 * them heals them, also with metadata-self-heal off. Nobody was told that the change is done, so either copy
 * is right.
 *
 * There is no lock that keeps healers apart: all of it happens under the one lock. Counters, gfid and
 * volume-id, and what a brick's security module keeps are each child's own. Others see a sink that is half
 * mended as one that is accused. */
#include <errno.h>
#include <string.h>

#include "xlators/cluster/replicate/heal.h"

/* ---- which ----------------------------------------------------------------------------------- */

static bool
is_same(const struct iatt *a, const struct iatt *b)
{
    return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid;
}

/* One on which a change was begun, if there is such a one: it may be the only one that has it. */
static unsigned
source_of(const struct heal *h)
{
    for_each_child (i, h->way.sources) {
        if (h->replica[i].dirty.count[CHANGE_METADATA])
            return i;
    }
    return child_first(h->way.sources);
}

/* Those to be mended by the source. */
static child_set
sinks_of(const struct heal *h, unsigned source)
{
    child_set sinks = h->way.sinks;

    for_each_child (i, h->way.sources & ~CHILD(source)) {
        if (h->way.is_dirty || !is_same(&h->stat[i], &h->stat[source]))
            sinks |= CHILD(i);
    }
    return sinks;
}

static bool
is_bytes(const struct dict_pair *p)
{
    return p->type == DICT_PTR || p->type == DICT_UNTYPED || p->type == DICT_STR;
}

/* Xattrs that are copied. */
static bool
is_copied(const char *key)
{
    static const char *const spaces[] = {"user.", "trusted.", "security.", "system."};
    static const char *const own[] = {"trusted.afr.",          "trusted.gfid",
                                      "trusted.pgfid.",        "trusted.glusterfs.volume-id",
                                      "security.selinux",      "trusted.glusterfs.selinux",
                                      "trusted.glusterfs.quota.size",
                                      "trusted.gfs.squota.size"};
    bool has_space = false;

    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        has_space |= strncmp(key, spaces[i], strlen(spaces[i])) == 0;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        has_space &= strncmp(key, own[i], strlen(own[i])) != 0;
    return has_space;
}

/* Xattrs in which replicas must not differ: those that only changes of attributes change. */
static bool
is_compared(const char *key)
{
    return is_copied(key) && strncmp(key, "trusted.glusterfs.", 18) != 0 && strncmp(key, "security.", 9) != 0;
}

static bool
has_same(const struct dict_pair *p, const struct dict *other)
{
    const struct dict_pair *q = dict_find_text(other, p->key);

    return q && q->type == p->type && q->len == p->len &&
           (!p->len || memcmp(q->v.bytes, p->v.bytes, p->len) == 0);
}

static bool
have_same_xattrs(const struct dict *a, const struct dict *b)
{
    dict_for_each (p, a) {
        if (is_bytes(p) && is_compared(p->key) && !has_same(p, b))
            return false;
    }
    dict_for_each (p, b) {
        if (is_bytes(p) && is_compared(p->key) && !dict_find_text(a, p->key))
            return false;
    }
    return true;
}

bool
heal_attributes_differ(const struct fan *f)
{
    const struct fop_reply *first = &f->stk[child_first(f->good)]->reply;

    for_each_child (i, f->good) {
        const struct fop_reply *reply = &f->stk[i]->reply;
        bool is_older =
            reply->stat.ctime != first->stat.ctime || reply->stat.ctime_nsec != first->stat.ctime_nsec;

        if (!is_same(&reply->stat, &first->stat))
            return true;
        if (is_older && first->xdata && reply->xdata && !have_same_xattrs(first->xdata, reply->xdata))
            return true;
    }
    return false;
}

/* ---- mending --------------------------------------------------------------------------------- */

static int
set_attributes(const struct heal *h, unsigned i, const struct iatt *to, int32_t valid)
{
    struct call_stack *stk = heal_call(h, FOP_setattr, i);

    if (stk) {
        stk->call.stbuf = *to;
        stk->call.valid = valid;
    }
    return heal_send(h, i, stk);
}

/* All xattrs of child i, in the reply of the call, which is the caller's. NULL: *err says why. */
static struct call_stack *
list_xattrs(const struct heal *h, unsigned i, int *err)
{
    struct call_stack *stk = heal_call(h, FOP_getxattr, i);

    *err = stk ? coro_call(stk, h->op.r->xl->children[i]) : -ENOMEM;
    if (*err >= 0)
        return stk;
    if (stk)
        call_stack_free(stk);
    return NULL;
}

/* Those that the sink has, and the source has not. */
static int
remove_others(const struct heal *h, unsigned sink, const struct dict *wanted)
{
    int err;
    struct call_stack *has = list_xattrs(h, sink, &err);

    if (!has)
        return err;
    err = 0;
    dict_for_each (p, has->reply.dict) {
        if (err || !is_copied(p->key) || dict_find_text(wanted, p->key))
            continue;
        struct call_stack *stk = heal_call(h, FOP_removexattr, sink);

        if (stk)
            stk->call.name = p->key;
        err = heal_send(h, sink, stk);
        err = err >= 0 || err == -ENODATA ? 0 : err;
    }
    call_stack_free(has);
    return err;
}

/* Only bytes can be set. */
static int
fill_xattrs(struct call_stack *stk, const struct dict *wanted)
{
    int err = 0;

    stk->call.dict = dict_new(&stk->arena);
    if (!stk->call.dict)
        return -ENOMEM;
    dict_for_each (p, wanted) {
        if (!err && is_bytes(p) && is_copied(p->key))
            err = dict_set_text(stk->call.dict, p->key, DICT_PTR, p->v.bytes, p->len);
    }
    return err;
}

static int
copy_xattrs(const struct heal *h, unsigned sink, const struct dict *wanted)
{
    int err = remove_others(h, sink, wanted);
    struct call_stack *stk = err ? NULL : heal_call(h, FOP_setxattr, sink);

    if (err)
        return err;
    if (stk && fill_xattrs(stk, wanted)) {
        call_stack_free(stk);
        return -ENOMEM;
    }
    if (stk && !stk->call.dict->count) {
        call_stack_free(stk);
        return 0;
    }
    return heal_send(h, sink, stk);
}

static int
mend(const struct heal *h, unsigned sink, const struct iatt *from, const struct dict *wanted)
{
    int32_t mode = S_ISLNK(from->mode) ? 0 : SETATTR_MODE;
    int err = set_attributes(h, sink, from, SETATTR_UID | SETATTR_GID | mode);

    if (err >= 0)
        err = copy_xattrs(h, sink, wanted);
    if (err >= 0)
        err = set_attributes(h, sink, from, SETATTR_ATIME | SETATTR_MTIME | SETATTR_CTIME);
    return err;
}

/* Of `rest`, the children whose xattrs are not the source's. */
static int
add_different(const struct heal *h, child_set rest, const struct dict *wanted, child_set *sinks)
{
    for_each_child (i, rest) {
        int err;
        struct call_stack *has = list_xattrs(h, i, &err);

        if (!has)
            return err;
        *sinks |= have_same_xattrs(wanted, has->reply.dict) ? 0 : CHILD(i);
        call_stack_free(has);
    }
    return 0;
}

/* The children that could not be mended. */
static int
mend_all(const struct heal *h, unsigned source, child_set sinks, child_set *failed)
{
    int err;
    struct call_stack *from = list_xattrs(h, source, &err);

    if (!from)
        return err;
    err = add_different(h, h->op.r->all & ~sinks & ~CHILD(source), from->reply.dict, &sinks);
    for_each_child (i, err ? 0 : sinks)
        *failed |= mend(h, i, &h->stat[source], from->reply.dict) < 0 ? CHILD(i) : 0;
    call_stack_free(from);
    return err;
}

static int
heal_locked(struct heal *h)
{
    child_set failed = 0;
    int err = heal_look(h, CHANGE_METADATA);

    if (err)
        return err;
    if (!h->way.sources)
        return -EIO;
    unsigned source = source_of(h);

    err = mend_all(h, source, sinks_of(h, source), &failed);
    return err ? err : heal_count_back(h, CHANGE_METADATA, failed);
}

int
heal_metadata(struct heal *h)
{
    struct lock_entity e = {.inode = h->op.inode, .start = METADATA_START};
    int err = heal_lock(h, &e);

    if (err)
        return err;
    err = heal_locked(h);
    heal_unlock(h, &e);
    return err;
}
