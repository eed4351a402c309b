/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Repair of folders, by any client that looks at a folder and finds a defect. As root, pid -4.
 *
 *   1. Nothing is done while a subvolume is down or has failed: its state is unknown, and a range that it
 *      has must not be given to another subvolume.
 *   2. Missing folders: under the locks of the name, on its hashed subvolume, all subvolumes are asked
 *      again; where the folder is missing, it is moved there from another place on the same subvolume
 *      (heal-place.c), or MKDIR makes it, with the same gfid, and with the mode and the xattrs of
 *      the authoritative subvolume (the MDS; for the root, the one changed last). If no subvolume has the
 *      folder by now, another client has removed it, and the repair ends.
 *   3. Attributes: SETATTR on all subvolumes, if they differ or a folder was created.
 *   4. The layout: under WRLCK dht.layout.heal on all subvolumes, all are asked again. If the layout is
 *      complete by now, another client has repaired it. If a hash has no subvolume, or two, the whole
 *      layout is computed again, with a commit hash that sends lookups to all subvolumes; otherwise
 *      subvolumes without a range get an empty one. Ranges are never moved.
 *   5. A folder without an MDS gets one: its hashed subvolume. If the MDS counts xattr changes that have
 *      not reached all subvolumes, the xattrs are copied from the MDS, and the count is set to 0.
 *
 * Visible to other clients: a folder on some subvolumes only, until the repair; between 2 and 4 a folder
 * without a range, to which no name is hashed. Two clients that repair at the same time reach the same
 * result, because both act on the second look under the lock, in the same order of subvolumes.
 *
 * A failed repair does not fail the lookup; the next lookup tries again. */
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/distribute/distribute-internal.h"

/* ---- layouts --------------------------------------------------------------------------------- */

/* Returns the hash that selects the first subvolume of the layout. A folder of unknown path is hashed by
 * its gfid: that layout is as good, only the order differs. */
static uint32_t
hash_of_folder(const struct dist *d, struct inode *folder)
{
    char path[4096];

    if (gfid_is_root(&folder->gfid))
        return dist_hash(d, "/");
    if (dist_conf(d)->by_gfid || inode_path(folder, path, sizeof path) != 0)
        return dist_hash(d, GFID(&folder->gfid));
    return dist_hash(d, path);
}

/* Sets the weight of leaving subvolumes to 0, and of subvolumes with too little space, unless all lack
 * space. */
static void
drop_full_weights(struct dist *d, uint32_t *weights)
{
    unsigned left = 0;

    for (unsigned i = 0; i < d->count; i++)
        weights[i] = child_is_leaving(d, i) ? 0 : weights[i];
    for (unsigned i = 0; i < d->count; i++)
        left += weights[i] && child_is_up(d, i) && !space_is_short(d, i);
    for (unsigned i = 0; i < d->count && left; i++)
        weights[i] = space_is_short(d, i) ? 0 : weights[i];
}

static int
assign_layout(const struct op *o, struct inode *folder, struct layout *l, uint32_t commit)
{
    uint32_t *weights = space_weights(o);
    struct layout_plan plan = {.order = o->d->order,
                               .weights = weights,
                               .hash = hash_of_folder(o->d, folder),
                               .spread = (uint32_t)dist_conf(o->d)->spread,
                               .commit = commit};

    if (!weights)
        return -ENOMEM;
    drop_full_weights(o->d, weights);
    layout_assign(l, &plan);
    return 0;
}

static struct call_stack *
setxattr_call(const struct op *o, struct inode *folder, enum dict_key key, const void *bytes, size_t len)
{
    struct call_stack *stk = dist_call_for_inode(dist_call_new_internal(o, FOP_setxattr), folder);

    stk = dist_call_put_str(stk, DICT_KEY_INTERNAL_FOP, "yes");
    stk = dist_call_put_int(stk, DICT_KEY_IATT_IN_XATTR, 1);
    if (!stk)
        return NULL;
    stk->call.dict = dict_new(&stk->arena);
    if (stk->call.dict && !dict_set_bytes(stk->call.dict, key, bytes, (uint32_t)len))
        return stk;
    call_stack_free(stk);
    return NULL;
}

/* Writes the ranges of the children in `wanted`; NULL: of all children that have the folder. */
static int
write_ranges(const struct op *o, struct inode *folder, const struct layout *l, const bool *wanted)
{
    struct fan fan;
    uint8_t bytes[LAYOUT_BYTES];
    int err = dist_fan_begin(&fan, o);

    for (unsigned i = 0; i < fan.count; i++) {
        if (l->of[i].err || (wanted && !wanted[i]))
            continue;
        layout_write(&l->of[i], bytes);
        dist_fan_add(&fan, i, setxattr_call(o, folder, DICT_KEY_DHT_LAYOUT, bytes, sizeof bytes));
    }
    if (!err)
        err = dist_fan_go(&fan);
    for (unsigned i = 0; i < fan.count && !err; i++) {
        if (fan.call[i] && dist_fan_result(&fan, i) < 0)
            err = dist_fan_result(&fan, i);
    }
    dist_fan_end(&fan);
    return err;
}

static bool
is_layout_complete(const struct folder_look *f)
{
    return !f->flaws.holes && !f->flaws.overlaps && !f->flaws.no_xattr;
}

/* Repairs the defects in `f`, which was read under the lock. */
static int
mend_ranges(const struct op *o, struct folder_look *f, struct inode *folder)
{
    struct layout *l = f->layout;
    bool *wanted;

    if (f->flaws.holes || f->flaws.overlaps) {
        int err = assign_layout(o, folder, l, LAYOUT_COMMIT_INVALID);

        return err ? err : write_ranges(o, folder, l, NULL);
    }
    wanted = arena_zalloc(&o->stk->arena, l->count * sizeof *wanted);
    if (!wanted)
        return -ENOMEM;
    for (unsigned i = 0; i < l->count; i++) {
        wanted[i] = l->of[i].err == LAYOUT_NO_XATTR;
        if (wanted[i])
            l->of[i] = (struct layout_range){.commit = l->commit, .sorted = l->of[i].sorted};
    }
    layout_settle(l);
    return write_ranges(o, folder, l, wanted);
}

/* Returns WRLCKs for the folder on all children that have it. NULL: out of memory. */
static struct dist_lock *
locks_of_layout(const struct op *o, const struct folder_look *f, struct inode *folder, unsigned *count)
{
    struct dist_lock *lock = arena_zalloc(&o->stk->arena, o->d->count * sizeof *lock);

    *count = 0;
    for (unsigned i = 0; lock && i < o->d->count; i++) {
        if (f->layout->of[i].err == 0 || f->layout->of[i].err == LAYOUT_NO_XATTR)
            lock[(*count)++] = (struct dist_lock){
                .child = i, .inode = folder, .domain = DOMAIN_LAYOUT, .type = FLOCK_WRITE};
    }
    return lock;
}

/* Replaces `f` by a second look. */
static int
folder_look_again(const struct op *o, struct folder_look *f, struct inode *parent, const char *name,
           struct inode *folder)
{
    folder_look_end(f);
    return folder_look(o, f, parent, name, folder, -1, NULL);
}

static int
heal_layout(const struct op *o, struct folder_look *f, struct inode *folder)
{
    unsigned count;
    struct dist_lock *lock = locks_of_layout(o, f, folder, &count);
    int err = lock ? dist_locks_take(o, lock, count) : -ENOMEM;

    if (err)
        return err;
    err = folder_look_again(o, f, NULL, NULL, folder);
    if (!err && !is_layout_complete(f) && !f->flaws.away && !f->flaws.other)
        err = mend_ranges(o, f, folder);
    dist_locks_drop(o, lock, count);
    return err;
}

/* Returns the layout that another client has written; NULL: none. */
static struct layout *
layout_of_another(const struct op *o, struct inode *folder)
{
    struct folder_look f;
    int err = folder_look(o, &f, NULL, NULL, folder, -1, NULL);
    struct layout *l = !err && is_layout_complete(&f) ? layout_ref(f.layout) : NULL;

    folder_look_end(&f);
    return l;
}

int
heal_layout_new(const struct op *o, struct inode *folder, struct layout *l, bool is_ours)
{
    uint32_t commit = dist_conf(o->d)->optimizes_lookup ? atomic_load(&o->d->commit) : LAYOUT_COMMIT_INVALID;
    struct layout *others = is_ours ? NULL : layout_of_another(o, folder);
    int err = 0;

    if (others) {
        layout_unref(l);
        l = others;
    } else {
        err = assign_layout(o, folder, l, commit);
        if (!err)
            err = write_ranges(o, folder, l, NULL);
    }
    if (!err)
        return place_set_layout(o->d, folder, l);
    layout_unref(l);
    return err;
}

/* Sets *out if a child that may take names has no range: it was added later, or was full when the folder
 * was created; or if a leaving child has one. Returns false when out of memory. */
static bool
lacks_ranges(const struct op *o, const struct layout *l, bool *out)
{
    uint32_t *weights = space_weights(o);

    *out = false;
    if (!weights)
        return false;
    drop_full_weights(o->d, weights);
    for (unsigned i = 0; i < l->count; i++)
        *out |= layout_range_is_empty(&l->of[i]) ? weights[i] > 0 : child_is_leaving(o->d, i);
    return true;
}

/* Computes the layout anew, near the present one, so that few files have to move. */
static int
assign_near_layout(const struct op *o, struct inode *folder, struct layout *l)
{
    struct layout *old = layout_new(l->count, o->d->xl->graph->owner);

    if (!old)
        return -ENOMEM;
    memcpy(old->of, l->of, l->count * sizeof *old->of);
    int err = assign_layout(o, folder, l, LAYOUT_COMMIT_INVALID);

    err = err ? err : layout_keep_near(l, old);
    layout_unref(old);
    return err;
}

/* Gives ranges to all usable children, under the lock. The new ranges have an invalid commit hash, so that
 * files of the old ranges are looked up on all subvolumes. */
static int
fix_layout_locked(const struct op *o, struct folder_look *f, struct inode *folder)
{
    bool is_wanted;
    int err = folder_look_again(o, f, NULL, NULL, folder);

    if (err)
        return err;
    if (f->flaws.away || f->flaws.missing || f->flaws.other)
        return f->flaws.away ? -ENOTCONN : f->flaws.missing ? -ESTALE : -EIO;
    if (!lacks_ranges(o, f->layout, &is_wanted))
        return -ENOMEM;
    if (is_wanted || !is_layout_complete(f)) {
        err = assign_near_layout(o, folder, f->layout);
        if (!err)
            err = write_ranges(o, folder, f->layout, NULL);
    }
    return err ? err : place_set_layout(o->d, folder, layout_ref(f->layout));
}

int
folder_fix_layout(const struct op *o, struct inode *folder)
{
    struct folder_look f;
    struct dist_lock *lock = NULL;
    unsigned count = 0;
    int err = folder_look(o, &f, NULL, NULL, folder, -1, NULL);

    if (!err) {
        lock = locks_of_layout(o, &f, folder, &count);
        err = lock ? dist_locks_take(o, lock, count) : -ENOMEM;
    }
    if (!err) {
        err = fix_layout_locked(o, &f, folder);
        dist_locks_drop(o, lock, count);
    }
    folder_look_end(&f);
    return err;
}

xl_verdict
dist_fix_layout_go(struct xlator *xl, struct call_stack *stk)
{
    struct op o = dist_op_of(xl, stk);
    int err = folder_fix_layout(&o, stk->call.loc.inode);

    return err ? err : XL_DONE;
}

/* ---- attributes and xattrs ------------------------------------------------------------------- */

/* Returns the authoritative child among those that have the folder. */
static int
authoritative_child(const struct folder_look *f)
{
    int best = -1;

    if (f->mds >= 0)
        return f->mds;
    for (unsigned i = 0; i < f->layout->count; i++) {
        const struct iatt *a = &f->each[i], *b = best < 0 ? NULL : &f->each[best];

        if (a->mode &&
            (!b || a->ctime > b->ctime || (a->ctime == b->ctime && a->ctime_nsec > b->ctime_nsec)))
            best = (int)i;
    }
    return best;
}

static struct call_stack *
setattr_call(const struct op *o, struct inode *folder, const struct iatt *a)
{
    struct call_stack *stk = dist_call_for_inode(dist_call_new_internal(o, FOP_setattr), folder);

    if (stk) {
        stk->call.stbuf = *a;
        stk->call.valid = SETATTR_UID | SETATTR_GID | SETATTR_MODE | SETATTR_ATIME | SETATTR_MTIME;
    }
    return stk;
}

static int
set_attributes_on_all(const struct op *o, const struct folder_look *f, struct inode *folder,
               const struct iatt *master)
{
    struct fan fan;
    int err = dist_fan_begin(&fan, o);

    for (unsigned i = 0; i < fan.count; i++) {
        if (f->layout->of[i].err && f->layout->of[i].err != LAYOUT_NO_XATTR)
            continue;
        dist_fan_add(&fan, i, setattr_call(o, folder, master));
    }
    if (!err)
        err = dist_fan_go(&fan);
    dist_fan_end(&fan);
    return err;
}

/* Copies the master's xattrs that must be the same on all subvolumes to `to`. */
static int
copy_shared_xattrs(const struct op *o, unsigned from, struct inode *folder, struct dict *to)
{
    struct call_stack *stk = dist_call_for_inode(dist_call_new_internal(o, FOP_getxattr), folder);
    int err = dist_call_at(o, from, stk);

    err = err < 0 ? err : 0;
    if (stk && !err) {
        dict_for_each (p, stk->reply.dict) {
            if (!err && dist_belongs_to_all(p->key) && (p->type == DICT_PTR || p->type == DICT_STR))
                err = dict_set_text(to, p->key, DICT_PTR, p->v.bytes, p->len);
        }
    }
    if (stk)
        call_stack_free(stk);
    return err;
}

/* Copies xattrs from the MDS to all other children, then clears the count of missed changes. */
static int
heal_xattrs(const struct op *o, const struct folder_look *f, struct inode *folder)
{
    static const uint8_t none[4];
    struct fan fan;
    struct dict *set = dict_new(&o->stk->arena);
    int err = set ? copy_shared_xattrs(o, (unsigned)f->mds, folder, set) : -ENOMEM;

    if (err)
        return err;
    err = dist_fan_begin(&fan, o);
    for (unsigned i = 0; i < fan.count; i++) {
        if ((int)i == f->mds || !set->count)
            continue;
        struct call_stack *stk =
            dist_call_put_int(dist_call_for_inode(dist_call_new_internal(o, FOP_setxattr), folder),
                              DICT_KEY_SYNC_BACKEND_XATTRS, 1);

        if (stk)
            stk->call.dict = set; /* borrowed from the caller's call */
        dist_fan_add(&fan, i, stk);
    }
    if (!err)
        err = dist_fan_go(&fan);
    for (unsigned i = 0; i < fan.count && !err; i++)
        err = fan.call[i] && dist_fan_result(&fan, i) < 0 ? dist_fan_result(&fan, i) : 0;
    dist_fan_end(&fan);
    if (err)
        return err;
    int ret =
        dist_call_once(o, (unsigned)f->mds, setxattr_call(o, folder, DICT_KEY_DHT_MDS, none, sizeof none));

    return ret < 0 ? ret : 0;
}

/* ---- missing folders ------------------------------------------------------------------------- */

static struct call_stack *
mkdir_call(const struct op *o, struct inode *parent, const char *name, const struct iatt *master,
           const struct dict *xattrs)
{
    struct call_stack *stk = dist_call_for_name(dist_call_new_internal(o, FOP_mkdir), parent, name);
    int err = 0;

    if (stk) {
        stk->call.mode = master->mode & 07777;
        stk->call.xdata = dict_dup(xattrs, &stk->arena, &err);
    }
    if (err) {
        call_stack_free(stk);
        return NULL;
    }
    stk = dist_call_put_gfid(stk, DICT_KEY_GFID_REQ, &master->gfid);
    return dist_call_put_uint(stk, DICT_KEY_INTERNAL_CTX, 1);
}

/* Returns whether the child has a folder of this name without a gfid: its creator died, or it was on the
 * brick before the volume. */
static bool
is_nameless_folder(const struct op *o, unsigned i, struct inode *parent, const char *name)
{
    struct call_stack *stk =
        dist_call_put_int(dist_call_for_name(dist_call_new_internal(o, FOP_lookup), parent, name),
                          DICT_KEY_GFIDLESS_LOOKUP, 1);
    bool is = dist_call_at(o, i, stk) >= 0 && S_ISDIR(stk->reply.stat.mode);

    if (stk)
        call_stack_free(stk);
    return is;
}

/* Returns a call that sets the gfid of the other subvolumes' folder. */
static struct call_stack *
set_gfid_call(const struct op *o, struct inode *parent, const char *name, const struct iatt *master)
{
    return dist_call_put_gfid(dist_call_for_name(dist_call_new_internal(o, FOP_lookup), parent, name),
                              DICT_KEY_GFID_REQ, &master->gfid);
}

static int
make_where_missing(const struct op *o, struct folder_look *f, struct inode *parent, const char *name,
                   struct inode *folder, const struct iatt *master)
{
    struct fan fan;
    struct dict *xattrs = dict_new(&o->stk->arena);
    int from = authoritative_child(f), err = xattrs ? 0 : -ENOMEM;

    if (!err)
        err = copy_shared_xattrs(o, (unsigned)from, folder, xattrs);
    if (!err)
        err = dist_fan_begin(&fan, o);
    if (err)
        return err;
    for (unsigned i = 0; i < fan.count; i++) {
        bool is_missing = f->layout->of[i].err == ENOENT || f->layout->of[i].err == ESTALE;
        int moved = is_missing ? folder_move_here(o, i, folder, parent, name) : 0;

        if (is_missing && moved == -ENOENT)
            dist_fan_add(&fan, i, mkdir_call(o, parent, name, master, xattrs));
        else if (is_missing && !moved)
            f->layout->of[i].err = LAYOUT_NO_XATTR;
        else if (f->layout->of[i].err == ENODATA && is_nameless_folder(o, i, parent, name))
            dist_fan_add(&fan, i, set_gfid_call(o, parent, name, master));
    }
    err = dist_fan_go(&fan);
    for (unsigned i = 0; i < fan.count && !err; i++) {
        int ret = dist_fan_result(&fan, i);

        if (fan.call[i] && (ret >= 0 || ret == -EEXIST))
            f->layout->of[i].err = LAYOUT_NO_XATTR;
        else if (fan.call[i])
            log_event(LOG_WARNING, o->d->xl, "distribute-folder-not-made", "%s of %s on %s: %s", name,
                      GFID(&parent->gfid), o->d->child[i].xl->name, strerror(-ret));
    }
    dist_fan_end(&fan);
    return err;
}

void
folder_make_again(const struct op *o, struct inode *parent, const char *name, struct inode *folder,
                  const struct iatt *a, const bool *where)
{
    struct fan made, owned = {0};
    int err = dist_fan_begin(&made, o);

    for (unsigned i = 0; i < made.count; i++) {
        if (where[i])
            dist_fan_add(&made, i, mkdir_call(o, parent, name, a, NULL));
    }
    if (!err)
        err = dist_fan_go(&made);
    if (!err)
        err = dist_fan_begin(&owned, o);
    for (unsigned i = 0; i < owned.count; i++) {
        int ret = where[i] ? dist_fan_result(&made, i) : 0;

        if (where[i] && ret >= 0)
            dist_fan_add(&owned, i, setattr_call(o, folder, a));
        err = ret < 0 ? ret : err;
    }
    if (err || (err = dist_fan_go(&owned)))
        log_event(LOG_WARNING, o->d->xl, "distribute-folder-not-back", "%s is missing on subvolumes: %s",
                  name, strerror(-err));
    dist_fan_end(&made);
    dist_fan_end(&owned);
}

static int
heal_missing(const struct op *o, struct folder_look *f, struct inode *parent, const char *name,
             struct inode *folder)
{
    struct dist_lock lock[2];
    int hashed = folder_hashed(o, parent, name);

    if (hashed < 0)
        return hashed;
    unsigned count = o->has_names ? 0 : dist_locks_namespace(lock, (unsigned)hashed, parent, name);
    int err = dist_locks_take(o, lock, count);

    if (err)
        return err;
    err = folder_look_again(o, f, parent, name, NULL);
    if (!err && !gfid_equal(&f->iatt.gfid, &folder->gfid))
        err = -EAGAIN;
    if (!err && f->flaws.missing && !f->flaws.away && !f->flaws.other && !f->files) {
        struct iatt master = f->each[authoritative_child(f)];

        err = make_where_missing(o, f, parent, name, folder, &master);
        if (!err)
            err = set_attributes_on_all(o, f, folder, &master);
        if (!err)
            err = folder_look_again(o, f, parent, name, NULL);
    }
    dist_locks_drop(o, lock, count);
    return err;
}

/* ---- the whole repair ------------------------------------------------------------------------ */

static bool
can_be_mended(const struct folder_look *f)
{
    return f->found && !f->flaws.away && !f->flaws.other && !f->files;
}

static int
set_mds(const struct op *o, struct folder_look *f, struct inode *parent, const char *name,
         struct inode *folder)
{
    static const uint8_t none[4];
    int hashed = parent ? folder_hashed(o, parent, name) : -1;

    if (hashed < 0)
        return 0;
    int ret =
        dist_call_once(o, (unsigned)hashed, setxattr_call(o, folder, DICT_KEY_DHT_MDS, none, sizeof none));

    if (ret >= 0)
        f->mds = hashed;
    return ret < 0 ? ret : 0;
}

static int
mend_folder(const struct op *o, struct folder_look *f, struct inode *parent, const char *name,
            struct inode *folder)
{
    bool is_root = gfid_is_root(&folder->gfid);
    int err = 0;

    if (f->flaws.missing && parent)
        err = heal_missing(o, f, parent, name, folder);
    if (!err && f->attributes_differ && can_be_mended(f)) {
        struct iatt master = f->each[authoritative_child(f)];

        err = set_attributes_on_all(o, f, folder, &master);
        if (!err)
            folder_merge(&f->iatt, &master);
    }
    if (!err && !is_layout_complete(f) && !f->flaws.missing && can_be_mended(f))
        err = heal_layout(o, f, folder);
    if (!err && !is_root && f->mds < 0 && !f->flaws.missing && can_be_mended(f))
        err = set_mds(o, f, parent, name, folder);
    if (!err && !is_root && f->mds_is_behind && can_be_mended(f))
        err = heal_xattrs(o, f, folder);
    return err;
}

static bool
needs_mending(const struct folder_look *f, bool is_root)
{
    return f->flaws.missing || f->attributes_differ || !is_layout_complete(f) ||
           (!is_root && (f->mds < 0 || f->mds_is_behind));
}

int
heal_folder(const struct op *o, struct folder_look *f, struct inode *parent, const char *name,
            struct inode *folder)
{
    if (!can_be_mended(f) || !needs_mending(f, gfid_is_root(&folder->gfid)))
        return 0;
    int err = mend_folder(o, f, parent, name, folder);

    if (err == -ENOMEM || err == -EAGAIN || !f->layout || !f->best)
        return err ? err : -ESTALE; /* removed meanwhile: the data in `f` is not valid */
    if (err)
        log_event(LOG_WARNING, o->d->xl, "distribute-folder-not-mended",
                  "folder %s could not be repaired: %s", GFID(&folder->gfid), strerror(-err));
    return 0;
}
