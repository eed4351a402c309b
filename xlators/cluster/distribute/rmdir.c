/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* RMDIR: removes a folder from all subvolumes, from the hashed one last.
 *
 *   1. All subvolumes must be up: ENOTCONN. The folder is the one remembered for the name, else a LOOKUP's.
 *   2. OPENDIR. In parallel, without waiting, requests for locks: on the name (as in mkdir.c), and WRLCK
 *      dht.layout.heal on the folder on all subvolumes. So no client that creates a folder in it, above all
 *      no stock client, waits for this client while this client waits for it (client 2.24).
 *   3. Listing of all subvolumes, as root, because a user may remove a folder without read permission. A
 *      name means ENOTEMPTY, except a linkto file whose file is gone: that is removed, without these locks.
 *      (A linkto file whose file exists means that the folder is not empty.) In parallel a LOOKUP of the
 *      name under its locks: if the name now leads elsewhere, the removal starts again with the new object;
 *      a name on which subvolumes contradict each other permanently is removed at the last try.
 *   4. If not all locks were free, waiting for them now: the name's, then the folder's. Then a LOOKUP of
 *      the name under the locks.
 *   5. RMDIR on all subvolumes but the hashed one; a missing folder counts as success. If one fails after
 *      others have succeeded, the folder is created again on the latter, and the error is returned.
 *   6. RMDIR on the hashed subvolume, in the same way.
 *
 * Visible to other clients: between 5 and 6 a folder that is missing on some subvolumes. A client that
 * looks at the folder in that state waits for the name's locks before the repair, and finds the folder
 * gone. */
#include <errno.h>
#include <string.h>

#include "xlators/cluster/distribute/distribute-internal.h"

enum { LIST_BYTES = 4096 };

/* ---- checking that the folder is empty ------------------------------------------------------- */

static bool
is_dot_entry(const struct dirent_entry *e)
{
    return e->name[0] == '.' && (!e->name[1] || (e->name[1] == '.' && !e->name[2]));
}

static bool
looks_like_linkto(const struct dirent_entry *e)
{
    return S_ISREG(e->iatt.mode) && (e->iatt.mode & 07777) == S_ISVTX &&
           dict_has(e->dict, DICT_KEY_DHT_LINKTO);
}

/* Checks a linkto file on `at`, and removes it if its file is gone. Returns 0 after the removal. */
static int
clear_linkto(const struct op *o, unsigned at, struct inode *folder, const char *name)
{
    struct call_stack *link = lookup_call(o, folder, name, NULL, true), *file = NULL;
    int ret = dist_call_at(o, at, link), target = ret < 0 ? -1 : linkto_target(o->d, link);

    if (ret >= 0 && !reply_is_linkto(link)) {
        ret = -ENOTEMPTY;
    } else if (ret >= 0 && target >= 0) {
        file = lookup_call(o, folder, name, NULL, true);
        ret = dist_call_at(o, (unsigned)target, file);
        if (ret >= 0 && !reply_is_linkto(file))
            ret = -ENOTEMPTY;
        else if (ret != -ENOTCONN && ret != -ENOMEM) /* a definite answer: no such file */
            ret = 0;
    }
    if (link)
        call_stack_free(link);
    if (file)
        call_stack_free(file);
    if (ret == -ENOENT || ret == -ESTALE)
        return 0;
    return ret < 0 ? ret : linkto_remove(o, at, folder, name, false);
}

static int
clear_list(const struct op *o, unsigned at, struct inode *folder, const struct dirent_entry *e)
{
    for (; e; e = e->next) {
        int err = is_dot_entry(e)        ? 0
                  : looks_like_linkto(e) ? clear_linkto(o, at, folder, e->name)
                                         : -ENOTEMPTY;

        if (err)
            return err;
    }
    return 0;
}

static bool
has_more_entries(const struct call_stack *list)
{
    return list->reply.op_ret > 0 && list->reply.op_errno != ENOENT;
}

/* Clears the folder on one subvolume, whose first list is `first`. Returns 0: the folder is empty there. */
static int
clear_folder_on_child(const struct op *o, unsigned at, struct inode *folder, struct fd *fd,
            const struct call_stack *first)
{
    int ret = clear_list(o, at, folder, first->reply.entries);
    uint64_t offset = 0;

    for (const struct dirent_entry *e = first->reply.entries; e; e = e->next)
        offset = e->off;
    for (bool more = has_more_entries(first); !ret && more;) {
        struct call_stack *stk = dist_call_new_internal(o, FOP_readdirp);

        if (stk) {
            stk->call.fd = fd_ref(fd);
            stk->call.size = LIST_BYTES;
            stk->call.offset = offset;
        }
        stk = dist_call_put_uint(stk, DICT_KEY_DHT_LINKTO, 256);
        ret = dist_call_at(o, at, stk);
        more = ret > 0 && has_more_entries(stk);
        for (const struct dirent_entry *e = ret > 0 ? stk->reply.entries : NULL; e; e = e->next)
            offset = e->off;
        ret = ret > 0 ? clear_list(o, at, folder, stk->reply.entries) : ret == -ENOENT ? 0 : ret;
        if (stk)
            call_stack_free(stk);
    }
    return ret;
}

/* A folder that is being opened on all subvolumes; fd NULL: it is not. */
struct opening {
    struct fd *fd;
    struct fan fan;
    struct coro_group group;
};

/* Winds OPENDIR and does not wait. Call opendir_end() in any case. */
static void
opendir_begin(const struct op *o, struct inode *folder, struct opening *p)
{
    p->fd = fd_new(folder, NULL, 0, true);
    coro_group_begin(&p->group);
    if (dist_fan_begin(&p->fan, o) || !p->fd)
        return;
    for (unsigned i = 0; i < p->fan.count; i++) {
        struct call_stack *stk = dist_call_for_inode(dist_call_new_internal(o, FOP_opendir), folder);

        dist_fan_add(&p->fan, i, stk);
        if (!stk)
            continue;
        stk->call.fd = fd_ref(p->fd);
        stk->caller.time_flags = 0; /* listing must not change the atime of a folder that may stay */
        coro_group_wind(&p->group, stk, o->d->child[i].xl);
    }
}

/* Returns 0 or -errno. The fd belongs to the caller. */
static int
opendir_end(struct opening *p)
{
    int err = p->fd && p->fan.count && !p->fan.is_short ? 0 : -ENOMEM;

    coro_group_wait(&p->group);
    for (unsigned i = 0; i < p->fan.count && !err; i++) {
        int ret = dist_fan_result(&p->fan, i);

        err = ret < 0 && ret != -ENOENT && ret != -ESTALE ? ret : 0;
    }
    dist_fan_end(&p->fan);
    return err;
}

/* Makes the calls for the first list of each subvolume. Call dist_fan_end() in any case. */
static int
list_fill(const struct op *o, struct fd *fd, struct fan *fan)
{
    int err = dist_fan_begin(fan, o);

    for (unsigned i = 0; i < fan->count; i++) {
        struct call_stack *stk = dist_call_new_internal(o, FOP_readdirp);

        if (stk) {
            stk->call.fd = fd_ref(fd);
            stk->call.size = LIST_BYTES;
        }
        dist_fan_add(fan, i, dist_call_put_uint(stk, DICT_KEY_DHT_LINKTO, 256));
    }
    return err;
}

static int
list_result(const struct fan *fan)
{
    int err = 0;

    for (unsigned i = 0; i < fan->count && !err; i++) {
        int ret = dist_fan_result(fan, i);

        err = ret >= 0 || ret == -ENOENT || ret == -ESTALE || ret == -EBADFD ? 0 : ret;
    }
    return err;
}

static int
list_begin(const struct op *o, struct fd *fd, struct fan *fan)
{
    int err = list_fill(o, fd, fan);

    if (!err)
        err = dist_fan_go(fan);
    return err ? err : list_result(fan);
}

/* Returns whether the folder has no entry, not even a linkto file. */
static bool
is_bare(const struct fan *fan)
{
    for (unsigned i = 0; i < fan->count; i++) {
        const struct fop_reply *reply = &fan->call[i]->reply;

        for (const struct dirent_entry *e = reply->op_ret > 0 ? reply->entries : NULL; e; e = e->next) {
            if (!is_dot_entry(e))
                return false;
        }
        if (has_more_entries(fan->call[i]))
            return false;
    }
    return true;
}

static int
list_clear(const struct op *o, struct inode *folder, struct fd *fd, const struct fan *fan)
{
    int err = 0;

    for (unsigned i = 0; i < fan->count && !err; i++) {
        if (dist_fan_result(fan, i) >= 0)
            err = clear_folder_on_child(o, i, folder, fd, fan->call[i]);
    }
    return err;
}

/* Opens the folder. The caller drops *fd in any case. */
static int
opendir_on_all(const struct op *o, struct inode *folder, struct fd **fd)
{
    struct opening p;

    opendir_begin(o, folder, &p);
    *fd = p.fd;
    return opendir_end(&p);
}

int
folder_clear(const struct op *o, struct inode *folder)
{
    struct fan fan = {0};
    struct fd *fd;
    int err = opendir_on_all(o, folder, &fd);

    if (!err)
        err = list_begin(o, fd, &fan);
    if (!err)
        err = list_clear(o, folder, fd, &fan);
    dist_fan_end(&fan);
    fd_unref(fd);
    return err;
}

/* ---- removing -------------------------------------------------------------------------------- */

static bool
is_gone(int ret)
{
    return ret >= 0 || ret == -ENOENT || ret == -ESTALE;
}

struct removal {
    const struct op *o;
    unsigned hashed;
    struct inode *folder; /* a reference */
    struct fd *fd;        /* NULL: the bricks remove the contents */
    struct dist_lock *lock;
    unsigned names, count; /* number of locks on the name, of all locks */
    struct iatt iatt;      /* as looked up under the locks */
    bool is_everywhere;    /* the name leads to the folder on all subvolumes */
    bool is_last_try;
    struct call_stack *last; /* the RMDIR on the hashed child */
};

/* Passes the folder's inode if the name leads to it on all subvolumes, so that replicate need not look it
 * up. */
static struct call_stack *
rmdir_call(const struct removal *r)
{
    struct call_stack *stk = dist_call_copy(r->o);

    return r->is_everywhere ? dist_call_for_inode(stk, r->folder) : stk;
}

/* Steps 5 and 6. */
static int
remove_all(struct removal *r)
{
    const struct op *o = r->o;
    bool *was_removed = arena_zalloc(&o->stk->arena, o->d->count * sizeof *was_removed);
    struct fan fan;
    int err = was_removed ? dist_fan_begin(&fan, o) : -ENOMEM;

    if (err)
        return err;
    for (unsigned i = 0; i < fan.count; i++) {
        if (i != r->hashed)
            dist_fan_add(&fan, i, rmdir_call(r));
    }
    err = dist_fan_go(&fan);
    for (unsigned i = 0; i < fan.count; i++) {
        if (i == r->hashed || err == -ENOMEM)
            continue;
        int ret = dist_fan_result(&fan, i);

        was_removed[i] = ret >= 0;
        if (!is_gone(ret) && !err)
            err = ret;
    }
    dist_fan_end(&fan);
    if (!err) {
        r->last = rmdir_call(r);
        err = dist_call_at(o, r->hashed, r->last);
        err = is_gone(err) ? 0 : err;
    }
    const struct loc *loc = &o->stk->call.loc;

    if (err) /* the folder must exist on all subvolumes again */
        folder_make_again(o, loc->parent, loc->name, r->folder, &r->iatt, was_removed);
    return err;
}

/* ---- locks, and LOOKUP under the locks ------------------------------------------------------- */

static int
fill_locks(struct removal *r)
{
    const struct op *o = r->o;
    const struct loc *loc = &o->stk->call.loc;

    if (!r->lock)
        r->lock = arena_zalloc(&o->stk->arena, (2 + o->d->count) * sizeof *r->lock);
    if (!r->lock)
        return -ENOMEM;
    r->names = dist_locks_namespace(r->lock, r->hashed, loc->parent, loc->name);
    r->count = r->names;
    for (unsigned i = 0; i < o->d->count; i++)
        r->lock[r->count++] = (struct dist_lock){
            .child = i, .inode = r->folder, .domain = DOMAIN_LAYOUT, .type = FLOCK_WRITE, .may_miss = true};
    return 0;
}

static int
fill_name_lookups(const struct removal *r, struct fan *fan)
{
    const struct op *o = r->o;
    const struct loc *loc = &o->stk->call.loc;
    int err = dist_fan_begin(fan, o);

    for (unsigned i = 0; i < fan->count; i++) {
        struct call_stack *stk = dist_call_new_internal(o, FOP_lookup);

        dist_fan_add(fan, i, dist_call_for_name(stk, loc->parent, loc->name));
    }
    return err;
}

/* Returns -ESTALE if the name leads to another object on the hashed subvolume, which decides. If that
 * persists, the state is permanent on the disks, and the folder can be removed anyway. */
static int
judge_name_lookups(struct removal *r, const struct fan *fan)
{
    int mds = place_cached(r->o->d, r->folder), err = 0;

    r->is_everywhere = true;
    for (unsigned i = 0; i < fan->count; i++) {
        const struct iatt *a = &fan->call[i]->reply.stat;
        int ret = dist_fan_result(fan, i);
        bool is_it = ret >= 0 && S_ISDIR(a->mode) && gfid_equal(&a->gfid, &r->folder->gfid);

        r->is_everywhere &= is_it;
        if (is_it && (!r->iatt.mode || (int)i == mds))
            r->iatt = *a;
        if (!is_it && i == r->hashed)
            err = !is_gone(ret) ? ret : r->is_last_try ? 0 : -ESTALE;
    }
    return err;
}

static int
lookup_under_locks(struct removal *r)
{
    struct fan fan;
    int err = fill_name_lookups(r, &fan);

    if (!err)
        err = dist_fan_go(&fan);
    if (!err)
        err = judge_name_lookups(r, &fan);
    dist_fan_end(&fan);
    return err;
}

/* Step 3, with the locks held. The caller ends *list in any case. */
static int
list_and_check(struct removal *r, struct fan *list)
{
    struct fan names = {0};
    struct coro_group g;
    int err = list_fill(r->o, r->fd, list);

    if (!err)
        err = fill_name_lookups(r, &names);
    if (!err && (list->is_short || names.is_short))
        err = -ENOMEM;
    if (!err) {
        coro_group_begin(&g);
        dist_fan_wind(list, &g);
        dist_fan_wind(&names, &g);
        coro_group_wait(&g);
        err = judge_name_lookups(r, &names);
    }
    dist_fan_end(&names);
    return err ? err : list_result(list);
}

/* Steps 2 and 3. Returns 0: the locks are held, the folder is empty, and the name leads to it; -EAGAIN: the
 * folder is empty, and no lock is held. */
static int
open_and_lock(struct removal *r)
{
    const struct op *o = r->o;
    struct opening p;
    struct lock_try t;
    struct fan list = {0};

    opendir_begin(o, r->folder, &p);
    r->fd = p.fd;
    int locked = dist_locks_try_begin(o, &t, r->lock, r->count), err = opendir_end(&p);

    if (!locked)
        locked = dist_locks_try_end(o, &t);
    if (!locked && !err)
        err = list_and_check(r, &list);
    else if (!err && locked == -EAGAIN)
        err = list_begin(o, r->fd, &list);
    if (!locked && (err || !is_bare(&list))) {
        dist_locks_drop(o, r->lock, r->count);
        locked = -EAGAIN;
    }
    if (!err && locked == -EAGAIN)
        err = list_clear(o, r->folder, r->fd, &list);
    dist_fan_end(&list);
    return err ? err : locked;
}

/* ---- the whole removal ----------------------------------------------------------------------- */

/* Steps 2 to 6. -ESTALE: the name leads elsewhere by now, and nothing was changed. */
static int
remove_known_folder(struct removal *r)
{
    const struct op *o = r->o;
    int err = fill_locks(r);

    if (!err)
        err = o->stk->call.flags ? -EAGAIN : open_and_lock(r);
    if (err == -EAGAIN) {
        err = dist_locks_take_parts(o, r->lock, r->names, r->count);
        if (!err && (err = lookup_under_locks(r)))
            dist_locks_drop(o, r->lock, r->count);
    }
    if (err)
        return err;
    err = remove_all(r);
    dist_locks_drop(o, r->lock, r->count);
    return err;
}

/* Step 1: sets r->folder, with a reference. Returns 0 or -errno. */
static int
find_folder(struct removal *r, bool asks)
{
    const struct loc *loc = &r->o->stk->call.loc;
    struct inode *known = asks ? NULL : inode_find_child(r->o->d->xl->graph->inodes, loc->parent, loc->name);
    struct found found = {0};

    inode_unref(r->folder);
    fd_unref(r->fd);
    r->folder = NULL;
    r->fd = NULL;
    r->iatt = (struct iatt){0};
    if (known && S_ISDIR(known->type)) {
        r->folder = known;
        return 0;
    }
    inode_unref(known);
    int err = lookup_name(r->o, loc->parent, loc->name, NULL, &found);

    if (!err && !found.is_dir)
        err = -ENOTDIR;
    if (!err)
        r->folder = inode_ref(found.inode);
    found_end(&found);
    return err;
}

enum { TRIES_MAX = 3 };

xl_verdict
dist_rmdir_go(struct xlator *xl, struct call_stack *stk)
{
    struct op o = dist_op_of(xl, stk);
    const struct loc *loc = &stk->call.loc;
    struct removal r = {.o = &o};
    int hashed = children_all_up(o.d) ? folder_hashed(&o, loc->parent, loc->name) : -ENOTCONN;
    int err = hashed < 0 ? hashed : -ESTALE;

    r.hashed = hashed < 0 ? 0 : (unsigned)hashed;
    for (unsigned tries = 0; err == -ESTALE && tries < TRIES_MAX; tries++) {
        r.is_last_try = tries == TRIES_MAX - 1;
        err = find_folder(&r, tries > 0);
        if (!err)
            err = remove_known_folder(&r);
    }
    fd_unref(r.fd);
    inode_unref(r.folder);
    if (!err)
        inode_unlink(xl->graph->inodes, loc->parent, loc->name);
    if (!err && r.last && coro_call_result(r.last) >= 0)
        return dist_op_answer_with(&o, r.last);
    if (r.last)
        call_stack_free(r.last);
    if (!err) { /* the hashed subvolume had no such folder */
        stk->reply.op_ret = 0;
        return XL_DONE;
    }
    return err;
}
