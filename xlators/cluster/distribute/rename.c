/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* RENAME. S and D are the old and the new name, _h their hashed subvolumes, _c where the files are.
 *
 * A file:
 *   1. WRLCK dht.file.migrate on the file on S_c, and on what it replaces on D_c: nobody moves them.
 *   2. Both names are kept as they are, each on its hashed subvolume, in the order of all clients. If nobody
 *      has one of them, the locks of 1 and 2 are taken at once.
 *   3. Both are looked up, on the hashed subvolumes and where the files are said to be at once: both must be
 *      what has been locked. If not, all is given up and begun again.
 *   4. S_c = D_c: RENAME there, after a linkto file of D on D_h has gone.
 *      S_c = D_h: RENAME there.
 *      Else: D_h gets a linkto file, named S (unless S_h = D_h has one already), while the file gets its
 *      second name on S_c by LINK; the linkto file is renamed from S to D on D_h: now all find the file by D.
 *   5. What is left of S, and what was replaced, is removed; in the first case D_h gets a linkto file. All at
 *      once.
 * If a step fails before the RENAME, what was made is removed. If both names are of one file, or are one
 * name, which the kernel has not seen because of what others did, nothing is to be done.
 *
 * What is locked is at first what is remembered of both names; they are looked up before the locks, too, if
 * that was not enough, or not true.
 *
 * Others see: the name S or the name D or, after the LINK, both; never none. A linkto file of S on D_h is on
 * no way that a lookup takes.
 *
 * A folder:
 *   1. All subvolumes must be up: ENOTCONN.
 *   2. Both names are kept as they are; then WRLCK dht.layout.heal on what is replaced, on all subvolumes,
 *      keeps others from making folders in it. Who has that one may wait for a name of ours: if it is not
 *      free, all is given up, it is waited for alone, and all is begun again.
 *   3. Both are looked up on all subvolumes: the source must be what was found, the target that, or nothing.
 *      If not, all is begun again. What is replaced must be empty everywhere.
 *   4. RENAME on D_h, then on all others that have the folder. If one of those fails, those that went are
 *      renamed back, and what they replaced is made anew: the old name is everywhere, as before.
 * Others see, for a moment, the folder by both names, on different subvolumes: who looks at one of them then
 * waits for the locks of the name, and looks again.
 *
 * All locks as pid -4: see calls.c. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/distribute/distribute-internal.h"

enum { TRIES = 10, SAME_OBJECT = 1 };

struct rename {
    const struct op *o;
    const struct loc *from, *to;
    struct found source, target; /* target.inode NULL: there is none */
    int source_hashed, target_hashed;
    struct dist_lock lock[2 + 4]; /* of the files, then of the names */
    unsigned lock_count;
};

static int
hashes(struct rename *r)
{
    r->source_hashed = folder_hashed(r->o, r->from->parent, r->from->name);
    if (r->source_hashed < 0)
        return r->source_hashed;
    r->target_hashed = folder_hashed(r->o, r->to->parent, r->to->name);
    return r->target_hashed < 0 ? r->target_hashed : 0;
}

/* A folder is asked for everywhere, which lookup_name() does. */
static void
look_ahead(const struct op *o, struct ahead *a, struct coro_group *g, int hashed, const struct loc *loc)
{
    struct inode *known = inode_find_child(o->d->xl->graph->inodes, loc->parent, loc->name);
    int cached = known ? place_cached(o->d, known) : -1;
    bool is_folder = known && S_ISDIR(known->type);

    inode_unref(known);
    if (is_folder)
        return;
    ahead_wind(o, a, g, (unsigned)hashed, loc->parent, loc->name);
    if (cached >= 0 && cached != hashed)
        ahead_wind(o, a, g, (unsigned)cached, loc->parent, loc->name);
}

static int
find_both(struct rename *r)
{
    struct ahead source = {0}, target = {0};
    struct coro_group g;

    coro_group_begin(&g);
    look_ahead(r->o, &source, &g, r->source_hashed, r->from);
    look_ahead(r->o, &target, &g, r->target_hashed, r->to);
    coro_group_wait(&g);
    int err = lookup_name(r->o, r->from->parent, r->from->name, &source, &r->source);

    if (!err)
        err = lookup_name(r->o, r->to->parent, r->to->name, &target, &r->target);
    else
        r->target = (struct found){0};
    ahead_end(&source);
    ahead_end(&target);
    return err == -ENOENT && r->source.inode ? 0 : err;
}

static bool
remember(const struct op *o, const struct loc *loc, struct found *out)
{
    *out = (struct found){.inode = inode_find_child(o->d->xl->graph->inodes, loc->parent, loc->name)};
    out->cached = out->inode ? place_cached(o->d, out->inode) : -1;
    return !out->inode || (!S_ISDIR(out->inode->type) && out->cached >= 0);
}

/* What is remembered of both, if that is a file, and another or nothing. It may not be true any more. */
static bool
remember_both(struct rename *r)
{
    bool is_known = remember(r->o, r->from, &r->source);

    is_known &= remember(r->o, r->to, &r->target);
    if (is_known && r->source.inode)
        return true;
    found_end(&r->source);
    found_end(&r->target);
    return false;
}

static bool
has_target(const struct rename *r)
{
    return r->target.inode != NULL;
}

static bool
is_one_name(const struct rename *r)
{
    return gfid_equal(&r->from->parent->gfid, &r->to->parent->gfid) &&
           strcmp(r->from->name, r->to->name) == 0;
}

static bool
is_one_object(const struct rename *r)
{
    return has_target(r) && gfid_equal(&r->source.inode->gfid, &r->target.inode->gfid);
}

static unsigned
name_locks(const struct rename *r, struct dist_lock *out)
{
    unsigned n = dist_locks_namespace(out, (unsigned)r->source_hashed, r->from->parent, r->from->name);

    return n + dist_locks_namespace(out + n, (unsigned)r->target_hashed, r->to->parent, r->to->name);
}

static void
drop_locks(struct rename *r)
{
    dist_locks_drop(r->o, r->lock, r->lock_count);
}

/* ---- a file ---------------------------------------------------------------------------------- */

/* Steps 1 and 2. */
static int
keep_files(struct rename *r)
{
    unsigned files = 1;

    r->lock[0] = (struct dist_lock){.child = (unsigned)r->source.cached,
                                    .inode = r->source.inode,
                                    .domain = DOMAIN_MIGRATE,
                                    .type = FLOCK_WRITE};
    if (has_target(r) && !is_one_object(r))
        r->lock[files++] = (struct dist_lock){.child = (unsigned)r->target.cached,
                                              .inode = r->target.inode,
                                              .domain = DOMAIN_MIGRATE,
                                              .type = FLOCK_WRITE,
                                              .may_miss = true};
    r->lock_count = files + name_locks(r, r->lock + files);
    return dist_locks_take_parts(r->o, r->lock, files, r->lock_count);
}

static bool
same(const struct found *a, const struct found *b)
{
    if (!a->inode || !b->inode)
        return !a->inode && !b->inode;
    return gfid_equal(&a->inode->gfid, &b->inode->gfid) && a->cached == b->cached;
}

/* Step 3: what is found has its place in `r`. -EAGAIN: not what has been locked. */
static int
look_again(struct rename *r)
{
    struct op locked = *r->o;
    struct rename now = *r;

    locked.has_names = true;
    now.o = &locked;
    int err = find_both(&now);

    if (!err && (!same(&now.source, &r->source) || !same(&now.target, &r->target)))
        err = -EAGAIN;
    struct rename *old = err ? &now : r;

    found_end(&old->source);
    found_end(&old->target);
    if (!err) {
        r->source = now.source;
        r->target = now.target;
    }
    return err;
}

/* What a brick's journal of changes wants to know of the call that takes the old name away. */
static struct call_stack *
put_rename_op(const struct rename *r, struct call_stack *stk)
{
    size_t len = strlen(r->from->name) + 1, len2 = strlen(r->to->name) + 1;
    uint32_t lens[2] = {htole32((uint32_t)len), htole32((uint32_t)len2)};
    uint8_t *bytes = arena_zalloc(&r->o->stk->arena, 2 * GFID_BYTES + sizeof lens + len + len2 + 4),
            *at = bytes;

    if (!bytes) {
        if (stk)
            call_stack_free(stk);
        return NULL;
    }
    memcpy(at, &r->from->parent->gfid, GFID_BYTES);
    memcpy(at + GFID_BYTES, &r->to->parent->gfid, GFID_BYTES);
    at += 2 * GFID_BYTES;
    memcpy(at, lens, sizeof lens);
    memcpy(at + sizeof lens, r->from->name, len);
    memcpy(at + sizeof lens + len, r->to->name, len2);
    return dist_call_put_bytes(stk, DICT_KEY_RENAME_OP, bytes, 2 * GFID_BYTES + sizeof lens + len + len2 + 4);
}

static struct call_stack *
rename_call(const struct rename *r, unsigned child)
{
    struct call_stack *stk = dist_call_copy(r->o);

    if (stk && !stk->call.loc.inode) /* replicate locks more for a folder, and need not look for itself */
        stk->call.loc.inode = inode_ref(r->source.inode);
    return (int)child == r->source.cached ? put_rename_op(r, stk) : stk;
}

static int
rename_at(const struct rename *r, unsigned child, bool is_internal, struct call_stack **out)
{
    struct call_stack *stk = rename_call(r, child);

    if (stk && is_internal) {
        stk->caller.pid = PID_INTERNAL;
        stk->caller.uid = stk->caller.gid = stk->caller.group_count = 0;
    }
    int ret = dist_call_at(r->o, child, stk);

    *out = stk;
    return ret < 0 ? ret : 0;
}

static struct call_stack *
link_call(const struct rename *r)
{
    struct call_stack *stk = dist_call_for_inode(dist_call_new(r->o, FOP_link), r->source.inode);

    if (stk) {
        stk->call.loc2.parent = inode_ref(r->to->parent);
        stk->call.loc2.name = r->to->name;
    }
    stk = dist_call_put_str(stk, DICT_KEY_INTERNAL_FOP, "yes");
    return dist_call_put_str(stk, DICT_KEY_FORCE_REPLACE, "yes");
}

static struct call_stack *
unlink_call(const struct rename *r, const struct loc *loc)
{
    struct call_stack *stk = dist_call_for_name(dist_call_new(r->o, FOP_unlink), loc->parent, loc->name);

    if (loc == r->from)
        stk = put_rename_op(r, stk);
    return dist_call_put_str(stk, DICT_KEY_INTERNAL_FOP, "yes");
}

static struct call_stack *
new_linkto_call(const struct rename *r, const struct loc *loc)
{
    return linkto_call(r->o, loc->parent, loc->name, &r->source.inode->gfid, (unsigned)r->source.cached,
                       true);
}

/* The file is on neither the new name's hashed subvolume nor beside what it replaces: the new name becomes
 * that of a linkto file there. First the linkto file and the second name. */
static int
make_both_names(const struct rename *r, bool makes)
{
    const struct op *o = r->o;
    const struct loc *from = r->from;
    unsigned at = (unsigned)r->target_hashed, cached = (unsigned)r->source.cached;
    struct fan fan;
    int err = dist_fan_begin(&fan, o);

    if (err)
        return err;
    if (makes)
        dist_fan_add(&fan, at, new_linkto_call(r, from));
    dist_fan_add(&fan, cached, link_call(r));
    err = dist_fan_go(&fan);
    if (!err) {
        int linked = dist_fan_result(&fan, cached);
        int made = makes ? linkto_made(o, at, from->parent, from->name, dist_fan_result(&fan, at)) : 0;

        err = made ? made : linked < 0 ? linked : 0;
        if (err && linked >= 0)
            (void)dist_call_once(o, cached, unlink_call(r, r->to));
        if (err && makes && !made)
            (void)linkto_remove(o, at, from->parent, from->name, false);
    }
    dist_fan_end(&fan);
    return err;
}

static int
move_by_linkto(struct rename *r, struct call_stack **out)
{
    const struct op *o = r->o;
    unsigned at = (unsigned)r->target_hashed, cached = (unsigned)r->source.cached;
    bool makes = r->target_hashed != r->source_hashed;
    int err = make_both_names(r, makes);

    *out = NULL;
    if (err)
        return err;
    err = rename_at(r, at, true, out);
    if (err == -ENOENT || err == -ESTALE) /* there is no linkto file of the old name */
        err = linkto_make(o, at, r->to->parent, r->to->name, &r->source.inode->gfid, cached, true);
    if (err && *out)
        (void)dist_call_once(o, cached, unlink_call(r, r->to));
    if (err && makes)
        (void)linkto_remove(o, at, r->from->parent, r->from->name, false);
    return err;
}

/* The file stays where it is, under its new name; `child` has what is replaced, or is where the name
 * belongs. */
static int
move_there(struct rename *r, struct call_stack **out)
{
    const struct op *o = r->o;
    int cached = r->source.cached, target = has_target(r) ? r->target.cached : -1;

    *out = NULL;
    if (cached == target && r->target_hashed != target) /* its linkto file says another gfid */
        (void)linkto_remove(o, (unsigned)r->target_hashed, r->to->parent, r->to->name, false);
    return rename_at(r, (unsigned)cached, false, out);
}

/* Step 5. */
enum { LEFT_MAX = 4 };
struct left {
    struct coro_group group;
    struct call_stack *call[LEFT_MAX];
    unsigned count;
};

static struct call_stack *
left_wind(const struct rename *r, struct left *l, int child, struct call_stack *stk)
{
    if (stk) {
        l->call[l->count++] = stk;
        coro_group_wind(&l->group, stk, r->o->d->child[child].xl);
    }
    return stk;
}

static int
left_result(const struct call_stack *stk)
{
    return stk ? coro_call_result(stk) : -ENOMEM;
}

/* If something of it fails, what is left leads nowhere, or no lookup gets there. */
static void
clean_up(const struct rename *r, bool stays)
{
    const struct op *o = r->o;
    const struct loc *from = r->from, *to = r->to;
    int cached = r->source.cached, hashed = r->target_hashed, renamed_at = stays ? cached : hashed;
    int target = has_target(r) ? r->target.cached : -1;
    struct call_stack *linkto = NULL, *old = NULL;
    struct left left = {.count = 0};

    coro_group_begin(&left.group);
    if (stays && hashed != cached)
        linkto = left_wind(r, &left, hashed, new_linkto_call(r, to));
    if (!stays)
        old = left_wind(r, &left, cached, unlink_call(r, from));
    if (r->source_hashed != renamed_at && r->source_hashed != cached)
        (void)left_wind(r, &left, r->source_hashed, linkto_remove_call(o, from->parent, from->name, false));
    if (target >= 0 && target != hashed && target != cached)
        (void)left_wind(r, &left, target, unlink_call(r, to));
    coro_group_wait(&left.group);
    if (!stays && left_result(old) < 0)
        log_event(LOG_WARNING, o->d->xl, "distribute-old-name-left", "%s on %s: %s", from->name,
                  o->d->child[cached].xl->name, strerror(-left_result(old)));
    /* One that was there has its owner, or never had: that decides nothing. */
    bool is_new = linkto ? !linkto_made(o, (unsigned)hashed, to->parent, to->name, left_result(linkto))
                         : !stays && hashed != r->source_hashed;

    for (unsigned i = 0; i < left.count; i++)
        call_stack_free(left.call[i]);
    if (is_new)
        linkto_own(o, (unsigned)hashed, &r->source.reply->reply.stat);
}

static int
move_file(struct rename *r, struct call_stack **out)
{
    int cached = r->source.cached, target = has_target(r) ? r->target.cached : -1;
    bool stays = cached == target || cached == r->target_hashed;
    int err = stays ? move_there(r, out) : move_by_linkto(r, out);

    if (!err)
        clean_up(r, stays);
    return err;
}

static int
rename_file(struct rename *r, struct call_stack **out)
{
    bool was_looked_up = r->source.reply;
    struct inode *source = inode_ref(r->source.inode); /* until the locks are given back */
    struct inode *target = has_target(r) ? inode_ref(r->target.inode) : NULL;
    int err = keep_files(r);

    if (!err) {
        err = look_again(r);
        if (!err)
            err = is_one_object(r) ? SAME_OBJECT : move_file(r, out);
        drop_locks(r);
    } else if (err == -ESTALE || err == -ENOENT) {
        err = was_looked_up ? -ENOENT : -EAGAIN;
    }
    inode_unref(source);
    inode_unref(target);
    return err;
}

/* ---- a folder -------------------------------------------------------------------------------- */

/* One of the two names on all subvolumes, under the locks. */
struct seen {
    bool *is_it; /* by child: the folder that was found. On the arena */
    bool is_other;
    struct iatt iatt; /* of the folder */
};

/* Step 2. -EAGAIN: all was given up. */
static int
keep_folders(struct rename *r, struct dist_lock *inside)
{
    const struct op *o = r->o;
    unsigned count = has_target(r) ? o->d->count : 0;

    for (unsigned i = 0; i < count; i++)
        inside[i] = (struct dist_lock){.child = i,
                                       .inode = r->target.inode,
                                       .domain = DOMAIN_LAYOUT,
                                       .type = FLOCK_WRITE,
                                       .may_miss = true};
    r->lock_count = name_locks(r, r->lock);
    int err = dist_locks_take(o, r->lock, r->lock_count);

    if (err || !count)
        return err;
    err = dist_locks_try(o, inside, count);
    if (err)
        drop_locks(r);
    if (err == -EAGAIN && !dist_locks_take(o, inside, count))
        dist_locks_drop(o, inside, count);
    return err;
}

static int
see_fill(const struct rename *r, const struct loc *loc, struct fan *fan)
{
    int err = dist_fan_begin(fan, r->o);

    for (unsigned i = 0; i < fan->count; i++)
        dist_fan_add(fan, i, lookup_call(r->o, loc->parent, loc->name, NULL, true));
    return err ? err : fan->is_short ? -ENOMEM : 0;
}

/* `inode` NULL: nothing shall be there. */
static int
see_result(const struct rename *r, const struct loc *loc, const struct inode *inode, const struct fan *fan,
           struct seen *out)
{
    out->is_it = arena_zalloc(&r->o->stk->arena, fan->count * sizeof *out->is_it);
    int err = out->is_it ? 0 : -ENOMEM;

    for (unsigned i = 0; i < fan->count && !err; i++) {
        const struct iatt *a = &fan->call[i]->reply.stat;
        int ret = dist_fan_result(fan, i);

        if (ret >= 0 && reply_is_linkto(fan->call[i])) { /* of no file: the name is a folder's, or nobody's */
            err = linkto_remove(r->o, i, loc->parent, loc->name, false);
        } else if (ret >= 0) {
            out->is_it[i] = inode && S_ISDIR(a->mode) && gfid_equal(&a->gfid, &inode->gfid);
            out->is_other |= !out->is_it[i];
            if (out->is_it[i])
                folder_merge(&out->iatt, a);
        } else if (ret != -ENOENT && ret != -ESTALE) {
            err = ret;
        }
    }
    return err;
}

/* Step 3. */
static int
see_both(const struct rename *r, struct seen *source, struct seen *target)
{
    struct fan from = {0}, to = {0};
    struct coro_group g;
    int err = see_fill(r, r->from, &from);

    if (!err)
        err = see_fill(r, r->to, &to);
    if (!err) {
        coro_group_begin(&g);
        dist_fan_wind(&from, &g);
        dist_fan_wind(&to, &g);
        coro_group_wait(&g);
        err = see_result(r, r->from, r->source.inode, &from, source);
    }
    if (!err)
        err = see_result(r, r->to, r->target.inode, &to, target);
    dist_fan_end(&from);
    dist_fan_end(&to);
    if (!err && (source->is_other || target->is_other || !source->is_it[r->target_hashed]))
        err = -EAGAIN;
    return err;
}

/* Those of `where`; each that went is in `went`, too. */
static int
rename_on(const struct rename *r, const bool *where, bool back, bool *went)
{
    const struct op *o = r->o;
    struct fan fan;
    int err = dist_fan_begin(&fan, o), worst = 0;

    for (unsigned i = 0; i < fan.count; i++) {
        struct call_stack *stk = where[i] ? rename_call(r, i) : NULL;

        if (stk && back) {
            struct loc to = stk->call.loc;

            stk->call.loc = stk->call.loc2;
            stk->call.loc.inode = to.inode;
            to.inode = NULL;
            stk->call.loc2 = to;
        }
        if (where[i])
            dist_fan_add(&fan, i, stk);
    }
    if (!err)
        err = dist_fan_go(&fan);
    for (unsigned i = 0; i < fan.count && !err; i++) {
        int ret = where[i] ? dist_fan_result(&fan, i) : 0;

        went[i] |= where[i] && ret >= 0;
        worst = ret < 0 ? ret : worst;
    }
    dist_fan_end(&fan);
    return err ? err : worst;
}

/* `went` have the new name. */
static void
move_back(const struct rename *r, bool *went, const struct seen *target)
{
    bool *is_back = arena_zalloc(&r->o->stk->arena, r->o->d->count * sizeof *is_back);
    int err = is_back ? rename_on(r, went, true, is_back) : -ENOMEM;

    if (err)
        log_event(LOG_ERROR, r->o->d->xl, "distribute-rename-half", "%s has its old and its new name: %s",
                  GFID(&r->source.inode->gfid), strerror(-err));
    for (unsigned i = 0; is_back && i < r->o->d->count; i++)
        is_back[i] &= target->is_it[i];
    if (is_back && has_target(r))
        folder_make_again(r->o, r->to->parent, r->to->name, r->target.inode, &target->iatt, is_back);
}

/* Step 4. */
static int
move_folder(struct rename *r, struct seen *source, const struct seen *target, struct call_stack **out)
{
    unsigned first = (unsigned)r->target_hashed;
    bool *went = arena_zalloc(&r->o->stk->arena, r->o->d->count * sizeof *went);
    int err = went ? rename_at(r, first, false, out) : -ENOMEM;

    if (err)
        return err;
    went[first] = true;
    source->is_it[first] = false;
    err = rename_on(r, source->is_it, false, went);
    if (err)
        move_back(r, went, target);
    return err;
}

static int
rename_folder(struct rename *r, struct call_stack **out)
{
    const struct op *o = r->o;
    struct dist_lock *inside = arena_zalloc(&o->stk->arena, o->d->count * sizeof *inside);
    struct seen source = {0}, target = {0};
    int err = !inside ? -ENOMEM : children_all_up(o->d) ? keep_folders(r, inside) : -ENOTCONN;

    if (err)
        return err;
    err = see_both(r, &source, &target);
    if (!err && has_target(r))
        err = folder_clear(o, r->target.inode);
    if (!err)
        err = move_folder(r, &source, &target, out);
    dist_locks_drop(o, inside, has_target(r) ? o->d->count : 0);
    drop_locks(r);
    return err;
}

/* ---- RENAME ---------------------------------------------------------------------------------- */

static int
rename_once(struct rename *r, bool may_remember, struct call_stack **out)
{
    int err = hashes(r);

    if (!err && is_one_name(r)) {
        err = lookup_name(r->o, r->from->parent, r->from->name, NULL, &r->source);
        return err ? err : SAME_OBJECT;
    }
    if (!err && !(may_remember && remember_both(r)))
        err = find_both(r);
    if (err)
        return err;
    if (r->source.is_dir && is_one_object(r))
        return SAME_OBJECT;
    if (has_target(r) && r->target.is_dir != r->source.is_dir)
        return r->target.is_dir ? -EISDIR : -ENOTDIR;
    return r->source.is_dir ? rename_folder(r, out) : rename_file(r, out);
}

static void
free_reply(struct call_stack **out)
{
    if (*out)
        call_stack_free(*out);
    *out = NULL;
}

xl_verdict
dist_rename_go(struct xlator *xl, struct call_stack *stk)
{
    struct op o = dist_op_of(xl, stk);
    struct call_stack *done = NULL;
    int err = -EAGAIN;

    for (int i = 0; i < TRIES && err == -EAGAIN; i++) {
        struct rename r = {.o = &o, .from = &stk->call.loc, .to = &stk->call.loc2};

        free_reply(&done);
        err = rename_once(&r, i == 0, &done);
        if (!err && done && !r.source.is_dir) /* a linkto file's are not the file's */
            done->reply.stat = r.source.reply->reply.stat;
        if (!err)
            inode_rename(xl->graph->inodes, r.from->parent, r.from->name, r.to->parent, r.to->name,
                         r.source.inode);
        found_end(&r.source);
        found_end(&r.target);
    }
    if (!err && done && coro_call_result(done) >= 0)
        return dist_op_answer_with(&o, done);
    free_reply(&done);
    if (err < 0)
        return err == -EAGAIN ? -EBUSY : err;
    stk->reply.op_ret = 0;
    return XL_DONE;
}
