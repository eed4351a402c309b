/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* UNLINK and LINK: names of existing files.
 *
 * UNLINK: on the cached subvolume; then the linkto file on the hashed subvolume, if the two differ, which
 * the brick removes only if it is a linkto file. If the file is not on the expected subvolume, the name is
 * looked up once more. Between the two calls other clients see a linkto file that points nowhere, and
 * conclude that the name is gone.
 *
 * Before UNLINK this client takes an INODELK WRLCK dht.file.migrate on the file, on its cached subvolume. A
 * stock client that renames another file over this name has that lock, and makes the brick delay this
 * client's UNLINK, while the stock client waits for a lock that this client would have by then (client
 * 2.24). Bricks that do not delay removals for locks of dht. domains do not need this lock: kilnd bricks
 * announce that at the login, and if all bricks of the subvolume have, the lock is not taken.
 * `unlink-takes-migrate-lock` (default auto): on takes the lock always, off never.
 *
 * LINK: if the new name's hashed subvolume is not the file's, first a linkto file there; then LINK on the
 * cached subvolume; then the linkto file gets the file's owner. If LINK fails, the linkto file is removed
 * again. */
#include <errno.h>

#include "xlators/cluster/distribute/distribute-internal.h"

/* ---- UNLINK ---------------------------------------------------------------------------------- */

struct target {
    struct inode *inode; /* a reference */
    int cached, hashed;
};

static int
lookup_target(const struct op *o, struct target *t)
{
    const struct loc *loc = &o->stk->call.loc;
    struct found found;
    int err = lookup_name(o, loc->parent, loc->name, NULL, &found);

    if (!err && found.is_dir)
        err = -EISDIR;
    if (!err) {
        inode_unref(t->inode);
        t->inode = inode_ref(found.inode);
        t->cached = found.cached;
    }
    found_end(&found);
    return err;
}

/* Finds the file by remembered data, else by a lookup. */
static int
find_target(const struct op *o, struct target *t)
{
    const struct loc *loc = &o->stk->call.loc;

    *t = (struct target){.cached = -1};
    t->hashed = folder_hashed(o, loc->parent, loc->name);
    t->inode = inode_find_child(o->d->xl->graph->inodes, loc->parent, loc->name);
    if (t->inode && !S_ISDIR(t->inode->type))
        t->cached = place_cached(o->d, t->inode);
    if (t->hashed < 0 && t->hashed != -EIO)
        return t->hashed;
    return t->cached < 0 ? lookup_target(o, t) : 0;
}

static bool
needs_migrate_lock(const struct dist *d, int cached)
{
    int mode = dist_conf(d)->unlink_locks;

    return mode == UNLINK_LOCKS_ON || (mode == UNLINK_LOCKS_AUTO &&
                                       !(xlator_brick_facts(d->child[cached].xl) & BRICK_REMOVALS_PASS));
}

static int
unlink_at(const struct op *o, const struct target *t, struct call_stack **out)
{
    struct dist_lock lock = {.child = (unsigned)t->cached,
                             .inode = t->inode,
                             .domain = DOMAIN_MIGRATE,
                             .type = FLOCK_WRITE,
                             .may_miss = true};
    unsigned count = needs_migrate_lock(o->d, t->cached) ? 1 : 0;
    int err = dist_locks_take(o, &lock, count);

    *out = NULL;
    if (err)
        return err;
    *out = dist_call_copy(o);
    err = dist_call_at(o, (unsigned)t->cached, *out);
    dist_locks_drop(o, &lock, count);
    return err;
}

xl_verdict
dist_unlink_go(struct xlator *xl, struct call_stack *stk)
{
    struct op o = dist_op_of(xl, stk);
    const struct loc *loc = &stk->call.loc;
    struct call_stack *done = NULL;
    struct target t;
    int err = find_target(&o, &t);

    if (!err)
        err = unlink_at(&o, &t, &done);
    if (done && (err == -ENOENT || err == -ESTALE)) {
        call_stack_free(done);
        done = NULL;
        err = lookup_target(&o, &t);
        if (!err)
            err = unlink_at(&o, &t, &done);
    }
    if (err >= 0) {
        inode_unlink(xl->graph->inodes, loc->parent, loc->name);
        if (t.hashed >= 0 && t.hashed != t.cached)
            (void)linkto_remove(&o, (unsigned)t.hashed, loc->parent, loc->name, false);
    }
    inode_unref(t.inode);
    if (err >= 0)
        return dist_op_answer_with(&o, done);
    if (done)
        call_stack_free(done);
    return err;
}

/* ---- LINK ------------------------------------------------------------------------------------ */

xl_verdict
dist_link_go(struct xlator *xl, struct call_stack *stk)
{
    struct op o = dist_op_of(xl, stk);
    const struct loc *to = &stk->call.loc2;
    int cached = lookup_cached(&o, stk->call.loc.inode);
    int hashed = cached < 0 ? cached : folder_hashed(&o, to->parent, to->name), err = 0;

    if (hashed < 0)
        return hashed;
    if (hashed != cached)
        err = linkto_make(&o, (unsigned)hashed, to->parent, to->name, &stk->call.loc.inode->gfid,
                          (unsigned)cached, false);
    struct call_stack *done = err ? NULL : dist_call_copy(&o);

    if (!err)
        err = dist_call_at(&o, (unsigned)cached, done);
    if (err >= 0) {
        inode_unref(inode_link(xl->graph->inodes, to->parent, to->name, &done->reply.stat));
        if (hashed != cached)
            linkto_own(&o, (unsigned)hashed, &done->reply.stat);
        return dist_op_answer_with(&o, done);
    }
    if (done) {
        call_stack_free(done);
        if (hashed != cached && err != -EEXIST)
            (void)linkto_remove(&o, (unsigned)hashed, to->parent, to->name, false);
    }
    return err;
}
