/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Heal of a folder's names.
 *
 *      lock       other healers out; the folder: versions and dirty counters; unlock
 *      decide     the sources have the highest data version, the sinks lower ones
 *      names      the names of every child, in batches under the folder's lock:
 *                   an object that K children have under the name stays; an object that fewer have goes, if
 *                   more than R children answer that they have another one or none, because it cannot be
 *                   rebuilt; then one object that is left is made on the children without it: linked or
 *                   moved from another name there, or made empty, after its other copies were marked
 *                   dirty, so that its contents are healed, from version 0. An object without a gfid,
 *                   which a brick has half made before it died, gets one and then goes.
 *                   If K children have the object under any name, a client may have died while it renamed the
 *                   object: a name of more than R children, whose removal no caller has seen, stays; from a
 *                   name of fewer children the object moves to the name that the others have (heal-move.c).
 *                   Others that have missed changes of the folder do not count: the RENAME was complete
 *                   without them, and then a client died in the removal of the new name.
 *                   A file that K children have, but with contents of which no K belong together, goes, if
 *                   a client has died while it removed the file
 *      end        the sinks' versions rise to that of the first look; dirty goes
 *
 * Of a large folder that a dead client leaves without a mark (dead-objects.c), only the names that some
 * children do not list are looked up.
 *
 * Each batch is a unit of the throttle (heal-throttle.h), and has one name while clients work.
 *
 * Names with several objects of K children each do not exist; with none of K nothing is done. */
#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "log/log.h"
#include "xlators/cluster/disperse/heal.h"

enum { NAMES_BYTES = 128 * 1024 };

/* A name on all children. */
struct ec_name {
    struct ec_heal *h;
    const char *name;
    child_set has, lacks; /* children in neither did not answer, or are nameless */
    child_set nameless;   /* children whose object has neither a gfid nor contents */
    child_set kept;       /* children of a half renamed object that stays, fewer than K */
    struct iatt stat[FAN_CHILDREN_MAX];
};

/* ---- calls ----------------------------------------------------------------------------------- */

static struct call_stack *
name_call(const struct ec_name *n, enum fop fop, unsigned i)
{
    struct call_stack *stk = ec_call(&n->h->op, fop, i, false, NULL, NULL);

    if (stk)
        stk->call.loc = (struct loc){.parent = inode_ref(n->h->op.inode), .name = n->name};
    return stk;
}

static struct call_stack *
name_lookup_make(const struct ec_op *op, unsigned i, bool is_spare, const void *arg)
{
    struct call_stack *stk = name_call(arg, FOP_lookup, i);

    (void)op;
    (void)is_spare;
    if (!stk)
        return NULL;
    if (call_xdata(stk) && !dict_set_int(stk->call.xdata, DICT_KEY_GFIDLESS_LOOKUP, 1))
        return stk;
    call_stack_free(stk);
    return NULL;
}

static int
look_up_name(struct ec_name *n)
{
    struct fan f;
    int err = ec_ask(&f, &n->h->op, n->h->on, name_lookup_make, n);

    n->has = n->lacks = n->nameless = 0;
    if (err)
        return err;
    for_each_child (i, f.sent) {
        if (f.good & CHILD(i)) {
            n->stat[i] = f.stk[i]->reply.stat;
            bool has_gfid = !gfid_is_null(&n->stat[i].gfid);
            n->has |= has_gfid ? CHILD(i) : 0;
            n->nameless |= !has_gfid && !(S_ISREG(n->stat[i].mode) && n->stat[i].size) ? CHILD(i) : 0;
        }
        n->lacks |= f.ret[i] == -ENOENT || f.ret[i] == -ESTALE ? CHILD(i) : 0;
    }
    err = fan_is_short(&f) ? -ENOMEM : 0;
    fan_end(&f);
    return err;
}

/* ---- objects without a gfid ------------------------------------------------------------------ */

/* Gives a gfid of its own to each object that a brick has half made, because it died then. Afterwards the
 * object is one that too few children have. */
static int
give_gfids(struct ec_name *n)
{
    for_each_child (i, n->nameless) {
        struct call_stack *stk = name_call(n, FOP_lookup, i);
        struct gfid gfid;

        gfid_random(&gfid);
        if (stk && (!call_xdata(stk) || dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid))) {
            call_stack_free(stk);
            stk = NULL;
        }
        int ret = ec_heal_send(n->h, i, stk);
        if (ret < 0)
            return ret == -ENOENT ? -EAGAIN : ret; /* for a second, another call may be making the object */
    }
    return look_up_name(n);
}

/* ---- removing -------------------------------------------------------------------------------- */

static child_set
children_with_gfid_of(const struct ec_name *n, unsigned i)
{
    child_set same = 0;

    for_each_child (k, n->has)
        same |= gfid_equal(&n->stat[k].gfid, &n->stat[i].gfid) ? CHILD(k) : 0;
    return same;
}

static int
ec_remove_on(struct ec_name *n, unsigned i)
{
    bool is_dir = S_ISDIR(n->stat[i].mode);
    struct call_stack *stk = name_call(n, is_dir ? FOP_rmdir : FOP_unlink, i);

    if (stk && is_dir)
        stk->call.flags = 1; /* with its contents */
    int ret = ec_heal_send(n->h, i, stk);

    return ret < 0 && ret != -ENOENT ? ret : 0;
}

static bool
has_object(struct ec_name *n, unsigned i, struct inode *inode)
{
    return ec_heal_send(n->h, i, ec_call(&n->h->op, FOP_lookup, i, false, inode, NULL)) >= 0;
}

/* Returns the children that have the object under another name only. */
static child_set
children_with_other_name(struct ec_name *n, child_set same, struct inode *inode)
{
    child_set has = 0;

    for_each_child (i, n->h->on & ~same)
        has |= has_object(n, i, inode) ? CHILD(i) : 0;
    return has;
}

/* Returns the children whose folder has the newest version, if they are K: they lack no change that a caller
 * has seen succeed. 0: not known. */
static child_set
folder_sources(const struct ec_heal *h)
{
    child_set sources = 0;
    uint64_t newest = 0;

    for_each_child (i, h->has)
        newest = h->copy[i].version[WORD_DATA] > newest ? h->copy[i].version[WORD_DATA] : newest;
    for_each_child (i, h->has)
        sources |= h->copy[i].version[WORD_DATA] == newest ? CHILD(i) : 0;
    return children_count(sources) >= h->op.d->data ? sources : 0;
}

/* Removes the name on child i, or moves the last name of an object that others have to their name for it. */
static int
lose_on(struct ec_name *n, unsigned i, struct inode *inode, child_set others)
{
    bool is_last = S_ISDIR(n->stat[i].mode) || n->stat[i].nlink == 1;
    int err = -ENODATA;

    if (others && is_last)
        err = ec_heal_move_back(n->h, i, others, inode, n->name);
    return err == -ENODATA ? ec_remove_on(n, i) : err;
}

/* Removes an object that the children of `same`, fewer than K, have under the name. */
static int
lose_object(struct ec_name *n, child_set same)
{
    struct disperse *d = n->h->op.d;
    struct inode *inode =
        inode_link(d->xl->graph->inodes, NULL, NULL, &n->stat[child_first(same)]);
    int err = 0;

    if (!inode)
        return -ENOMEM;
    child_set others = children_with_other_name(n, same, inode), sources = folder_sources(n->h);
    if (sources && !(others & sources))
        others = 0; /* they have missed the object's RENAME, and its removal came later */
    if (children_count(same | others) < d->data)
        others = 0; /* it cannot be rebuilt */
    if (others && children_count(same) > d->redundancy && !n->kept) {
        n->kept = same;
        inode_unref(inode);
        return 0;
    }
    for_each_child (i, same) {
        int ret = lose_on(n, i, inode, others);

        err = ret ? ret : err;
        if (!ret) {
            n->has &= ~CHILD(i);
            n->lacks |= CHILD(i);
        }
    }
    inode_unref(inode);
    return err;
}

/* Removes objects that too few children have. */
static int
remove_lost(struct ec_name *n)
{
    struct disperse *d = n->h->op.d;
    child_set left = n->has;
    int err = 0;

    while (left) {
        child_set same = children_with_gfid_of(n, child_first(left));
        child_set others = (n->has & ~same) | n->lacks;

        left &= ~same;
        if (children_count(same) >= d->data || children_count(others) <= d->redundancy)
            continue;
        int ret = lose_object(n, same);
        err = ret ? ret : err;
    }
    return err;
}

/* ---- making ---------------------------------------------------------------------------------- */

static int
ec_link_on(struct ec_name *n, unsigned i, struct inode *inode)
{
    struct call_stack *stk = ec_call(&n->h->op, FOP_link, i, false, inode, NULL);

    if (stk)
        stk->call.loc2 = (struct loc){.parent = inode_ref(n->h->op.inode), .name = n->name};
    int ret = ec_heal_send(n->h, i, stk);

    return ret < 0 ? ret : 0;
}

static int
fill_new(const struct ec_name *n, struct call_stack *stk, const struct iatt *a)
{
    static const unsigned char zeros[16];
    struct dict *x = call_xdata(stk);
    struct disperse *d = n->h->op.d;
    int err = x ? dict_set_gfid(x, DICT_KEY_GFID_REQ, &a->gfid) : -ENOMEM;

    if (!err && S_ISREG(a->mode))
        err = dict_set_text(x, "trusted.ec.config", DICT_PTR, d->config, sizeof d->config);
    if (!err && S_ISREG(a->mode))
        err = dict_set_text(x, "trusted.ec.size", DICT_PTR, zeros, 8);
    if (!err && (S_ISREG(a->mode) || S_ISDIR(a->mode)))
        err = dict_set_text(x, "trusted.ec.version", DICT_PTR, zeros, 16);
    return err ? err : dict_set_int(x, DICT_KEY_INTERNAL_FOP, 1);
}

/* Makes an empty object on child i; `target`: of a symbolic link. */
static int
make_object_on(struct ec_name *n, unsigned i, const struct iatt *a, const char *target)
{
    enum fop fop = S_ISDIR(a->mode) ? FOP_mkdir : S_ISLNK(a->mode) ? FOP_symlink : FOP_mknod;
    struct call_stack *stk = name_call(n, fop, i);

    if (stk && fill_new(n, stk, a)) {
        call_stack_free(stk);
        stk = NULL;
    }
    if (stk) {
        stk->caller.uid = a->uid;
        stk->caller.gid = a->gid;
        stk->call.mode = S_ISDIR(a->mode) ? a->mode & 07777 : a->mode;
        stk->call.rdev = makedev((unsigned)(a->rdev >> 32), (unsigned)a->rdev);
        stk->call.name2 = target;
    }
    int ret = ec_heal_send(n->h, i, stk);

    return ret < 0 ? ret : 0;
}

static int
mark_dirty(struct ec_name *n, child_set on, struct inode *inode, const struct iatt *a)
{
    struct ec_change c[FAN_CHILDREN_MAX] = {0};

    if (!S_ISREG(a->mode) && !S_ISDIR(a->mode) && !S_ISLNK(a->mode))
        return 0;
    for_each_child (i, on)
        c[i] = (struct ec_change){.dirty = {!S_ISLNK(a->mode), 1}};
    return ec_heal_add(n->h, on, inode, c, NULL);
}

/* Gives the name to the object on a child that has it under another name. Of a half renamed file with one
 * name, that is the old or the new name. Returns -ENOENT: the child does not have the object. */
static int
place_on(struct ec_name *n, unsigned i, struct inode *inode, const struct iatt *a)
{
    bool has = has_object(n, i, inode), moves = S_ISDIR(a->mode) || (n->kept && a->nlink == 1);
    int err = has ? 0 : -ENOENT;

    if (has && moves && n->kept && ec_heal_move_would_uncover(n->h, i, inode))
        return -EAGAIN; /* the other name exists in any case: its heal comes first */
    if (has && moves)
        err = ec_heal_move(n->h, i, inode, n->name);
    if (has && !S_ISDIR(a->mode) && (!moves || err == -ENOENT || err == -ESTALE))
        err = ec_link_on(n, i, inode);
    return err == -ESTALE ? -ENOENT : err;
}

/* Makes the object on the children of `on`, marked dirty first, so that its contents are healed. */
static int
make_objects_on(struct ec_name *n, child_set on, struct inode *inode, const struct iatt *a)
{
    unsigned from = child_first(n->has);
    struct call_stack *text = NULL;
    int err = on ? mark_dirty(n, n->has, inode, a) : 0;

    if (!err && on && S_ISLNK(a->mode)) {
        text = ec_call(&n->h->op, FOP_readlink, from, false, inode, NULL);
        if (text)
            text->call.size = FOP_LINKNAME_MAX + 1;
        int ret = text ? coro_call(text, n->h->op.d->xl->children[from]) : -ENOMEM;
        err = ret < 0 ? ret : 0;
    }
    for_each_child (i, on) {
        int ret = err ? err : make_object_on(n, i, a, text ? text->reply.path : NULL);

        err = ret && ret != -EEXIST ? ret : err;
    }
    if (text)
        call_stack_free(text);
    return err;
}

/* ---- a file whose removal a dead client has begun -------------------------------------------- */

/* Looks at the file on the children of `of`, with its lock there if `locks`. Returns 0, or -EAGAIN if the
 * look was not possible. */
static int
see_contents(const struct ec_name *n, struct inode *inode, child_set of, bool locks, bool *is_whole)
{
    const struct disperse *d = n->h->op.d;
    struct ec_heal file;
    int err = 0;

    ec_heal_begin(&file, n->h->op.d, inode);
    child_set locked = locks ? ec_locks_take(&file.op, inode, d->xl->name, file.lock_owner, of, &err) : 0;
    if (!locks || locked == of)
        (void)ec_heal_see(&file); /* an error: exactly K children have the file */
    *is_whole = children_count(ec_largest_equal(&file)) >= d->data;
    ec_locks_drop(&file.op, inode, d->xl->name, file.lock_owner, locked);
    ec_heal_end(&file);
    return (file.has | file.lacks) == d->all ? 0 : -EAGAIN;
}

/* Heals the contents on more than K children. */
static int
heal_contents(struct disperse *d, struct inode *inode, child_set of)
{
    struct ec_heal file;

    ec_heal_begin(&file, d, inode);
    file.on &= of;
    file.is_patient = true;
    file.unit_ns = heal_unit_begin(&d->throttle);
    int err = ec_heal_see(&file);
    if (!err)
        err = ec_heal_data(&file);
    heal_unit_end(&d->throttle, file.unit_ns);
    ec_heal_end(&file);
    return err;
}

/* Sets *is: a client has died while it removed the file's last name, so that fewer than K children have the
 * newest contents, and no heal can help. A child whose folder has the newest version lacks the file for no
 * other reason. Such a file is removed: no caller has seen that it stays. Returns 0, or -errno: not known
 * yet, because the heal of the file waits for a client that may return, or a child is away. */
static int
judge_half_removed(const struct ec_name *n, child_set without, struct inode *inode, bool *is)
{
    const struct ec_heal *h = n->h;
    bool is_whole = true;
    child_set with = h->op.d->all & ~without;

    *is = false;
    if (!S_ISREG(inode_type(inode)) || !(without & folder_sources(h)))
        return 0;
    int err = see_contents(n, inode, with, false, &is_whole);
    if (is_whole)
        return 0;
    if (err)
        return err;
    (void)ec_mend_raise(h->op.d, inode, with);
    err = children_count(with) > h->op.d->data ? heal_contents(h->op.d, inode, with) : 0;
    if (err == -EAGAIN || err == -ENOTCONN || err == -ENOMEM)
        return err;
    err = see_contents(n, inode, with, true, &is_whole);
    *is = !err && !is_whole;
    return err;
}

static int
remove_rests(struct ec_name *n, child_set from, struct inode *inode)
{
    int err = 0;

    log_event(LOG_INFO, n->h->op.d->xl, "disperse-heal-removes",
              "removing %s/%s (%s): a client died while it removed the file, and too few bricks have its "
              "contents",
              GFID(&n->h->op.inode->gfid), n->name, GFID(&inode->gfid));
    for_each_child (i, from) {
        int ret = ec_remove_on(n, i);

        err = ret ? ret : err;
    }
    return err;
}

/* ---- making an object on all children -------------------------------------------------------- */

/* Makes the object on the children without the name. */
static int
make_missing_objects(struct ec_name *n, struct inode *inode, const struct iatt *a)
{
    child_set without = 0;
    bool is_half_removed = false;
    int err = 0;

    for_each_child (i, n->lacks) {
        int ret = place_on(n, i, inode, a);

        without |= ret == -ENOENT ? CHILD(i) : 0;
        err = ret && ret != -ENOENT && ret != -EEXIST ? ret : err;
    }
    int ret = without ? judge_half_removed(n, without, inode, &is_half_removed) : 0;
    if (ret)
        return ret;
    if (is_half_removed) /* a child that may have the file under another name decides first */
        return err ? err : remove_rests(n, n->h->op.d->all & ~without, inode);
    ret = make_objects_on(n, without, inode, a);
    return ret ? ret : err;
}

/* ---- a name ---------------------------------------------------------------------------------- */

static bool
is_settled(const struct ec_name *n)
{
    if (n->nameless)
        return false;
    return !n->has || (!n->lacks && children_with_gfid_of(n, child_first(n->has)) == n->has);
}

/* Makes the object, of which all copies are the same, on the children without the name. */
static int
make_object(struct ec_name *n)
{
    const struct iatt *a = &n->stat[child_first(n->has)];
    struct inode *inode = inode_link(n->h->op.d->xl->graph->inodes, NULL, NULL, a);
    int err = inode ? make_missing_objects(n, inode, a) : -ENOMEM;

    inode_unref(inode);
    return err;
}

static int
settle_name(struct ec_name *n)
{
    int err = look_up_name(n);

    if (!err && n->nameless)
        err = give_gfids(n);
    if (err || is_settled(n))
        return err;
    err = remove_lost(n);
    if (err || is_settled(n))
        return err;
    child_set same = children_with_gfid_of(n, child_first(n->has));
    if (same != n->has || (same != n->kept && children_count(same) < n->h->op.d->data))
        return -EIO; /* no K children agree */
    return make_object(n);
}

/* ---- a batch of names ------------------------------------------------------------------------ */

enum { BATCH_NAMES = 32 };

struct name_batch {
    struct ec_heal *h;
    unsigned count;
    struct batched_name {
        const char *name;
        enum { NAME_SETTLED, NAME_SIMPLE, NAME_OTHER } state;
        int err;
    } at[BATCH_NAMES];
};

/* Returns whether nothing but the making of an object with this one name is needed, which disturbs the heal
 * of no other name. */
static bool
is_simple(const struct ec_name *n)
{
    child_set same = n->has ? children_with_gfid_of(n, child_first(n->has)) : 0;
    bool is = same && same == n->has && !n->nameless && children_count(same) >= n->h->op.d->data;

    for_each_child (i, n->has)
        is &= !S_ISDIR(n->stat[i].mode) && n->stat[i].nlink == 1;
    return is;
}

/* Without the lock, because most names are settled. */
static void
judge_name(void *arg, size_t at)
{
    struct name_batch *b = arg;
    struct batched_name *m = &b->at[at];
    struct ec_name n = {.h = b->h, .name = m->name};

    m->err = look_up_name(&n);
    m->state = m->err || is_settled(&n) ? NAME_SETTLED : is_simple(&n) ? NAME_SIMPLE : NAME_OTHER;
}

static void
settle_simple_name(void *arg, size_t at)
{
    struct name_batch *b = arg;
    struct batched_name *m = &b->at[at];
    struct ec_name n = {.h = b->h, .name = m->name};

    if (m->state != NAME_SIMPLE)
        return;
    m->err = ec_heal_must_stop(b->h) ? -ENOTCONN : look_up_name(&n);
    if (m->err || is_settled(&n))
        m->state = NAME_SETTLED;
    else if (!is_simple(&n))
        m->state = NAME_OTHER;
    else
        m->err = make_object(&n);
}

/* Makes new files in several coroutines at once; folders, files of several names, and names that have to
 * go, one after another. Returns the first error of a name. */
static int
heal_batch(struct name_batch *b)
{
    struct ec_heal *h = b->h;
    bool is_any = false;
    int err = 0;

    coro_each(HEAL_LANES, b->count, judge_name, b);
    for (unsigned n = 0; n < b->count; n++)
        is_any |= b->at[n].state != NAME_SETTLED;
    if (is_any) {
        err = ec_heal_lock(h, h->op.inode);
        if (err)
            return err;
        coro_each(HEAL_LANES, b->count, settle_simple_name, b);
        for (unsigned n = 0; n < b->count; n++) {
            struct ec_name name = {.h = h, .name = b->at[n].name};

            if (b->at[n].state == NAME_OTHER)
                b->at[n].err = settle_name(&name);
        }
        ec_heal_unlock(h, h->op.inode);
    }
    for (unsigned n = 0; n < b->count; n++)
        err = err ? err : b->at[n].err;
    return err;
}

/* ---- listing --------------------------------------------------------------------------------- */

bool
ec_heal_is_brick_own(const struct inode *dir, const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
           (gfid_is_root(&dir->gfid) &&
            (strcmp(name, ".glusterfs") == 0 || strcmp(name, ".landfill") == 0 ||
             strncmp(name, ".glusterfs-anonymous-inode", 26) == 0));
}

/* A part of child i's listing. Returns the first error of a name, which does not end the listing; sets *ret
 * to an error that does. */
typedef int (*part_fn)(struct ec_heal *h, unsigned i, struct dirent_entry *e, int *ret);

static int
collect_part(struct ec_heal *h, unsigned i, struct dirent_entry *e, int *ret)
{
    for (; e && *ret >= 0; e = e->next) {
        int err = name_sets_add(h->names, i, e->name);

        *ret = err ? err : *ret;
    }
    return 0;
}

static bool
must_look_up(const struct ec_heal *h, const char *name)
{
    return !ec_heal_is_brick_own(h->op.inode, name) && !(h->names && name_sets_all_have(h->names, name));
}

static int
heal_part(struct ec_heal *h, unsigned i, struct dirent_entry *e, int *ret)
{
    struct heal_throttle *throttle = &h->op.d->throttle;
    int first_err = 0;

    (void)i;
    while (e && *ret >= 0) {
        unsigned most = heal_gives_way(throttle) ? 1 : BATCH_NAMES;
        struct name_batch b = {.h = h};

        for (; e && b.count < most; e = e->next) {
            if (must_look_up(h, e->name))
                b.at[b.count++].name = e->name;
        }
        uint64_t begun = heal_unit_begin(throttle);
        *ret = ec_heal_must_stop(h) ? -ENOTCONN : *ret;
        int err = *ret < 0 ? 0 : heal_batch(&b);
        heal_unit_end(throttle, begun);
        first_err = first_err ? first_err : err;
    }
    return first_err;
}

/* Lists a part. Returns 1: there is more; 0: the end; or -errno. */
static int
list_part(struct ec_heal *h, unsigned i, struct fd *fd, uint64_t *offset, part_fn each, int *first_err)
{
    struct call_stack *stk = ec_heal_call(h, FOP_readdir, i);

    if (!stk)
        return -ENOMEM;
    stk->call.fd = fd_ref(fd);
    stk->call.offset = *offset;
    stk->call.size = NAMES_BYTES;
    int ret = coro_call(stk, h->op.d->xl->children[i]);
    struct dirent_entry *first = ret >= 0 ? stk->reply.entries : NULL;

    for (const struct dirent_entry *e = first; e; e = e->next)
        *offset = e->off;
    int err = first ? each(h, i, first, &ret) : 0;
    *first_err = *first_err ? *first_err : err;
    call_stack_free(stk);
    return ret < 0 ? ret : first != NULL;
}

/* Returns the first error of a name, which does not end the listing, or of the listing. */
static int
list_names_of(struct ec_heal *h, unsigned i, part_fn each)
{
    struct call_stack *stk = ec_heal_call(h, FOP_opendir, i);
    int first_err = 0, ret = stk ? coro_call(stk, h->op.d->xl->children[i]) : -ENOMEM;
    uint64_t offset = 0;

    while (ret >= 0) {
        ret = list_part(h, i, stk->reply.fd, &offset, each, &first_err);
        if (ret == 0)
            break;
    }
    if (stk)
        call_stack_free(stk);
    return ret < 0 ? ret : first_err;
}

/* Heals the names of all children. Names that change after they were collected are looked up, too. */
static int
heal_all_names(struct ec_heal *h)
{
    int err = 0;

    for_each_child (i, h->names ? h->has : 0)
        err = err ? err : list_names_of(h, i, collect_part);
    if (h->names)
        name_sets_sort(h->names);
    for_each_child (i, err ? 0 : h->has) {
        int ret = list_names_of(h, i, heal_part);

        err = ret ? ret : err;
    }
    return err;
}

/* ---- a folder -------------------------------------------------------------------------------- */

static int
end_folder(struct ec_heal *h, uint64_t newest)
{
    struct ec_change c[FAN_CHILDREN_MAX] = {0};
    child_set behind = 0;

    for_each_child (i, h->has) {
        c[i].version[WORD_DATA] = newest - h->copy[i].version[WORD_DATA];
        behind |= c[i].version[WORD_DATA] ? CHILD(i) : 0;
    }
    int err = ec_heal_add(h, behind, h->op.inode, c, NULL);
    return err ? err : ec_heal_clear_dirty(h, h->has, WORD_DATA);
}

static int
ec_heal_folder(struct ec_heal *h)
{
    uint64_t newest = 0;
    int err = ec_heal_lock(h, h->op.inode);

    if (err)
        return err;
    err = ec_heal_see(h);
    ec_heal_unlock(h, h->op.inode);
    for_each_child (i, h->has)
        newest = h->copy[i].version[WORD_DATA] > newest ? h->copy[i].version[WORD_DATA] : newest;
    heal_unit_end(&h->op.d->throttle, h->unit_ns);
    if (!err)
        err = heal_all_names(h);
    h->unit_ns = heal_unit_begin(&h->op.d->throttle);
    if (err)
        return err;
    err = ec_heal_lock(h, h->op.inode);
    if (err)
        return err;
    err = end_folder(h, newest);
    ec_heal_unlock(h, h->op.inode);
    return err;
}

int
ec_heal_entries(struct ec_heal *h)
{
    int err = ec_healer_lock(h);

    if (err)
        return err;
    err = ec_heal_folder(h);
    ec_healer_unlock(h);
    return err;
}
