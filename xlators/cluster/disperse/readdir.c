/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* READDIR and READDIRP: one good child sends the whole list, because the cookies mean nothing to others.
 * Only the beginning of the list takes the hold, which tells which children are not behind. The attributes
 * of files are corrected with trusted.ec.size of each entry. A file without it has no attributes, nor has an
 * object that the child may have missed a change of (doubts.c): a client that needs them looks the name up.
 * */
#include <errno.h>
#include <string.h>

#include "xlators/cluster/disperse/disperse-internal.h"

static void
correct_entry(struct ec_op *op, const struct ec_doubts *doubts, struct dirent_entry *e)
{
    struct iatt *a = &e->iatt;
    bool has_size = S_ISREG(a->mode) && dict_find_text(e->dict, "trusted.ec.size");
    struct inode *inode = has_size ? inode_find(op->d->xl->graph->inodes, &a->gfid) : NULL;
    uint64_t size;

    if (has_size && ec_size_held(op->d, inode, &size)) {
        a->size = size;
        a->blocks *= op->d->data;
    } else if ((S_ISREG(a->mode) && !has_size) || ec_doubts_have(doubts, &a->gfid)) {
        *a = (struct iatt){.mode = a->mode};
    } else if (has_size) {
        a->size = ec_get_size(e->dict);
        a->blocks *= op->d->data;
    }
    inode_unref(inode);
    dict_hide_ec(e->dict);
}

static bool
is_reserved_entry(const struct ec_op *op, const struct dirent_entry *e)
{
    return gfid_is_root(&op->inode->gfid) && strcmp(e->name, ".landfill") == 0;
}

static void
correct_entries(struct ec_op *op)
{
    struct dirent_entry **at = &op->stk->reply.entries;
    bool has_attributes = op->fop == FOP_readdirp && *at;
    struct ec_doubts *doubts = has_attributes ? ec_doubts_get(op->d) : NULL;

    while (*at) {
        if (is_reserved_entry(op, *at)) {
            *at = (*at)->next;
            op->stk->reply.op_ret--;
        } else {
            if (has_attributes)
                correct_entry(op, doubts, *at);
            at = &(*at)->next;
        }
    }
    ec_doubts_put(doubts);
    dict_hide_ec(op->stk->reply.xdata);
}

/* Returns whether the directory is open on child i, perhaps now. */
static bool
is_open_on(struct ec_op *op, unsigned i)
{
    if (!ec_fd_child(op->file, i))
        ec_fd_complete(op);
    return ec_fd_child(op->file, i) != NULL;
}

/* Reads the beginning of the list, from the first good child that can answer. */
static int
ec_begin_list(struct ec_op *op)
{
    struct disperse *d = op->d;
    unsigned first = read_first_child(d, op->inode);
    struct ec_user u = {.end = UINT64_MAX, .is_shared = true};
    int opened_on = atomic_load(&op->file->list_child), ret = -ENOTCONN;
    int err = ec_join(op, op->inode, &u, NEEDS_INFO);

    if (err)
        return err;
    child_set good = ec_good(ec_hold_of(d, op->inode));
    if (opened_on >= 0)
        first = (unsigned)opened_on; /* OPENDIR went there */
    for (unsigned n = 0; n < d->count && ret < 0; n++) {
        unsigned i = (first + n) % d->count;

        if (!(good & CHILD(i)) || !is_open_on(op, i))
            continue;
        atomic_store(&op->file->list_child, (int)i);
        ret = ec_call_child(op, i);
    }
    ec_leave(op, op->inode, &u);
    return ret;
}

void
ec_readdir_go(struct ec_op *op)
{
    struct dict *d = call_xdata(op->stk);
    int child = op->file ? atomic_load(&op->file->list_child) : -1;
    int ret = !op->file ? -EBADFD : !d ? -ENOMEM : 0;

    if (!ret && op->fop == FOP_readdirp)
        ret = dict_set_text_int(d, "trusted.ec.size", 0);
    if (!ret && (child < 0 || op->stk->call.offset == 0))
        ret = ec_begin_list(op);
    else if (!ret)
        ret = ec_call_child(op, (unsigned)child);
    if (ret >= 0)
        correct_entries(op);
    ec_finish(op, ret);
}
