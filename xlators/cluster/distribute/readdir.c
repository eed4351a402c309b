/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* OPENDIR, READDIR and READDIRP.
 *
 * OPENDIR goes to all subvolumes; one success suffices. Names that a dead rename has left are settled before
 * the listing (settle.c). A listing has the entries of the first subvolume, then of the next, and so on. The
 * cookie of an entry includes the subvolume (graph/dir-offset.h), so that any client can continue a listing.
 * Bricks are always asked for attributes too, in order to recognize linkto files, which are hidden. A
 * folder, which is on all subvolumes, is listed by its hashed subvolume only; if that one is down, by the one
 * that has been up for the longest time.
 *
 * At the beginning of one subvolume's part, the next subvolumes are asked at the same time, AHEAD in total.
 * Bricks signal the end together with the last entries (ENOENT, brick 4.12), so the entries of a small
 * folder on all subvolumes form one reply, including the end. Replies after a part that has not ended are
 * dropped and requested again in their turn: nothing is cached, so nothing becomes stale. A brick that does
 * not signal the end is asked once more.
 *
 * Objects created, moved or removed during the listing may be in it or not. An object that exists all the
 * time is in the listing once, but a file that is renamed to another subvolume, or migrated, may be seen
 * twice or not at all, as with stock clients. */
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
    int worst = -ENOTCONN, lost = 0, err = fd ? dist_fan_begin(&fan, &o) : -ENOMEM;

    if (err) {
        fd_unref(fd);
        return err;
    }
    for (unsigned i = 0; i < fan.count; i++) {
        struct call_stack *one = dist_call_put_uint(dist_call_copy(&o), DICT_KEY_DHT_LINKTO, 256);

        one = dist_call_put_uint(one, DICT_KEY_NAME_NOTE, 1);
        if (one)
            one->call.fd = fd_ref(fd);
        dist_fan_add(&fan, i, one);
    }
    err = dist_fan_go(&fan);
    for (unsigned i = 0; i < fan.count && !err; i++) {
        is_open |= dist_fan_result(&fan, i) >= 0;
        if (dist_fan_result(&fan, i) == -ENOTCONN && dist_op_waits(&o))
            lost = -ENOTCONN;
        if (dist_fan_result(&fan, i) < 0)
            worst = dist_fan_result(&fan, i);
        else
            settle_listed(&o, stk->call.loc.inode, fan.call[i]);
    }
    dist_fan_end(&fan);
    err = err ? err : lost;
    if (err || !is_open) {
        fd_unref(fd);
        return err ? err : worst;
    }
    stk->reply.op_ret = 0;
    stk->reply.fd = fd;
    return XL_DONE;
}

/* ---- filtering entries ----------------------------------------------------------------------- */

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
is_dot_entry_name(const struct dirent_entry *e)
{
    return e->name[0] == '.' && (!e->name[1] || (e->name[1] == '.' && !e->name[2]));
}

/* Filters and links an entry. A folder's attributes must be merged from all subvolumes, so they are not
 * passed on: a client that needs them looks the folder up, on all subvolumes in parallel, because the type
 * is known by then. */
static bool
take_entry(const struct list *l, unsigned child, struct dirent_entry *e)
{
    struct dist *d = l->o->d;

    e->inode = NULL;
    if (S_ISDIR(e->iatt.mode) || is_dot_entry_name(e)) {
        if (!is_shown_folder(l, child, e))
            return false;
        if (!is_dot_entry_name(e) && !gfid_is_null(&e->iatt.gfid))
            e->inode = inode_link_listed(d->xl->graph->inodes, l->folder, e->name, &e->iatt, &l->epochs);
        e->iatt.gfid = gfid_null;
        return true;
    }
    bool has_linkto = S_ISREG(e->iatt.mode) && dict_has(e->dict, DICT_KEY_DHT_LINKTO);
    if (has_linkto && (e->iatt.mode & 07777) == S_ISVTX)
        return false;
    if (has_linkto) /* under migration, as its mode shows */
        e->iatt.mode &= ~(uint32_t)(S_ISVTX | S_ISGID);
    if (gfid_is_null(&e->iatt.gfid))
        return true;
    e->inode = inode_link_listed(d->xl->graph->inodes, l->folder, e->name, &e->iatt, &l->epochs);
    if (e->inode)
        (void)place_set(d, e->inode, (int)child);
    return true;
}

/* Removes hidden entries from the reply. Returns the number of entries left. */
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
child_of_offset(const struct dist *d, uint64_t offset)
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

/* Asks child `at` for its list from offset on, and at the beginning also the next children. */
static int
ask_for_lists(struct list *l, unsigned at, uint64_t offset)
{
    const struct dist *d = l->o->d;
    unsigned end = offset ? at + 1 : at + AHEAD;

    for (unsigned i = at; i < end && i < d->count; i++) {
        if (!l->fan.call[i] && child_is_up(d, i))
            dist_fan_add(&l->fan, i, list_call(l->o, i == at ? offset : 0));
    }
    return dist_fan_go(&l->fan);
}

/* Returns whether an error only ends the child's part: the folder was removed, or never existed on this
 * child; or the child is down or has not opened the folder. In the latter case entries of the other
 * children are listed anyway, but not after a part of this child's names: a program that deletes the names
 * it does not see in a listing must not take a part for the whole. A mount that waits for lost subvolumes
 * gets ENOTCONN. */
static bool
is_end_of_part(const struct op *o, int ret, uint64_t offset)
{
    bool may_miss = ret == -EBADFD || (ret == -ENOTCONN && !dist_op_waits(o));

    return ret == -ENOENT || ret == -ESTALE || (!offset && may_miss);
}

/* Lists child `at` from `offset` on: visible entries in fan.call[at]; *has_ended: the child has no more.
 * Returns the number of entries, or -errno. */
static int
list_child(struct list *l, unsigned at, uint64_t offset, bool *has_ended)
{
    for (;;) {
        int err = ask_for_lists(l, at, offset), ret = err ? err : dist_fan_result(&l->fan, at), count = 0;

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
            return ret >= 0 || is_end_of_part(l->o, ret, offset) ? 0 : ret;
    }
}

/* Copies the xattr that features/shard has asked for; the others are evaluated already, and no layer above
 * uses them. NULL: none, or out of memory, which features/shard takes for an unknown size. */
static struct dict *
keep_size(const struct op *o, const struct dict *from)
{
    const struct dict_pair *p = dict_find(from, DICT_KEY_SHARD_FILE_SIZE);
    const struct dict_pair *b = dict_find(from, DICT_KEY_SHARD_BLOCK_SIZE);
    struct dict *d = dict_has(o->stk->call.xdata, DICT_KEY_SHARD_FILE_SIZE) ? dict_new(&o->stk->arena) : NULL;

    if (!d || !p || !b)
        return d;
    if (dict_set_bytes(d, DICT_KEY_SHARD_FILE_SIZE, p->v.bytes, p->len) ||
        dict_set_bytes(d, DICT_KEY_SHARD_BLOCK_SIZE, b->v.bytes, b->len))
        return NULL;
    return d;
}

/* Appends the entries to the caller's reply. The names are copied, because they lie in a receive record
 * that is freed. */
static int
append_entries(const struct op *o, struct call_stack *stk)
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
        e->dict = keep_size(o, e->dict);
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

/* Moves a child's entries to the caller's reply, or appends them. */
static int
move_entries(struct list *l, unsigned at, int count)
{
    struct call_stack *stk = l->fan.call[at];

    l->fan.call[at] = NULL;
    stk->reply.op_ret = count;
    if (l->o->stk->reply.entries)
        return append_entries(l->o, stk);
    (void)dist_op_answer_with(l->o, stk);
    return 0;
}

/* Returns whether a listing that continued in the middle of a child's part has room for entries of the next
 * child: at least half of the requested size. */
static bool
has_room_for_entries(const struct list *l)
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
    for (unsigned at = child_of_offset(o->d, offset); at < o->d->count && has_ended; at++, offset = 0) {
        if (reply->entries && !l->fan.call[at] && !has_room_for_entries(l)) {
            has_ended = false;
            break;
        }
        int away = offset || dist_op_waits(o) ? -ENOTCONN : 0;
        int ret = child_is_up(o->d, at) ? list_child(l, at, offset, &has_ended) : away;

        if (ret > 0 && move_entries(l, at, ret))
            has_ended = false; /* out of memory: return the entries so far */
        if (ret < 0) {
            err = ret;
            break;
        }
    }
    if (reply->entries) { /* an error is returned at the next request */
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
