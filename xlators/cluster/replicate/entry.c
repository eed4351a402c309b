/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Changes of a directory: create, mknod, mkdir, symlink, link, unlink, rmdir, rename.
 *
 *      lock        the name in its directory; rmdir also all names of what goes; rename both names, and all
 *                  names of a directory in the new place. In the order of gfids, then of names
 *      mark        only if a child is missing: entry +1 about it on the directory (both of them), with the
 *                  name, by which healers find what has changed. If the child has not been up since the mount
 *                  began, the first mark on each directory also says data +1: healers compare all names of
 *                  it, because the mount before this one may have ended in a change of any of them
 *      change      on all
 *      new entry   what was made while a child was missing gets marks of its own, for healers must make it
 *                  there and fill it: metadata +1; of a file data +1; of a directory entry +1, and data +1,
 *                  which says: all of it
 *      reply, marks after, unlock: transaction.c
 *
 * When this mount has changed a name of the same folder a moment ago, the lock is on all names of it and is
 * shared with those that follow (hold.c): a lock and an unlock for each of many files are saved. Of rmdir's
 * two locks that is the one on the name; the other, on all names of what goes, is then taken at once or not
 * at all: nobody waits for a lock while he holds one that comes later in the order. If it is not free rmdir
 * gives back what is shared and takes both of its own. So does always rename of a folder or to another
 * folder, and who finds a child missing. With `share-entry-lock off` all do.
 *
 * Under the lock nobody else makes or removes the name, so that all children have the same object behind it.
 * Others look up without a lock: in between they may find it on one child and not yet on the other. */
#include <errno.h>
#include <string.h>

#include "xlators/cluster/replicate/replicate-internal.h"

/* ---- what is made ---------------------------------------------------------------------------- */

static bool
makes_new(enum fop fop)
{
    return fop == FOP_create || fop == FOP_mknod || fop == FOP_mkdir;
}

/* A reference; NULL: nothing was made, or no memory. */
static struct inode *
made_inode(const struct op *op, const struct fan *f, child_set good)
{
    const struct iatt *stat = good ? &f->stk[child_first(good)]->reply.stat : NULL;

    if (!stat || gfid_is_null(&stat->gfid) || !(makes_new(op->fop) || op->fop == FOP_symlink))
        return NULL;
    return inode_link(op->r->xl->graph->inodes, NULL, NULL, stat);
}

/* CREATE may have found a file; a new one has the gfid that was asked for. */
static bool
is_new(const struct op *op, const struct inode *inode)
{
    struct gfid asked;

    return op->fop != FOP_create || (!dict_get_gfid(op->stk->call.xdata, DICT_KEY_GFID_REQ, &asked) &&
                                     gfid_equal(&asked, &inode->gfid));
}

/* It is as good on each child that has made it. */
static void
set_view(struct op *op, struct inode *inode, uint32_t generation, child_set good, child_set missing)
{
    struct view v = {.generation = generation, .data = good, .metadata = good};

    if (op->r->arbiter >= 0 && !S_ISDIR(inode->type))
        v.data &= ~CHILD(op->r->arbiter);
    if (!missing && v.data && is_new(op, inode))
        view_set(op->r, inode, &v);
}

static struct marks
new_marks(struct inode *inode, child_set missing)
{
    struct marks m = {.inode = inode, .accused = missing, .about.count[CHANGE_METADATA] = 1};

    m.about.count[CHANGE_DATA] = S_ISREG(inode->type) || S_ISDIR(inode->type);
    m.about.count[CHANGE_ENTRY] = S_ISDIR(inode->type);
    return m;
}

static void
mark_new(struct op *op, struct transaction *t, struct inode *inode, child_set good)
{
    struct marks m = new_marks(inode, op->r->all & ~good);
    struct fan f;

    fan_insist(&f, op, good, marks_make, &m);
    t->failed |= f.sent & ~fan_done(&f);
    fan_end(&f);
}

/* ---- the change ------------------------------------------------------------------------------ */

static unsigned
best_child(struct op *op, child_set good)
{
    struct inode *dir = op->dir ? op->dir : op->dir2;
    struct view v;
    child_set best = good;

    if (dir && view_get(op->r, dir, &v) && v.data & good)
        best = v.data & good;
    return view_choose(op->r, best, dir ? dir : op->inode);
}

static int
take_reply(struct op *op, struct transaction *t, struct fan *f, uint32_t generation)
{
    child_set good = f->good & ~t->failed, done = fan_done(f) & ~t->failed;
    struct inode *inode = made_inode(op, f, good);
    child_set missing = op->r->all & ~done;
    int err = fan_take(f, op, best_child(op, good));

    if (inode) {
        set_view(op, inode, generation, done, missing);
        if (makes_new(op->fop) && missing && is_new(op, inode))
            mark_new(op, t, inode, done);
        if (op->fop == FOP_create && !err)
            err = repl_fd_make(op, f, inode);
        if (op->fop == FOP_create && !err && is_new(op, inode))
            new_file_made(op, inode);
        if (op->fop == FOP_mkdir && !err)
            new_folder_made(op, inode);
    } else if (op->fop == FOP_create && !err) {
        err = -ENOMEM;
    }
    inode_unref(inode);
    return err;
}

static int
change(struct op *op, struct transaction *t)
{
    uint32_t generation = atomic_load(&op->r->generation);
    struct fan f;
    int err = transaction_ask(t, &f, fan_fork, NULL);

    if (err)
        return err;
    err = transaction_judge(t, &f, NULL);
    if (err)
        fan_take_refusal(&f, op);
    else
        err = take_reply(op, t, &f, generation);
    fan_end(&f);
    return err;
}

static void
change_locked(struct op *op, struct transaction *t)
{
    int err = transaction_begin(t);

    if (err) {
        op_fail(op, err);
        return;
    }
    transaction_end(t, change(op, t));
}

/* ---- one name of one folder ------------------------------------------------------------------ */

enum { NAMES_ARE_BUSY_NS = 10 * 1000 * 1000 };

/* Whether the lock is the shared one: many names are changed here, or it is in the way of another. */
static bool
shares_lock(const struct op *op, struct repl_inode *ri)
{
    const struct replicate_conf *conf = xlator_conf(op->r->xl);

    if (!ri || !conf->shares_names || !op->is_pinned)
        return false;
    uint64_t now = clock_mono_ns(), last = atomic_exchange(&ri->named_ns, now);

    if (hold_is_taken(&ri->hold))
        return true;
    return atomic_load(&op->r->up) == op->r->all && now - last < NAMES_ARE_BUSY_NS;
}

/* Names of one hash follow one another, as those that are the same must. */
static uint64_t
hash_of(const char *name)
{
    uint64_t hash = 0;

    while (*name)
        hash = hash * 31 + (unsigned char)*name++;
    return hash >> 1;
}

static void
change_sharing(struct op *op, struct repl_inode *ri, struct inode *dir, struct writer *w,
               void (*mark)(struct transaction *t, const struct op *op))
{
    struct transaction t;
    int err = hold_join(op, dir, &ri->hold, w);

    if (err) {
        op_fail(op, err);
        return;
    }
    transaction_init(&t, op, CHANGE_ENTRY);
    mark(&t, op);
    err = transaction_begin_held(&t, w->children);
    transaction_end(&t, err ? err : change(op, &t));
    (void)hold_leave(op, &ri->hold, w, &(struct hold_outcome){.failed = t.failed, .may_wait = true}, false);
}

static bool
is_second_name(const struct op *op)
{
    return op->fop == FOP_link;
}

static void
mark_name(struct transaction *t, const struct op *op)
{
    if (is_second_name(op))
        transaction_mark(t, op->dir2, op->name2);
    else
        transaction_mark(t, op->dir, op->name);
}

void
entry_go(struct op *op)
{
    struct inode *dir = is_second_name(op) ? op->dir2 : op->dir;
    const char *name = is_second_name(op) ? op->name2 : op->name;
    struct repl_inode *ri = repl_inode(op->r, dir);
    uint64_t hash = hash_of(name);
    struct writer w = {.start = hash, .end = hash + 1};
    struct transaction t;

    if (shares_lock(op, ri)) {
        change_sharing(op, ri, dir, &w, mark_name);
    } else {
        transaction_init(&t, op, CHANGE_ENTRY);
        transaction_add(&t, (struct lock_entity){.is_entry = true, .inode = dir, .name = name});
        mark_name(&t, op);
        change_locked(op, &t);
    }
    if (op->fop == FOP_create && op->file)
        new_file_expect(op);
    if (op->fop == FOP_mkdir && op->inode)
        new_folder_expect(op);
}

/* ---- names that must be looked at first ------------------------------------------------------ */

static void
look_begin(const struct op *op, struct fan *f, struct inode *dir, const char *name)
{
    child_set up = atomic_load(&op->r->up);

    fan_begin(f);
    for_each_child(i, up)
    {
        struct call_stack *stk = op_call(op, FOP_lookup, i);

        if (stk) {
            inode_unref(stk->call.loc.inode);
            stk->call.loc = (struct loc){.parent = inode_ref(dir), .name = name};
            stk->caller = op->stk->caller; /* with his groups: the folder may let him in by one of them */
        }
        fan_wind(f, op, i, stk);
    }
}

/* What the name leads to, with a reference; NULL with 0: nothing. */
static int
look_end(const struct op *op, struct fan *f, struct inode **out)
{
    fan_wait(f);
    int err = f->good ? 0 : fan_errno(f) ? -fan_errno(f) : -ENOTCONN;

    *out = NULL;
    if (fan_is_short(f)) {
        err = -ENOMEM;
    } else if (f->good) {
        *out = inode_link(op->r->xl->graph->inodes, NULL, NULL, &f->stk[child_first(f->good)]->reply.stat);
        err = *out ? 0 : -ENOMEM;
    }
    fan_end(f);
    return err == -ENOENT ? 0 : err;
}

static int
look_up(struct op *op, struct inode *dir, const char *name, struct inode **out)
{
    struct fan f;

    look_begin(op, &f, dir, name);
    return look_end(op, &f, out);
}

/* By gfid, then whole directories before their names, then by name. */
static int
compare(const struct lock_entity *a, const struct lock_entity *b)
{
    int by_gfid = memcmp(&a->inode->gfid, &b->inode->gfid, sizeof a->inode->gfid);

    if (by_gfid || !a->name || !b->name)
        return by_gfid ? by_gfid : (a->name != NULL) - (b->name != NULL);
    return strcmp(a->name, b->name);
}

static void
sort_entities(struct transaction *t)
{
    for (unsigned i = 1; i < t->entity_count; i++) {
        for (unsigned k = i; k > 0 && compare(&t->entity[k], &t->entity[k - 1]) < 0; k--) {
            struct lock_entity e = t->entity[k];

            t->entity[k] = t->entity[k - 1];
            t->entity[k - 1] = e;
        }
    }
}

/* This mount's own lock on all names of the folder would be in the way of locks of one operation. */
static void
release_names(struct op *op, struct inode *dir)
{
    struct repl_inode *ri = dir && S_ISDIR(dir->type) ? repl_inode(op->r, dir) : NULL;

    if (ri)
        hold_end(op, dir, &ri->hold);
}

static void
prepare_rmdir(struct op *op, struct transaction *t, struct inode *gone)
{
    release_names(op, op->dir);
    release_names(op, gone);
    transaction_init(t, op, CHANGE_ENTRY);
    transaction_add(t, (struct lock_entity){.is_entry = true, .inode = op->dir, .name = op->name});
    if (gone && S_ISDIR(gone->type))
        transaction_add(t, (struct lock_entity){.is_entry = true, .inode = gone});
    sort_entities(t);
    transaction_mark(t, op->dir, op->name);
}

/* The name is looked up while locks are taken; if the layer above has done that there is nothing to look. */
static void
check_begin(const struct op *op, struct fan *look)
{
    if (op->inode)
        fan_begin(look);
    else
        look_begin(op, look, op->dir, op->name);
}

/* Does it lead to what was locked? */
static bool
check_end(const struct op *op, struct fan *look, const struct inode *known)
{
    struct inode *gone = NULL;
    bool is_known = op->inode || (!look_end(op, look, &gone) && gone == known);

    inode_unref(gone);
    return is_known;
}

/* With the shared lock on the folder's names. False: a lock was not free, or the name leads elsewhere;
 * nothing has been done. */
static bool
rmdir_sharing(struct op *op, struct repl_inode *ri, struct inode *known)
{
    uint64_t hash = hash_of(op->name);
    struct writer w = {.start = hash, .end = hash + 1};
    struct transaction t;
    struct fan look;

    release_names(op, known);
    int err = hold_join(op, op->dir, &ri->hold, &w);

    if (err) {
        op_fail(op, err);
        return true;
    }
    transaction_init(&t, op, CHANGE_ENTRY);
    transaction_add(&t, (struct lock_entity){.is_entry = true, .inode = known});
    transaction_mark(&t, op->dir, op->name);
    check_begin(op, &look);
    child_set has = locks_try(op, &t.entity[0], w.children);
    bool is_known = check_end(op, &look, known);
    bool goes = is_known && has == op->r->all && w.children == has; /* what is unlocked at the end, too */

    if (goes) {
        err = transaction_begin_held(&t, w.children);
        transaction_end(&t, err ? err : change(op, &t));
    } else {
        locks_drop_one(op, &t.entity[0], has);
    }
    (void)hold_leave(op, &ri->hold, &w, &(struct hold_outcome){.failed = t.failed, .may_wait = goes}, false);
    return goes;
}

/* The folder that the name is known to lead to is locked while that is looked up. False: it leads elsewhere,
 * and nothing has been done. */
static bool
rmdir_known(struct op *op, struct inode *known)
{
    struct transaction t;
    struct fan look;

    check_begin(op, &look);
    prepare_rmdir(op, &t, known);
    int locked = transaction_begin(&t);
    bool is_known = check_end(op, &look, known);

    if (is_known && !locked)
        transaction_end(&t, change(op, &t));
    else if (is_known)
        op_fail(op, locked);
    else if (!locked)
        transaction_give_up(&t);
    return is_known;
}

/* op->inode, if it is there: the layer above has locked the name and found that folder behind it. */
void
rmdir_go(struct op *op)
{
    struct inode *known = op->inode ? inode_ref(op->inode)
                                    : inode_find_child(op->r->xl->graph->inodes, op->dir, op->name);
    struct repl_inode *ri = repl_inode(op->r, op->dir);
    bool is_folder = known && S_ISDIR(known->type);
    bool is_done = is_folder && shares_lock(op, ri) && rmdir_sharing(op, ri, known);
    struct inode *gone = NULL;
    struct transaction t;

    is_done = is_done || (is_folder && rmdir_known(op, known));
    inode_unref(known);
    if (is_done)
        return;
    int err = look_up(op, op->dir, op->name, &gone);

    if (err) {
        op_fail(op, err);
        return;
    }
    prepare_rmdir(op, &t, gone);
    change_locked(op, &t);
    inode_unref(gone);
}

/* Only a folder replaces a folder. What this mount does not know may be one. */
static bool
may_be_folder(const struct inode *inode)
{
    return !inode || !inode->type || S_ISDIR(inode->type);
}

static void
mark_both_names(struct transaction *t, const struct op *op)
{
    transaction_mark(t, op->dir, op->name);
    transaction_mark(t, op->dir2, op->name2);
}

static void
rename_alone(struct op *op)
{
    struct inode *replaced = NULL;
    struct transaction t;
    int err = may_be_folder(op->inode) ? look_up(op, op->dir2, op->name2, &replaced) : 0;

    if (err) {
        op_fail(op, err);
        return;
    }
    release_names(op, op->dir);
    release_names(op, op->dir2);
    release_names(op, replaced);
    transaction_init(&t, op, CHANGE_ENTRY);
    transaction_add(&t, (struct lock_entity){.is_entry = true, .inode = op->dir, .name = op->name});
    if (op->dir != op->dir2 || strcmp(op->name, op->name2) != 0)
        transaction_add(&t, (struct lock_entity){.is_entry = true, .inode = op->dir2, .name = op->name2});
    if (replaced && S_ISDIR(replaced->type))
        transaction_add(&t, (struct lock_entity){.is_entry = true, .inode = replaced});
    sort_entities(&t);
    mark_both_names(&t, op);
    change_locked(op, &t);
    inode_unref(replaced);
}

/* Within a folder one lock is enough, unless a folder is replaced, whose names are locked, too. */
void
rename_go(struct op *op)
{
    bool is_within = op->dir == op->dir2 && !may_be_folder(op->inode);
    struct repl_inode *ri = is_within ? repl_inode(op->r, op->dir) : NULL;
    uint64_t a = hash_of(op->name), b = hash_of(op->name2);
    struct writer w = {.start = a < b ? a : b, .end = (a < b ? b : a) + 1};

    if (!shares_lock(op, ri))
        rename_alone(op);
    else
        change_sharing(op, ri, op->dir, &w, mark_both_names);
}
