/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Changes of names: create, mknod, mkdir, symlink, link, unlink, rmdir, rename.
 *
 *      join the hold       of the directory; of both directories of a rename, the greater gfid first, as
 *                          stock clients do. The object itself is not locked
 *      mark                only if a child is missing (hold.c)
 *      change              on all children with the lock. A new object has the same gfid everywhere; a new
 *                          file begins with version 0, size 0 and the set's configuration. A new folder
 *                          begins with a random version, which differs from that of an empty copy that a
 *                          heal makes (0), and need not rise while all children are good (hold.c)
 *      judge, record       K equal answers; a child outside falls behind. With fewer answers than
 *                          quorum-count the caller gets EIO, and the name stays changed
 *
 * A mount that dies during a change leaves the name on some children. LOOKUP answers for the larger group.
 * The directory's versions are equal then, so a healer that goes by them does not see the difference. Kiln's
 * bricks note the directory, and Kiln's mounts and healers compare its names (dead-objects.c); on stock's
 * bricks the next LOOKUP of the name by a stock client heals the name. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "xlators/cluster/disperse/disperse-internal.h"

/* ---- calls ----------------------------------------------------------------------------------- */

static bool
makes_file(const struct ec_op *op)
{
    return op->fop == FOP_create || (op->fop == FOP_mknod && (op->stk->call.mode & S_IFMT) == S_IFREG) ||
           (op->fop == FOP_mknod && !(op->stk->call.mode & S_IFMT));
}

static int
fill_new_keys(const struct ec_op *op, struct call_stack *stk, const uint64_t folder_version[2])
{
    static const unsigned char zeros[16];
    struct dict *d = call_xdata(stk);
    int err = d ? 0 : -ENOMEM;

    if (!err && op->fop == FOP_mkdir)
        err = dict_set_text(d, "trusted.ec.version", DICT_PTR, folder_version, 16);
    if (!err && makes_file(op))
        err = dict_set_text(d, "trusted.ec.version", DICT_PTR, zeros, 16);
    if (!err && makes_file(op))
        err = dict_set_text(d, "trusted.ec.size", DICT_PTR, zeros, 8);
    if (!err && makes_file(op))
        err = dict_set_text(d, "trusted.ec.config", DICT_PTR, op->d->config, sizeof op->d->config);
    return err;
}

static struct call_stack *
ec_entry_make(const struct ec_op *op, unsigned i, bool is_spare, const void *folder_version)
{
    struct call_stack *stk = ec_fork_held(op, i, is_spare, NULL);

    if (stk && op->fop == FOP_create)
        stk->call.flags &= ~(uint32_t)(O_APPEND | O_TRUNC | O_DIRECT);
    if (!stk || !fill_new_keys(op, stk, folder_version))
        return stk;
    call_stack_free(stk);
    return NULL;
}

/* ---- the size of an object that the caller gets attributes of -------------------------------- */

static struct call_stack *
size_make(const struct ec_op *op, unsigned i, bool is_spare, const void *inode)
{
    struct call_stack *stk = ec_call(op, FOP_lookup, i, is_spare, (struct inode *)inode, NULL);
    struct dict *d = stk ? call_xdata(stk) : NULL;

    if (d && !dict_set_text_int(d, "trusted.ec.size", 0))
        return stk;
    if (stk)
        call_stack_free(stk);
    return NULL;
}

/* Returns the size that the hold or most bricks know; without an answer 0. */
static uint64_t
size_of_file(struct ec_op *op, struct inode *inode, child_set of)
{
    uint64_t size = 0;
    struct fan f;
    int ret;

    if (ec_size_held(op->d, inode, &size) || ec_ask(&f, op, of, size_make, inode))
        return size;
    child_set good = answers_winner(&f, false, &ret);
    if (ret >= 0)
        size = ec_get_size(f.stk[child_first(good)]->reply.xdata);
    fan_end(&f);
    return size;
}

/* ---- a change in one directory --------------------------------------------------------------- */

static bool
is_new_file(const struct ec_op *op, const struct gfid *gfid)
{
    struct gfid asked;

    return !dict_get_gfid(op->stk->call.xdata, DICT_KEY_GFID_REQ, &asked) && gfid_equal(&asked, gfid);
}

/* Completes the reply of a CREATE; the file may have existed before. */
static int
take_created(struct ec_op *op, struct fan *f, child_set good)
{
    struct iatt *stat = &op->stk->reply.stat;
    struct inode *inode = inode_link(op->d->xl->graph->inodes, NULL, NULL, stat);

    if (!inode)
        return -ENOMEM;
    bool is_old = !is_new_file(op, &stat->gfid);
    if (is_old)
        iatt_set_size(stat, size_of_file(op, inode, good));
    int err = ec_fd_make(op, f, good, inode);
    if (!err && is_old && op->stk->call.flags & O_TRUNC) {
        struct ec_op cut = *op;

        cut.inode = inode;
        cut.fd = op->stk->reply.fd;
        cut.file = fd_ctx(cut.fd, op->d->xl);
        err = write_truncate_opened(&cut);
        op->lacks_quorum |= cut.lacks_quorum;
        iatt_set_size(stat, 0);
    }
    inode_unref(inode);
    return err;
}

/* Completes the reply of a LINK or RENAME of a file. */
static int
set_size_of_named(struct ec_op *op, child_set good)
{
    struct iatt *stat = &op->stk->reply.stat;
    struct inode *inode = inode_link(op->d->xl->graph->inodes, NULL, NULL, stat);

    if (!inode)
        return -ENOMEM;
    iatt_set_size(stat, size_of_file(op, inode, good));
    inode_unref(inode);
    return 0;
}

/* Sends the caller's call to `to`; a CREATE that reaches all children takes the hold of the new file along,
 * if that is likely to be written. Returns 0 or -ENOMEM. */
static int
ask_for_name(struct ec_op *op, struct fan *f, child_set to, const uint64_t folder_version[2])
{
    struct iatt asked = {.mode = S_IFREG};
    struct inode *inode = NULL;
    struct ec_hold *h = NULL;
    struct ec_early e;

    if (op->fop == FOP_create && to == op->d->all &&
        !dict_get_gfid(op->stk->call.xdata, DICT_KEY_GFID_REQ, &asked.gfid))
        inode = inode_link(op->d->xl->graph->inodes, NULL, NULL, &asked);
    if (inode && S_ISREG(inode_type(inode)))
        h = ec_early_hold(op, inode, &e);
    int err = h ? ec_ask_with_hold(f, op, ec_entry_make, folder_version, h, &e)
                : ec_ask(f, op, to, ec_entry_make, folder_version);
    inode_unref(inode);
    return err;
}

/* Sends the caller's call to `to`. Returns 0 with the reply filled in, or -errno; sets the arguments of
 * ec_record(). */
static int
change_name(struct ec_op *op, child_set to, child_set *sent, child_set *good, bool *is_done)
{
    uint64_t first = htobe64(ec_version_step()), folder_version[2] = {first, first};
    struct fan f;
    int ret;

    *sent = *good = 0;
    *is_done = false;
    if (ask_for_name(op, &f, to, folder_version))
        return -ENOMEM;
    *good = answers_judge_change(op, &f, true, &ret);
    *sent = f.sent & ~f.unread;
    *is_done = ret >= 0;
    int err = ret < 0 ? ret : answers_take(op, &f, *good);
    if (!err)
        iatt_set_size(&op->stk->reply.stat, 0);
    if (!err && op->fop == FOP_create)
        err = take_created(op, &f, *good);
    if (!err && (op->fop == FOP_link || op->fop == FOP_rename) && S_ISREG(op->stk->reply.stat.mode))
        err = set_size_of_named(op, *good);
    fan_end(&f);
    return err;
}

static void
change_in_dir(struct ec_op *op, struct inode *dir)
{
    struct ec_user u = {.end = UINT64_MAX};
    child_set sent, good;
    bool is_done;
    int err = ec_join(op, dir, &u, NEEDS_LOCK | COUNTS_DATA);

    if (err) {
        ec_fail(op, err);
        return;
    }
    child_set to = ec_good(ec_hold_of(op->d, dir));
    err = change_name(op, to, &sent, &good, &is_done);
    if (sent)
        ec_record(op, dir, COUNTS_DATA, sent, good, is_done);
    ec_finish(op, err);
    ec_leave(op, dir, &u);
}

void
ec_entry_go(struct ec_op *op)
{
    change_in_dir(op, op->dir);
}

void
ec_link_go(struct ec_op *op)
{
    change_in_dir(op, op->dir2);
}

/* ---- RENAME ---------------------------------------------------------------------------------- */

static void
rename_held(struct ec_op *op)
{
    child_set to = ec_good(ec_hold_of(op->d, op->dir)) & ec_good(ec_hold_of(op->d, op->dir2));
    child_set sent, good;
    bool is_done;

    if (!ec_is_quorum(op, to)) {
        ec_fail(op, -EIO);
        return;
    }
    int err = change_name(op, to, &sent, &good, &is_done);
    if (sent)
        ec_record(op, op->dir, COUNTS_DATA, sent, good, is_done);
    if (sent && op->dir2 != op->dir)
        ec_record(op, op->dir2, COUNTS_DATA, sent, good, is_done);
    ec_finish(op, err);
}

void
ec_rename_go(struct ec_op *op)
{
    struct ec_user u = {.end = UINT64_MAX}, u2 = {.end = UINT64_MAX};
    bool is_swapped = memcmp(&op->dir->gfid, &op->dir2->gfid, sizeof op->dir->gfid) < 0;
    struct inode *first = is_swapped ? op->dir2 : op->dir, *second = is_swapped ? op->dir : op->dir2;
    int err = ec_join(op, first, &u, NEEDS_LOCK | COUNTS_DATA);

    if (err) {
        ec_fail(op, err);
        return;
    }
    if (second != first)
        err = ec_join(op, second, &u2, NEEDS_LOCK | COUNTS_DATA);
    if (err)
        ec_fail(op, err);
    else
        rename_held(op);
    if (second != first && !err)
        ec_leave(op, second, &u2);
    ec_leave(op, first, &u);
}
