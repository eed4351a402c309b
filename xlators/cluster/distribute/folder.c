/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A folder is on all subvolumes. A LOOKUP of a folder asks all subvolumes in parallel and merges the replies.
 *
 * Owner and group are the maximum, times the newest, size and blocks always 4096 and 8; all other
 * attributes are the MDS's while it answers. The layout comes from the xattrs; a subvolume that is down
 * keeps its remembered range, so that names of that range are refused (ENOTCONN) and not created elsewhere.
 * Other clients may change the folder meanwhile: the result is as old as the oldest reply, and an operation
 * that needs a consistent state takes a lock. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xlators/cluster/distribute/distribute-internal.h"

enum { FOLDER_BYTES = 4096, FOLDER_BLOCKS = 8 };

/* ---- attributes ------------------------------------------------------------------------------ */

static void
keep_newer(int64_t *sec, uint32_t *nsec, int64_t than, uint32_t than_nsec)
{
    if (than > *sec || (than == *sec && than_nsec > *nsec)) {
        *sec = than;
        *nsec = than_nsec;
    }
}

void
folder_fix(struct iatt *a)
{
    a->size = FOLDER_BYTES;
    a->blocks = FOLDER_BLOCKS;
}

void
folder_merge(struct iatt *sum, const struct iatt *one)
{
    struct iatt was = *sum;

    *sum = *one;
    folder_fix(sum);
    if (!was.mode)
        return;
    sum->uid = was.uid > sum->uid ? was.uid : sum->uid;
    sum->gid = was.gid > sum->gid ? was.gid : sum->gid;
    keep_newer(&sum->atime, &sum->atime_nsec, was.atime, was.atime_nsec);
    keep_newer(&sum->mtime, &sum->mtime_nsec, was.mtime, was.mtime_nsec);
    keep_newer(&sum->ctime, &sum->ctime_nsec, was.ctime, was.ctime_nsec);
}

static bool
attributes_differ(const struct iatt *a, const struct iatt *b)
{
    return a->uid != b->uid || a->gid != b->gid || a->mode != b->mode;
}

/* ---- one reply ------------------------------------------------------------------------------- */

static const struct dict_pair *
xdata_bytes(const struct call_stack *stk, enum dict_key key)
{
    const struct dict_pair *p = dict_find(stk->reply.xdata, key);

    return p && (p->type == DICT_PTR || p->type == DICT_STR || p->type == DICT_UNTYPED) ? p : NULL;
}

/* Returns whether xattr changes are missing on some subvolumes: a negative number, big-endian. */
static bool
is_behind(const struct dict_pair *mds)
{
    return mds->len == 4 && *(const uint8_t *)mds->v.bytes & 0x80;
}

/* Reads the commit hash of the last rebalance from the root: decimal text. */
static void
read_commit(struct dist *d, const struct call_stack *stk)
{
    const char *text = dict_get_str(stk->reply.xdata, DICT_KEY_DHT_COMMIT);
    const struct dict_pair *p = xdata_bytes(stk, DICT_KEY_DHT_COMMIT);
    char copy[16];

    if (!text && p && p->len < sizeof copy) {
        memcpy(copy, p->v.bytes, p->len);
        copy[p->len] = '\0';
        text = copy;
    }
    if (text)
        atomic_store(&d->commit, (uint32_t)strtoul(text, NULL, 10));
}

/* Returns the more important of two errors: a missing folder or a lost connection matters less than any
 * other failure. */
static int
worse_lookup_errno(int a, int b)
{
    static const int order[] = {0, -ESTALE, -ENOTCONN, -ENOENT};
    size_t x = 0, y = 0, n = sizeof order / sizeof order[0];

    while (x < n && order[x] != a)
        x++;
    while (y < n && order[y] != b)
        y++;
    return x >= y ? a : b;
}

/* Adds the reply of child i to `f`. `gfid` NULL: the folder's gfid is unknown. */
static void
merge_reply(const struct op *o, struct folder_look *f, unsigned i, const struct call_stack *stk,
     const struct gfid *gfid)
{
    const struct iatt *a = &stk->reply.stat;
    const struct dict_pair *range = xdata_bytes(stk, DICT_KEY_DHT_LAYOUT),
                           *mds = xdata_bytes(stk, DICT_KEY_DHT_MDS);
    int ret = coro_call_result(stk);

    if (ret < 0 || !S_ISDIR(a->mode)) {
        f->files += ret >= 0 && !reply_is_linkto(stk);
        layout_failed(f->layout, i, ret < 0 ? -ret : reply_is_linkto(stk) ? ENOENT : EINVAL);
        f->err = worse_lookup_errno(f->err, ret < 0 ? ret : -ENOENT);
        return;
    }
    if (gfid && !gfid_equal(gfid, &a->gfid)) {
        f->others++;
        layout_failed(f->layout, i, EINVAL);
        return;
    }
    layout_read(f->layout, i, range ? range->v.bytes : NULL, range ? range->len : 0);
    f->attributes_differ |= f->found && attributes_differ(&f->iatt, a);
    f->each[i] = *a;
    f->found++;
    folder_merge(&f->iatt, a);
    if (mds) {
        f->mds = (int)i;
        f->mds_is_behind = is_behind(mds);
    }
    if (gfid_is_root(&a->gfid))
        read_commit(o->d, stk);
}

/* ---- all replies ----------------------------------------------------------------------------- */

/* Keeps the former ranges of subvolumes that are down. */
static void
keep_ranges(struct layout *l, const struct layout *was)
{
    for (unsigned i = 0; i < l->count; i++) {
        if (l->of[i].err == ENOTCONN && was->of[i].err == 0) {
            uint16_t sorted = l->of[i].sorted;

            l->of[i] = was->of[i];
            l->of[i].sorted = sorted;
        }
    }
    layout_settle(l);
}

static void
choose_best(struct folder_look *f, struct fan *fan)
{
    int best = f->mds;

    for (unsigned i = 0; i < fan->count && best < 0; i++)
        best = f->each[i].mode ? (int)i : -1; /* only a child with this folder */
    if (best < 0)
        return;
    f->best = fan->call[best];
    fan->call[best] = NULL;
    f->iatt.mode = f->each[best].mode;
    f->iatt.nlink = f->each[best].nlink;
}

static bool
has_folder(const struct fan *fan, int i)
{
    return i >= 0 && dist_fan_result(fan, (unsigned)i) >= 0 && S_ISDIR(fan->call[i]->reply.stat.mode);
}

/* Returns the gfid of the folder: of the hashed subvolume, or of the first one that has a folder. */
static const struct gfid *
choose_gfid(const struct fan *fan, int hashed)
{
    int at = hashed;

    for (unsigned i = 0; i < fan->count && !has_folder(fan, at); i++)
        at = (int)i;
    return has_folder(fan, at) ? &fan->call[at]->reply.stat.gfid : NULL;
}

static int
ask_and_merge(const struct op *o, struct folder_look *f, struct fan *fan, struct inode *parent,
              const char *name, struct inode *inode)
{
    for (unsigned i = 0; i < fan->count; i++) {
        if (!fan->call[i])
            dist_fan_add(fan, i, lookup_call(o, parent, name, inode, false));
    }
    int err = dist_fan_go(fan);
    const struct gfid *gfid = err ? NULL : choose_gfid(fan, parent ? folder_hashed(o, parent, name) : -1);

    for (unsigned i = 0; i < fan->count && !err; i++)
        merge_reply(o, f, i, fan->call[i], gfid);
    return err;
}

static void
settle_look(const struct op *o, struct folder_look *f)
{
    struct inode *inode = inode_find(o->d->xl->graph->inodes, &f->iatt.gfid);
    struct layout *was = inode ? place_layout_any(o->d, inode) : NULL;

    layout_settle(f->layout);
    layout_check(f->layout, &f->flaws);
    if (was && f->flaws.away)
        keep_ranges(f->layout, was);
    layout_unref(was);
    inode_unref(inode);
}

int
folder_look(const struct op *o, struct folder_look *f, struct inode *parent, const char *name,
            struct inode *inode, int known, struct call_stack *reply)
{
    struct fan fan;
    uint32_t generation = atomic_load(&o->d->generation);

    *f = (struct folder_look){.mds = -1};
    f->layout = layout_new(o->d->count, o->d->xl->graph->owner);
    f->each = arena_zalloc(&o->stk->arena, o->d->count * sizeof *f->each);
    int err = dist_fan_begin(&fan, o);
    if (err || !f->layout || !f->each) {
        if (reply)
            call_stack_free(reply);
        dist_fan_end(&fan);
        return -ENOMEM;
    }
    f->layout->generation = generation;
    if (reply)
        dist_fan_add(&fan, (unsigned)known, reply);
    err = ask_and_merge(o, f, &fan, parent, name, inode);
    if (!err && f->found) {
        settle_look(o, f);
        choose_best(f, &fan);
    }
    dist_fan_end(&fan);
    return err ? err : f->found ? 0 : f->err;
}

void
folder_look_end(struct folder_look *f)
{
    if (f->best)
        call_stack_free(f->best);
    layout_unref(f->layout);
    f->best = NULL;
    f->layout = NULL;
}

int
folder_keep(const struct op *o, const struct folder_look *f, struct inode *folder)
{
    int mds = gfid_is_root(&folder->gfid) ? 0 : f->mds;
    int err = mds < 0 ? 0 : place_set(o->d, folder, mds);

    return err ? err : place_set_layout(o->d, folder, layout_ref(f->layout));
}

/* ---- the layout ------------------------------------------------------------------------------ */

int
folder_layout_fresh(const struct op *o, struct inode *folder, struct layout **out)
{
    struct folder_look f;
    int err = folder_look(o, &f, NULL, NULL, folder, -1, NULL);

    if (!err)
        err = heal_folder(o, &f, NULL, NULL, folder);
    if (!err)
        err = folder_keep(o, &f, folder);
    *out = err ? NULL : layout_ref(f.layout);
    folder_look_end(&f);
    return err;
}

int
folder_layout(const struct op *o, struct inode *folder, struct layout **out)
{
    *out = place_layout(o->d, folder);
    return *out ? 0 : folder_layout_fresh(o, folder, out);
}

/* A layout with a hole is refreshed, because it may be from a moment when the folder was being created. */
int
folder_hashed_by(const struct op *o, struct inode *parent, const char *name, struct layout **out)
{
    uint32_t hash = dist_hash(o->d, name);
    int err = folder_layout(o, parent, out), hashed = err ? err : layout_find(*out, hash);

    if (err || hashed >= 0)
        return hashed;
    layout_unref(*out);
    err = folder_layout_fresh(o, parent, out);
    hashed = err ? err : layout_find(*out, hash);
    if (err || hashed >= 0)
        return hashed;
    struct layout_flaws flaws;

    layout_check(*out, &flaws);
    layout_unref(*out);
    *out = NULL;
    return flaws.missing ? -ESTALE : -EIO;
}

int
folder_hashed(const struct op *o, struct inode *parent, const char *name)
{
    struct layout *l;
    int hashed = folder_hashed_by(o, parent, name, &l);

    layout_unref(l);
    return hashed;
}
