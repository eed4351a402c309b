/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Operations on a folder, on all subvolumes.
 *
 * STAT, ACCESS, FSYNC, FSYNCDIR: on all in parallel; attributes are merged (folder.c).
 *
 * SETATTR: first on the MDS, whose reply counts; ENOTCONN if the MDS is down. Then on all other subvolumes
 * in parallel; failures there are repaired by the next look at the folder. On the root, which has no MDS:
 * on all in parallel.
 *
 * Xattrs that must be the same on all subvolumes (user.*, ACLs): 1. XATTROP subtracts 1 from
 * trusted.glusterfs.dht.mds on the MDS; 2. the change on the MDS, whose reply counts; 3. the change on all
 * other subvolumes; 4. if that succeeded on all, XATTROP adds 1 again. While the number is negative, a
 * client that looks at the folder copies the xattrs from the MDS (heal.c). Between 2 and 4 some subvolumes
 * have old values, but clients read from the MDS. All other xattrs, and the root's: on all in parallel.
 *
 * GETXATTR: xattrs that must be the same are read from the MDS while it is up; other xattrs of all
 * subvolumes are joined, and the last value of a key counts.
 *
 * Locks of layers above (features/shard) are on the first subvolume, as those of stock's clients, which must
 * meet them; ENOTCONN if that one is down. The caller's own call goes there, without an allocation: a lock
 * whose reply does not fit into memory, or an unlock without memory, would leave a lock without an owner. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "xlators/cluster/distribute/distribute-internal.h"

static struct inode *
call_folder(const struct call_stack *stk)
{
    return stk->call.fd ? stk->call.fd->inode : stk->call.loc.inode;
}

enum { LOCKS_AT = 0 }; /* child with the locks of layers above */

/* ---- on all in parallel ---------------------------------------------------------------------- */

/* Returns whether the error does not fail the operation: the folder is missing on this subvolume, which the
 * next look repairs, or the subvolume is down. */
static bool
is_harmless_errno(int ret)
{
    return ret == -ENOTCONN || ret == -ENOENT || ret == -ESTALE || ret == -EBADFD;
}

static xl_verdict
call_on_one(const struct op *o, unsigned child)
{
    struct call_stack *one = dist_call_copy(o);
    int err = dist_call_at(o, child, one);

    if (err >= 0)
        return dist_op_answer_with(o, one);
    if (one)
        call_stack_free(one);
    return err;
}

struct sum {
    struct iatt stat, pre, post;
    unsigned good;
    int worst;     /* the last error that fails the operation */
    int no_matter; /* the last error that does not, returned if no child succeeded */
    int best;      /* child */
};

static void
add_reply(struct sum *s, const struct fan *f, unsigned i)
{
    const struct fop_reply *r = &f->call[i]->reply;
    int ret = dist_fan_result(f, i);

    if (ret < 0) {
        *(is_harmless_errno(ret) ? &s->no_matter : &s->worst) = ret;
        return;
    }
    s->good++;
    s->best = (int)i;
    if (r->stat.mode)
        folder_merge(&s->stat, &r->stat);
    if (r->pre.mode)
        folder_merge(&s->pre, &r->pre);
    if (r->post.mode)
        folder_merge(&s->post, &r->post);
}

/* Sends the call to all children except `but` (-1: to all). */
static int
ask_all(const struct op *o, int but, struct fan *fan, struct sum *s)
{
    int err = dist_fan_begin(fan, o);

    *s = (struct sum){.no_matter = -ENOTCONN, .best = -1};
    for (unsigned i = 0; i < fan->count; i++) {
        if ((int)i != but)
            dist_fan_add(fan, i, dist_call_copy(o));
    }
    if (!err)
        err = dist_fan_go(fan);
    for (unsigned i = 0; i < fan->count && !err; i++) {
        if (fan->call[i])
            add_reply(s, fan, i);
    }
    return err;
}

static int
sum_result(const struct sum *s)
{
    return s->worst ? s->worst : s->good ? 0 : s->no_matter;
}

/* Answers with the best reply, with merged attributes. */
static xl_verdict
answer_with_best(const struct op *o, struct fan *fan, const struct sum *s)
{
    struct call_stack *stk = fan->call[s->best];

    fan->call[s->best] = NULL;
    stk->reply.stat = s->stat;
    stk->reply.pre = s->pre;
    stk->reply.post = s->post;
    dist_fan_end(fan);
    return dist_op_answer_with(o, stk);
}

static xl_verdict
call_on_all(const struct op *o)
{
    struct fan fan;
    struct sum s;
    int err = ask_all(o, -1, &fan, &s);

    if (!err)
        err = sum_result(&s);
    if (!err)
        return answer_with_best(o, &fan, &s);
    dist_fan_end(&fan);
    return err;
}

/* ---- the MDS first --------------------------------------------------------------------------- */

/* Returns the number of the MDS, or -errno. */
static int
find_mds(const struct op *o, struct inode *folder)
{
    struct layout *l;
    int mds = place_cached(o->d, folder);

    if (mds < 0) {
        int err = folder_layout_fresh(o, folder, &l);

        if (err)
            return err;
        layout_unref(l);
        mds = place_cached(o->d, folder);
    }
    if (mds < 0)
        return -ENOENT;
    return child_is_up(o->d, (unsigned)mds) ? mds : -ENOTCONN;
}

static xl_verdict
mds_first(const struct op *o, int mds)
{
    struct call_stack *first = dist_call_copy(o);
    struct fan fan;
    struct sum s;
    int err = dist_call_at(o, (unsigned)mds, first);

    if (err < 0) {
        if (first)
            call_stack_free(first);
        return err;
    }
    err = ask_all(o, mds, &fan, &s);
    dist_fan_end(&fan);
    folder_merge(&s.pre, &first->reply.pre);
    folder_merge(&s.post, &first->reply.post);
    if (first->reply.post.mode) {
        s.post.mode = first->reply.post.mode;
        first->reply.pre = s.pre;
        first->reply.post = s.post;
    }
    return dist_op_answer_with(o, first);
}

/* Adds `by` (+1 or -1) to the MDS's count by XATTROP. */
static int
count_change(const struct op *o, struct inode *folder, int mds, int32_t by)
{
    uint32_t be = htobe32((uint32_t)by);
    struct call_stack *stk = dist_call_for_inode(dist_call_new_internal(o, FOP_xattrop), folder);

    if (stk) {
        stk->call.dict = dict_new(&stk->arena);
        if (!stk->call.dict || dict_set_bytes(stk->call.dict, DICT_KEY_DHT_MDS, &be, sizeof be)) {
            call_stack_free(stk);
            stk = NULL;
        }
    }
    int ret = dist_call_once(o, (unsigned)mds, stk);

    return ret < 0 ? ret : 0;
}

static xl_verdict
change_counted(const struct op *o, struct inode *folder, int mds)
{
    struct call_stack *first;
    struct fan fan;
    struct sum s;
    int err = count_change(o, folder, mds, -1);

    if (err)
        return err;
    first = dist_call_copy(o);
    err = dist_call_at(o, (unsigned)mds, first);
    if (err < 0) {
        if (first)
            call_stack_free(first);
        /* nothing has changed; a failure here causes a needless heal */
        (void)count_change(o, folder, mds, 1);
        return err;
    }
    err = ask_all(o, mds, &fan, &s);
    if (!err && s.good + 1 == o->d->count)
        (void)count_change(o, folder, mds, 1); /* a failure here causes a needless heal */
    dist_fan_end(&fan);
    return dist_op_answer_with(o, first);
}

/* ---- xattrs ---------------------------------------------------------------------------------- */

bool
dist_belongs_to_all(const char *key)
{
    static const char *const keys[] = {"system.posix_acl_access",
                                       "system.posix_acl_default",
                                       "security.selinux",
                                       "trusted.glusterfs.quota.limit-set",
                                       "trusted.glusterfs.quota.limit-objects",
                                       "trusted.glusterfs.mdata"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(key, keys[i]) == 0)
            return true;
    }
    return strncmp(key, "user.", 5) == 0;
}

static bool
is_counted(const struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;

    if (c->fop == FOP_removexattr || c->fop == FOP_fremovexattr || c->fop == FOP_getxattr ||
        c->fop == FOP_fgetxattr)
        return c->name && dist_belongs_to_all(c->name);
    dict_for_each (p, c->dict) {
        if (dist_belongs_to_all(p->key))
            return true;
    }
    return false;
}

static xl_verdict
change_xattr(const struct op *o, struct inode *folder)
{
    if (gfid_is_root(&folder->gfid) || !is_counted(o->stk))
        return call_on_all(o);
    int mds = find_mds(o, folder);

    return mds < 0 ? mds : change_counted(o, folder, mds);
}

/* Joins the pairs of all replies; the last value of a key counts. */
static xl_verdict
read_all_xattrs(const struct op *o)
{
    struct fan fan;
    struct sum s;
    int err = ask_all(o, -1, &fan, &s);

    if (!err && !s.good)
        err = s.worst ? s.worst : s.no_matter;
    if (err) {
        dist_fan_end(&fan);
        return err;
    }
    struct dict *sum = reply_dict(o->stk);

    err = sum ? 0 : -ENOMEM;
    for (unsigned i = 0; i < fan.count && !err; i++) {
        if (dist_fan_result(&fan, i) < 0)
            continue;
        dict_for_each (p, fan.call[i]->reply.dict) {
            if (!err)
                err = p->type == DICT_PTR || p->type == DICT_STR || p->type == DICT_UNTYPED
                          ? dict_set_text(sum, p->key, p->type, p->v.bytes, p->len)
                          : 0;
        }
    }
    dist_fan_end(&fan);
    o->stk->reply.op_ret = (int32_t)(sum ? sum->count : 0);
    return err ? err : XL_DONE;
}

static xl_verdict
read_xattr(const struct op *o, struct inode *folder)
{
    int mds = place_cached(o->d, folder);

    if (!is_counted(o->stk) || mds < 0 || !child_is_up(o->d, (unsigned)mds))
        return read_all_xattrs(o);
    return call_on_one(o, (unsigned)mds);
}

/* ---- locks of layers above -------------------------------------------------------------------- */

bool
dist_is_lock(enum fop fop)
{
    return fop == FOP_inodelk || fop == FOP_finodelk || fop == FOP_entrylk || fop == FOP_fentrylk;
}

xl_verdict
dist_folder_lock(struct xlator *xl, struct call_stack *stk)
{
    const struct dist *d = xl->private;

    call_stack_wind_child(stk, d->child[LOCKS_AT].xl);
    return XL_OWNED;
}

/* ---- dispatch -------------------------------------------------------------------------------- */

xl_verdict
dist_all_go(struct xlator *xl, struct call_stack *stk)
{
    struct op o = dist_op_of(xl, stk);
    struct inode *folder = call_folder(stk);
    int mds;

    switch (stk->call.fop) {
    case FOP_stat:
    case FOP_fstat:
    case FOP_access:
    case FOP_fsyncdir:
    case FOP_fsync:
        return call_on_all(&o);
    case FOP_flush: /* folders have no pending data */
        stk->reply.op_ret = 0;
        return XL_DONE;
    case FOP_setattr:
    case FOP_fsetattr:
        if (gfid_is_root(&folder->gfid))
            return call_on_all(&o);
        mds = find_mds(&o, folder);
        return mds < 0 ? mds : mds_first(&o, mds);
    case FOP_setxattr:
    case FOP_fsetxattr:
    case FOP_removexattr:
    case FOP_fremovexattr:
        return change_xattr(&o, folder);
    case FOP_getxattr:
    case FOP_fgetxattr:
        return read_xattr(&o, folder);
    default:
        return -EOPNOTSUPP;
    }
}
