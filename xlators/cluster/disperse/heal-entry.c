/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Heal of a folder's names.
 *
 *      lock       other healers out; the folder: versions and dirty counters; unlock
 *      decide     the sources have the highest data version, the sinks lower ones
 *      names      the names of every child, each under the folder's lock:
 *                   an object that K children have under the name stays; an object that fewer have goes, if
 *                   more than R children answer that they have another one or none, because it cannot be
 *                   rebuilt; then one object that is left is made on the children without it: linked or
 *                   moved from another name there, or made empty. First the object's other copies are
 *                   marked dirty, so that its contents are healed, from version 0
 *      end        the sinks' versions rise to that of the first look; dirty goes
 *
 * Each name is a unit of the throttle (heal-throttle.h).
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
    child_set has, lacks; /* children in neither did not answer */
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
    (void)op;
    (void)is_spare;
    return name_call(arg, FOP_lookup, i);
}

static int
look_up_name(struct ec_name *n)
{
    struct fan f;
    int err = ec_ask(&f, &n->h->op, n->h->on, name_lookup_make, n);

    n->has = n->lacks = 0;
    if (err)
        return err;
    for_each_child (i, f.sent) {
        if (f.good & CHILD(i))
            n->stat[i] = f.stk[i]->reply.stat;
        n->has |= f.good & CHILD(i);
        n->lacks |= f.ret[i] == -ENOENT || f.ret[i] == -ESTALE ? CHILD(i) : 0;
    }
    err = fan_is_short(&f) ? -ENOMEM : 0;
    fan_end(&f);
    return err;
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
        for_each_child (i, same) {
            int ret = ec_remove_on(n, i);

            err = ret ? ret : err;
            if (!ret) {
                n->has &= ~CHILD(i);
                n->lacks |= CHILD(i);
            }
        }
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
    struct ec_change c = {.dirty = {!S_ISLNK(a->mode), 1}};
    int err = 0;

    if (!S_ISREG(a->mode) && !S_ISDIR(a->mode) && !S_ISLNK(a->mode))
        return 0;
    for_each_child (i, on) {
        int ret = ec_heal_add(n->h, i, inode, &c);

        err = ret ? ret : err;
    }
    return err;
}

static bool
has_object(struct ec_name *n, unsigned i, struct inode *inode)
{
    return ec_heal_send(n->h, i, ec_call(&n->h->op, FOP_lookup, i, false, inode, NULL)) >= 0;
}

/* Makes the object on a child that may have it under another name. */
static int
link_or_make_on(struct ec_name *n, unsigned i, struct inode *inode, const struct iatt *a, const char *target)
{
    bool has = has_object(n, i, inode);

    if (has && !S_ISDIR(a->mode))
        return ec_link_on(n, i, inode);
    int err = has ? ec_heal_move_folder(n->h, i, inode, n->name) : -ENOENT;
    return err == -ENOENT || err == -ESTALE ? make_object_on(n, i, a, target) : err;
}

/* Makes the object on the children without the name. */
static int
make_missing_objects(struct ec_name *n, struct inode *inode, const struct iatt *a)
{
    unsigned from = child_first(n->has);
    struct call_stack *text = NULL;
    int err = mark_dirty(n, n->has, inode, a);

    if (!err && S_ISLNK(a->mode)) {
        text = ec_call(&n->h->op, FOP_readlink, from, false, inode, NULL);
        if (text)
            text->call.size = FOP_LINKNAME_MAX + 1;
        int ret = text ? coro_call(text, n->h->op.d->xl->children[from]) : -ENOMEM;
        err = ret < 0 ? ret : 0;
    }
    for_each_child (i, n->lacks) {
        int ret = err ? err : link_or_make_on(n, i, inode, a, text ? text->reply.path : NULL);

        err = ret && ret != -EEXIST ? ret : err;
    }
    if (text)
        call_stack_free(text);
    return err;
}

/* ---- a name ---------------------------------------------------------------------------------- */

static bool
is_settled(const struct ec_name *n)
{
    return !n->has || (!n->lacks && children_with_gfid_of(n, child_first(n->has)) == n->has);
}

static int
settle_name(struct ec_name *n)
{
    int err = look_up_name(n);

    if (err || is_settled(n))
        return err;
    err = remove_lost(n);
    if (err || is_settled(n))
        return err;
    child_set same = children_with_gfid_of(n, child_first(n->has));
    if (same != n->has || children_count(same) < n->h->op.d->data)
        return -EIO; /* no K children agree */
    const struct iatt *a = &n->stat[child_first(same)];
    struct inode *inode = inode_link(n->h->op.d->xl->graph->inodes, NULL, NULL, a);
    err = inode ? make_missing_objects(n, inode, a) : -ENOMEM;
    inode_unref(inode);
    return err;
}

static int
heal_name_of(struct ec_heal *h, const char *name)
{
    struct ec_name n = {.h = h, .name = name};
    int err = look_up_name(&n); /* without the lock: most names are settled */

    if (err || is_settled(&n))
        return err;
    err = ec_heal_lock(h, h->op.inode);
    if (err)
        return err;
    err = settle_name(&n);
    ec_heal_unlock(h, h->op.inode);
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

/* Heals the names of a part of the listing. Returns 1: there is more; 0: the end; or -errno. */
static int
ec_heal_listed(struct ec_heal *h, unsigned i, struct fd *fd, uint64_t *offset, int *first_err)
{
    struct heal_throttle *throttle = &h->op.d->throttle;
    struct call_stack *stk = ec_heal_call(h, FOP_readdir, i);

    if (!stk)
        return -ENOMEM;
    stk->call.fd = fd_ref(fd);
    stk->call.offset = *offset;
    stk->call.size = NAMES_BYTES;
    int ret = coro_call(stk, h->op.d->xl->children[i]);
    bool is_any = false;

    for (const struct dirent_entry *e = ret >= 0 ? stk->reply.entries : NULL; e; e = e->next) {
        is_any = true;
        *offset = e->off;
        if (ec_heal_is_brick_own(h->op.inode, e->name))
            continue;
        if (ec_heal_must_stop(h)) {
            ret = -ENOTCONN;
            break;
        }
        uint64_t begun = heal_unit_begin(throttle);
        int err = heal_name_of(h, e->name);
        heal_unit_end(throttle, begun);
        *first_err = *first_err ? *first_err : err;
    }
    call_stack_free(stk);
    return ret < 0 ? ret : is_any;
}

/* Returns the first error of a name, which does not end the listing, or of the listing. */
static int
heal_names_of(struct ec_heal *h, unsigned i)
{
    struct call_stack *stk = ec_heal_call(h, FOP_opendir, i);
    int first_err = 0, ret = stk ? coro_call(stk, h->op.d->xl->children[i]) : -ENOMEM;
    uint64_t offset = 0;

    while (ret >= 0) {
        ret = ec_heal_listed(h, i, stk->reply.fd, &offset, &first_err);
        if (ret == 0)
            break;
    }
    if (stk)
        call_stack_free(stk);
    return ret < 0 ? ret : first_err;
}

/* ---- a folder -------------------------------------------------------------------------------- */

static int
end_folder(struct ec_heal *h, uint64_t newest)
{
    int err = 0;

    for_each_child (i, h->has) {
        struct ec_change c = {.version[WORD_DATA] = newest - h->copy[i].version[WORD_DATA]};
        int ret = c.version[WORD_DATA] ? ec_heal_add(h, i, h->op.inode, &c) : 0;

        err = ret ? ret : err;
    }
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
    for_each_child (i, err ? 0 : h->has) {
        int ret = heal_names_of(h, i);

        err = ret ? ret : err;
    }
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
