/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Heal of attributes: owner, mode, times, extended attributes.
 *
 *      lock       the range that changes of attributes lock (metadata.c), on all children
 *      look       the counters of metadata (pending xattrs)
 *      decide     the source is a child that no child accuses, preferably one on which a change was begun.
 *                 Sinks: accused children, children whose owner, mode or xattrs differ from the source, and
 *                 all if a change was begun and is not known to have ended
 *      mend       SETATTR of owner and mode; removal of xattrs that the source lacks, set of the source's
 *                 xattrs; SETATTR of the times
 *      count back, unlock
 *
 * Replicas that differ although no copy is accused were left by a mount that died in a change together with
 * a brick, while all bricks were up. That mount has written no mark. Kiln's bricks mark the object dirty then
 * (features/locks/unfinished.c), and the self-heal daemon finds it; stock's bricks do not. So each mount that
 * finds such an object heals it, also with metadata-self-heal off. The change was not reported as done, so
 * either copy is right.
 *
 * Healers are not kept apart by a separate lock, because the whole heal happens under one lock. Counters,
 * gfid, volume-id and the data of a brick's security module belong to each child and are not copied. Other
 * clients see a half-mended sink as an accused child. */
#include <errno.h>
#include <string.h>

#include "xlators/cluster/replicate/heal.h"

/* ---- choosing source and sinks --------------------------------------------------------------- */

static bool
has_same_owner_and_mode(const struct iatt *a, const struct iatt *b)
{
    return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid;
}

/* Prefers a source on which a change was begun, because no other child may have that change. */
static unsigned
metadata_source(const struct heal *h)
{
    for_each_child (i, h->way.sources) {
        if (h->replica[i].dirty.count[CHANGE_METADATA])
            return i;
    }
    return child_first(h->way.sources);
}

/* Returns the children to mend from the source. */
static child_set
metadata_sinks(const struct heal *h, unsigned source)
{
    child_set sinks = h->way.sinks;

    for_each_child (i, h->way.sources & ~CHILD(source)) {
        if (h->way.is_dirty || !has_same_owner_and_mode(&h->stat[i], &h->stat[source]))
            sinks |= CHILD(i);
    }
    return sinks;
}

static bool
is_byte_value(const struct dict_pair *p)
{
    return p->type == DICT_PTR || p->type == DICT_UNTYPED || p->type == DICT_STR;
}

/* Returns whether a heal copies this xattr. */
static bool
is_copied_xattr(const char *key)
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

/* Returns whether this xattr must be equal on all replicas: xattrs that only changes of attributes change. */
static bool
is_compared_xattr(const char *key)
{
    return is_copied_xattr(key) && strncmp(key, "trusted.glusterfs.", 18) != 0 &&
           strncmp(key, "security.", 9) != 0;
}

static bool
has_same_pair(const struct dict_pair *p, const struct dict *other)
{
    const struct dict_pair *q = dict_find_text(other, p->key);

    return q && q->type == p->type && q->len == p->len &&
           (!p->len || memcmp(q->v.bytes, p->v.bytes, p->len) == 0);
}

static bool
have_same_xattrs(const struct dict *a, const struct dict *b)
{
    dict_for_each (p, a) {
        if (is_byte_value(p) && is_compared_xattr(p->key) && !has_same_pair(p, b))
            return false;
    }
    dict_for_each (p, b) {
        if (is_byte_value(p) && is_compared_xattr(p->key) && !dict_find_text(a, p->key))
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

        if (!has_same_owner_and_mode(&reply->stat, &first->stat))
            return true;
        if (is_older && first->xdata && reply->xdata && !have_same_xattrs(first->xdata, reply->xdata))
            return true;
    }
    return false;
}

/* ---- mending --------------------------------------------------------------------------------- */

static int
heal_setattr(const struct heal *h, unsigned i, const struct iatt *to, int32_t valid)
{
    struct call_stack *stk = heal_call(h, FOP_setattr, i);

    if (stk) {
        stk->call.stbuf = *to;
        stk->call.valid = valid;
    }
    return heal_send(h, i, stk);
}

/* Returns a finished call with all xattrs of child i in the reply; the caller frees it. NULL: error in
 * *err. */
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

/* Removes the sink's xattrs that the source lacks. */
static int
remove_others(const struct heal *h, unsigned sink, const struct dict *wanted)
{
    int err;
    struct call_stack *has = list_xattrs(h, sink, &err);

    if (!has)
        return err;
    err = 0;
    dict_for_each (p, has->reply.dict) {
        if (err || !is_copied_xattr(p->key) || dict_find_text(wanted, p->key))
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

/* Fills in the xattrs to set; only values that are bytes can be set. */
static int
fill_xattrs(struct call_stack *stk, const struct dict *wanted)
{
    int err = 0;

    stk->call.dict = dict_new(&stk->arena);
    if (!stk->call.dict)
        return -ENOMEM;
    dict_for_each (p, wanted) {
        if (!err && is_byte_value(p) && is_copied_xattr(p->key))
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
mend_attributes(const struct heal *h, unsigned sink, const struct iatt *from, const struct dict *wanted)
{
    int32_t mode = S_ISLNK(from->mode) ? 0 : SETATTR_MODE;
    int err = heal_setattr(h, sink, from, SETATTR_UID | SETATTR_GID | mode);

    if (err >= 0)
        err = copy_xattrs(h, sink, wanted);
    if (err >= 0)
        err = heal_setattr(h, sink, from, SETATTR_ATIME | SETATTR_MTIME | SETATTR_CTIME);
    return err;
}

/* Adds the children of `rest` whose xattrs differ from the source to *sinks. */
static int
add_differing_sinks(const struct heal *h, child_set rest, const struct dict *wanted, child_set *sinks)
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

/* Mends the sinks; adds the children that could not be mended to *failed. */
static int
mend_sinks(struct heal *h, unsigned source, child_set sinks, child_set *failed)
{
    int err;
    struct call_stack *from = list_xattrs(h, source, &err);

    if (!from)
        return err;
    err = add_differing_sinks(h, h->op.r->all & ~sinks & ~CHILD(source), from->reply.dict, &sinks);
    for_each_child (i, err ? 0 : sinks) {
        int ret = mend_attributes(h, i, &h->stat[source], from->reply.dict);

        *failed |= ret < 0 ? CHILD(i) : 0;
        heal_note(h, i, ret < 0 ? -ret : 0);
    }
    call_stack_free(from);
    return err;
}

static int
heal_metadata_locked(struct heal *h)
{
    child_set failed = 0;
    int err = heal_look(h, CHANGE_METADATA);

    if (err)
        return err;
    if (!h->way.sources)
        return -EIO;
    unsigned source = metadata_source(h);

    err = mend_sinks(h, source, metadata_sinks(h, source), &failed);
    return err ? err : heal_count_back(h, CHANGE_METADATA, failed);
}

int
heal_metadata(struct heal *h)
{
    struct lock_entity e = {.inode = h->op.inode, .start = METADATA_START};
    int err = heal_lock(h, &e);

    if (err)
        return err;
    err = heal_metadata_locked(h);
    heal_unlock(h, &e);
    return err;
}
