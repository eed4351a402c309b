/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* RENAME. S and D are the old and the new name, _h their hashed subvolumes, _c the subvolumes of the files.
 *
 * A file:
 *   1. WRLCK dht.file.migrate on the file on S_c, and on the replaced file on D_c, so that neither is
 *      migrated.
 *   2. Locks on both names, each on its hashed subvolume, in the order of all clients. If all are free, the
 *      locks of 1 and 2 are taken in parallel.
 *   3. LOOKUP of both names, in parallel on the hashed subvolumes and on the files' supposed subvolumes:
 *      both must be the locked objects. If not, all locks are released and the rename starts again.
 *   4. S_c = D_c: RENAME there. Then a linkto file of D on D_h is replaced (linkto_replace()); until then its
 *      gfid is not that of D on S_c, and lookups ask all subvolumes. S_c = D_h: RENAME there.
 *      Otherwise: D_h gets a linkto file named S (unless S_h = D_h already has one), while LINK on S_c
 *      gives the file its second name; then the linkto file is renamed from S to D on D_h. Now all clients
 *      find the file by D.
 *   5. In parallel: removal of the remains of S and of the replaced file.
 * If a step fails before the RENAME, the objects created so far are removed. If the connection to D_h ends
 * before the reply to the RENAME, and the RENAME would have replaced the file D itself, the second name on
 * S_c stays: if D_h has done the RENAME, that name is the only object that D leads to. Otherwise D is the old
 * file, and the name on S_c is hidden; the next rename of S to D uses the name. If the old name cannot be
 * removed in step 5, the file has both names, and the caller gets the error. If both names are one name, or
 * names of one file, which the kernel could not know because of other clients, the rename does nothing.
 *
 * At first the objects remembered for both names are locked. If these are unknown or wrong, the names are
 * looked up before the locks, too.
 *
 * Visible to other clients: the name S or the name D or, after the LINK, both; at least one at any time. A
 * lookup never uses a linkto file of S on D_h.
 *
 * A client that dies in the first case of 4, after the RENAME, leaves the linkto file of the replaced file:
 * the next LOOKUP of D finds the file on S_c and replaces the linkto file (lookup.c). (A stock client removes
 * the linkto file before the RENAME. If it dies then, D is in listings only.)
 *
 * A client that dies before step 4 leaves a linkto file that no lookup uses. A client that dies after the
 * LINK leaves the file with both names. If the rename replaces D, and D_c or S_c is not D_h, D hides a name:
 * after the LINK, the second name on S_c; after the RENAME, the old file's name on D_c. Once D is removed or
 * renamed, that name would be found, and D would exist again. So the LINK, or the RENAME if S_c = D_h, leaves
 * a note on the bricks of S_c, which goes with the unlock of the file after step 5. A later LOOKUP of D or S,
 * or an OPENDIR of D's folder, settles D: settle.c.
 *
 * A folder:
 *   1. All subvolumes must be up: ENOTCONN.
 *   2. Locks on both names; then WRLCK dht.layout.heal on the replaced folder, on all subvolumes, so that
 *      no client creates a folder in it. The holder of that lock may be waiting for a lock on one of our
 *      names: if it is not free, all locks are released, the rename waits for this lock alone, and starts
 *      again.
 *   3. LOOKUP of both names on all subvolumes: the source must be the known folder, the target the known
 *      one, or missing. If not, the rename starts again. A replaced folder must be empty on all subvolumes.
 *   4. RENAME on D_h, then on all other subvolumes that have the folder. If one of these fails, the
 *      successful ones are renamed back, and the replaced folders are created again: all subvolumes have
 *      the old name as before.
 * Visible to other clients: for a moment the folder by both names, on different subvolumes. A client that
 * looks one of them up in that state waits for the locks of the name, and looks again.
 *
 * All locks are taken as pid -4: see calls.c. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/distribute/distribute-internal.h"

enum { TRIES = 10, SAME_OBJECT = 1 };

struct rename {
    const struct op *o;
    const struct loc *from, *to;
    struct found source, target; /* target.inode NULL: no target */
    int source_hashed, target_hashed;
    struct dist_lock lock[2 + 4]; /* locks of the files, then of the names */
    unsigned lock_count;
    bool may_be_half_done; /* a name is left that the note must tell about */
};

static int
find_hashed(struct rename *r)
{
    r->source_hashed = folder_hashed(r->o, r->from->parent, r->from->name);
    if (r->source_hashed < 0)
        return r->source_hashed;
    r->target_hashed = folder_hashed(r->o, r->to->parent, r->to->name);
    return r->target_hashed < 0 ? r->target_hashed : 0;
}

/* Sends LOOKUPs in advance, except for a folder, which lookup_name() asks for on all subvolumes. */
static void
lookup_name_ahead(const struct op *o, struct ahead *a, struct coro_group *g, int hashed,
                  const struct loc *loc)
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
lookup_both(struct rename *r)
{
    struct ahead source = {0}, target = {0};
    struct coro_group g;

    coro_group_begin(&g);
    lookup_name_ahead(r->o, &source, &g, r->source_hashed, r->from);
    lookup_name_ahead(r->o, &target, &g, r->target_hashed, r->to);
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
remember_name(const struct op *o, const struct loc *loc, struct found *out)
{
    *out = (struct found){.inode = inode_find_child(o->d->xl->graph->inodes, loc->parent, loc->name)};
    out->cached = out->inode ? place_cached(o->d, out->inode) : -1;
    return !out->inode || (!S_ISDIR(out->inode->type) && out->cached >= 0);
}

/* Fills in both files from remembered data, if the source is a known file, and the target is a known file
 * or none. The data may be out of date. */
static bool
remember_both(struct rename *r)
{
    bool is_known = remember_name(r->o, r->from, &r->source);

    is_known &= remember_name(r->o, r->to, &r->target);
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
fill_name_locks(const struct rename *r, struct dist_lock *out)
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
lock_files(struct rename *r)
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
    r->lock_count = files + fill_name_locks(r, r->lock + files);
    return dist_locks_take_parts(r->o, r->lock, files, r->lock_count);
}

static bool
is_same_found(const struct found *a, const struct found *b)
{
    if (!a->inode || !b->inode)
        return !a->inode && !b->inode;
    return gfid_equal(&a->inode->gfid, &b->inode->gfid) && a->cached == b->cached;
}

/* Step 3: replaces the objects in `r` by the objects found now. -EAGAIN: not the locked objects. */
static int
lookup_again_under_locks(struct rename *r)
{
    struct op locked = *r->o;
    struct rename now = *r;

    locked.has_names = true;
    now.o = &locked;
    int err = lookup_both(&now);

    if (!err && (!is_same_found(&now.source, &r->source) || !is_same_found(&now.target, &r->target)))
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

/* Adds both names to the call that removes the old name, for the brick's changelog of name changes. */
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

    /* so that replicate, which takes more locks for a folder, need not look the name up */
    if (stk && !stk->call.loc.inode)
        stk->call.loc.inode = inode_ref(r->source.inode);
    return (int)child == r->source.cached ? put_rename_op(r, stk) : stk;
}

/* Returns whether a file of D is on neither of the subvolumes whose D is changed. */
static bool
replaces_elsewhere(const struct rename *r)
{
    return has_target(r) && r->target.cached != r->target_hashed && r->target.cached != r->source.cached;
}

/* Asks the bricks of S_c for a note: about the LINK, with the old name; about the RENAME, with any text. */
static struct call_stack *
put_note(const struct rename *r, struct call_stack *stk)
{
    if (!settle_has_notes(r->o, (unsigned)r->source.cached))
        return stk;
    const char *text = settle_name_text(r->o, r->from);

    return text ? dist_call_put_str(stk, DICT_KEY_NAME_NOTE, text) : stk;
}

static int
rename_at(const struct rename *r, unsigned child, bool is_internal, struct call_stack **out)
{
    struct call_stack *stk = rename_call(r, child);

    if ((int)child == r->source.cached && r->source.cached == r->target_hashed && replaces_elsewhere(r))
        stk = put_note(r, stk);
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
    stk = put_note(r, stk);
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
unlink_hidden_call(const struct rename *r, const struct loc *loc)
{
    return dist_call_for_name(dist_call_new(r->o, FOP_unlink), loc->parent, loc->name);
}

static struct call_stack *
new_linkto_call(const struct rename *r, const struct loc *loc)
{
    return linkto_call(r->o, loc->parent, loc->name, &r->source.inode->gfid, (unsigned)r->source.cached,
                       true);
}

enum hidden { HIDDEN_OTHER, HIDDEN_SAME, HIDDEN_REMOVED };

/* Handles a name that is taken on a subvolume where no lookup uses the name. A rename that died after its
 * LINK has left the name, of a file on the file's subvolume, or of a linkto file. Returns HIDDEN_SAME if the
 * name leads to the source. Otherwise the name is removed with the caller's rights: HIDDEN_REMOVED. The locks
 * on both names are held, so no other client is in a rename that uses the name. */
static enum hidden
settle_hidden_name(const struct rename *r, unsigned at, const struct loc *loc)
{
    struct call_stack *stk = lookup_call(r->o, loc->parent, loc->name, NULL, true);
    int ret = dist_call_at(r->o, at, stk);
    bool is_linkto = ret >= 0 && reply_is_linkto(stk);
    bool is_right = is_linkto == (at != (unsigned)r->source.cached);
    bool is_source = ret >= 0 && gfid_equal(&stk->reply.stat.gfid, &r->source.inode->gfid);
    bool is_dir = ret >= 0 && S_ISDIR(stk->reply.stat.mode);

    if (stk)
        call_stack_free(stk);
    if (is_source && is_right)
        return HIDDEN_SAME;
    if (ret < 0 || is_dir || is_source) /* the source on a wrong subvolume is being migrated */
        return ret == -ENOENT || ret == -ESTALE ? HIDDEN_REMOVED : HIDDEN_OTHER;
    ret = is_linkto ? linkto_remove(r->o, at, loc->parent, loc->name, false)
                    : dist_call_once(r->o, at, unlink_hidden_call(r, loc));
    if (ret >= 0)
        log_event(LOG_INFO, r->o->d->xl, "distribute-hidden-name-removed",
                  "%s/%s on %s was left by a rename that died", GFID(&loc->parent->gfid), loc->name,
                  r->o->d->child[at].xl->name);
    return ret >= 0 ? HIDDEN_REMOVED : HIDDEN_OTHER;
}

/* Returns the result of the LINK of the source to its new name; `ret` is that of the first attempt. */
static int
second_name_made(const struct rename *r, int ret)
{
    unsigned cached = (unsigned)r->source.cached;
    enum hidden hidden = ret == -EEXIST ? settle_hidden_name(r, cached, r->to) : HIDDEN_OTHER;

    return hidden == HIDDEN_SAME      ? 0
           : hidden == HIDDEN_REMOVED ? dist_call_once(r->o, cached, link_call(r))
                                      : ret;
}

/* Returns the result of making the linkto file with the old name; `ret` is that of the first attempt. */
static int
old_linkto_made(const struct rename *r, int ret)
{
    unsigned at = (unsigned)r->target_hashed;
    enum hidden hidden = ret == -EEXIST ? settle_hidden_name(r, at, r->from) : HIDDEN_OTHER;

    return hidden == HIDDEN_SAME      ? 0
           : hidden == HIDDEN_REMOVED ? dist_call_once(r->o, at, new_linkto_call(r, r->from))
                                      : ret;
}

/* Removes the second name after a failed rename. */
static void
undo_link(struct rename *r)
{
    int ret = dist_call_once(r->o, (unsigned)r->source.cached, unlink_call(r, r->to));

    r->may_be_half_done |= !dist_is_definite(ret);
}

/* First part of a rename by linkto file, for a file that is neither on the new name's hashed subvolume nor
 * on the replaced file's subvolume: creates the linkto file and the second name. */
static int
make_both_names(struct rename *r, bool makes)
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

        int made = makes ? old_linkto_made(r, dist_fan_result(&fan, at)) : 0;

        linked = second_name_made(r, linked);
        made = made < 0 ? made : 0;
        err = made ? made : linked < 0 ? linked : 0;
        if (err && linked >= 0)
            undo_link(r);
        r->may_be_half_done |= linked == -ENOTCONN;
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
    bool may_have_replaced = err == -ENOTCONN && has_target(r) && r->target.cached == r->target_hashed;

    if (err == -ENOENT || err == -ESTALE) /* no linkto file has the old name */
        err = linkto_make(o, at, r->to->parent, r->to->name, &r->source.inode->gfid, cached, true);
    r->may_be_half_done |= may_have_replaced;
    if (err && *out && !may_have_replaced)
        undo_link(r);
    if (err && makes)
        (void)linkto_remove(o, at, r->from->parent, r->from->name, false);
    return err;
}

/* Renames the file on its own subvolume, which has the replaced file or is the new name's hashed subvolume.
 */
static int
rename_in_place(struct rename *r, struct call_stack **out)
{
    const struct op *o = r->o;
    int cached = r->source.cached, target = has_target(r) ? r->target.cached : -1;

    *out = NULL;
    int err = rename_at(r, (unsigned)cached, false, out);

    /* That linkto file has the gfid of the replaced file. After a failure the lookups replace it. */
    if (!err && cached == target && r->target_hashed != target)
        (void)linkto_replace(o, (unsigned)r->target_hashed, r->to->parent, r->to->name,
                             &r->source.inode->gfid, (unsigned)cached);
    return err;
}

/* Calls of step 5. */
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

/* Step 5. Failures leave linkto files that point nowhere, or names that no lookup uses. Returns 0, or -errno
 * if the file still has its old name. */
static int
remove_remains(struct rename *r, bool stays)
{
    const struct op *o = r->o;
    const struct loc *from = r->from, *to = r->to;
    int cached = r->source.cached, hashed = r->target_hashed, renamed_at = stays ? cached : hashed;
    struct call_stack *old = NULL, *replaced = NULL;
    struct left left = {.count = 0};

    coro_group_begin(&left.group);
    if (!stays)
        old = left_wind(r, &left, cached, unlink_call(r, from));
    if (r->source_hashed != renamed_at && r->source_hashed != cached)
        (void)left_wind(r, &left, r->source_hashed, linkto_remove_call(o, from->parent, from->name, false));
    if (replaces_elsewhere(r))
        replaced = left_wind(r, &left, r->target.cached, unlink_call(r, to));
    coro_group_wait(&left.group);
    int old_left = stays || dist_is_definite(left_result(old)) ? 0 : left_result(old);

    r->may_be_half_done |= old_left || (replaces_elsewhere(r) && !dist_is_definite(left_result(replaced)));
    if (old_left)
        log_event(LOG_WARNING, o->d->xl, "distribute-old-name-left", "%s on %s: %s", from->name,
                  o->d->child[cached].xl->name, strerror(-old_left));
    /* An existing linkto file keeps its owner, which decides nothing. */
    bool is_new = hashed != cached && (stays || hashed != r->source_hashed);

    for (unsigned i = 0; i < left.count; i++)
        call_stack_free(left.call[i]);
    if (is_new)
        linkto_own(o, (unsigned)hashed, &r->source.reply->reply.stat);
    return old_left == -EAGAIN ? -EIO : old_left; /* -EAGAIN would mean "start again" */
}

static int
rename_file_locked(struct rename *r, struct call_stack **out)
{
    int cached = r->source.cached, target = has_target(r) ? r->target.cached : -1;
    bool stays = cached == target || cached == r->target_hashed;
    int err = stays ? rename_in_place(r, out) : move_by_linkto(r, out);

    r->may_be_half_done |= stays && err == -ENOTCONN;
    if (!err)
        err = remove_remains(r, stays);
    if (!r->may_be_half_done && (!stays || replaces_elsewhere(r)) && settle_has_notes(r->o, (unsigned)cached))
        r->lock[0].note_done = settle_name_text(r->o, r->to); /* NULL: the next client removes the note */
    return err;
}

static int
rename_file(struct rename *r, struct call_stack **out)
{
    bool was_looked_up = r->source.reply;
    struct inode *source = inode_ref(r->source.inode); /* held until the locks are released */
    struct inode *target = has_target(r) ? inode_ref(r->target.inode) : NULL;
    int err = lock_files(r);

    if (!err) {
        err = lookup_again_under_locks(r);
        if (!err)
            err = is_one_object(r) ? SAME_OBJECT : rename_file_locked(r, out);
        drop_locks(r);
    } else if (err == -ESTALE || err == -ENOENT) {
        err = was_looked_up ? -ENOENT : -EAGAIN;
    }
    inode_unref(source);
    inode_unref(target);
    return err;
}

/* ---- a folder -------------------------------------------------------------------------------- */

/* The state of one of the two names on all subvolumes, under the locks. */
struct seen {
    bool *is_it; /* indexed by child: the folder is there. On the arena */
    bool is_other;
    struct iatt iatt; /* attributes of the folder */
};

/* Step 2. -EAGAIN: all locks were released. */
static int
lock_folders(struct rename *r, struct dist_lock *inside)
{
    const struct op *o = r->o;
    unsigned count = has_target(r) ? o->d->count : 0;

    for (unsigned i = 0; i < count; i++)
        inside[i] = (struct dist_lock){.child = i,
                                       .inode = r->target.inode,
                                       .domain = DOMAIN_LAYOUT,
                                       .type = FLOCK_WRITE,
                                       .may_miss = true};
    r->lock_count = fill_name_locks(r, r->lock);
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
fill_lookups(const struct rename *r, const struct loc *loc, struct fan *fan)
{
    int err = dist_fan_begin(fan, r->o);

    for (unsigned i = 0; i < fan->count; i++)
        dist_fan_add(fan, i, lookup_call(r->o, loc->parent, loc->name, NULL, true));
    return err ? err : fan->is_short ? -ENOMEM : 0;
}

/* `inode` NULL: the name must be missing. */
static int
judge_lookups(const struct rename *r, const struct loc *loc, const struct inode *inode, const struct fan *fan,
           struct seen *out)
{
    out->is_it = arena_zalloc(&r->o->stk->arena, fan->count * sizeof *out->is_it);
    int err = out->is_it ? 0 : -ENOMEM;

    for (unsigned i = 0; i < fan->count && !err; i++) {
        const struct iatt *a = &fan->call[i]->reply.stat;
        int ret = dist_fan_result(fan, i);

        /* stale: the name leads to a folder, or to no object */
        if (ret >= 0 && reply_is_linkto(fan->call[i])) {
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
lookup_both_everywhere(const struct rename *r, struct seen *source, struct seen *target)
{
    struct fan from = {0}, to = {0};
    struct coro_group g;
    int err = fill_lookups(r, r->from, &from);

    if (!err)
        err = fill_lookups(r, r->to, &to);
    if (!err) {
        coro_group_begin(&g);
        dist_fan_wind(&from, &g);
        dist_fan_wind(&to, &g);
        coro_group_wait(&g);
        err = judge_lookups(r, r->from, r->source.inode, &from, source);
    }
    if (!err)
        err = judge_lookups(r, r->to, r->target.inode, &to, target);
    dist_fan_end(&from);
    dist_fan_end(&to);
    if (!err && (source->is_other || target->is_other || !source->is_it[r->target_hashed]))
        err = -EAGAIN;
    return err;
}

/* Renames the folder on the children of `where`; sets `went` for each success. */
static int
rename_folder_on(const struct rename *r, const bool *where, bool back, bool *went)
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

/* Undoes the rename on the children of `went`, which have the new name. */
static void
rename_back(const struct rename *r, bool *went, const struct seen *target)
{
    bool *is_back = arena_zalloc(&r->o->stk->arena, r->o->d->count * sizeof *is_back);
    int err = is_back ? rename_folder_on(r, went, true, is_back) : -ENOMEM;

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
rename_folder_locked(struct rename *r, struct seen *source, const struct seen *target,
                     struct call_stack **out)
{
    unsigned first = (unsigned)r->target_hashed;
    bool *went = arena_zalloc(&r->o->stk->arena, r->o->d->count * sizeof *went);
    int err = went ? rename_at(r, first, false, out) : -ENOMEM;

    if (err)
        return err;
    went[first] = true;
    source->is_it[first] = false;
    err = rename_folder_on(r, source->is_it, false, went);
    if (err)
        rename_back(r, went, target);
    return err;
}

static int
rename_folder(struct rename *r, struct call_stack **out)
{
    const struct op *o = r->o;
    struct dist_lock *inside = arena_zalloc(&o->stk->arena, o->d->count * sizeof *inside);
    struct seen source = {0}, target = {0};
    int err = !inside ? -ENOMEM : children_all_up(o->d) ? lock_folders(r, inside) : -ENOTCONN;

    if (err)
        return err;
    err = lookup_both_everywhere(r, &source, &target);
    if (!err && has_target(r))
        err = folder_clear(o, r->target.inode);
    if (!err)
        err = rename_folder_locked(r, &source, &target, out);
    dist_locks_drop(o, inside, has_target(r) ? o->d->count : 0);
    drop_locks(r);
    return err;
}

/* ---- RENAME ---------------------------------------------------------------------------------- */

static int
rename_once(struct rename *r, bool may_remember, struct call_stack **out)
{
    int err = find_hashed(r);

    if (!err && is_one_name(r)) {
        err = lookup_name(r->o, r->from->parent, r->from->name, NULL, &r->source);
        return err ? err : SAME_OBJECT;
    }
    if (!err && !(may_remember && remember_both(r)))
        err = lookup_both(r);
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
        /* the reply of a linkto file does not have the file's attributes */
        if (!err && done && !r.source.is_dir)
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
