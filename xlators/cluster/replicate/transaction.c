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

/* Values on the wire (wire 6.2). */
enum { INODE_LOCK_NOW = 1, INODE_LOCK_WAIT = 2 };
enum { ENTRY_LOCK_WAIT = 0, ENTRY_UNLOCK = 1, ENTRY_LOCK_NOW = 2 };
enum lock_how { LOCK_NOW, LOCK_WAIT, LOCK_DROP };

/* ---- locks ----------------------------------------------------------------------------------- */

static void
fill_entry_lock(struct fop_call *call, const struct lock_entity *e, enum lock_how how)
{
    static const uint32_t cmds[] = {
        [LOCK_NOW] = ENTRY_LOCK_NOW, [LOCK_WAIT] = ENTRY_LOCK_WAIT, [LOCK_DROP] = ENTRY_UNLOCK};

    call->cmd = cmds[how];
    call->type = FLOCK_WRITE;
    call->name = e->name ? e->name : "";
    call->has_name = e->name != NULL;
}

static void
fill_inode_lock(struct fop_call *call, const struct lock_entity *e, enum lock_how how)
{
    call->cmd = how == LOCK_WAIT ? INODE_LOCK_WAIT : INODE_LOCK_NOW;
    call->type = how == LOCK_DROP ? FLOCK_UNLOCK : FLOCK_WRITE;
    call->flock = (struct fop_flock){
        .type = call->type, .start = (int64_t)e->start, .len = (int64_t)e->len};
}

static struct call_stack *
lock_make(const struct op *op, const struct lock_entity *e, unsigned i, enum lock_how how)
{
    struct fd *fd = op->file && e->inode == op->inode && !e->is_entry ? repl_fd_child(op->file, i) : NULL;
    struct call_stack *stk = op_call(op, e->is_entry ? FOP_entrylk : fd ? FOP_finodelk : FOP_inodelk, i);

    if (!stk)
        return NULL;
    inode_unref(stk->call.loc.inode);
    stk->call.loc.inode = inode_ref(e->inode);
    stk->call.volume = e->domain ? e->domain : op->r->xl->name;
    if (e->is_entry)
        fill_entry_lock(&stk->call, e, how);
    else
        fill_inode_lock(&stk->call, e, how);
    return stk;
}

struct call_stack *
lock_now_make(const struct op *op, unsigned i, const struct lock_entity *e)
{
    return lock_make(op, e, i, LOCK_NOW);
}

struct call_stack *
lock_drop_make(const struct op *op, unsigned i, const struct lock_entity *e)
{
    return lock_make(op, e, i, LOCK_DROP);
}

static void
wind_lock(const struct op *op, struct fan *f, const struct lock_entity *e, child_set on, enum lock_how how)
{
    fan_begin(f);
    for_each_child(i, on) fan_wind(f, op, i, lock_make(op, e, i, how));
}

static struct call_stack *
unlock_make(const struct op *op, unsigned i, const void *e)
{
    return lock_make(op, e, i, LOCK_DROP);
}

/* Ignores the replies: a child that has lost the connection has dropped its locks. */
void
locks_drop_one(const struct op *op, const struct lock_entity *e, child_set on)
{
    struct fan f;

    fan_insist(&f, op, on, unlock_make, e);
    fan_end(&f);
}

void
locks_drop(const struct op *op, const struct lock_entity *e, unsigned count, child_set on, struct fan *fans)
{
    for (unsigned k = 0; k < count; k++)
        wind_lock(op, &fans[k], &e[k], on, LOCK_DROP);
}

void
locks_dropped(const struct op *op, const struct lock_entity *e, unsigned count, struct fan *fans)
{
    for (unsigned k = 0; k < count; k++) {
        fan_wait(&fans[k]);
        child_set left = fans[k].unsent;

        fan_end(&fans[k]);
        if (left)
            locks_drop_one(op, &e[k], left);
    }
}

/* Locks one child after the other, waiting. */
static child_set
locks_take_in_turn(const struct op *op, const struct lock_entity *e, unsigned count, child_set on, int *err)
{
    child_set has[LOCK_ENTITIES_MAX] = {0}, locked = on;
    struct fan f;

    for (unsigned k = 0; k < count; k++) {
        for_each_child(i, on)
        {
            if (!(locked & CHILD(i)))
                continue;
            wind_lock(op, &f, &e[k], CHILD(i), LOCK_WAIT);
            fan_wait(&f);
            if (fan_done(&f))
                has[k] |= CHILD(i);
            else
                *err = replica_worse_errno(*err, fan_errno(&f));
            locked &= fan_done(&f) ? locked : ~CHILD(i);
            if (f.unsent) { /* out of memory: ask no further child */
                *err = ENOMEM;
                locked = 0;
            }
            fan_end(&f);
        }
    }
    for (unsigned k = 0; k < count; k++)
        locks_drop_one(op, &e[k], has[k] & ~locked);
    return locked;
}

child_set
locks_take(const struct op *op, const struct lock_entity *e, unsigned count, child_set on, int *err)
{
    struct fan f[LOCK_ENTITIES_MAX];
    child_set locked = on, has[LOCK_ENTITIES_MAX];
    bool is_taken = false, is_short = false;

    for (unsigned k = 0; k < count; k++)
        wind_lock(op, &f[k], &e[k], on, LOCK_NOW);
    for (unsigned k = 0; k < count; k++) {
        fan_wait(&f[k]);
        has[k] = fan_done(&f[k]);
        locked &= has[k];
        is_short |= f[k].unsent;
        for_each_child(i, f[k].sent & ~f[k].good) is_taken |= f[k].ret[i] == -EAGAIN;
        *err = replica_worse_errno(*err, fan_errno(&f[k]));
        fan_end(&f[k]);
    }
    if (is_taken || is_short)
        locked = 0;
    for (unsigned k = 0; k < count; k++)
        locks_drop_one(op, &e[k], has[k] & ~locked);
    if (is_short)
        *err = ENOMEM;
    if (!is_taken || is_short)
        return locked;
    *err = 0;
    return locks_take_in_turn(op, e, count, on, err);
}

child_set
locks_try(const struct op *op, const struct lock_entity *e, child_set on)
{
    struct fan f;

    wind_lock(op, &f, e, on, LOCK_NOW);
    fan_wait(&f);
    child_set has = fan_done(&f);
    fan_end(&f);
    return has;
}

/* ---- marks ----------------------------------------------------------------------------------- */

static int
add_counter(struct call_stack *stk, const char *key, const struct changelog *c)
{
    unsigned char *bytes = arena_alloc(&stk->arena, CHANGELOG_BYTES);

    if (!bytes)
        return -ENOMEM;
    changelog_put(c, bytes);
    const struct dict_pair p = {.key = key,
                                .key_len = (uint16_t)strlen(key),
                                .type = DICT_PTR,
                                .len = CHANGELOG_BYTES,
                                .v.bytes = bytes};

    return dict_append(stk->call.dict, &p) ? 0 : -ENOMEM;
}

static int
fill_marks(const struct replicate *r, struct call_stack *stk, const struct marks *m)
{
    static const struct changelog none;

    stk->call.dict = dict_new(&stk->arena);
    int err = stk->call.dict ? add_counter(stk, "trusted.afr.dirty", &m->dirty) : -ENOMEM;

    for (unsigned k = 0; k < r->count && !err; k++) {
        const struct changelog *about = m->each ? &m->each[k] : &m->about;

        err = add_counter(stk, r->keys[k], m->each || m->accused & CHILD(k) ? about : &none);
    }
    if (!err && (m->name_key || m->purges_names))
        err = call_xdata(stk) ? 0 : -ENOMEM;
    if (!err && m->name_key)
        err = dict_set_str(stk->call.xdata, m->name_key, m->name);
    if (!err && m->purges_names)
        err = dict_set_int(stk->call.xdata, DICT_KEY_XATTROP_PURGE_INDEX, 1);
    return err;
}

struct call_stack *
marks_call(const struct op *op, unsigned i, const struct marks *m)
{
    struct fd *fd = m->file ? repl_fd_child(m->file, i) : NULL;
    struct call_stack *stk = op_call_new(op);

    if (!stk)
        return NULL;
    stk->caller = op->caller;
    stk->call.fop = fd ? FOP_fxattrop : FOP_xattrop;
    stk->call.fd = fd ? fd_ref(fd) : NULL;
    stk->call.loc.inode = inode_ref(m->inode);
    if (!fill_marks(op->r, stk, m))
        return stk;
    call_stack_free(stk);
    return NULL;
}

struct call_stack *
marks_make(const struct op *op, unsigned i, const void *m)
{
    return marks_call(op, i, m);
}

void
marks_read(const struct replicate *r, const struct fan *f, struct replica out[REPLICAS_MAX])
{
    memset(out, 0, REPLICAS_MAX * sizeof *out);
    for_each_child(i, f->good)
    {
        const struct dict *d = f->stk[i]->reply.dict;

        out[i].is_there = true;
        for (unsigned k = 0; k < r->count; k++) {
            const struct dict_pair *p = dict_find_text(d, r->keys[k]);

            if (p && (p->type == DICT_PTR || p->type == DICT_UNTYPED || p->type == DICT_STR))
                changelog_get(&out[i].about[k], p->v.bytes, p->len);
        }
    }
}

/* ---- a transaction --------------------------------------------------------------------------- */

/* The lock owner is the address of a struct on the coroutine's stack, which is unique while the lock is
 * held. */
void
transaction_init(struct transaction *t, struct op *op, enum change what)
{
    uint64_t owner = (uint64_t)(uintptr_t)t;

    *t = (struct transaction){.op = op, .what = what, .readable = op->readable};
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
    bool is_own = t->marked[n] == t->op->inode && t->what != CHANGE_ENTRY;
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
    return changelog_accused(replicas, t->op->r->count, t->what) & f->good;
}

/* Sets the mark before, which accuses the missing children. Returns 0; -ENOMEM: no mark was set. */
static int
mark_before(struct transaction *t)
{
    child_set to = t->locked & ~t->failed, missing = t->op->r->all & ~to;
    struct fan f;

    for (unsigned n = 0; n < t->marked_count; n++) {
        struct marks m = marks_of(t, n);

        m.accused = missing;
        m.about.count[t->what] = 1;
        t->doubted[n] = t->what == CHANGE_ENTRY && doubts_all_names(t, t->marked[n], missing);
        m.about.count[CHANGE_DATA] += t->doubted[n];
        m.name_key = t->marked_name[n] ? DICT_KEY_XATTROP_ENTRY_CREATE : 0;
        m.name = t->marked_name[n];
        if (n > 0)
            fan_insist(&f, t->op, t->locked & ~t->failed, marks_make, &m);
        else if (fan_ask(&f, t->op, to, marks_make, &m))
            return -ENOMEM;
        t->failed |= f.sent & ~fan_done(&f);
        t->why = replica_worse_errno(t->why, fan_errno(&f));
        t->stale[n] = stale_by_marks(t, &f);
        fan_end(&f);
        view_drop(t->op->r, t->marked[n], t->what, missing);
    }
    t->accused = missing;
    return 0;
}

static void
transaction_unlock(struct transaction *t)
{
    struct fan f[LOCK_ENTITIES_MAX];

    locks_drop(t->op, t->entity, t->entity_count, t->locked, f);
    locks_dropped(t->op, t->entity, t->entity_count, f);
}

/* Returns the reason of a child that refused, for example a folder that is being removed; else ENOTCONN. */
static int
quorum_errno(const struct transaction *t)
{
    return t->why ? -t->why : -ENOTCONN;
}

/* Returns whether the change would be on a good copy of each object. On copies that others accuse already it
 * would be lost. */
static bool
is_good_on(const struct transaction *t, child_set done)
{
    bool is_good = !t->readable || done & t->readable;

    for (unsigned n = 0; n < t->marked_count; n++)
        is_good &= (done & ~t->stale[n]) != 0;
    return is_good;
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
    child_set left = t->locked & ~t->failed;

    if (!op_has_quorum(t->op, left))
        return quorum_errno(t);
    if (is_good_on(t, left))
        return 0;
    t->is_refused = true;
    return t->what == CHANGE_ENTRY ? quorum_errno(t) : -EIO;
}

int
transaction_begin(struct transaction *t)
{
    struct replicate *r = t->op->r;

    t->up = atomic_load(&r->up);
    if (!op_has_quorum(t->op, t->up))
        return -ENOTCONN;
    if (t->what == CHANGE_ENTRY && t->up != r->all && op_wants_quorum(t->op) && are_all_names_stale(t))
        return -ENOTCONN;
    t->locked = locks_take(t->op, t->entity, t->entity_count, t->up, &t->why);
    if (!t->locked)
        return quorum_errno(t);
    int err = check_left(t);
    if (!err && t->locked != r->all) {
        err = mark_before(t);
        err = err ? err : check_left(t);
    }
    if (!err)
        return 0;
    if (t->accused)
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
    t->up = atomic_load(&t->op->r->up);
    t->locked = locked;
    int err = check_left(t);
    if (!err && locked != t->op->r->all) {
        err = mark_before(t);
        err = err ? err : check_left(t);
    }
    t->is_for_nothing = err != 0;
    return err;
}

int
transaction_ask(struct transaction *t, struct fan *f, fan_call_fn make, const void *arg)
{
    int err = fan_ask(f, t->op, t->locked & ~t->failed, make, arg);

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
            failed |= f->ret[i] == -ENOTEMPTY && t->what == CHANGE_ENTRY ? 0 : CHILD(i);
        else if (has_failed && has_failed(f, i)) {
            failed |= CHILD(i);
            t->why = ENOSPC;
        }
    }
    t->why = fan_errno(f) ? replica_worse_errno(t->why, fan_errno(f)) : t->why;
    t->failed |= failed;
    child_set done = fan_done(f) & ~failed;
    if (op_has_quorum(t->op, done) && is_good_on(t, done))
        return f->good & ~failed ? 0 : -ENOMEM; /* done, but no reply is complete */
    t->is_in_vain = true;
    return quorum_errno(t);
}

/* Returns the accusations to add or take back, and the name, whose index entry leads healers to it. */
static struct marks
transaction_marks_after(const struct transaction *t, unsigned n)
{
    struct marks m = marks_of(t, n);
    child_set missing = t->op->r->all & ~(t->locked & ~t->failed);

    if (t->is_for_nothing) {
        bool keeps = t->doubted[n] && !t->is_refused; /* the doubt is recorded once, and stays */

        m.accused = keeps ? 0 : t->accused;
        m.about.count[t->what] = (uint32_t)-1;
        m.about.count[CHANGE_DATA] -= t->doubted[n];
    } else if (!t->is_in_vain) {
        m.accused = missing & ~t->accused;
        m.about.count[t->what] = 1;
    }
    m.name = t->marked_name[n];
    if (m.name && t->failed)
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

        m.about.count[t->what] = (uint32_t)-1;
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
            atomic_fetch_and(&ri->doubted, ~t->accused);
    }
}

int
transaction_mark_after(struct transaction *t)
{
    child_set good = t->locked & ~t->failed, marked[2] = {0};
    bool is_on_good = true;
    int err = 0;

    for (unsigned n = 0; n < t->marked_count; n++) {
        struct marks m = transaction_marks_after(t, n);
        struct fan f;

        if (!m.accused)
            continue;
        if (!t->is_for_nothing)
            view_drop(t->op->r, t->marked[n], t->what, m.accused);
        fan_insist(&f, t->op, good, marks_make, &m);
        marked[n] = fan_done(&f);
        if (!op_has_quorum(t->op, marked[n]) && !err)
            err = fan_errno(&f) ? -fan_errno(&f) : -ENOTCONN;
        is_on_good &= !marked[n] || marked[n] & ~stale_by_marks(t, &f);
        fan_end(&f);
    }
    if (t->is_for_nothing && t->is_refused)
        forget_doubts(t);
    if (t->is_for_nothing || is_on_good)
        return err;
    take_accusations_back(t, marked);
    return quorum_errno(t);
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
    locks_drop(op, t->entity, t->entity_count, t->locked, f);
    if (op->is_pinned)
        transaction_reply(op, err);
    locks_dropped(op, t->entity, t->entity_count, f);
    transaction_reply(op, err);
}
