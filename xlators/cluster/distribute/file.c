/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Operations on a file, on its cached subvolume: one call, wound there unchanged, and a check of the reply.
 *
 * A rebalance, which is another process, may be moving the file. The file's mode shows this, in two steps
 * ("copying" and "copied", client 2.20):
 *   1. S_ISVTX and S_ISGID are set, and an xattr names the other subvolume: a change made here is repeated
 *      there, with a mark that keeps the copier from writing old data over it. Data read here is good.
 *   2. The mode is that of a linkto file, or the file is gone from here: the file is looked up on all
 *      subvolumes, its fd opened on the new one, and the call repeated there.
 * A file that has these mode bits for another reason lacks the xattr, and is left alone.
 *
 * In step 1 the mode and the ACL are changed on the first subvolume only: on the other one they would make a
 * file of the unfinished copy. The copier takes them over at its end. If the change cannot be repeated
 * (the other subvolume is full or down, or unknown, because this client has not got the newest volfile), an
 * xattr on the file makes the copier begin anew (kiln's rebalancer), or keeps the file here.
 *
 * A file may have several fds, and only one of them may have seen the move: the other fds are opened on the
 * new subvolume before a call goes there. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "xlators/cluster/distribute/distribute-internal.h"

enum { COPYING = S_ISVTX | S_ISGID, TARGET_UNKNOWN = -2 };

static struct inode *
call_file(const struct call_stack *stk)
{
    return stk->call.fd ? stk->call.fd->inode : stk->call.loc.inode;
}

/* ---- a moved file ---------------------------------------------------------------------------- */

bool
file_is_copying(const struct iatt *a)
{
    return S_ISREG(a->mode) && (a->mode & COPYING) == COPYING;
}

bool
file_is_copied(const struct iatt *a)
{
    return S_ISREG(a->mode) && (a->mode & 07777) == S_ISVTX;
}

/* Returns whether the attributes in the reply are those of a file in the state `is`. Replies to changes of
 * xattrs have attributes in their xdata. */
static bool
reply_shows(const struct fop_reply *r, bool (*is)(const struct iatt *a))
{
    const struct dict_pair *p = dict_find(r->xdata, DICT_KEY_IATT_IN_XATTR);

    return is(&r->stat) || is(&r->post) || (p && p->type == DICT_IATT && is(p->v.iatt));
}

/* Returns whether the fd is open on the child, whose translator then has a context on the fd. */
static bool
is_open_at(struct dist *d, struct fd *fd, unsigned child)
{
    const struct xlator *xl = d->child[child].xl;

    return fd->is_anonymous || !xl->slot[CTX_FD] || fd_ctx(fd, xl);
}

/* Opens the fd with its original flags on one more subvolume, or again. */
static int
open_fd_anew_at(const struct op *o, unsigned child)
{
    struct fd *fd = o->stk->call.fd;
    struct call_stack *stk;

    stk = dist_call_for_inode(dist_call_new_internal(o, FOP_open), fd->inode);
    if (stk) {
        stk->call.fd = fd_ref(fd);
        stk->call.flags = fd->flags & ~(uint32_t)(O_CREAT | O_EXCL | O_TRUNC);
    }
    int ret = dist_call_once(o, child, stk);

    return ret < 0 ? ret : 0;
}

static int
open_fd_at(const struct op *o, unsigned child)
{
    struct fd *fd = o->stk->call.fd;

    return !fd || is_open_at(o->d, fd, child) ? 0 : open_fd_anew_at(o, child);
}

static bool
says_copied(const struct fop_reply *r)
{
    return r->op_ret >= 0 && reply_shows(r, file_is_copied);
}

/* Returns whether the fd belongs to a former copy, which no lookup finds: the file is here, but has been
 * moved away and back since the open. */
static bool
fd_is_of_former_copy(const struct op *o, const struct fop_reply *r, struct inode *file, unsigned child)
{
    if (!o->stk->call.fd || o->stk->call.fd->is_anonymous || !says_copied(r))
        return false;
    struct call_stack *stk = dist_call_for_inode(dist_call_new_internal(o, FOP_stat), file);
    bool is = dist_call_at(o, child, stk) >= 0 && !file_is_copied(&stk->reply.stat);

    if (stk)
        call_stack_free(stk);
    return is;
}

static int
call_at_new_place(const struct op *o, unsigned child, bool opens_anew, struct call_stack **out)
{
    int err = opens_anew ? open_fd_anew_at(o, child) : open_fd_at(o, child);

    if (err)
        return err;
    if (*out)
        call_stack_free(*out);
    if (!(*out = dist_call_copy(o)))
        return -ENOMEM;
    (void)dist_call_at(o, child, *out);
    return 0;
}

/* Step 2. The reply stays as it was if the file is on no other subvolume. */
static xl_verdict
follow_moved_file(const struct op *o, struct inode *file, int was)
{
    (void)place_set(o->d, file, -1);
    int now = lookup_cached(o, file);
    bool is_former = now >= 0 && now == was && fd_is_of_former_copy(o, &o->stk->reply, file, (unsigned)now);
    struct call_stack *stk = NULL;

    if (now < 0 || (now == was && !is_former)) {
        (void)place_set(o->d, file, was);
        return XL_DONE;
    }
    int err = call_at_new_place(o, (unsigned)now, is_former, &stk);

    if (!err && !is_former && fd_is_of_former_copy(o, &stk->reply, file, (unsigned)now))
        err = call_at_new_place(o, (unsigned)now, true, &stk);
    if (!err)
        return dist_op_answer_with(o, stk);
    if (stk)
        call_stack_free(stk);
    return err;
}

int
file_copy_target(const struct op *o, struct inode *file, int from)
{
    struct call_stack *stk = dist_call_for_inode(dist_call_new_internal(o, FOP_getxattr), file);
    int target = -1;

    if (stk) {
        stk->call.name = "trusted.glusterfs.dht.linkto";
        stk->call.has_name = 1;
    }
    if (dist_call_at(o, (unsigned)from, stk) >= 0) {
        stk->reply.xdata = stk->reply.dict;
        target = linkto_target(o->d, stk);
        if (target < 0 && dict_has(stk->reply.dict, DICT_KEY_DHT_LINKTO))
            target = TARGET_UNKNOWN;
    }
    if (stk)
        call_stack_free(stk);
    return target;
}

static void
strip_copying_bits(struct iatt *a)
{
    if (file_is_copying(a))
        a->mode &= ~(uint32_t)COPYING;
}

void
file_hide_copying(struct call_stack *stk)
{
    if (dict_has(stk->reply.xdata, DICT_KEY_DHT_LINKTO))
        strip_copying_bits(&stk->reply.stat);
}

static bool
changes_acl(const struct call_stack *stk)
{
    const char *name = stk->call.name ? stk->call.name : "";

    return dict_find_text(stk->call.dict, "system.posix_acl_access") ||
           (stk->call.fop != FOP_setxattr && strcmp(name, "system.posix_acl_access") == 0);
}

/* Returns whether the change must not be made on the copy. */
static bool
is_of_first_only(const struct call_stack *stk)
{
    switch (stk->call.fop) {
    case FOP_setxattr:
    case FOP_fsetxattr:
    case FOP_removexattr:
    case FOP_fremovexattr:
        return changes_acl(stk);
    case FOP_setattr:
    case FOP_fsetattr:
        return (stk->call.valid & ~SETATTR_MODE) == 0;
    default:
        return false;
    }
}

static int
repeat_change_at(const struct op *o, int target)
{
    int err = target < 0 ? -ENOTCONN : open_fd_at(o, (unsigned)target);
    struct call_stack *stk = err ? NULL : dist_call_copy(o);

    if (err)
        return err;
    if (stk && (stk->call.fop == FOP_setattr || stk->call.fop == FOP_fsetattr))
        stk->call.valid &= ~SETATTR_MODE;
    int ret = dist_call_once(o, (unsigned)target, dist_call_put_uint(stk, DICT_KEY_PROTECT_WRITES, 1));
    return ret < 0 ? ret : 0;
}

/* Marks the file on its subvolume, because its copy lacks a change. Returns XL_DONE with the reply as it is;
 * or -EAGAIN: the copy has become the file meanwhile. */
static xl_verdict
object_to_copy(const struct op *o, struct inode *file, int from)
{
    struct call_stack *stk = dist_call_for_inode(dist_call_new_internal(o, FOP_setxattr), file);
    struct dict *set = stk ? dict_new(&stk->arena) : NULL;
    int ret = set ? dict_set_text(set, MIGRATE_VETO_KEY, DICT_PTR, "1", 2) : -ENOMEM;

    if (!ret)
        stk->call.dict = set;
    if (!ret)
        ret = dist_call_at(o, (unsigned)from, stk);
    bool is_late = ret >= 0 && reply_shows(&stk->reply, file_is_copied);
    if (stk)
        call_stack_free(stk);
    return is_late ? -EAGAIN : ret < 0 ? ret : XL_DONE;
}

/* Step 1. */
static xl_verdict
repeat_on_copy(const struct op *o, struct inode *file, int from)
{
    int target = file_copy_target(o, file, from);

    if (target == -1 || target == from)
        return XL_DONE;
    if (fop_info[o->stk->call.fop].traits & FOP_WRITES && !is_of_first_only(o->stk) &&
        repeat_change_at(o, target)) {
        xl_verdict verdict = object_to_copy(o, file, from);

        if (verdict == -EAGAIN)
            return follow_moved_file(o, file, from);
        if (verdict != XL_DONE)
            return verdict;
    }
    strip_copying_bits(&o->stk->reply.stat);
    strip_copying_bits(&o->stk->reply.pre);
    strip_copying_bits(&o->stk->reply.post);
    return XL_DONE;
}

static xl_verdict
moved_go(struct xlator *xl, struct call_stack *stk)
{
    struct op o = dist_op_of(xl, stk);
    const struct fop_reply *r = &stk->reply;
    struct inode *file = call_file(stk);
    int was = place_cached(o.d, file);

    if (r->op_ret < 0 || says_copied(r))
        return follow_moved_file(&o, file, was);
    return repeat_on_copy(&o, file, was);
}

static bool
may_have_moved(const struct fop_reply *r)
{
    if (r->op_ret < 0)
        return r->op_errno == ENOENT || r->op_errno == ESTALE;
    return reply_shows(r, file_is_copying) || reply_shows(r, file_is_copied);
}

static xl_verdict
file_call_done(struct frame *f, struct call_stack *stk)
{
    return may_have_moved(&stk->reply) ? coro_fop(f->xl, stk, moved_go) : XL_PASS;
}

/* ---- the call itself ------------------------------------------------------------------------- */

static xl_verdict
wind_to_cached(struct dist *d, struct call_stack *stk, int cached)
{
    if (!frame_push(stk, d->xl, file_call_done))
        return -ENOMEM;
    call_stack_wind_child(stk, d->child[cached].xl);
    return XL_OWNED;
}

static xl_verdict
find_file_go(struct xlator *xl, struct call_stack *stk)
{
    struct op o = dist_op_of(xl, stk);
    int cached = lookup_cached(&o, call_file(stk));
    int err = cached < 0 ? cached : stk->call.fop == FOP_open ? 0 : open_fd_at(&o, (unsigned)cached);

    return err ? err : wind_to_cached(o.d, stk, cached);
}

/* Returns whether the call can be wound to the child unchanged. */
static bool
is_ready_at(struct dist *d, const struct call_stack *stk, int cached)
{
    if (cached < 0)
        return false;
    return !stk->call.fd || stk->call.fop == FOP_open || is_open_at(d, stk->call.fd, (unsigned)cached);
}

xl_verdict
dist_file_any(struct xlator *xl, struct call_stack *stk)
{
    struct dist *d = xl->private;
    struct inode *file = call_file(stk);

    if (!file)
        return -EOPNOTSUPP;
    if (stk->call.fd2 && place_cached(d, stk->call.fd2->inode) != place_cached(d, file))
        return -EXDEV; /* a copy between subvolumes: the caller reads and writes instead */
    int cached = place_cached(d, file);

    return is_ready_at(d, stk, cached) ? wind_to_cached(d, stk, cached) : coro_fop(xl, stk, find_file_go);
}
