/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Changes of a directory: create, mknod, mkdir, symlink, link, unlink, rmdir, rename.
 *
 *      lock        the name in its directory. rmdir also locks all names of the removed directory. rename
 *                  locks both names, and all names of a directory that it replaces. In the order of gfids,
 *                  then of names
 *      mark        only if a child is missing: entry +1 about it (an accusation, the pending xattr) on the
 *                  directory (on both directories of a rename), with the name, by which healers find the
 *                  changed entry. If the child has not been up since the mount began, the first mark on
 *                  each directory also sets data +1, so that healers compare all names, because the
 *                  previous mount may have ended during a change of any name
 *      change      on all children
 *      new entry   an object that was made while a child was missing gets marks of its own, because healers
 *                  must create and fill it there: metadata +1; for a file data +1; for a directory entry
 *                  +1, and data +1, which means the whole directory
 *      reply, marks after, unlock: transaction.c
 *
 * If this mount has changed a name of the same folder a moment ago, the lock covers all names of the folder
 * and is shared with the next changes (hold.c). This saves a lock and an unlock for each of many files. After
 * another client has waited for the lock, changes lock single names for a second, so that two busy clients of
 * a folder do not hand the lock to and fro. For
 * rmdir, the shared lock replaces the lock on the name. The second lock, on all names of the removed
 * directory, is then taken at once or not at all, because a lock holder must not wait for a lock that comes
 * later in the order. If the second lock is not free, rmdir leaves the shared lock and takes two separate
 * locks. A rename of a folder or to another folder always takes separate locks, and so does a change with a
 * child missing. With `share-entry-lock off` all changes do.
 *
 * Under the lock no other client makes or removes the name, so that all children have the same object
 * behind it. Other clients look up without a lock: during the change they may find the name on one child
 * only. After the death of a client the name stays so, and the bricks note the folder: dead-folders.c. */
#include <errno.h>
#include <string.h>

#include "xlators/cluster/replicate/replicate-internal.h"

/* ---- new objects ----------------------------------------------------------------------------- */

static bool
makes_new(enum fop fop)
{
    return fop == FOP_create || fop == FOP_mknod || fop == FOP_mkdir;
}

/* Returns the new object with a reference; NULL: no object was made, or out of memory. */
static struct inode *
made_inode(const struct op *op, const struct fan *f, child_set good)
{
    const struct iatt *stat = good ? &f->stk[child_first(good)]->reply.stat : NULL;

    if (!stat || gfid_is_null(&stat->gfid) || !(makes_new(op->fop) || op->fop == FOP_symlink))
        return NULL;
    return inode_link(op->r->xl->graph->inodes, NULL, NULL, stat);
}

/* Returns whether the object is new. CREATE may have opened an existing file; a new file has the gfid that
 * was asked for. MKNOD of a link file of cluster/distribute adds a name to a file that has the gfid already:
 * that file's counters tell already whether a child lacks it. */
static bool
is_new_object(const struct op *op, const struct iatt *stat)
{
    struct gfid asked;

    if (op->fop == FOP_mknod)
        return stat->nlink < 2;
    return op->fop != FOP_create || (!dict_get_gfid(op->stk->call.xdata, DICT_KEY_GFID_REQ, &asked) &&
                                     gfid_equal(&asked, &stat->gfid));
}

/* Keeps a view in which all children that made the new object are readable. */
static void
set_view(struct op *op, struct inode *inode, uint32_t generation, child_set good)
{
    struct view v = {.generation = generation, .data = good, .metadata = good};

    if (op->r->arbiter >= 0 && !S_ISDIR(inode->type))
        v.data &= ~CHILD(op->r->arbiter);
    if (v.data)
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
    t->copies.failed |= f.sent & ~fan_done(&f);
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
take_entry_reply(struct op *op, struct transaction *t, struct fan *f, uint32_t generation)
{
    child_set good = f->good & ~t->copies.failed, done = fan_done(f) & ~t->copies.failed;
    struct inode *inode = made_inode(op, f, good);
    child_set missing = op->r->all & ~done;
    bool is_new = inode && is_new_object(op, &f->stk[child_first(good)]->reply.stat);
    int err = fan_take(f, op, best_child(op, good));

    if (inode) {
        if (is_new && !missing)
            set_view(op, inode, generation, done);
        else if (is_new && makes_new(op->fop))
            mark_new(op, t, inode, done);
        if (op->fop == FOP_create && !err)
            err = repl_fd_make(op, f, inode);
        if (op->fop == FOP_create && !err && is_new)
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
change_entry(struct op *op, struct transaction *t)
{
    uint32_t generation = atomic_load(&op->r->generation);
    struct fan f;
    int err = op->fop == FOP_create ? transaction_create(t, &f) : transaction_ask(t, &f, fan_fork, NULL);

    if (err)
        return err;
    err = transaction_judge(t, &f, NULL);
    if (err)
        fan_take_refusal(&f, op);
    else
        err = take_entry_reply(op, t, &f, generation);
    fan_end(&f);
    return err;
}

static void
change_entry_locked(struct op *op, struct transaction *t)
{
    int err = transaction_begin(t);

    if (err) {
        op_fail(op, err);
        return;
    }
    transaction_end(t, change_entry(op, t));
}

/* ---- a change of a name in one folder -------------------------------------------------------- */

#define CONTENDED_NS UINT64_C(1000000000)

/* Returns whether to use the folder's shared lock: many names are changed in this folder, and other clients
 * have not waited for the lock in the last second; or the shared lock is held and would conflict with a
 * separate lock. */
static bool
shares_lock(const struct op *op, struct repl_inode *ri)
{
    const struct replicate_conf *conf = xlator_conf(op->r->xl);

    if (!ri || !conf->shares_names || !op->is_pinned)
        return false;
    uint64_t now = clock_mono_ns(), last = atomic_exchange(&ri->named_ns, now);

    if (hold_is_taken(&ri->hold))
        return true;
    if (atomic_load(&op->r->up) != op->r->all || now - atomic_load(&ri->contended_ns) < CONTENDED_NS)
        return false;
    return now - last < names_kept_ms(op->r) * UINT64_C(1000000);
}

/* Changes of names with equal hashes follow one another, and so do changes of the same name. */
static uint64_t
name_hash(const char *name)
{
    uint64_t hash = 0;

    while (*name)
        hash = hash * 31 + (unsigned char)*name++;
    return hash >> 1;
}

static void
change_entry_sharing(struct op *op, struct repl_inode *ri, struct inode *dir, struct writer *w,
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
    transaction_end(&t, err ? err : change_entry(op, &t));
    const struct hold_outcome o = {.failed = t.copies.failed, .may_wait = true};
    (void)hold_leave(op, &ri->hold, w, &o, false);
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

/* features/shard writes by anonymous fds, and passes the inode of a shard that it removes: the marks of the
 * last writes are cleared before, because afterwards there is nothing to clear them on. */
static void
end_holds_of_removed(struct op *op)
{
    struct repl_inode *ri = op->fop == FOP_unlink && op->inode ? inode_ctx(op->inode, op->r->xl) : NULL;
    struct hold *attributes = ri ? atomic_load(&ri->attributes) : NULL;

    if (ri)
        hold_end(op, op->inode, &ri->hold);
    if (attributes)
        hold_end(op, op->inode, attributes);
}

void
entry_go(struct op *op)
{
    struct inode *dir = is_second_name(op) ? op->dir2 : op->dir;
    const char *name = is_second_name(op) ? op->name2 : op->name;
    struct repl_inode *ri = repl_inode(op->r, dir);
    uint64_t hash = name_hash(name);
    struct writer w = {.start = hash, .end = hash + 1};
    struct transaction t;

    end_holds_of_removed(op);
    if (shares_lock(op, ri)) {
        change_entry_sharing(op, ri, dir, &w, mark_name);
    } else {
        transaction_init(&t, op, CHANGE_ENTRY);
        transaction_add(&t, (struct lock_entity){.is_entry = true, .inode = dir, .name = name});
        mark_name(&t, op);
        change_entry_locked(op, &t);
    }
    if (op->fop == FOP_create && op->file)
        new_file_expect(op);
    if (op->fop == FOP_mkdir && op->inode)
        new_folder_expect(op);
}

/* ---- changes that first look up a name ------------------------------------------------------- */

static void
lookup_in_dir_begin(const struct op *op, struct fan *f, struct inode *dir, const char *name)
{
    child_set up = atomic_load(&op->r->up);

    fan_begin(f);
    for_each_child(i, up)
    {
        struct call_stack *stk = op_call(op, FOP_lookup, i);

        if (stk) {
            inode_unref(stk->call.loc.inode);
            stk->call.loc = (struct loc){.parent = inode_ref(dir), .name = name};
            /* with the caller's groups, which may be needed to search the folder */
            stk->caller = op->stk->caller;
        }
        fan_wind(f, op, i, stk);
    }
}

/* Sets *out to the object behind the name, with a reference, or to NULL if no child has the name. Returns 0
 * or -errno. */
static int
lookup_in_dir_end(const struct op *op, struct fan *f, struct inode **out)
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
lookup_in_dir(struct op *op, struct inode *dir, const char *name, struct inode **out)
{
    struct fan f;

    lookup_in_dir_begin(op, &f, dir, name);
    return lookup_in_dir_end(op, &f, out);
}

/* Orders locks by gfid; whole directories come before their names, then names in byte order. */
static int
compare_entities(const struct lock_entity *a, const struct lock_entity *b)
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
        for (unsigned k = i; k > 0 && compare_entities(&t->entity[k], &t->entity[k - 1]) < 0; k--) {
            struct lock_entity e = t->entity[k];

            t->entity[k] = t->entity[k - 1];
            t->entity[k - 1] = e;
        }
    }
}

/* Ends this mount's shared lock on the folder's names, which would conflict with locks of one operation. */
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

/* Starts a lookup of the name in parallel to the locks, unless the layer above has looked the name up. */
static void
verify_name_begin(const struct op *op, struct fan *look)
{
    if (op->inode)
        fan_begin(look);
    else
        lookup_in_dir_begin(op, look, op->dir, op->name);
}

/* Returns whether the name leads to the directory that was locked. */
static bool
verify_name_end(const struct op *op, struct fan *look, const struct inode *known)
{
    struct inode *gone = NULL;
    bool is_known = op->inode || (!lookup_in_dir_end(op, look, &gone) && gone == known);

    inode_unref(gone);
    return is_known;
}

/* Removes the directory under the shared lock on the parent's names. Returns false, with nothing changed,
 * if a lock was not free or the name leads elsewhere. */
static bool
rmdir_sharing(struct op *op, struct repl_inode *ri, struct inode *known)
{
    uint64_t hash = name_hash(op->name);
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
    verify_name_begin(op, &look);
    child_set has = locks_try(op, &t.entity[0], w.children);
    bool is_known = verify_name_end(op, &look, known);
    /* transaction_end() unlocks exactly these children */
    bool goes = is_known && has == op->r->all && w.children == has;

    if (goes) {
        err = transaction_begin_held(&t, w.children);
        transaction_end(&t, err ? err : change_entry(op, &t));
    } else {
        locks_drop_one(op, &t.entity[0], has);
    }
    const struct hold_outcome o = {.failed = t.copies.failed, .may_wait = goes};
    (void)hold_leave(op, &ri->hold, &w, &o, false);
    return goes;
}

/* Locks the directory that the name is expected to lead to, while a lookup verifies that. Returns false,
 * with nothing changed, if the name leads elsewhere. */
static bool
rmdir_known(struct op *op, struct inode *known)
{
    struct transaction t;
    struct fan look;

    verify_name_begin(op, &look);
    prepare_rmdir(op, &t, known);
    int locked = transaction_begin(&t);
    bool is_known = verify_name_end(op, &look, known);

    if (is_known && !locked)
        transaction_end(&t, change_entry(op, &t));
    else if (is_known)
        op_fail(op, locked);
    else if (!locked)
        transaction_give_up(&t);
    return is_known;
}

/* If op->inode is set, the layer above has locked the name and found that folder behind it. */
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
    int err = lookup_in_dir(op, op->dir, op->name, &gone);

    if (err) {
        op_fail(op, err);
        return;
    }
    prepare_rmdir(op, &t, gone);
    change_entry_locked(op, &t);
    inode_unref(gone);
}

/* Returns whether the object is or may be a folder (its type may be unknown). Only a folder replaces a
 * folder. */
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
    int err = may_be_folder(op->inode) ? lookup_in_dir(op, op->dir2, op->name2, &replaced) : 0;

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
    change_entry_locked(op, &t);
    inode_unref(replaced);
}

/* Within a folder one lock suffices, unless the rename replaces a folder, whose names are locked, too. */
void
rename_go(struct op *op)
{
    bool is_within = op->dir == op->dir2 && !may_be_folder(op->inode);
    struct repl_inode *ri = is_within ? repl_inode(op->r, op->dir) : NULL;
    uint64_t a = name_hash(op->name), b = name_hash(op->name2);
    struct writer w = {.start = a < b ? a : b, .end = (a < b ? b : a) + 1};

    if (!shares_lock(op, ri))
        rename_alone(op);
    else
        change_entry_sharing(op, ri, op->dir, &w, mark_both_names);
}
