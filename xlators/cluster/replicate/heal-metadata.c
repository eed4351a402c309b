/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Heal of attributes: owner, mode, times, extended attributes.
 *
 *      lock       the range that changes of attributes lock (metadata.c), on all children
 *      look       who accuses whom of metadata
 *      decide     a child that nobody accuses is the source, rather one on which a change was begun. Those
 *                 that are accused are mended, and those whose owner or mode is not the source's, or all if a
 *                 change was begun and nobody knows of its end
 *      mend       SETATTR of owner and mode; the sink's own xattrs that the source has not are removed, the
 *                 source's are set; SETATTR of the times
 *      count back, unlock
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

/* Xattrs that are copied. */
static bool
is_copied(const char *key)
{
    static const char *const spaces[] = {"user.", "trusted.", "security.", "system."};
    static const char *const own[] = {"trusted.afr.",          "trusted.gfid",
                                      "trusted.pgfid.",        "trusted.glusterfs.volume-id",
                                      "security.selinux",      "trusted.glusterfs.selinux",
                                      "trusted.glusterfs.quota.size"};
    bool has_space = false;

    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        has_space |= strncmp(key, spaces[i], strlen(spaces[i])) == 0;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        has_space &= strncmp(key, own[i], strlen(own[i])) != 0;
    return has_space;
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
        bool has_bytes = p->type == DICT_PTR || p->type == DICT_UNTYPED || p->type == DICT_STR;

        if (!err && has_bytes && is_copied(p->key))
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

/* The children that could not be mended. */
static int
mend_all(const struct heal *h, unsigned source, child_set sinks, child_set *failed)
{
    int err;
    struct call_stack *from = list_xattrs(h, source, &err);

    if (!from)
        return err;
    for_each_child (i, sinks)
        *failed |= mend(h, i, &h->stat[source], from->reply.dict) < 0 ? CHILD(i) : 0;
    call_stack_free(from);
    return 0;
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
    child_set sinks = sinks_of(h, source);

    if (sinks)
        err = mend_all(h, source, sinks, &failed);
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
