/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Folders opened and listed.
 *
 * OPENDIR goes to all subvolumes; one that takes it will do. A list is that of the first subvolume, then
 * that of the next, and so on; the cookie of an entry says which one it is of (graph/dir-offset.h), so that
 * a list goes on where it was whoever asks. Bricks are always asked for attributes too, to tell linkto
 * files, which nobody sees. A folder, which is on all of them, is shown by its hashed subvolume only; by the
 * one that has been up for longest if that one is away.
 *
 * What is made, moved or removed while the list is read may be in it or not; what is there all the time is
 * in it once, but a file that is renamed to another subvolume, or migrated, may be seen twice or not at all,
 * as with stock's clients. */
#include <errno.h>

#include "graph/dir-offset.h"
#include "xlators/cluster/distribute/distribute-internal.h"

xl_verdict
dist_opendir_go(struct xlator *xl, struct call_stack *stk)
{
    struct op o = dist_op_of(xl, stk);
    struct fd *fd = fd_new(stk->call.loc.inode, stk->client, stk->call.flags, true);
    struct fan fan;
    bool is_open = false;
    int worst = -ENOTCONN, err = fd ? dist_fan_begin(&fan, &o) : -ENOMEM;

    if (err) {
        fd_unref(fd);
        return err;
    }
    for (unsigned i = 0; i < fan.count; i++) {
        struct call_stack *one = dist_call_put_uint(dist_call_copy(&o), DICT_KEY_DHT_LINKTO, 256);

        if (one)
            one->call.fd = fd_ref(fd);
        dist_fan_add(&fan, i, one);
    }
    err = dist_fan_go(&fan);
    for (unsigned i = 0; i < fan.count && !err; i++) {
        is_open |= dist_fan_result(&fan, i) >= 0;
        if (dist_fan_result(&fan, i) < 0)
            worst = dist_fan_result(&fan, i);
    }
    dist_fan_end(&fan);
    if (err || !is_open) {
        fd_unref(fd);
        return err ? err : worst;
    }
    stk->reply.op_ret = 0;
    stk->reply.fd = fd;
    return XL_DONE;
}

/* ---- which entries --------------------------------------------------------------------------- */

struct list {
    const struct op *o;
    struct inode *folder;
    struct layout *layout;
    struct inode_epochs epochs;
};

static bool
is_shown_folder(const struct list *l, unsigned child, const struct dirent_entry *e)
{
    int hashed = layout_find(l->layout, dist_hash(l->o->d, e->name));

    if (hashed < 0 || !child_is_up(l->o->d, (unsigned)hashed))
        hashed = child_longest_up(l->o->d);
    return hashed == (int)child;
}

static bool
is_dot(const struct dirent_entry *e)
{
    return e->name[0] == '.' && (!e->name[1] || (e->name[1] == '.' && !e->name[2]));
}

/* A folder's attributes are those of all subvolumes: who wants them looks it up. */
static bool
take_entry(const struct list *l, unsigned child, struct dirent_entry *e)
{
    struct dist *d = l->o->d;

    e->inode = NULL;
    if (S_ISDIR(e->iatt.mode) || is_dot(e)) {
        if (!is_shown_folder(l, child, e))
            return false;
        e->iatt.gfid = gfid_null;
        return true;
    }
    bool has_linkto = S_ISREG(e->iatt.mode) && dict_has(e->dict, DICT_KEY_DHT_LINKTO);
    if (has_linkto && (e->iatt.mode & 07777) == S_ISVTX)
        return false;
    if (has_linkto) /* it is being migrated, and shows that in its mode */
        e->iatt.mode &= ~(uint32_t)(S_ISVTX | S_ISGID);
    if (gfid_is_null(&e->iatt.gfid))
        return true;
    e->inode = inode_link_listed(d->xl->graph->inodes, l->folder, e->name, &e->iatt, &l->epochs);
    if (e->inode)
        (void)place_set(d, e->inode, (int)child);
    return true;
}

/* Those that are not shown are taken out. The number that is left. */
static int
take_entries(const struct list *l, unsigned child, struct call_stack *stk)
{
    struct dirent_entry **at = &stk->reply.entries;
    int count = 0;

    while (*at) {
        if (take_entry(l, child, *at)) {
            at = &(*at)->next;
            count++;
        } else {
            *at = (*at)->next;
        }
    }
    stk->reply.holds_inodes = true;
    return count;
}

/* ---- one subvolume after the other ----------------------------------------------------------- */

static unsigned
child_of(const struct dist *d, uint64_t offset)
{
    unsigned brick, bricks = d->xl->graph->layers[0].leaf_count;

    if (!offset)
        return 0;
    (void)dir_offset_split(offset, bricks, &brick);
    for (unsigned i = 0; i < d->count; i++) {
        const struct xlator *xl = d->child[i].xl;

        if (brick >= xl->leaf_first && brick < (unsigned)xl->leaf_first + xl->leaf_count)
            return i;
    }
    return 0;
}

static struct call_stack *
list_call(const struct op *o, uint64_t offset)
{
    struct call_stack *stk = dist_call_copy(o);

    if (stk) {
        stk->call.fop = FOP_readdirp;
        stk->call.offset = offset;
    }
    return dist_call_put_uint(stk, DICT_KEY_DHT_LINKTO, 256);
}

static uint64_t
last_offset(const struct call_stack *stk, uint64_t offset)
{
    for (const struct dirent_entry *e = stk->reply.entries; e; e = e->next)
        offset = e->off;
    return offset;
}

/* What child *at has from *offset on, as far as it is shown. The number of entries; 0: no more, of this
 * child; *out is then NULL. */
static int
list_child(const struct list *l, unsigned at, uint64_t offset, struct call_stack **out)
{
    for (;;) {
        struct call_stack *stk = list_call(l->o, offset);
        int ret = dist_call_at(l->o, at, stk), count = 0;

        *out = NULL;
        if (ret > 0) {
            offset = last_offset(stk, offset);
            count = take_entries(l, at, stk);
        }
        if (count) {
            *out = stk;
            return count;
        }
        if (stk)
            call_stack_free(stk);
        if (ret <= 0)
            return ret == -ENOENT ? 0 : ret;
    }
}

static xl_verdict
list_all(const struct list *l)
{
    const struct op *o = l->o;
    uint64_t offset = o->stk->call.offset;
    int worst = 0;

    for (unsigned at = child_of(o->d, offset); at < o->d->count; at++, offset = 0) {
        struct call_stack *stk;
        int ret = child_is_up(o->d, at) ? list_child(l, at, offset, &stk) : 0;

        if (ret > 0) {
            stk->reply.op_ret = ret;
            return dist_op_answer_with(o, stk);
        }
        /* One that went away or was not open; what the others have is shown all the same. */
        if (ret < 0 && ret != -ENOTCONN && ret != -EBADFD && ret != -ESTALE)
            worst = ret;
    }
    if (child_longest_up(o->d) < 0)
        return -ENOTCONN;
    if (worst)
        return worst;
    o->stk->reply.op_ret = 0;
    o->stk->reply.op_errno = ENOENT; /* the end */
    return XL_DONE;
}

xl_verdict
dist_readdir_go(struct xlator *xl, struct call_stack *stk)
{
    struct op o = dist_op_of(xl, stk);
    struct list l = {.o = &o, .folder = stk->call.fd->inode};
    int err = folder_layout(&o, l.folder, &l.layout);

    if (err)
        return err;
    inode_epochs_take(xl->graph->inodes, &l.epochs);
    xl_verdict verdict = list_all(&l);

    layout_unref(l.layout);
    return verdict;
}
