/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The frame of every change of names and attributes:
 *
 *      lock       on all children that are up, in parallel and without waiting. If a child answers that
 *                 another client has the lock, the granted locks are released and each child is locked in
 *                 turn, waiting. All clients use the same order: the first entity first, and for each
 *                 entity the first child first
 *      mark       only if a child is missing: +1 about that child (an accusation, the pending xattr) on the
 *                 locked children. With all children present the marks after the change suffice, because a
 *                 mount that dies before them has reported success to no caller
 *      change     on all children that are locked and marked
 *      mark       +1 about each child that has failed since, on the children that have made the change. If
 *                 no child has made the change, -1 about the missing children
 *      unlock
 *
 * A file's data is marked by its hold instead (hold.c).
 *
 * Why the missing child is accused before the change, and `dirty` is not used: healers do not trust an
 * accusation if any copy of a folder is dirty, because an unknown change may be on any of the copies.
 * Healers then merge the names of all copies, which restores names that were removed while a child was
 * away. If a mount died between a dirty mark and its removal, that would happen to the later changes of all
 * mounts. An accusation before the change is true in any case: the missing child does not get the change.
 * The state after each death:
 *
 *      the mount, before the change     the accusation is needless: healers find no difference and clear it
 *      the mount, after the change      the child is accused already: healers copy from the changed copies
 *      a child, during the change       the mount accuses the child before the reply to the caller
 *      a child and the mount, during the change, with all children present before
 *                 no mark. The caller got no reply. The next mount that changes a name in the folder while
 *                 the child is away accuses it, about all names (doubts_all_names()). Otherwise LOOKUP of
 *                 the name heals the name, also if a rename has left two objects under one name
 *                 (heal-name.c); LOOKUP also finds differing attributes and heals them (heal-metadata.c).
 *                 The self-heal daemon finds no half-changed name, because no mark points to it. It finds
 *                 half-changed attributes on Kiln's bricks: a brick whose client dies holding a metadata
 *                 lock marks the object dirty (features/locks/unfinished.c)
 *      a child and the mount, during the change, with another child missing before
 *                 the missing child is accused, and the other two are sources for it. These two differ in a
 *                 change that was not answered, until a LOOKUP
 *      too many children, during the change, so that quorum is lost
 *                 the missing children stay accused, no other child is, and no copy is dirty. The change
 *                 has failed, and may be on some copies; LOOKUP of the name heals the name
 *
 * The price: two replicas without quorum may accuse each other. This takes a replica that is away while a
 * mount dies between accusation and change, and then the other replica being away while the first is
 * changed. Only children that are a quorum together accuse a third.
 *
 * If no child has failed in the change, the caller gets the reply after the change, else after the second
 * marks. So a change reported as done is never only on a child that is not recorded as the good one.
 *
 * A child has failed if it did not get the lock or the mark, or if its errno differs from that of the other
 * children. If all fail alike (for example because the name exists), no child has missed a change. If too
 * few children are left for quorum, all count as failed and no child is accused, because each of two halves
 * would accuse the other.
 *
 * The same holds if no child is left that had a good copy before. The children that made the change are
 * accused already, of changes that they missed earlier, and would now accuse the good child (split-brain; of
 * a folder, a merge that restores removed names). So the caller gets an error, and a heal removes their part
 * of the change. If the good child fails in the lock or in the mark, nothing is changed: EIO, for names
 * ENOTCONN, so that a hard mount waits for the good child. The set of good copies is known from the view
 * before the change (view.c), and from the counters that the marks return under the lock.
 *
 * This takes no more than three children that are away in turn, without a heal between: two stale copies are
 * a quorum. With quorum, each change that was reported as done is on a majority, and any other majority
 * has a copy that accuses those without the change: a copy that no other live copy accuses has missed no
 * change. Stale copies take no change of names: with a child away the view tells so before the mark. If the
 * good child is lost after that, the counters in the replies tell, and the mark is taken back. A mount that
 * dies before it has taken the mark back leaves a stale copy that accuses a copy which missed nothing; this
 * takes the loss of the good child and of the mount within one change. While the good child is away, the two
 * copies accuse each other: EIO, and no stale data is read. When it returns, it is the only source, and the
 * heal clears the accusation; nothing is lost (test-replicate-faults.c, the fourth pass). If its disk is lost
 * for good, an operator has to choose a copy. The stale copy cannot go without its mark before the change,
 * because a mark after it would leave an answered change on a copy that the other one accuses alone.
 * Without quorum (two children), names may be changed on any copy,
 * because a heal merges them.
 *
 * A lack of memory in this process is no child's failure: the change then goes to no child (ENOMEM), or to
 * all as soon as there is memory, and marks after and unlocks wait for memory (fan.c).
 *
 * Other clients see names and attributes change on one child after the other, because each read asks one
 * child. Under the lock a client sees all of the change or none. */
#include <errno.h>
#include <string.h>

#include "xlators/cluster/replicate/replicate-internal.h"

/* The lock owner is the address of a struct on the coroutine's stack, which is unique while the lock is
 * held. */
void
transaction_init(struct transaction *t, struct op *op, enum change what)
{
    uint64_t owner = (uint64_t)(uintptr_t)t;

    *t = (struct transaction){.op = op, .copies = {.what = what, .readable = op->readable}};
    memcpy(t->owner, &owner, sizeof owner);
    op->caller.lk_owner = (struct lk_owner){.len = sizeof t->owner, .bytes = t->owner};
}

void
transaction_add(struct transaction *t, struct lock_entity e)
{
    t->entity[t->entity_count++] = e;
}

void
transaction_mark(struct transaction *t, struct inode *inode, const char *name)
{
    t->marked[t->marked_count] = inode;
    t->marked_name[t->marked_count++] = name;
}

static struct marks
marks_of(const struct transaction *t, unsigned n)
{
    bool is_own = t->marked[n] == t->op->inode && t->copies.what != CHANGE_ENTRY;
    struct marks m = {.inode = t->marked[n], .file = is_own ? t->op->file : NULL};

    return m;
}

/* Returns whether the mark before must tell healers to compare all names of the folder, once: an earlier
 * mount may have ended during a change of any name, so this mount does not know the names that a missing
 * child lacks (entry.c). */
static bool
doubts_all_names(const struct transaction *t, struct inode *dir, child_set missing)
{
    child_set unmet = missing & ~atomic_load(&t->op->r->met);
    struct repl_inode *ri = unmet ? repl_inode(t->op->r, dir) : NULL;

    return unmet && (!ri || unmet & ~atomic_fetch_or(&ri->doubted, unmet));
}

/* Returns the children whose copies other copies accuse, from the replies to a mark. Without quorum the
 * empty set: such a volume goes on with stale copies. */
static child_set
stale_by_marks(const struct transaction *t, const struct fan *f)
{
    struct replica replicas[REPLICAS_MAX];

    if (!op_wants_quorum(t->op))
        return 0;
    marks_read(t->op->r, f, replicas);
    return changelog_accused(replicas, t->op->r->count, t->copies.what) & f->good;
}

/* Sets the mark before, which accuses the missing children. Returns 0; -ENOMEM: no mark was set. */
static int
mark_missing(struct transaction *t)
{
    enum change what = t->copies.what;
    child_set missing = t->op->r->all & ~copies_left(&t->copies);
    struct fan f;

    for (unsigned n = 0; n < t->marked_count; n++) {
        struct marks m = marks_of(t, n);

        m.accused = missing;
        m.about.count[what] = 1;
        t->doubted[n] = what == CHANGE_ENTRY && doubts_all_names(t, t->marked[n], missing);
        m.about.count[CHANGE_DATA] += t->doubted[n];
        m.name_key = t->marked_name[n] ? DICT_KEY_XATTROP_ENTRY_CREATE : 0;
        m.name = t->marked_name[n];
        if (copies_mark_before(t->op, &t->copies, &m, n > 0, &f))
            return -ENOMEM;
        t->copies.stale[n] = stale_by_marks(t, &f);
        fan_end(&f);
    }
    return 0;
}

static void
transaction_unlock(struct transaction *t)
{
    struct fan f[LOCK_ENTITIES_MAX];

    locks_drop(t->op, t->entity, t->entity_count, t->copies.locked, f);
    locks_dropped(t->op, t->entity, t->entity_count, f);
}

/* Returns whether all copies of one of the folders that are up are stale: the good copies are away. Kept
 * views are not believed in this, because the daemon of another host, which may reach all bricks, may have
 * healed the folder. */
static bool
are_all_names_stale(const struct transaction *t)
{
    struct view v;

    for (unsigned n = 0; n < t->marked_count; n++) {
        struct inode *dir = t->marked[n];

        if (view_of(t->op, dir, &v) || v.data)
            continue;
        view_forget(t->op->r, dir);
        if (!view_of(t->op, dir, &v) && !v.data)
            return true;
    }
    return false;
}

/* Returns 0 if the remaining children may go on, else -errno. */
static int
check_left(struct transaction *t)
{
    child_set left = copies_left(&t->copies);

    if (copies_suffice(t->op, &t->copies, left))
        return 0;
    t->is_refused |= op_has_quorum(t->op, left);
    return t->is_refused && t->copies.what != CHANGE_ENTRY ? -EIO : copies_errno(&t->copies);
}

static int
mark_locked(struct transaction *t)
{
    int err = check_left(t);

    if (err || t->copies.locked == t->op->r->all)
        return err;
    err = mark_missing(t);
    return err ? err : check_left(t);
}

int
transaction_begin(struct transaction *t)
{
    struct replicate *r = t->op->r;
    child_set up = atomic_load(&r->up);

    if (!op_has_quorum(t->op, up))
        return -ENOTCONN;
    if (t->copies.what == CHANGE_ENTRY && up != r->all && op_wants_quorum(t->op) && are_all_names_stale(t))
        return -ENOTCONN;
    t->copies.locked = locks_take(t->op, t->entity, t->entity_count, up, &t->copies.why);
    if (!t->copies.locked)
        return copies_errno(&t->copies);
    int err = mark_locked(t);
    if (!err)
        return 0;
    if (t->copies.accused)
        transaction_give_up(t);
    else
        transaction_unlock(t);
    return err;
}

void
transaction_give_up(struct transaction *t)
{
    t->is_for_nothing = true;
    (void)transaction_mark_after(t);
    transaction_unlock(t);
}

int
transaction_begin_held(struct transaction *t, child_set locked)
{
    t->copies.locked = locked;
    int err = mark_locked(t);
    t->is_for_nothing = err != 0;
    return err;
}

int
transaction_ask(struct transaction *t, struct fan *f, fan_call_fn make, const void *arg)
{
    int err = fan_ask(f, t->op, copies_left(&t->copies), make, arg);

    t->is_for_nothing = err != 0;
    return err;
}

/* A child that succeeded, but whose reply did not fit into memory, has not failed. A child that wrote a part
 * only has no space for the rest. */
int
transaction_judge(struct transaction *t, struct fan *f, bool (*has_failed)(const struct fan *f, unsigned i))
{
    child_set failed = 0;

    if (fan_is_symmetric(f)) {
        t->is_for_nothing = true;
        return -fan_errno(f);
    }
    for_each_child(i, f->sent)
    {
        if (f->unread & CHILD(i))
            continue;
        if (f->ret[i] < 0)
            failed |= f->ret[i] == -ENOTEMPTY && t->copies.what == CHANGE_ENTRY ? 0 : CHILD(i);
        else if (has_failed && has_failed(f, i)) {
            failed |= CHILD(i);
            t->copies.why = ENOSPC;
        }
    }
    t->copies.why = fan_errno(f) ? replica_worse_errno(t->copies.why, fan_errno(f)) : t->copies.why;
    t->copies.failed |= failed;
    child_set done = fan_done(f) & ~failed;
    if (copies_suffice(t->op, &t->copies, done))
        return f->good & ~failed ? 0 : -ENOMEM; /* done, but no reply is complete */
    t->is_in_vain = true;
    return copies_errno(&t->copies);
}

/* Returns the accusations to add or take back, and the name, whose index entry leads healers to it. */
static struct marks
transaction_marks_after(const struct transaction *t, unsigned n)
{
    struct marks m = marks_of(t, n);

    if (!t->is_in_vain || t->is_for_nothing)
        copies_accuse_after(t->op->r, &t->copies, !t->is_for_nothing, &m);
    if (t->is_for_nothing && t->doubted[n]) {
        m.about.count[CHANGE_DATA]--;
        m.accused = t->is_refused ? m.accused : 0; /* else the doubt is recorded once, and stays */
    }
    m.name = t->marked_name[n];
    if (m.name && t->copies.failed)
        m.name_key = DICT_KEY_XATTROP_ENTRY_CREATE;
    return m;
}

/* The stale copies that are left accuse no copy. `marked` has the children that set each mark. */
static void
take_accusations_back(struct transaction *t, const child_set marked[])
{
    for (unsigned n = 0; n < t->marked_count; n++) {
        struct marks m = transaction_marks_after(t, n);
        struct fan f;

        m.about.count[t->copies.what] = (uint32_t)-1;
        m.name_key = 0;
        fan_insist(&f, t->op, marked[n], marks_make, &m);
        fan_end(&f);
        view_forget(t->op->r, t->marked[n]);
    }
}

/* A refused change records its doubt about all names of a folder no more: the next change does. */
static void
forget_doubts(struct transaction *t)
{
    for (unsigned n = 0; n < t->marked_count; n++) {
        struct repl_inode *ri = t->doubted[n] ? inode_ctx(t->marked[n], t->op->r->xl) : NULL;

        if (ri)
            atomic_fetch_and(&ri->doubted, ~t->copies.accused);
    }
}

int
transaction_mark_after(struct transaction *t)
{
    child_set marked[2] = {0};
    bool is_on_good = true;
    int err = 0;

    for (unsigned n = 0; n < t->marked_count; n++) {
        struct marks m = transaction_marks_after(t, n);
        struct fan f;

        if (!m.accused)
            continue;
        int mark_err = copies_mark_after(t->op, &t->copies, &m, !t->is_for_nothing, &f);
        err = err ? err : mark_err;
        marked[n] = fan_done(&f);
        is_on_good &= !marked[n] || marked[n] & ~stale_by_marks(t, &f);
        fan_end(&f);
    }
    if (t->is_for_nothing && t->is_refused)
        forget_doubts(t);
    if (t->is_for_nothing || is_on_good)
        return err;
    take_accusations_back(t, marked);
    return copies_errno(&t->copies);
}

static void
transaction_reply(struct op *op, int err)
{
    if (op->stk && err)
        op_fail(op, err);
    else if (op->stk)
        op_reply(op);
}

/* Winds the unlocks before the reply, so that the caller's next call does not wait for these locks. */
void
transaction_end(struct transaction *t, int err)
{
    struct op *op = t->op;
    struct fan f[LOCK_ENTITIES_MAX];

    int mark_err = transaction_mark_after(t);
    if (!err)
        err = mark_err;
    locks_drop(op, t->entity, t->entity_count, t->copies.locked, f);
    if (op->is_pinned)
        transaction_reply(op, err);
    locks_dropped(op, t->entity, t->entity_count, f);
    transaction_reply(op, err);
}
