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
 * A rebalance may have moved the file to the hashed subvolume meanwhile, or may be about to end its copy
 * there. The reply's attributes show that, or the hashed subvolume has no linkto file: then the name is
 * looked up again, and if the same file has the name, the name is removed there, too.
 *
 * LINK: if the new name's hashed subvolume is not the file's, first a linkto file there; then LINK on the
 * cached subvolume; then the linkto file gets the file's owner. If LINK fails, the linkto file is removed
 * again. */
#include <errno.h>

#include "xlators/cluster/distribute/distribute-internal.h"

enum { LINK_TRIES = 3 };

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
    *out = dist_call_put_int(dist_call_copy(o), DICT_KEY_IATT_IN_XATTR, 1);
    err = dist_call_at(o, (unsigned)t->cached, *out);
    dist_locks_drop(o, &lock, count);
    return err;
}

/* Returns whether the removed object was a file under migration, or its remains. */
static bool
was_moving(const struct call_stack *done)
{
    const struct dict_pair *p = dict_find(done->reply.xdata, DICT_KEY_IATT_IN_XATTR);

    return p && p->type == DICT_IATT && (file_is_copying(p->v.iatt) || file_is_copied(p->v.iatt));
}

/* Removes the name of the same file on the subvolume that has it now. */
static void
unlink_moved(const struct op *o, const struct target *t)
{
    const struct loc *loc = &o->stk->call.loc;
    struct target now = {.cached = -1};
    struct call_stack *done = NULL;
    struct layout *fresh = NULL;

    if (!folder_layout_fresh(o, loc->parent, &fresh) && !lookup_target(o, &now) &&
        gfid_equal(&now.inode->gfid, &t->inode->gfid))
        (void)unlink_at(o, &now, &done);
    layout_unref(fresh);
    inode_unref(now.inode);
    if (done)
        call_stack_free(done);
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
        bool moves = was_moving(done);

        inode_unlink(xl->graph->inodes, loc->parent, loc->name);
        if (t.hashed >= 0 && t.hashed != t.cached)
            moves |= linkto_remove(&o, (unsigned)t.hashed, loc->parent, loc->name, false) == -EBUSY;
        if (moves)
            unlink_moved(&o, &t);
    }
    inode_unref(t.inode);
    if (err >= 0)
        return dist_op_answer_with(&o, done);
    if (done)
        call_stack_free(done);
    return err;
}

/* ---- LINK ------------------------------------------------------------------------------------ */

/* After a LINK on child `cached`: gives the copy of a file that is being migrated the name, too. Returns 0;
 * -EAGAIN: the name was given to the remains of a file that is elsewhere by now, and is removed again. */
static int
link_copy(const struct op *o, int cached, const struct iatt *file)
{
    const struct loc *to = &o->stk->call.loc2;
    struct inode *inode = o->stk->call.loc.inode;
    int target = file_is_copying(file) ? file_copy_target(o, inode, cached) : -1;

    if (file_is_copied(file) && file_copy_target(o, inode, cached) != -1) {
        (void)linkto_remove(o, (unsigned)cached, to->parent, to->name, false);
        return -EAGAIN;
    }
    /* Without the name on the copy, the copier sees a file of two names, which stays. */
    if (target >= 0 && target != cached)
        (void)dist_call_once(o, (unsigned)target, dist_call_copy(o));
    return 0;
}

/* The first attempt may have given the file the name: on the subvolume that has the file now, a linkto file
 * of its gfid is a name of the file. Answers with the attributes, or returns -EEXIST. */
static xl_verdict
answer_with_own_link(const struct op *o)
{
    const struct loc *to = &o->stk->call.loc2;
    struct found found;
    int err = lookup_name(o, to->parent, to->name, NULL, &found);
    bool is_own = !err && !found.is_dir && gfid_equal(&found.inode->gfid, &o->stk->call.loc.inode->gfid);
    struct call_stack *reply = is_own ? found.reply : NULL;

    if (is_own)
        found.reply = NULL;
    found_end(&found);
    return reply ? dist_op_answer_with(o, reply) : -EEXIST;
}

static xl_verdict link_once(const struct op *o, struct call_stack *stk);

xl_verdict
dist_link_go(struct xlator *xl, struct call_stack *stk)
{
    struct op o = dist_op_of(xl, stk);
    xl_verdict verdict = link_once(&o, stk);

    for (unsigned n = 0; n < LINK_TRIES && verdict == -EAGAIN; n++) {
        (void)place_set(o.d, stk->call.loc.inode, -1);
        verdict = link_once(&o, stk);
        if (verdict == -EEXIST)
            verdict = answer_with_own_link(&o);
    }
    return verdict == -EAGAIN ? -ESTALE : verdict;
}

static xl_verdict
link_once(const struct op *op, struct call_stack *stk)
{
    struct op o = *op;
    struct xlator *xl = o.d->xl;
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
    if (err >= 0)
        err = link_copy(&o, cached, &done->reply.stat);
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
