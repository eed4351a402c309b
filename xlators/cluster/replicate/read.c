/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* What one child can answer: stat, read, readlink, access, seek, xattrs, lists of names.
 *
 *      look at the view       which children are good for this; asked anew if one came or went (view.c)
 *      choose one of them     the one that the volume names, else by the gfid, so that all clients choose
 *                             alike
 *      ask it                 if it cannot answer, the next good one
 *
 * No good one is split-brain: EIO, unless the user has chosen one (split-brain.c). But STAT answers what
 * LOOKUP does, one copy's attributes, so that a name can be seen and removed; and a directory is listed, from
 * one child to its end, whose cookies mean nothing to the others. Only one that goes away before it has
 * told the list's beginning is followed by another one. No lock is taken: a write under way is
 * seen or not, as on one file system. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "xlators/cluster/replicate/heal.h"

bool
read_is_answer(int ret)
{
    switch (ret) {
    case -ENODATA:
    case -ERANGE:
    case -EACCES:
    case -EPERM:
    case -EINVAL:
    case -ENXIO:
    case -ENAMETOOLONG:
    case -EOPNOTSUPP:
        return true;
    default:
        return ret >= 0;
    }
}

/* Owner and mode, and how long it is: of a copy that is good for all, or for the former; else as
 * lookup.c:best_of() chooses, so that both answer the same. */
static child_set
good_for_stat(const struct view *v, child_set all)
{
    const child_set sets[] = {v->data & v->metadata & all, v->metadata & all, v->data & all, all};
    size_t i = 0;

    while (!sets[i])
        i++;
    return sets[i];
}

child_set
read_good_for(const struct op *op, const struct view *v)
{
    child_set not_arbiter = op->r->arbiter < 0 || S_ISDIR(op->inode->type) ? ~0u : ~CHILD(op->r->arbiter);

    switch (op->fop) {
    case FOP_readv:
    case FOP_seek:
    case FOP_rchecksum: /* nobody knows who may, if the mode is in split-brain */
        return v->metadata ? v->data : 0;
    case FOP_opendir:
    case FOP_readdir: /* names can be missing then, which says less than that none can be seen */
    case FOP_readdirp:
        return v->data ? v->data : op->r->all;
    case FOP_stat:
    case FOP_fstat:
        return good_for_stat(v, op->r->all & not_arbiter);
    case FOP_getxattr:
    case FOP_fgetxattr: /* of a file whose data is in split-brain: EIO, as stock's clients */
        return v->data || !S_ISREG(op->inode->type) ? v->metadata : 0;
    default:
        return v->metadata;
    }
}

/* 0 or -errno; *out is not empty then. */
static int
readable(struct op *op, child_set *out)
{
    struct view v;
    int err = view_of(op, op->inode, &v);

    if (err)
        return err;
    *out = read_good_for(op, &v);
    int choice = v.data && v.metadata ? -1 : split_choice(op->r, op->inode);

    if (choice >= 0)
        *out = CHILD(choice);
    if (!*out)
        return -EIO;
    *out &= atomic_load(&op->r->up);
    if (op->fd) {
        if (!op->file)
            return -EBADFD;
        if (!(*out & repl_fd_open(op->file)))
            (void)repl_fd_complete(op); /* what is open is seen next */
        *out &= repl_fd_open(op->file);
    }
    return *out ? 0 : -ENOTCONN;
}

static int
read_one(struct op *op, child_set set)
{
    int ret = -ENOTCONN;

    while (set) {
        unsigned i = view_choose(op->r, set, op->inode);

        ret = op_call_child(op, i);
        if (read_is_answer(ret))
            break;
        set &= ~CHILD(i);
    }
    return ret;
}

static void
reply_or_fail(struct op *op, int ret)
{
    if (ret < 0)
        op_fail(op, ret);
    else
        op_reply(op);
}

void
read_go(struct op *op)
{
    child_set set;
    int ret = readable(op, &set);

    if (!ret)
        ret = read_one(op, set);
    reply_or_fail(op, ret);
}

/* ---- xattrs ---------------------------------------------------------------------------------- */

/* Names that every child has something to say or to do about. The first that succeeds answers. */
static bool
is_for_all(const char *name)
{
    static const char *const prefixes[] = {"glusterfs.intrlk", "glusterfs.clrlk"};

    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (name && strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    }
    return false;
}

static bool
is_pathinfo(const char *name)
{
    return name &&
           (strcmp(name, "trusted.glusterfs.pathinfo") == 0 || strcmp(name, "glusterfs.pathinfo") == 0);
}

/* "(<REPLICATE:V-replicate-0> PLACE PLACE)": where each child that is there says that it has it. */
static int
put_places(struct op *op, const struct fan *f)
{
    const char *key = op->stk->call.name;
    size_t size = strlen(op->r->xl->name) + sizeof "(<REPLICATE:>)";
    const char *place[REPLICAS_MAX];

    for_each_child (i, f->good) {
        const struct dict_pair *p = dict_find_text(f->stk[i]->reply.dict, key);

        place[i] = p ? dict_pair_str(p) : NULL;
        size += place[i] ? strlen(place[i]) + 1 : 0;
    }
    char *text = arena_alloc(&op->stk->arena, size);
    struct dict *d = dict_new(&op->stk->arena);

    if (!text || !d)
        return -ENOMEM;
    int at = snprintf(text, size, "(<REPLICATE:%s>", op->r->xl->name);

    for_each_child (i, f->good)
        at += place[i] ? snprintf(text + at, size - (size_t)at, " %s", place[i]) : 0;
    snprintf(text + at, size - (size_t)at, ")");
    op->stk->reply.dict = d;
    return dict_set_text(d, key, DICT_STR, text, (uint32_t)strlen(text) + 1);
}

static void
pathinfo_go(struct op *op)
{
    struct fan f;

    fan_begin(&f);
    for_each_child (i, atomic_load(&op->r->up))
        fan_wind(&f, op, i, op_fork(op, i));
    fan_wait(&f);
    int err = f.good ? put_places(op, &f) : f.sent ? -fan_errno(&f) : -ENOTCONN;
    fan_end(&f);
    reply_or_fail(op, err);
}

void
getxattr_go(struct op *op)
{
    const char *name = op->stk->call.name;

    if (name && strcmp(name, "trusted.glusterfs.lockinfo") == 0)
        lockinfo_go(op);
    else if (is_pathinfo(name))
        pathinfo_go(op);
    else if (is_for_all(name))
        all_go(op);
    else if (!split_get(op))
        read_go(op);
}

/* ---- directories ----------------------------------------------------------------------------- */

/* The volume's own, at its root. */
static bool
is_reserved(const struct op *op, const struct dirent_entry *e)
{
    static const char anonymous[] = ".glusterfs-anonymous-inode";

    return gfid_is_root(&op->inode->gfid) &&
           (strcmp(e->name, ".landfill") == 0 || strncmp(e->name, anonymous, sizeof anonymous - 1) == 0);
}

static void
hide_reserved(struct op *op)
{
    struct dirent_entry **at = &op->stk->reply.entries;

    while (*at) {
        if (is_reserved(op, *at)) {
            *at = (*at)->next;
            op->stk->reply.op_ret--;
        } else {
            at = &(*at)->next;
        }
    }
}

/* Attributes that this child may be wrong about are not given: whoever wants them asks by name. The mode
 * stays: distribute tells by it folders, which all its subvolumes have, and linkto files. */
static void
drop_doubtful(struct op *op, unsigned child)
{
    struct replicate *r = op->r;
    int64_t pending = 0;

    (void)dict_get_int(op->stk->reply.xdata, DICT_KEY_LINK_COUNT, &pending);
    bool is_whole = !pending && atomic_load(&r->up) == r->all && (int)child != r->arbiter;

    for (struct dirent_entry *e = op->stk->reply.entries; e && !is_whole; e = e->next) {
        struct inode *inode = inode_find(r->xl->graph->inodes, &e->iatt.gfid);
        struct view v;

        if (!inode || !view_get(r, inode, &v) || !(v.data & v.metadata & CHILD(child)))
            e->iatt = (struct iatt){.mode = e->iatt.mode};
        inode_unref(inode);
    }
}

static int
ask_pending(struct op *op)
{
    struct dict *d = call_xdata(op->stk);

    return d ? dict_set_str(d, DICT_KEY_LINK_COUNT, "glusterfs.xattrop_index_count") : -ENOMEM;
}

/* The beginning of the list: from the first child that has one. */
static int
begin_list(struct op *op)
{
    child_set set, asked = 0;
    int err = readable(op, &set), ret = err;

    while (!err && set & ~asked) {
        unsigned i = view_choose(op->r, set & ~asked, op->inode);

        atomic_store(&op->file->list_child, (int)i);
        ret = op_call_child(op, i);
        if (read_is_answer(ret))
            break;
        asked |= CHILD(i);
        repl_fd_complete(op);
        err = readable(op, &set);
    }
    return ret;
}

void
readdir_go(struct op *op)
{
    int child = op->file ? atomic_load(&op->file->list_child) : -1;
    int ret = op->file ? ask_pending(op) : -EBADFD;

    if (!ret && (child < 0 || op->stk->call.offset == 0))
        ret = begin_list(op);
    else if (!ret)
        ret = op_call_child(op, (unsigned)child);
    if (ret >= 0) {
        drop_doubtful(op, (unsigned)atomic_load(&op->file->list_child));
        hide_reserved(op);
    }
    reply_or_fail(op, ret);
}
