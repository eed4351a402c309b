/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Operations that one child can answer: stat, read, readlink, access, seek, xattrs, listings.
 *
 *      check the view         the children that are good for this operation; refreshed if a child came up
 *                             or went down (view.c)
 *      choose a child         the child that the volume names, else by the gfid, so that all clients choose
 *                             alike
 *      ask the child          if it cannot answer, the next good child
 *
 * If no child is good, the object is in split-brain: EIO, unless the user has chosen a child
 * (split-brain.c). But STAT returns the attributes of one copy, as LOOKUP does, so that a name can be seen
 * and removed. A directory in split-brain is listed, too. A listing stays with the same child to the end,
 * because the cookies mean nothing to other children. Only if the child goes down before it has sent the
 * beginning of the list, another child takes over. No lock is taken: a read sees a concurrent write or not,
 * as in a local file system. */
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

/* Returns the children for owner, mode and size: with copies good for both kinds, else for metadata, else
 * as lookup.c:best_of() chooses, so that STAT and LOOKUP return the same. */
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
    case FOP_rchecksum: /* unknown permission if the mode is in split-brain */
        return v->metadata ? v->data : 0;
    case FOP_opendir:
    case FOP_readdir: /* a list with missing names is better than no list */
    case FOP_readdirp:
        return v->data ? v->data : op->r->all;
    case FOP_stat:
    case FOP_fstat:
        return good_for_stat(v, op->r->all & not_arbiter);
    case FOP_getxattr:
    case FOP_fgetxattr: /* EIO for a file whose data is in split-brain, as from stock clients */
        return v->data || !S_ISREG(op->inode->type) ? v->metadata : 0;
    default:
        return v->metadata;
    }
}

/* Sets *out to the children to ask, a set that is not empty. Returns 0 or -errno. */
static int
readable_children(struct op *op, child_set *out)
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
    if (op->fd && !op->fd->is_anonymous) { /* an anonymous fd is open nowhere */
        if (!op->file)
            return -EBADFD;
        if (!(*out & repl_fd_open(op->file)))
            (void)repl_fd_complete(op); /* the next line sees the newly opened fds */
        *out &= repl_fd_open(op->file);
    }
    return *out ? 0 : -ENOTCONN;
}

static int
read_from_child(struct op *op, child_set set)
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
reply_read(struct op *op, int ret)
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
    int ret = readable_children(op, &set);

    if (!ret)
        ret = read_from_child(op, set);
    reply_read(op, ret);
}

/* ---- xattrs ---------------------------------------------------------------------------------- */

/* Returns whether every child must act on or answer this name. The first success is the answer. */
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

static int
put_places(struct op *op, const struct fan *f)
{
    return fan_join_places(f, op->stk, op->r->xl, "REPLICATE");
}

/* Asks all children that are up, and answers with their joined replies. */
static void
ask_and_join(struct op *op, int (*join)(struct op *op, const struct fan *f))
{
    struct fan f;

    fan_begin(&f);
    for_each_child (i, atomic_load(&op->r->up))
        fan_wind(&f, op, i, op_fork(op, i));
    fan_wait(&f);
    int err = f.good ? join(op, &f) : f.sent ? -fan_errno(&f) : -ENOTCONN;
    fan_end(&f);
    reply_read(op, err);
}

/* Returns the notes in child i's reply; NULL: none. */
static const struct dict_pair *
name_notes_of(const struct fan *f, unsigned i)
{
    const struct dict_pair *p = dict_find(f->stk[i]->reply.dict, DICT_KEY_NAME_NOTES);

    return p && (p->type == DICT_PTR || p->type == DICT_UNTYPED) ? p : NULL;
}

/* Joins the notes about renames (features/index), which only some children may have. */
static int
join_name_notes(struct op *op, const struct fan *f)
{
    struct dict *d = reply_dict(op->stk);
    uint32_t size = 0, at = 0;

    for_each_child(i, f->good) size += name_notes_of(f, i) ? name_notes_of(f, i)->len : 0;
    uint8_t *all = size ? arena_alloc(&op->stk->arena, size) : NULL;

    if (!size)
        return -ENODATA;
    if (!all || !d)
        return -ENOMEM;
    for_each_child (i, f->good) {
        const struct dict_pair *p = name_notes_of(f, i);

        if (p) {
            memcpy(all + at, p->v.bytes, p->len);
            at += p->len;
        }
    }
    op->stk->reply.op_ret = (int32_t)size;
    return dict_set_bytes(d, DICT_KEY_NAME_NOTES, all, size) ? -ENOMEM : 0;
}

void
getxattr_go(struct op *op)
{
    const char *name = op->stk->call.name;

    if (name && strcmp(name, "trusted.glusterfs.lockinfo") == 0)
        lockinfo_go(op);
    else if (is_pathinfo(name))
        ask_and_join(op, put_places);
    else if (name && strcmp(name, dict_key_text(DICT_KEY_NAME_NOTES)) == 0)
        ask_and_join(op, join_name_notes);
    else if (is_for_all(name))
        all_go(op);
    else if (!split_get(op))
        read_go(op);
}

/* ---- directories ----------------------------------------------------------------------------- */

/* Names at the volume's root that are reserved for the volume. */
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

/* Has the reply tell how many objects of the brick wait for a heal. Returns 0 or -ENOMEM. */
static int
ask_pending(struct call_stack *stk)
{
    struct dict *d = call_xdata(stk);

    return d ? dict_set_str(d, DICT_KEY_LINK_COUNT, "glusterfs.xattrop_index_count") : -ENOMEM;
}

/* Returns the answer to ask_pending(). */
static int64_t
pending_of(const struct call_stack *stk)
{
    int64_t pending = 0;

    (void)dict_get_int(stk->reply.xdata, DICT_KEY_LINK_COUNT, &pending);
    return pending;
}

/* Asks all children whether an object of theirs waits for a heal. Returns whether none does. */
static bool
ask_whether_nothing_pends(struct op *op)
{
    struct fan f;

    fan_begin(&f);
    for_each_child (i, op->r->all) {
        struct call_stack *stk = op_call(op, FOP_lookup, i);

        if (stk && ask_pending(stk)) {
            call_stack_free(stk);
            stk = NULL;
        }
        fan_wind(&f, op, i, stk);
    }
    fan_wait(&f);
    bool is = f.good == op->r->all;
    for_each_child (i, f.good)
        is &= pending_of(f.stk[i]) == 0;
    fan_end(&f);
    return is;
}

/* Returns whether no object waits for a heal. The brick that lists cannot tell: if it was away, the others
 * accuse its copies. An answer holds for a second of one generation: bits 1 to 16 of r->pending are the
 * generation, the bits above them the second, and bit 0 is the answer. */
static bool
nothing_pends(struct op *op)
{
    struct replicate *r = op->r;
    uint64_t second = clock_mono_ns() / 1000000000;
    uint64_t key = (second << 17) | ((atomic_load(&r->generation) & 0xffffu) << 1);
    uint64_t known = atomic_load(&r->pending);

    if ((known & ~1ull) != key || !known) {
        known = key | (ask_whether_nothing_pends(op) ? 1 : 0);
        atomic_store(&r->pending, known);
    }
    return known & 1;
}

/* True if all attributes of the child's list are right. */
static bool
list_is_right(struct op *op, unsigned child)
{
    const struct replicate *r = op->r;

    return !pending_of(op->stk) && atomic_load(&r->up) == r->all && (int)child != r->arbiter &&
           nothing_pends(op);
}

/* Clears attributes that this child may have wrong; a client that needs them looks the name up. The mode
 * stays, because distribute recognizes folders, which all subvolumes have, and linkto files by the mode. */
static void
drop_doubtful(struct op *op, unsigned child)
{
    struct dirent_entry *entries = op->stk->reply.entries;

    if (op->stk->call.fop != FOP_readdirp || !entries || list_is_right(op, child))
        return;
    for (struct dirent_entry *e = entries; e; e = e->next) {
        struct inode *inode = inode_find(op->r->xl->graph->inodes, &e->iatt.gfid);
        struct view v;

        if (!inode || !view_get(op->r, inode, &v) || !(v.data & v.metadata & CHILD(child)))
            e->iatt = (struct iatt){.mode = e->iatt.mode};
        inode_unref(inode);
    }
}

/* Reads the beginning of the list, from the first child that can answer. */
static int
begin_list(struct op *op)
{
    child_set set, asked = 0;
    int err = readable_children(op, &set), ret = err;

    while (!err && set & ~asked) {
        unsigned i = view_choose(op->r, set & ~asked, op->inode);

        atomic_store(&op->file->list_child, (int)i);
        ret = op_call_child(op, i);
        if (read_is_answer(ret))
            break;
        asked |= CHILD(i);
        repl_fd_complete(op);
        err = readable_children(op, &set);
    }
    return ret;
}

void
readdir_go(struct op *op)
{
    int child = op->file ? atomic_load(&op->file->list_child) : -1;
    int ret = op->file ? ask_pending(op->stk) : -EBADFD;

    if (!ret && (child < 0 || op->stk->call.offset == 0))
        ret = begin_list(op);
    else if (!ret)
        ret = op_call_child(op, (unsigned)child);
    if (ret >= 0) {
        drop_doubtful(op, (unsigned)atomic_load(&op->file->list_child));
        hide_reserved(op);
    }
    reply_read(op, ret);
}
