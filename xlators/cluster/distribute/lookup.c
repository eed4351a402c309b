/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* LOOKUP by name and by gfid.
 *
 * By name:
 *   1. LOOKUP on the hashed subvolume. If the name is a file, that is all.
 *   2. A folder: LOOKUP on the other subvolumes too. The replies are merged, and defects are repaired
 *      (heal.c).
 *   3. A linkto file: LOOKUP on the subvolume that it names. If the file's subvolume is known, that one and
 *      the hashed one are asked in parallel. The linkto file is valid if a file of the same gfid is there.
 *   4. LOOKUP on all subvolumes, if the name is missing and the folder's layout is not from the volume's
 *      last rebalance, or the linkto file points nowhere, or the hashed subvolume does not answer. A file
 *      found elsewhere gets a linkto file on its hashed subvolume; a wrong linkto file is replaced, unless a
 *      client has it open. The same happens if the hashed subvolume lacks the name and the file's last
 *      known subvolume has the file, which is the state after a client died in a rename. Other clients find
 *      such a name only in a listing, as with stock clients.
 *   5. A reply has a note about an unfinished rename: the name is settled (settle.c) and looked up again.
 *   6. The object has no gfid: once more LOOKUP on all subvolumes, after taking the locks of the name.
 *      Stock bricks show a folder in this state while it is being created. A folder whose creator died, or
 *      an object that was on the brick before the volume existed, gets the gfid of the caller's request on
 *      all subvolumes that have it, under the locks of the name. A folder that has a gfid on another
 *      subvolume gets that gfid (heal.c).
 * A folder whose name is known is looked up on all subvolumes in parallel.
 *
 * By gfid: on all subvolumes in parallel.
 *
 * Visible to other clients: additional or missing linkto files, which applications never see. A rename in
 * progress looks like a state to repair, so linkto files are created and removed under the locks of the
 * name, after a second look. */
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/distribute/distribute-internal.h"

/* ---- a call and its reply -------------------------------------------------------------------- */

struct call_stack *
lookup_call(const struct op *o, struct inode *parent, const char *name, struct inode *inode, bool is_internal)
{
    struct call_stack *stk =
        is_internal ? dist_call_new_internal(o, FOP_lookup) : dist_call_new(o, FOP_lookup);
    const struct inode *target = inode;
    int err = 0;

    if (stk && o->stk->call.fop == FOP_lookup) {
        stk->call.xdata = dict_dup(o->stk->call.xdata, &stk->arena, &err);
        if (!err && stk->call.xdata)
            dict_remove(stk->call.xdata, DICT_KEY_GFID_REQ); /* no gfid may be set by accident */
    }
    if (err) {
        call_stack_free(stk);
        return NULL;
    }
    if (inode)
        stk = dist_call_for_inode(stk, inode);
    if (parent)
        stk = dist_call_for_name(stk, parent, name);
    if (parent && o->d->count > 1)
        stk = dist_call_put_uint(stk, DICT_KEY_NAME_NOTE, 1);
    stk = dist_call_put_uint(stk, DICT_KEY_DHT_LINKTO, 256);
    stk = dist_call_put_uint(stk, DICT_KEY_OPEN_FD_COUNT, 4);
    stk = dist_call_put_uint(stk, DICT_KEY_DHT_LAYOUT, LAYOUT_BYTES);
    stk = dist_call_put_uint(stk, DICT_KEY_DHT_MDS, 4);
    stk = dist_call_put_int(stk, DICT_KEY_ACL_ACCESS, 0);
    stk = dist_call_put_int(stk, DICT_KEY_ACL_DEFAULT, 0);
    if (target && gfid_is_root(&target->gfid))
        stk = dist_call_put_uint(stk, DICT_KEY_DHT_COMMIT, 4);
    return stk;
}

bool
reply_is_linkto(const struct call_stack *stk)
{
    const struct iatt *a = &stk->reply.stat;

    return stk->reply.op_ret >= 0 && S_ISREG(a->mode) && (a->mode & 07777) == S_ISVTX &&
           dict_has(stk->reply.xdata, DICT_KEY_DHT_LINKTO);
}

static struct call_stack *
ahead_take(struct ahead *a, unsigned child)
{
    for (unsigned i = 0; a && i < a->count; i++) {
        struct call_stack *stk = a->child[i] == child ? a->reply[i] : NULL;

        if (stk) {
            a->reply[i] = NULL;
            return stk;
        }
    }
    return NULL;
}

void
ahead_end(struct ahead *a)
{
    for (unsigned i = 0; i < a->count; i++) {
        if (a->reply[i])
            call_stack_free(a->reply[i]);
    }
    a->count = 0;
}

void
ahead_wind(const struct op *o, struct ahead *a, struct coro_group *g, unsigned child, struct inode *parent,
           const char *name)
{
    struct call_stack *stk = lookup_call(o, parent, name, NULL, false);

    if (!stk)
        return; /* the LOOKUP is then sent at its usual time */
    a->child[a->count] = child;
    a->reply[a->count++] = stk;
    coro_group_wind(g, stk, o->d->child[child].xl);
}

/* Looks the name up on one child. Returns 0 or -errno. The caller frees *out, the call with its reply;
 * NULL: out of memory. */
static int
lookup_at(const struct op *o, unsigned child, struct inode *parent, const char *name, struct inode *inode,
        struct call_stack **out)
{
    *out = lookup_call(o, parent, name, inode, false);
    int ret = dist_call_at(o, child, *out);

    return ret < 0 ? ret : 0;
}

void
found_end(struct found *f)
{
    if (f->reply)
        call_stack_free(f->reply);
    inode_unref(f->inode);
    *f = (struct found){0};
}

/* ---- evaluating replies ---------------------------------------------------------------------- */

static struct inode *
link_inode(const struct op *o, struct inode *parent, const char *name, const struct iatt *a)
{
    return parent ? inode_link(o->d->xl->graph->inodes, parent, name, a)
                  : inode_link(o->d->xl->graph->inodes, NULL, NULL, a);
}

/* Completes `out` for a file. `out` takes over `stk`, the file's reply. */
static int
found_file(const struct op *o, struct inode *parent, const char *name, unsigned child, struct call_stack *stk,
        struct found *out)
{
    *out = (struct found){.reply = stk, .cached = (int)child, .note = settle_note_of(o, stk)};
    file_hide_copying(stk);
    out->inode = link_inode(o, parent, name, &stk->reply.stat);
    return out->inode ? place_set(o->d, out->inode, (int)child) : -ENOMEM;
}

enum { FOLDER_TRIES = 10 };

static int found_folder_under_locks(const struct op *o, struct inode *parent, const char *name,
                                    struct found *out);

/* Looks at the folder on all subvolumes and repairs it. -EAGAIN: the name now leads to another folder. */
static int
found_folder_once(const struct op *o, struct inode *parent, const char *name, struct inode *inode, int known,
              struct call_stack *stk, struct found *out)
{
    struct folder_look f;
    int err = folder_look(o, &f, parent, name, inode, known, stk);

    if (!err && f.others && parent && !o->has_names) {
        folder_look_end(&f);
        return found_folder_under_locks(o, parent, name, out);
    }
    *out = (struct found){.cached = -1, .is_dir = true};
    if (!err && f.files)
        err = -EIO; /* the same name is a file here and a folder there: the right one is unknown */
    if (!err && !(out->inode = link_inode(o, parent, name, &f.iatt)))
        err = -ENOMEM;
    if (!err)
        err = heal_folder(o, &f, parent, name, out->inode);
    if (!err)
        err = folder_keep(o, &f, out->inode);
    if (!err) {
        out->reply = f.best;
        f.best = NULL;
        out->reply->reply.stat = f.iatt;
    }
    folder_look_end(&f);
    if (err)
        found_end(out);
    return err;
}

/* Handles several folders of one name. Subvolumes have different folders during a rename, whose client holds
 * the name's locks. If the state persists under these locks, the hashed subvolume decides. */
static int
found_folder_under_locks(const struct op *o, struct inode *parent, const char *name, struct found *out)
{
    struct dist_lock lock[2];
    struct op locked = *o;
    int hashed = folder_hashed(o, parent, name);

    *out = (struct found){.cached = -1};
    if (hashed < 0)
        return hashed;
    unsigned count = dist_locks_namespace(lock, (unsigned)hashed, parent, name);
    int err = dist_locks_take(o, lock, count);

    if (err)
        return err;
    locked.has_names = true;
    err = found_folder_once(&locked, parent, name, NULL, -1, NULL, out);
    dist_locks_drop(o, lock, count);
    return err;
}

/* Completes `out` for a folder. Child `known`, if not -1, has already answered `stk`. */
static int
found_folder(const struct op *o, struct inode *parent, const char *name, struct inode *inode, int known,
          struct call_stack *stk, struct found *out)
{
    int err = found_folder_once(o, parent, name, inode, known, stk, out);

    for (int i = 0; i < FOLDER_TRIES && err == -EAGAIN; i++)
        err = found_folder_once(o, parent, name, NULL, -1, NULL, out);
    return err == -EAGAIN ? -ESTALE : err;
}

/* ---- on all subvolumes ----------------------------------------------------------------------- */

struct everywhere {
    struct fan fan;
    int hashed;       /* -1: none */
    int file, folder; /* children that have a file or a folder; -1: none */
    bool has_linkto;  /* the hashed child has a linkto file */
    bool has_strays;  /* other children have linkto files that no client has open; no lookup uses these */
    bool no_data;
    const char *note; /* about an unfinished rename to this name; NULL: none */
    int err; /* an error other than a missing name */
};

static bool
has_open_fds(const struct call_stack *stk)
{
    uint64_t count = 0;

    return dict_get_uint(stk->reply.xdata, DICT_KEY_OPEN_FD_COUNT, &count) == 0 && count > 0;
}

static bool
is_stray(const struct everywhere *e, unsigned i)
{
    const struct call_stack *stk = e->fan.call[i];

    return (int)i != e->hashed && coro_call_result(stk) >= 0 && reply_is_linkto(stk) && !has_open_fds(stk);
}

static void
sort_replies(const struct op *o, struct everywhere *e)
{
    for (unsigned i = 0; i < e->fan.count; i++) {
        const struct call_stack *stk = e->fan.call[i];
        int ret = coro_call_result(stk);

        e->no_data |= ret == -ENODATA;
        if (ret < 0 && ret != -ENOENT && ret != -ESTALE && !e->err)
            e->err = ret;
        if (ret < 0)
            continue;
        e->note = e->note ? e->note : settle_note_of(o, stk);
        if (S_ISDIR(stk->reply.stat.mode))
            e->folder = (int)i;
        else if (!reply_is_linkto(stk))
            e->file = e->file < 0 ? (int)i : e->file;
        else if ((int)i == e->hashed)
            e->has_linkto = true;
        else
            e->has_strays |= is_stray(e, i);
    }
}

/* Returns whether the linkto file names the child that has the file. */
static bool
is_linkto_valid(const struct op *o, const struct everywhere *e)
{
    return e->has_linkto && e->file >= 0 && linkto_target(o->d, e->fan.call[e->hashed]) == e->file;
}

static bool
has_linkto_same_gfid(const struct everywhere *e)
{
    return gfid_equal(&e->fan.call[e->file]->reply.stat.gfid, &e->fan.call[e->hashed]->reply.stat.gfid);
}

/* Returns whether the name needs a repair. The repair waits for a second look, because a rename in progress
 * looks the same. */
static bool
needs_repair(const struct op *o, const struct everywhere *e)
{
    if (e->hashed < 0 || e->folder >= 0)
        return false;
    if (e->has_strays || (e->no_data && e->file < 0) || (e->has_linkto && e->file < 0))
        return true;
    return e->file >= 0 && e->file != e->hashed && (!is_linkto_valid(o, e) || !has_linkto_same_gfid(e));
}

/* Creates or replaces the linkto file of a file that is not on the name's hashed subvolume. A linkto file
 * that names the file's subvolume, but has another gfid, is that of a replaced file: the renaming client
 * has died. Failure to create a linkto file is ignored. Returns 0, or -EIO: the linkto file cannot be
 * replaced. */
static int
repair_linkto(const struct op *o, const struct everywhere *e, struct inode *parent, const char *name)
{
    const struct iatt *file = &e->fan.call[e->file]->reply.stat;
    int at_hashed = dist_fan_result(&e->fan, (unsigned)e->hashed), err = 0;
    unsigned hashed = (unsigned)e->hashed, at = (unsigned)e->file;

    if (!o->has_names || (is_linkto_valid(o, e) && has_linkto_same_gfid(e)))
        return 0;
    if (e->has_linkto ? has_open_fds(e->fan.call[e->hashed]) : at_hashed != -ENOENT)
        return 0;
    if (!e->has_linkto)
        err = linkto_make(o, hashed, parent, name, &file->gfid, at, false);
    else if (has_linkto_same_gfid(e))
        err = linkto_retarget(o, hashed, file, at);
    else
        err = linkto_replace(o, hashed, parent, name, &file->gfid, at);
    if (!err)
        linkto_own(o, hashed, file);
    return e->has_linkto && err == -ENOTCONN ? -EIO : 0;
}

static void
remove_strays(const struct op *o, const struct everywhere *e, struct inode *parent, const char *name)
{
    for (unsigned i = 0; i < e->fan.count; i++) {
        if (is_stray(e, i))
            (void)linkto_remove(o, i, parent, name, true);
    }
}

/* Sets a gfid on objects without one: the gfid of the linkto file that points to them, else the gfid of the
 * caller's request. Returns 0: some objects have a gfid now; -ENODATA: the request has no gfid, or the
 * bricks still treat the objects as being created. */
static int
set_missing_gfids(const struct op *o, const struct everywhere *e, struct inode *parent, const char *name)
{
    const struct dict *brought = o->stk->call.fop == FOP_lookup ? o->stk->call.xdata : NULL;
    struct gfid gfid;
    struct fan fan;
    bool has_given = false;

    if (!brought || dict_get_gfid(brought, DICT_KEY_GFID_REQ, &gfid))
        return -ENODATA;
    if (e->has_linkto)
        gfid = e->fan.call[e->hashed]->reply.stat.gfid;
    int err = dist_fan_begin(&fan, o);

    for (unsigned i = 0; i < fan.count; i++) {
        if (dist_fan_result(&e->fan, i) == -ENODATA)
            dist_fan_add(&fan, i,
                         dist_call_put_gfid(lookup_call(o, parent, name, NULL, false), DICT_KEY_GFID_REQ,
                                            &gfid));
    }
    if (!err)
        err = dist_fan_go(&fan);
    for (unsigned i = 0; i < fan.count && !err; i++)
        has_given |= dist_fan_result(&fan, i) >= 0;
    dist_fan_end(&fan);
    return err ? err : has_given ? 0 : -ENODATA;
}

static int
not_found_anywhere(const struct op *o, const struct everywhere *e, struct inode *parent, const char *name)
{
    if (e->has_linkto && o->has_names)
        (void)linkto_remove(o, (unsigned)e->hashed, parent, name, true);
    /* Returns ENOENT, unless a subvolume that could hold the file failed. A subvolume that is down counts
     * as a missing name, unless the mount waits for the subvolume. */
    if (e->err && (e->err != -ENOTCONN || dist_op_waits(o)))
        return e->err;
    return child_longest_up(o->d) < 0 ? -ENOTCONN : -ENOENT;
}

static int look_everywhere(const struct op *o, struct inode *parent, const char *name, int hashed,
                           struct found *out);

/* Handles a name that exists only without a gfid. */
static int
judge_without_gfid(const struct op *o, const struct everywhere *e, struct inode *parent, const char *name,
               struct found *out)
{
    struct op again = *o;
    bool may_give = !o->has_given && (o->has_names || e->hashed < 0);
    int err = may_give ? set_missing_gfids(o, e, parent, name) : -ENODATA;

    again.has_given = true;
    return err ? err : look_everywhere(&again, parent, name, e->hashed, out);
}

static int
judge_everywhere(const struct op *o, struct everywhere *e, struct inode *parent, const char *name,
                 struct found *out)
{
    int err = 0;

    if (o->has_names && e->has_strays && e->hashed >= 0)
        remove_strays(o, e, parent, name);
    if (e->file >= 0 && e->folder >= 0)
        err = -EIO;
    else if (e->folder >= 0)
        err = found_folder(o, parent, name, NULL, -1, NULL, out);
    else if (e->file < 0 && e->no_data)
        err = judge_without_gfid(o, e, parent, name, out);
    else if (e->file < 0)
        err = not_found_anywhere(o, e, parent, name);
    else if (e->file != e->hashed && e->hashed >= 0)
        err = repair_linkto(o, e, parent, name);
    if (err || e->file < 0)
        return err;
    struct call_stack *stk = e->fan.call[e->file];

    e->fan.call[e->file] = NULL;
    return found_file(o, parent, name, (unsigned)e->file, stk, out);
}

static int
look_everywhere(const struct op *o, struct inode *parent, const char *name, int hashed, struct found *out)
{
    struct everywhere e = {.hashed = hashed, .file = -1, .folder = -1};
    struct op locked = *o;
    struct dist_lock lock[2];
    unsigned count = 0;
    int err = dist_fan_begin(&e.fan, o);

    *out = (struct found){.cached = -1};
    for (unsigned i = 0; i < e.fan.count; i++)
        dist_fan_add(&e.fan, i, lookup_call(o, parent, name, NULL, false));
    if (!err)
        err = dist_fan_go(&e.fan);
    if (!err)
        sort_replies(o, &e);
    if (!err && e.note && !o->has_settled) { /* a repair would take the unfinished name for good */
        dist_fan_end(&e.fan);
        locked.has_settled = true;
        (void)settle_note(o, parent, name, e.note);
        return look_everywhere(&locked, parent, name, hashed, out);
    }
    if (!err && e.note)
        locked.has_names = false; /* the name could not be settled now: no repair takes it */
    else if (!err && !o->has_names && needs_repair(o, &e)) {
        count = dist_locks_namespace(lock, (unsigned)hashed, parent, name);
        locked.has_names = !dist_locks_take(o, lock, count);
    }
    if (locked.has_names && !o->has_names) {
        err = look_everywhere(&locked, parent, name, hashed, out);
        dist_locks_drop(o, lock, count);
    } else if (!err) {
        err = judge_everywhere(&locked, &e, parent, name, out);
    }
    dist_fan_end(&e.fan);
    return err;
}

/* ---- by name --------------------------------------------------------------------------------- */

static bool
may_look_everywhere(const struct dist *d, const struct layout *parent)
{
    if (dist_conf(d)->optimizes_lookup)
        return parent->commit != atomic_load(&d->commit);
    return dist_conf(d)->looks_unhashed != UNHASHED_OFF;
}

/* Looks the name up on one child, unless a LOOKUP sent in advance has the reply. */
static int
lookup_at_unless_ahead(const struct op *o, struct ahead *a, unsigned child, struct inode *parent,
                       const char *name, struct call_stack **out)
{
    *out = ahead_take(a, child);
    if (!*out)
        return lookup_at(o, child, parent, name, NULL, out);
    int ret = coro_call_result(*out);

    return ret < 0 ? ret : 0;
}

/* Returns whether the file was seen there (in a listing, for example) and still exists. */
static bool
was_found_ahead(const struct ahead *a)
{
    for (unsigned i = 0; a && i < a->count; i++) {
        const struct call_stack *stk = a->reply[i];

        if (stk && coro_call_result(stk) >= 0 && !S_ISDIR(stk->reply.stat.mode) && !reply_is_linkto(stk))
            return true;
    }
    return false;
}

static int
follow_linkto(const struct op *o, struct inode *parent, const char *name, int hashed, struct call_stack *link,
              struct ahead *a, struct found *out)
{
    int target = linkto_target(o->d, link);
    struct gfid gfid = link->reply.stat.gfid;
    struct call_stack *stk;

    call_stack_free(link);
    if (target < 0)
        return look_everywhere(o, parent, name, hashed, out);
    int err = lookup_at_unless_ahead(o, a, (unsigned)target, parent, name, &stk);

    if (!err && !S_ISDIR(stk->reply.stat.mode) && !reply_is_linkto(stk) &&
        gfid_equal(&gfid, &stk->reply.stat.gfid))
        return found_file(o, parent, name, (unsigned)target, stk, out);
    if (stk)
        call_stack_free(stk);
    return err == -ENOTCONN || err == -ENOMEM ? err : look_everywhere(o, parent, name, hashed, out);
}

/* A name without a gfid is being created, or its creator died. Waits for the locks of the name, which a
 * creator holds. */
static void
wait_for_maker(const struct op *o, unsigned hashed, struct inode *parent, const char *name)
{
    struct dist_lock lock[2];
    unsigned count = o->has_names ? 0 : dist_locks_namespace(lock, hashed, parent, name);

    if (!dist_locks_take(o, lock, count))
        dist_locks_drop(o, lock, count);
}

/* Looks the name up by the parent's layout. */
static int
lookup_by_layout(const struct op *o, struct inode *parent, const char *name, const struct layout *layout,
         struct ahead *a, struct found *out)
{
    int hashed = layout_find(layout, dist_hash(o->d, name));
    struct call_stack *stk;

    if (hashed < 0)
        return look_everywhere(o, parent, name, -1, out);
    int err = lookup_at_unless_ahead(o, a, (unsigned)hashed, parent, name, &stk);

    if (!err && S_ISDIR(stk->reply.stat.mode))
        return found_folder(o, parent, name, NULL, hashed, stk, out);
    if (!err && reply_is_linkto(stk))
        return follow_linkto(o, parent, name, hashed, stk, a, out);
    if (!err)
        return found_file(o, parent, name, (unsigned)hashed, stk, out);
    if (stk)
        call_stack_free(stk);
    if (err == -ENODATA)
        wait_for_maker(o, (unsigned)hashed, parent, name);
    if (err == -ENOTCONN || err == -ENODATA ||
        (err == -ENOENT && (may_look_everywhere(o->d, layout) || was_found_ahead(a))))
        return look_everywhere(o, parent, name, hashed, out);
    return err;
}

/* Asks both subvolumes in parallel if the file is known to be on another subvolume than the hashed one. */
static void
ask_both(const struct op *o, struct inode *parent, const char *name, int hashed, int cached, struct ahead *a)
{
    struct coro_group g;

    if (hashed < 0 || cached < 0 || hashed == cached)
        return;
    coro_group_begin(&g);
    ahead_wind(o, a, &g, (unsigned)hashed, parent, name);
    ahead_wind(o, a, &g, (unsigned)cached, parent, name);
    coro_group_wait(&g);
}

/* Settles the name, if a note says so, and looks it up again. */
static int
lookup_settled(const struct op *o, struct inode *parent, const char *name, struct found *out)
{
    struct op again = *o;

    if (!out->note || o->has_settled || !settle_note(o, parent, name, out->note))
        return 0;
    again.has_settled = true;
    found_end(out);
    return lookup_name(&again, parent, name, NULL, out);
}

int
lookup_name(const struct op *o, struct inode *parent, const char *name, struct ahead *a, struct found *out)
{
    struct inode_table *t = o->d->xl->graph->inodes;
    struct inode *known = inode_find_child(t, parent, name);
    int cached = known && !S_ISDIR(known->type) ? place_cached(o->d, known) : -1;
    struct ahead both = {0};
    struct layout *layout;
    int err = -ENOENT;

    *out = (struct found){.cached = -1};
    if (known && S_ISDIR(known->type)) {
        err = found_folder(o, parent, name, NULL, -1, NULL, out);
        if (err)
            found_end(out);
    }
    inode_unref(known);
    if (!err)
        return 0;
    err = folder_layout(o, parent, &layout);
    if (err)
        return err;
    if (!a)
        ask_both(o, parent, name, layout_find(layout, dist_hash(o->d, name)), cached, a = &both);
    err = lookup_by_layout(o, parent, name, layout, a, out);
    ahead_end(&both);
    layout_unref(layout);
    if (err == -ENOENT)
        inode_unlink(t, parent, name);
    if (err)
        found_end(out);
    return err ? err : lookup_settled(o, parent, name, out);
}

/* ---- by gfid --------------------------------------------------------------------------------- */

static int
look_by_gfid(const struct op *o, struct inode *inode, struct found *out)
{
    struct everywhere e = {.hashed = -1, .file = -1, .folder = -1};
    int err = dist_fan_begin(&e.fan, o);

    *out = (struct found){.cached = -1};
    if (S_ISDIR(inode->type)) {
        dist_fan_end(&e.fan);
        return found_folder(o, NULL, NULL, inode, -1, NULL, out);
    }
    for (unsigned i = 0; i < e.fan.count; i++)
        dist_fan_add(&e.fan, i, lookup_call(o, NULL, NULL, inode, false));
    if (!err)
        err = dist_fan_go(&e.fan);
    if (!err) {
        sort_replies(o, &e);
        if (e.folder >= 0)
            err = e.file >= 0 ? -EIO : found_folder(o, NULL, NULL, inode, -1, NULL, out);
        else if (e.file < 0)
            err = e.err ? e.err : -ESTALE;
    }
    if (!err && e.file >= 0) {
        struct call_stack *stk = e.fan.call[e.file];

        e.fan.call[e.file] = NULL;
        err = found_file(o, NULL, NULL, (unsigned)e.file, stk, out);
    }
    dist_fan_end(&e.fan);
    return err;
}

int
lookup_cached(const struct op *o, struct inode *inode)
{
    struct found found;
    int cached = place_cached(o->d, inode);

    if (cached >= 0)
        return cached;
    int err = look_by_gfid(o, inode, &found);

    cached = found.cached;
    found_end(&found);
    return err ? err : cached < 0 ? -EISDIR : cached;
}

/* ---- LOOKUP ---------------------------------------------------------------------------------- */

xl_verdict
dist_lookup_go(struct xlator *xl, struct call_stack *stk)
{
    struct op o = dist_op_of(xl, stk);
    const struct loc *loc = &stk->call.loc;
    struct found found;
    int err = loc->parent  ? lookup_name(&o, loc->parent, loc->name, NULL, &found)
              : loc->inode ? look_by_gfid(&o, loc->inode, &found)
                           : -EINVAL;

    if (!loc->parent && !loc->inode)
        return err;
    if (err) {
        found_end(&found);
        return err;
    }
    if (!stk->call.loc.inode) /* keeps a reference until the layers above have one */
        stk->call.loc.inode = inode_ref(found.inode);
    struct call_stack *reply = found.reply;

    found.reply = NULL;
    found_end(&found);
    return dist_op_answer_with(&o, reply);
}
