/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* MKDIR: creates a folder on all subvolumes, and its layout.
 *
 *   1. Locks on the name, on its hashed subvolume: RDLCK dht.layout.heal on the parent, then ENTRYLK of the
 *      name in dht.entry.sync.
 *   2. MKDIR there, with an xattr that makes it the MDS, and with the check of the parent's range from
 *      create.c. If the brick refuses, the layout is read again, and the folder is created on the new
 *      hashed subvolume. EEXIST comes from this step.
 *   3. WRLCK dht.layout.heal on the new folder, on the hashed subvolume.
 *   4. MKDIR on all other subvolumes. Failures are left to the next client that looks at the folder.
 *   5. Release of the name's locks; the layout is written on all subvolumes. Failures are left to the next
 *      look, too.
 *
 * Visible to other clients: between 2 and 4 a folder on one subvolume only, and between 4 and 5 a folder
 * without ranges. A client that looks at it then repairs it (heal.c), and first waits for these locks: for
 * the name's locks to create the folder where it is missing, then for the lock of 3 to give it ranges. So
 * if step 4 has created the folder on all subvolumes, no other client has given it ranges; otherwise step 5
 * looks once more. */
#include <errno.h>
#include <string.h>

#include "xlators/cluster/distribute/distribute-internal.h"

static struct call_stack *
first_call(const struct op *o, const struct layout *parent, unsigned hashed)
{
    static const uint8_t clean[4];
    struct call_stack *stk = dist_call_copy(o);
    uint8_t bytes[LAYOUT_BYTES];

    stk = dist_call_put_bytes(stk, DICT_KEY_DHT_MDS, clean, sizeof clean);
    if (parent->of[hashed].err)
        return stk;
    layout_write(&parent->of[hashed], bytes);
    stk = dist_call_put_str(stk, DICT_KEY_PREOP_PARENT_KEY, "trusted.glusterfs.dht");
    return dist_call_put_bytes(stk, DICT_KEY_DHT_LAYOUT, bytes, sizeof bytes);
}

/* Steps 1 and 2. Returns 0: the locks are held and *out has the reply; -EAGAIN: the brick has another
 * range. */
static int
mkdir_on_hashed(const struct op *o, const struct layout *parent, unsigned hashed, struct dist_lock lock[2],
           struct call_stack **out)
{
    const struct loc *loc = &o->stk->call.loc;
    unsigned count = dist_locks_namespace(lock, hashed, loc->parent, loc->name);
    int err = dist_locks_take(o, lock, count);

    *out = NULL;
    if (err)
        return err;
    *out = first_call(o, parent, hashed);
    err = dist_call_at(o, hashed, *out);
    if (err >= 0)
        return 0;
    /* some bricks fail without an errno that tells the reason, so check the key */
    if (*out && dict_has((*out)->reply.xdata, DICT_KEY_PREOP_CHECK_FAILED))
        err = -EAGAIN;
    dist_locks_drop(o, lock, count);
    if (*out)
        call_stack_free(*out);
    *out = NULL;
    return err;
}

static int
make_where_hashed(const struct op *o, int *hashed, struct dist_lock lock[2], struct call_stack **out)
{
    const struct loc *loc = &o->stk->call.loc;
    struct layout *parent;

    *out = NULL;
    *hashed = folder_hashed_by(o, loc->parent, loc->name, &parent);
    if (*hashed < 0)
        return *hashed;
    int err = mkdir_on_hashed(o, parent, (unsigned)*hashed, lock, out);

    layout_unref(parent);
    if (err != -EAGAIN)
        return err;
    err = folder_layout_fresh(o, loc->parent, &parent);
    if (err)
        return err;
    *hashed = layout_find(parent, dist_hash(o->d, loc->name));
    err = *hashed < 0 ? -EIO : mkdir_on_hashed(o, parent, (unsigned)*hashed, lock, out);
    layout_unref(parent);
    return err == -EAGAIN ? -EIO : err;
}

/* Step 4. Sets in `l` which children have the folder; *is_ours: all other children were asked and created
 * it. */
static int
mkdir_on_others(const struct op *o, unsigned hashed, struct layout *l, struct iatt *sum, bool *is_ours)
{
    struct fan fan;
    int err = dist_fan_begin(&fan, o);

    *is_ours = fan.count > 1;
    for (unsigned i = 0; i < fan.count; i++) {
        if (i != hashed)
            dist_fan_add(&fan, i, dist_call_copy(o));
    }
    if (!err)
        err = dist_fan_go(&fan);
    for (unsigned i = 0; i < fan.count && !err; i++) {
        int ret = i == hashed ? 0 : dist_fan_result(&fan, i);

        if (ret >= 0 || ret == -EEXIST)
            layout_read(l, i, NULL, 0);
        else
            layout_failed(l, i, -ret);
        *is_ours &= ret >= 0;
        if (fan.call[i] && ret >= 0)
            folder_merge(sum, &fan.call[i]->reply.stat);
    }
    dist_fan_end(&fan);
    return err;
}

/* Steps 3 to 5. The folder exists even if they fail. */
static void
make_others_and_layout(const struct op *o, unsigned hashed, struct dist_lock lock[2], struct inode *folder,
                       struct iatt *sum)
{
    struct dist_lock ranges = {
        .child = hashed, .inode = folder, .domain = DOMAIN_LAYOUT, .type = FLOCK_WRITE};
    struct layout *l = layout_new(o->d->count, o->d->xl->graph->owner);
    bool is_ours = false;

    if (l)
        l->generation = atomic_load(&o->d->generation);
    int locked = dist_locks_take(o, &ranges, 1);
    int err = l ? mkdir_on_others(o, hashed, l, sum, &is_ours) : -ENOMEM;

    dist_locks_drop(o, lock, 2);
    if (!err && !locked)
        (void)heal_layout_new(o, folder, l, is_ours);
    else
        layout_unref(l);
    dist_locks_drop(o, &ranges, 1); /* if it was taken */
}

xl_verdict
dist_mkdir_go(struct xlator *xl, struct call_stack *stk)
{
    struct op o = dist_op_of(xl, stk);
    const struct loc *loc = &stk->call.loc;
    struct dist_lock lock[2];
    struct call_stack *made;
    int hashed, err = make_where_hashed(&o, &hashed, lock, &made);

    if (err)
        return err;
    struct iatt sum = {0};

    folder_merge(&sum, &made->reply.stat);
    stk->call.loc.inode = inode_link(xl->graph->inodes, loc->parent, loc->name, &sum);
    if (!loc->inode || place_set(o.d, loc->inode, hashed)) {
        dist_locks_drop(&o, lock, 2);
        call_stack_free(made);
        return -ENOMEM;
    }
    make_others_and_layout(&o, (unsigned)hashed, lock, loc->inode, &sum);
    made->reply.stat = sum;
    return dist_op_answer_with(&o, made);
}
