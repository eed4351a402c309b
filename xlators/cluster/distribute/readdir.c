/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Folders opened and listed.
 *
 * OPENDIR goes to all subvolumes; one that takes it will do. A list is that of the first subvolume, then
 * that of the next, and so on; the cookie of an entry says which one it is of (graph/dir-offset.h), so that
 * a list goes on where it was whoever asks. Bricks are always asked for attributes too, to tell linkto
 * files, which nobody sees. A folder, which is on all of them, is shown by its hashed subvolume only; by the
 * one that has been up for longest if that one is away.
 *
 * Where one subvolume's part begins, those after it are asked at the same time, AHEAD in all. Bricks say the
 * end together with the last entries (ENOENT, brick 4.12), so what a small folder has on all of them is one
 * answer, with the end in it. What stands behind a part that has not ended is dropped and asked for when it
 * is its turn: nothing is kept, so nothing can get old. A brick that does not say the end is asked once more.
 *
 * What is made, moved or removed while the list is read may be in it or not; what is there all the time is
 * in it once, but a file that is renamed to another subvolume, or migrated, may be seen twice or not at all,
 * as with stock's clients. */
#include <errno.h>
#include <string.h>

#include "graph/dir-offset.h"
#include "xlators/cluster/distribute/distribute-internal.h"

enum { AHEAD = 8, ENTRY_BYTES = 208 };

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
    struct fan fan;
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

/* A folder's attributes are those of all subvolumes: who wants them looks it up, on all of them at once, as
 * it is known by then that it is a folder. */
static bool
take_entry(const struct list *l, unsigned child, struct dirent_entry *e)
{
    struct dist *d = l->o->d;

    e->inode = NULL;
    if (S_ISDIR(e->iatt.mode) || is_dot(e)) {
        if (!is_shown_folder(l, child, e))
            return false;
        if (!is_dot(e) && !gfid_is_null(&e->iatt.gfid))
            e->inode = inode_link_listed(d->xl->graph->inodes, l->folder, e->name, &e->iatt, &l->epochs);
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

/* The list from *offset of child `at` on. Those after it are asked from their beginnings, if this is one. */
static int
ask(struct list *l, unsigned at, uint64_t offset)
{
    const struct dist *d = l->o->d;
    unsigned end = offset ? at + 1 : at + AHEAD;

    for (unsigned i = at; i < end && i < d->count; i++) {
        if (!l->fan.call[i] && child_is_up(d, i))
            dist_fan_add(&l->fan, i, list_call(l->o, i == at ? offset : 0));
    }
    return dist_fan_go(&l->fan);
}

/* A folder that is no more, or that this child never had. A child that is away or has not opened it: what
 * the others have is shown all the same, but not if a part of its names has been shown already. Whoever
 * removes what he does not see in a list must not take a part for all. */
static bool
is_no_matter(int ret, uint64_t offset)
{
    return ret == -ENOENT || ret == -ESTALE || (!offset && (ret == -ENOTCONN || ret == -EBADFD));
}

/* What child `at` has from `offset` on, as far as it is shown: in fan.call[at], and *has_ended: there is no
 * more. The number of entries, or -errno. */
static int
list_child(struct list *l, unsigned at, uint64_t offset, bool *has_ended)
{
    for (;;) {
        int err = ask(l, at, offset), ret = err ? err : dist_fan_result(&l->fan, at), count = 0;

        *has_ended = ret <= 0;
        if (ret > 0) {
            *has_ended = l->fan.call[at]->reply.op_errno == ENOENT;
            offset = last_offset(l->fan.call[at], offset);
            count = take_entries(l, at, l->fan.call[at]);
        }
        if (count)
            return count;
        if (l->fan.call[at])
            call_stack_free(l->fan.call[at]);
        l->fan.call[at] = NULL;
        if (*has_ended)
            return ret >= 0 || is_no_matter(ret, offset) ? 0 : ret;
    }
}

/* Behind what the caller's reply has already. Names lie in the record that they came in, which goes. */
static int
append(const struct op *o, struct call_stack *stk)
{
    struct fop_reply *to = &o->stk->reply;
    struct dirent_entry **at = &to->entries;

    for (struct dirent_entry *e = stk->reply.entries; e; e = e->next) {
        char *name = arena_alloc(&o->stk->arena, e->name_len + 1);

        if (!name) {
            call_stack_free(stk);
            return -ENOMEM;
        }
        memcpy(name, e->name, e->name_len + 1);
        e->name = name;
        e->dict = NULL; /* it has been looked at; nobody above does */
    }
    while (*at)
        at = &(*at)->next;
    *at = stk->reply.entries;
    to->op_ret += stk->reply.op_ret;
    stk->reply.holds_inodes = false;
    arena_join(&o->stk->arena, &stk->arena);
    call_stack_free(stk);
    return 0;
}

/* A child's entries become, or follow, those of the caller's reply. */
static int
hand_over(struct list *l, unsigned at, int count)
{
    struct call_stack *stk = l->fan.call[at];

    l->fan.call[at] = NULL;
    stk->reply.op_ret = count;
    if (l->o->stk->reply.entries)
        return append(l->o, stk);
    (void)dist_op_answer_with(l->o, stk);
    return 0;
}

/* A list that goes on in the middle of a child's part is filled up from the next one's if much is left of
 * what was asked for. */
static bool
has_room(const struct list *l)
{
    size_t used = 0;

    for (const struct dirent_entry *e = l->o->stk->reply.entries; e; e = e->next)
        used += ENTRY_BYTES + e->name_len;
    return used < l->o->stk->call.size / 2;
}

static xl_verdict
list_all(struct list *l)
{
    const struct op *o = l->o;
    struct fop_reply *reply = &o->stk->reply;
    uint64_t offset = o->stk->call.offset;
    bool has_ended = true;
    int err = 0;

    reply->entries = NULL;
    for (unsigned at = child_of(o->d, offset); at < o->d->count && has_ended; at++, offset = 0) {
        if (reply->entries && !l->fan.call[at] && !has_room(l)) {
            has_ended = false;
            break;
        }
        int ret = child_is_up(o->d, at) ? list_child(l, at, offset, &has_ended) : offset ? -ENOTCONN : 0;

        if (ret > 0 && hand_over(l, at, ret))
            has_ended = false; /* no memory: what is there already must do */
        if (ret < 0) {
            err = ret;
            break;
        }
    }
    if (reply->entries) { /* what went wrong is told when it is asked for again */
        reply->op_errno = has_ended && !err ? ENOENT : 0;
        return XL_DONE;
    }
    if (err || child_longest_up(o->d) < 0)
        return err ? err : -ENOTCONN;
    reply->op_ret = 0;
    reply->op_errno = ENOENT;
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
    err = dist_fan_begin(&l.fan, &o);
    xl_verdict verdict = err ? err : list_all(&l);

    dist_fan_end(&l.fan);
    layout_unref(l.layout);
    return verdict;
}
