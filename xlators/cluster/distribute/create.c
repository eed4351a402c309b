/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* CREATE, MKNOD, SYMLINK: a new name on its hashed subvolume.
 *
 *   1. CREATE passes the parent's range as this client knows it: the brick compares, and refuses if a
 *      rebalance has changed the range (brick 4.3). Then, under RDLCK dht.layout.heal on the parent, the
 *      layout is read again and the file created on the new hashed subvolume; a second refusal is an error.
 *      MKNOD and SYMLINK make no such check, as in stock clients.
 *   2. If the hashed subvolume has too little space, first a linkto file is created there, then the file on
 *      the subvolume with most space.
 *   3. If the hashed subvolume is leaving the volume, the layout is read again under the lock of 1, because
 *      a rebalance gives all folders new layouts. If the name is still hashed there, then as 2, under the
 *      lock.
 *
 * Visible to other clients: during 2 for a moment a linkto file that points nowhere; they then look on all
 * subvolumes. */
#include <errno.h>
#include <string.h>

#include "xlators/cluster/distribute/distribute-internal.h"

/* Copies the caller's call; with `layout`, adds the check. */
static struct call_stack *
make_file_call(const struct op *o, unsigned hashed, const struct layout *layout)
{
    struct call_stack *stk = dist_call_copy(o);
    uint8_t bytes[LAYOUT_BYTES];

    if (!layout || layout->of[hashed].err || o->stk->call.fop != FOP_create)
        return stk;
    layout_write(&layout->of[hashed], bytes);
    stk = dist_call_put_str(stk, DICT_KEY_PREOP_PARENT_KEY, "trusted.glusterfs.dht");
    return dist_call_put_bytes(stk, DICT_KEY_DHT_LAYOUT, bytes, sizeof bytes);
}

static bool
was_refused(const struct call_stack *stk)
{
    return stk && dict_has(stk->reply.xdata, DICT_KEY_PREOP_CHECK_FAILED);
}

static int create_beside_linkto(const struct op *o, unsigned hashed, unsigned at, struct call_stack **out);

/* Creates the file by a current layout, which cannot change meanwhile. A subvolume that is leaving gets no
 * new file, because the file would be lost. */
static int
make_by_layout(const struct op *o, const struct layout *layout, unsigned *at, struct call_stack **out)
{
    int now = layout_find(layout, dist_hash(o->d, o->stk->call.loc.name));

    if (now < 0)
        return -EIO;
    *at = (unsigned)now;
    if (child_is_leaving(o->d, *at)) {
        *at = space_best(o->d, layout, *at);
        return *at == (unsigned)now ? -ENOTCONN : create_beside_linkto(o, (unsigned)now, *at, out);
    }
    *out = make_file_call(o, *at, NULL);
    return dist_call_at(o, *at, *out);
}

/* Creates the file again, by a fresh layout under a lock that prevents changes. */
static int
create_by_fresh_layout(const struct op *o, unsigned hashed, unsigned *at, struct call_stack **out)
{
    struct inode *parent = o->stk->call.loc.parent;
    struct dist_lock lock = {
        .child = hashed, .inode = parent, .domain = DOMAIN_LAYOUT, .type = FLOCK_READ, .may_miss = true};
    struct layout *layout;
    int err = dist_locks_take(o, &lock, 1);

    if (err)
        return err;
    err = folder_layout_fresh(o, parent, &layout);
    if (!err) {
        err = make_by_layout(o, layout, at, out);
        layout_unref(layout);
    }
    dist_locks_drop(o, &lock, 1);
    return err;
}

/* Creates the file on another subvolume, with a linkto file on the hashed one. */
static int
create_beside_linkto(const struct op *o, unsigned hashed, unsigned at, struct call_stack **out)
{
    const struct loc *loc = &o->stk->call.loc;
    struct gfid gfid;
    int err = dict_get_gfid(o->stk->call.xdata, DICT_KEY_GFID_REQ, &gfid);

    if (err)
        return -EPERM; /* a brick would return the same */
    err = linkto_make(o, hashed, loc->parent, loc->name, &gfid, at, false);
    if (err)
        return err;
    *out = make_file_call(o, at, NULL);
    err = dist_call_at(o, at, *out);
    if (err < 0)
        (void)linkto_remove(o, hashed, loc->parent, loc->name, false);
    else
        linkto_own(o, hashed, &(*out)->reply.stat);
    return err;
}

static int
make_file(const struct op *o, const struct layout *layout, unsigned hashed, unsigned *at,
          struct call_stack **out)
{
    if (child_is_leaving(o->d, hashed))
        return create_by_fresh_layout(o, hashed, at, out);
    *at = space_is_short(o->d, hashed) ? space_best(o->d, layout, hashed) : hashed;
    if (*at != hashed)
        return create_beside_linkto(o, hashed, *at, out);
    *out = make_file_call(o, hashed, layout);
    int err = dist_call_at(o, hashed, *out);

    if (err >= 0 || !was_refused(*out))
        return err;
    call_stack_free(*out);
    *out = NULL;
    return create_by_fresh_layout(o, hashed, at, out);
}

xl_verdict
dist_create_go(struct xlator *xl, struct call_stack *stk)
{
    struct op o = dist_op_of(xl, stk);
    const struct loc *loc = &stk->call.loc;
    struct call_stack *made = NULL;
    struct layout *layout;
    unsigned at;
    int hashed = folder_hashed_by(&o, loc->parent, loc->name, &layout);

    if (hashed < 0)
        return hashed;
    space_ask(o.d);
    int err = make_file(&o, layout, (unsigned)hashed, &at, &made);

    layout_unref(layout);
    if (err >= 0) {
        stk->call.loc.inode = inode_link(xl->graph->inodes, loc->parent, loc->name, &made->reply.stat);
        if (!loc->inode || place_set(o.d, loc->inode, (int)at))
            err = -ENOMEM;
    }
    if (err >= 0)
        return dist_op_answer_with(&o, made);
    if (made)
        call_stack_free(made);
    return err;
}
