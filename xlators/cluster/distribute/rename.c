/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* RENAME. S and D are the old and the new name, _h their hashed subvolumes, _c where the files are.
 *
 * A file:
 *   1. WRLCK dht.file.migrate on the file on S_c, and on what it replaces on D_c: nobody moves them.
 *   2. Both names are kept as they are, each on its hashed subvolume, in the order of all clients.
 *   3. Both are looked up again: S must be what it was; if D has become something else, all is given up and
 *      begun again.
 *   4. S_c = D_c: RENAME there, after a linkto file of D on D_h has gone.
 *      S_c = D_h: RENAME there.
 *      Else: D_h gets a linkto file, named S (unless S_h = D_h has one already); the file gets its second
 *      name on S_c by LINK; the linkto file is renamed from S to D on D_h: now all find the file by D.
 *   5. What is left of S, and what was replaced, is removed.
 * If a step fails before the RENAME, what was made is removed.
 *
 * Others see: the name S or the name D or, after the LINK, both; never none. A linkto file of S on D_h is on
 * no way that a lookup takes.
 *
 * A folder: all subvolumes must be up; both names are kept as they are; what is replaced must be empty
 * everywhere, and WRLCK dht.layout.heal on it keeps others from making something in it. RENAME on D_h, then
 * on all others; if one of those fails, those that went are renamed back. Others see, for a moment, the
 * folder by both names, on different subvolumes.
 *
 * All locks as pid -4: see calls.c. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/distribute/distribute-internal.h"

enum { TRIES = 10 };

struct rename {
    const struct op *o;
    const struct loc *from, *to;
    struct found source, target; /* target.reply NULL: there is none */
    int source_hashed, target_hashed;
    struct dist_lock migrate[2], names[4];
    unsigned migrate_count;
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

static int
find_both(struct rename *r)
{
    int err = lookup_name(r->o, r->from->parent, r->from->name, &r->source);

    if (err)
        return err;
    err = lookup_name(r->o, r->to->parent, r->to->name, &r->target);
    return err == -ENOENT ? 0 : err;
}

static bool
has_target(const struct rename *r)
{
    return r->target.reply != NULL;
}

static int
keep_names(struct rename *r)
{
    unsigned n = dist_locks_namespace(r->names, (unsigned)r->source_hashed, r->from->parent, r->from->name);

    n += dist_locks_namespace(r->names + n, (unsigned)r->target_hashed, r->to->parent, r->to->name);
    return dist_locks_take(r->o, r->names, n);
}

static void
drop_names(struct rename *r)
{
    dist_locks_drop(r->o, r->names, 4);
}

/* ---- a file ---------------------------------------------------------------------------------- */

static int
keep_files(struct rename *r)
{
    r->migrate_count = 1;
    r->migrate[0] = (struct dist_lock){.child = (unsigned)r->source.cached,
                                       .inode = r->source.inode,
                                       .domain = DOMAIN_MIGRATE,
                                       .type = FLOCK_WRITE};
    if (has_target(r) && !gfid_equal(&r->target.inode->gfid, &r->source.inode->gfid))
        r->migrate[r->migrate_count++] = (struct dist_lock){.child = (unsigned)r->target.cached,
                                                            .inode = r->target.inode,
                                                            .domain = DOMAIN_MIGRATE,
                                                            .type = FLOCK_WRITE,
                                                            .may_miss = true};
    return dist_locks_take(r->o, r->migrate, r->migrate_count);
}

static bool
same(const struct found *a, const struct found *b)
{
    if (!a->reply || !b->reply)
        return !a->reply && !b->reply;
    return gfid_equal(&a->inode->gfid, &b->inode->gfid) && a->cached == b->cached;
}

/* Step 3. -EAGAIN: not what has been locked. */
static int
look_again(struct rename *r)
{
    struct rename now = {.o = r->o, .from = r->from, .to = r->to};
    int err = find_both(&now);

    if (!err && (!same(&now.source, &r->source) || !same(&now.target, &r->target)))
        err = -EAGAIN;
    found_end(&now.source);
    found_end(&now.target);
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

static int
rename_at(const struct rename *r, unsigned child, bool is_internal, struct call_stack **out)
{
    struct call_stack *stk = dist_call_copy(r->o);

    *out = NULL;
    if (stk && !stk->call.loc.inode) /* replicate locks more for a folder, and need not look for itself */
        stk->call.loc.inode = inode_ref(r->source.inode);
    if (stk && is_internal) {
        stk->caller.pid = PID_INTERNAL;
        stk->caller.uid = stk->caller.gid = stk->caller.group_count = 0;
    }
    if ((int)child == r->source.cached)
        stk = put_rename_op(r, stk);
    int ret = dist_call_at(r->o, child, stk);

    *out = stk;
    return ret < 0 ? ret : 0;
}

static int
link_at_source(const struct rename *r)
{
    struct call_stack *stk = dist_call_for_inode(dist_call_new(r->o, FOP_link), r->source.inode);

    if (stk) {
        stk->call.loc2.parent = inode_ref(r->to->parent);
        stk->call.loc2.name = r->to->name;
    }
    stk = dist_call_put_str(stk, DICT_KEY_INTERNAL_FOP, "yes");
    int ret = dist_call_once(r->o, (unsigned)r->source.cached,
                             dist_call_put_str(stk, DICT_KEY_FORCE_REPLACE, "yes"));

    return ret < 0 ? ret : 0;
}

static int
unlink_name(const struct rename *r, unsigned child, const struct loc *loc, bool is_data)
{
    struct call_stack *stk = dist_call_for_name(dist_call_new(r->o, FOP_unlink), loc->parent, loc->name);

    if (is_data && loc == r->from)
        stk = put_rename_op(r, stk);
    int ret = dist_call_once(r->o, child, dist_call_put_str(stk, DICT_KEY_INTERNAL_FOP, "yes"));

    return ret < 0 ? ret : 0;
}

/* The file is on neither the new name's hashed subvolume nor beside what it replaces: the new name becomes
 * that of a linkto file there. */
static int
move_by_linkto(struct rename *r, struct call_stack **out)
{
    const struct op *o = r->o;
    unsigned at = (unsigned)r->target_hashed, cached = (unsigned)r->source.cached;
    const struct gfid *gfid = &r->source.inode->gfid;
    bool makes = r->target_hashed != r->source_hashed;
    int err = makes ? linkto_make(o, at, r->from->parent, r->from->name, gfid, cached, true) : 0;

    *out = NULL;
    if (err)
        return err;
    err = link_at_source(r);
    if (!err) {
        err = rename_at(r, at, true, out);
        if (err == -ENOENT || err == -ESTALE) /* there is no linkto file of the old name */
            err = linkto_make(o, at, r->to->parent, r->to->name, gfid, cached, true);
        if (err && *out)
            (void)unlink_name(r, cached, r->to, false);
    }
    if (err && makes)
        (void)linkto_remove(o, at, r->from->parent, r->from->name, false);
    if (err)
        return err;
    err = unlink_name(r, cached, r->from, true);
    if (err)
        log_event(LOG_WARNING, o->d->xl, "distribute-old-name-left", "%s on %s: %s", r->from->name,
                  o->d->child[cached].xl->name, strerror(-err));
    if (makes) /* another has its owner, or never had: that decides nothing */
        linkto_own(o, at, &r->source.reply->reply.stat);
    return 0;
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
    int err = rename_at(r, (unsigned)cached, false, out);

    if (!err && r->target_hashed != cached &&
        !linkto_make(o, (unsigned)r->target_hashed, r->to->parent, r->to->name, &r->source.inode->gfid,
                     (unsigned)cached, true))
        linkto_own(o, (unsigned)r->target_hashed, &r->source.reply->reply.stat);
    return err;
}

/* Step 5: linkto files of the old name, and the data of what was replaced. */
static void
clean_up(const struct rename *r, int renamed_at)
{
    int target = has_target(r) ? r->target.cached : -1;

    if (r->source_hashed != renamed_at && r->source_hashed != r->source.cached)
        (void)linkto_remove(r->o, (unsigned)r->source_hashed, r->from->parent, r->from->name, false);
    if (target >= 0 && target != r->target_hashed && target != r->source.cached)
        (void)unlink_name(r, (unsigned)target, r->to, false);
}

static int
move_file(struct rename *r, struct call_stack **out)
{
    int cached = r->source.cached, target = has_target(r) ? r->target.cached : -1;
    bool stays = cached == target || cached == r->target_hashed;
    int err = stays ? move_there(r, out) : move_by_linkto(r, out);

    if (!err)
        clean_up(r, stays ? cached : r->target_hashed);
    return err;
}

static int
rename_file(struct rename *r, struct call_stack **out)
{
    int err = keep_files(r);

    if (err)
        return err == -ESTALE ? -ENOENT : err;
    err = keep_names(r);
    if (!err) {
        err = look_again(r);
        if (!err)
            err = move_file(r, out);
        drop_names(r);
    }
    dist_locks_drop(r->o, r->migrate, r->migrate_count);
    return err;
}

/* ---- a folder -------------------------------------------------------------------------------- */

static int
all_others(struct rename *r, bool back, bool *went)
{
    const struct op *o = r->o;
    struct fan fan;
    int err = dist_fan_begin(&fan, o), worst = 0;

    for (unsigned i = 0; i < fan.count; i++) {
        if ((int)i == r->target_hashed || (back && !went[i]))
            continue;
        struct call_stack *stk = dist_call_copy(o);

        if (stk && back) {
            struct loc swap = stk->call.loc;

            stk->call.loc = stk->call.loc2;
            stk->call.loc2 = swap;
        }
        dist_fan_add(&fan, i, stk);
    }
    if (!err)
        err = dist_fan_go(&fan);
    for (unsigned i = 0; i < fan.count && !err; i++) {
        int ret = fan.call[i] ? dist_fan_result(&fan, i) : 0;

        went[i] = ret >= 0;
        worst = ret < 0 ? ret : worst;
    }
    dist_fan_end(&fan);
    return err ? err : worst;
}

static int
move_folder(struct rename *r, struct call_stack **out)
{
    bool *went = arena_zalloc(&r->o->stk->arena, r->o->d->count * sizeof *went);
    int err = went ? 0 : -ENOMEM;

    if (err)
        return err;
    *out = dist_call_copy(r->o);
    err = dist_call_at(r->o, (unsigned)r->target_hashed, *out);
    if (err < 0)
        return err;
    err = all_others(r, false, went);
    if (err && all_others(r, true, went))
        log_event(LOG_ERROR, r->o->d->xl, "distribute-rename-half", "%s has both its old and its new name",
                  GFID(&r->source.inode->gfid));
    return err;
}

/* What is replaced: nothing must be in it, and nothing come in. */
static int
replace_folder(struct rename *r, struct call_stack **out)
{
    const struct op *o = r->o;
    struct dist_lock *lock = arena_zalloc(&o->stk->arena, o->d->count * sizeof *lock);
    int err = lock ? 0 : -ENOMEM;

    for (unsigned i = 0; i < o->d->count && !err; i++)
        lock[i] = (struct dist_lock){.child = i,
                                     .inode = r->target.inode,
                                     .domain = DOMAIN_LAYOUT,
                                     .type = FLOCK_WRITE,
                                     .may_miss = true};
    if (!err)
        err = dist_locks_take(o, lock, o->d->count);
    if (err)
        return err;
    err = folder_clear(o, r->target.inode);
    if (!err)
        err = move_folder(r, out);
    dist_locks_drop(o, lock, o->d->count);
    return err;
}

static int
rename_folder(struct rename *r, struct call_stack **out)
{
    if (!children_all_up(r->o->d))
        return -ENOTCONN;
    int err = keep_names(r);

    if (err)
        return err;
    err = has_target(r) ? replace_folder(r, out) : move_folder(r, out);
    drop_names(r);
    return err;
}

/* ---- RENAME ---------------------------------------------------------------------------------- */

static int
rename_once(struct rename *r, struct call_stack **out)
{
    int err = hashes(r);

    if (!err)
        err = find_both(r);
    if (err)
        return err;
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
        err = rename_once(&r, &done);
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
    if (err)
        return err == -EAGAIN ? -EBUSY : err;
    stk->reply.op_ret = 0;
    return XL_DONE;
}
