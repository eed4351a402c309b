/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* RMDIR: a folder is removed from all subvolumes, its hashed one last.
 *
 *   1. All must be up: ENOTCONN.
 *   2. It is looked up, and opened at the same time.
 *   3. Each is listed, as root: who may remove a folder need not be allowed to read it. A name is ENOTEMPTY,
 *      but for a linkto file whose file is no more: that is removed. (A linkto whose file is there means that
 *      the folder is not empty.) At the same time, without waiting for others, locks are asked for: the name
 *      is kept as it is (as in mkdir.c), and WRLCK dht.layout.heal on the folder on all subvolumes, so that
 *      nobody who makes a folder in it, a stock client above all, waits for us while we wait for him (client
 *      2.24). If not all are free, they are waited for now: the name's, then the folder's.
 *   4. RMDIR on all but the hashed one; not there is as good. If one fails and others have gone, the folder
 *      is made again on those, and the error answered.
 *   5. RMDIR on the hashed one, in the same way.
 *
 * Others see: between 4 and 5 a folder that is missing on some subvolumes. Who looks at it then waits for
 * the name's locks before he makes it anew, and finds that it is gone. */
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/distribute/distribute-internal.h"

enum { LIST_BYTES = 4096 };

/* ---- is it empty? ---------------------------------------------------------------------------- */

static bool
is_dot(const struct dirent_entry *e)
{
    return e->name[0] == '.' && (!e->name[1] || (e->name[1] == '.' && !e->name[2]));
}

static bool
looks_like_linkto(const struct dirent_entry *e)
{
    return S_ISREG(e->iatt.mode) && (e->iatt.mode & 07777) == S_ISVTX &&
           dict_has(e->dict, DICT_KEY_DHT_LINKTO);
}

/* A linkto file on `at`. 0: it is no more. */
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
        else if (ret != -ENOTCONN && ret != -ENOMEM) /* it is known that there is none */
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
        int err = is_dot(e) ? 0 : looks_like_linkto(e) ? clear_linkto(o, at, folder, e->name) : -ENOTEMPTY;

        if (err)
            return err;
    }
    return 0;
}

static bool
goes_on(const struct call_stack *list)
{
    return list->reply.op_ret > 0 && list->reply.op_errno != ENOENT;
}

/* The folder on one subvolume, whose first list is there. 0: nothing is in it. */
static int
clear_child(const struct op *o, unsigned at, struct inode *folder, struct fd *fd,
            const struct call_stack *first)
{
    int ret = clear_list(o, at, folder, first->reply.entries);
    uint64_t offset = 0;

    for (const struct dirent_entry *e = first->reply.entries; e; e = e->next)
        offset = e->off;
    for (bool more = goes_on(first); !ret && more;) {
        struct call_stack *stk = dist_call_new_internal(o, FOP_readdirp);

        if (stk) {
            stk->call.fd = fd_ref(fd);
            stk->call.size = LIST_BYTES;
            stk->call.offset = offset;
        }
        stk = dist_call_put_uint(stk, DICT_KEY_DHT_LINKTO, 256);
        ret = dist_call_at(o, at, stk);
        more = ret > 0 && goes_on(stk);
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

/* Winds, and does not wait. To be ended in any case. */
static void
open_begin(const struct op *o, struct inode *folder, struct opening *p)
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
        stk->caller.time_flags = 0; /* looking changes nothing of a folder that may have to stay */
        coro_group_wind(&p->group, stk, o->d->child[i].xl);
    }
}

/* 0 or -errno. The fd is the caller's. */
static int
open_end(struct opening *p)
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

/* The beginning of each subvolume's list. To be ended in any case. */
static int
list_begin(const struct op *o, struct fd *fd, struct fan *fan)
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
    if (!err)
        err = dist_fan_go(fan);
    for (unsigned i = 0; i < fan->count && !err; i++) {
        int ret = dist_fan_result(fan, i);

        err = ret >= 0 || ret == -ENOENT || ret == -ESTALE || ret == -EBADFD ? 0 : ret;
    }
    return err;
}

/* Is nothing in it, not even a linkto file? */
static bool
is_bare(const struct fan *fan)
{
    for (unsigned i = 0; i < fan->count; i++) {
        const struct fop_reply *reply = &fan->call[i]->reply;

        for (const struct dirent_entry *e = reply->op_ret > 0 ? reply->entries : NULL; e; e = e->next) {
            if (!is_dot(e))
                return false;
        }
        if (goes_on(fan->call[i]))
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
            err = clear_child(o, i, folder, fd, fan->call[i]);
    }
    return err;
}

/* *fd: to be dropped in any case. */
static int
open_all(const struct op *o, struct inode *folder, struct fd **fd)
{
    struct opening p;

    open_begin(o, folder, &p);
    *fd = p.fd;
    return open_end(&p);
}

int
folder_clear(const struct op *o, struct inode *folder)
{
    struct fan fan = {0};
    struct fd *fd;
    int err = open_all(o, folder, &fd);

    if (!err)
        err = list_begin(o, fd, &fan);
    if (!err)
        err = list_clear(o, folder, fd, &fan);
    dist_fan_end(&fan);
    fd_unref(fd);
    return err;
}

/* The folder of that name as it is now, opened: what is remembered of it, at the same time. *fd is to be
 * dropped in any case. */
static int
find_open(const struct op *o, const struct loc *loc, struct found *found, struct fd **fd)
{
    struct inode *known = inode_find_child(o->d->xl->graph->inodes, loc->parent, loc->name);
    struct opening p = {.fd = NULL};
    bool is_opening = known && S_ISDIR(known->type);

    if (is_opening)
        open_begin(o, known, &p);
    int err = lookup_name(o, loc->parent, loc->name, NULL, found);
    int opened = is_opening ? open_end(&p) : 0;

    if (!err && !found->is_dir)
        err = -ENOTDIR;
    *fd = p.fd;
    if (!err && is_opening && gfid_equal(&known->gfid, &found->inode->gfid)) {
        err = opened;
    } else if (!err) {
        fd_unref(p.fd);
        err = open_all(o, found->inode, fd);
    }
    inode_unref(known);
    return err;
}

/* ---- removing -------------------------------------------------------------------------------- */

static bool
is_gone(int ret)
{
    return ret >= 0 || ret == -ENOENT || ret == -ESTALE;
}

/* It could not be removed everywhere: it shall be everywhere again. The name's locks are held. */
static void
make_again(const struct op *o, const struct found *found, const bool *was_removed)
{
    const struct loc *loc = &o->stk->call.loc;
    const struct iatt *a = &found->reply->reply.stat;
    struct fan fan;
    int err = dist_fan_begin(&fan, o);

    for (unsigned i = 0; i < fan.count; i++) {
        if (!was_removed[i])
            continue;
        struct call_stack *stk =
            dist_call_for_name(dist_call_new_internal(o, FOP_mkdir), loc->parent, loc->name);

        if (stk)
            stk->call.mode = a->mode & 07777;
        stk = dist_call_put_gfid(stk, DICT_KEY_GFID_REQ, &a->gfid);
        dist_fan_add(&fan, i, dist_call_put_uint(stk, DICT_KEY_INTERNAL_CTX, 1));
    }
    if (!err)
        err = dist_fan_go(&fan);
    if (err)
        log_event(LOG_WARNING, o->d->xl, "distribute-rmdir-half", "%s: gone from some subvolumes: %s",
                  loc->name, strerror(-err));
    dist_fan_end(&fan);
}

/* Steps 4 and 5. */
static int
remove_all(const struct op *o, unsigned hashed, const struct found *found, struct call_stack **last)
{
    bool *was_removed = arena_zalloc(&o->stk->arena, o->d->count * sizeof *was_removed);
    struct fan fan;
    int err = was_removed ? dist_fan_begin(&fan, o) : -ENOMEM;

    *last = NULL;
    if (err)
        return err;
    for (unsigned i = 0; i < fan.count; i++) {
        if (i != hashed)
            dist_fan_add(&fan, i, dist_call_copy(o));
    }
    err = dist_fan_go(&fan);
    for (unsigned i = 0; i < fan.count; i++) {
        if (i == hashed || err == -ENOMEM)
            continue;
        int ret = dist_fan_result(&fan, i);

        was_removed[i] = ret >= 0;
        if (!is_gone(ret) && !err)
            err = ret;
    }
    dist_fan_end(&fan);
    if (!err) {
        *last = dist_call_copy(o);
        err = dist_call_at(o, hashed, *last);
        err = is_gone(err) ? 0 : err;
    }
    if (err)
        make_again(o, found, was_removed);
    return err;
}

static unsigned
fill_locks(const struct op *o, struct dist_lock *lock, unsigned count, struct inode *folder)
{
    for (unsigned i = 0; i < o->d->count; i++)
        lock[count++] = (struct dist_lock){
            .child = i, .inode = folder, .domain = DOMAIN_LAYOUT, .type = FLOCK_WRITE, .may_miss = true};
    return count;
}

/* Step 3. Linkto files are removed without these locks: a stock client that renames over one may hold the
 * removal back, and wait for them (client 2.24). 0: the locks are held. */
static int
clear_and_lock(const struct op *o, const struct found *found, struct fd *fd, struct dist_lock *lock,
               unsigned names, unsigned count)
{
    struct lock_try t;
    struct fan fan = {0};
    int locked = dist_locks_try_begin(o, &t, lock, count);

    if (locked)
        return locked;
    int err = list_begin(o, fd, &fan);

    locked = dist_locks_try_end(o, &t);
    if (!locked && (err || !is_bare(&fan))) {
        dist_locks_drop(o, lock, count);
        locked = -EAGAIN;
    }
    if (!err)
        err = list_clear(o, found->inode, fd, &fan);
    dist_fan_end(&fan);
    if (!err && locked == -EAGAIN)
        locked = dist_locks_take_parts(o, lock, names, count);
    return err ? err : locked;
}

/* Steps 3 to 5. fd NULL: the bricks remove what is in it. */
static int
remove_found(const struct op *o, unsigned hashed, const struct found *found, struct fd *fd,
             struct call_stack **last)
{
    const struct loc *loc = &o->stk->call.loc;
    struct dist_lock *lock = arena_zalloc(&o->stk->arena, (2 + o->d->count) * sizeof *lock);

    if (!lock)
        return -ENOMEM;
    unsigned names = dist_locks_namespace(lock, hashed, loc->parent, loc->name);
    unsigned count = fill_locks(o, lock, names, found->inode);
    int err = fd ? clear_and_lock(o, found, fd, lock, names, count)
                 : dist_locks_take_parts(o, lock, names, count);

    if (err)
        return err;
    err = remove_all(o, hashed, found, last);
    dist_locks_drop(o, lock, count);
    return err;
}

xl_verdict
dist_rmdir_go(struct xlator *xl, struct call_stack *stk)
{
    struct op o = dist_op_of(xl, stk);
    const struct loc *loc = &stk->call.loc;
    struct call_stack *last = NULL;
    struct found found = {0};
    struct fd *fd = NULL;
    int hashed = children_all_up(o.d) ? folder_hashed(&o, loc->parent, loc->name) : -ENOTCONN;
    int err = hashed < 0 ? hashed : 0;

    if (!err && !stk->call.flags)
        err = find_open(&o, loc, &found, &fd);
    else if (!err) /* the bricks remove what is in it */
        err = lookup_name(&o, loc->parent, loc->name, NULL, &found);
    if (!err && !found.is_dir)
        err = -ENOTDIR;
    if (!err)
        err = remove_found(&o, (unsigned)hashed, &found, fd, &last);
    fd_unref(fd);
    if (!err)
        inode_unlink(xl->graph->inodes, loc->parent, loc->name);
    found_end(&found);
    if (!err && last && coro_call_result(last) >= 0)
        return dist_op_answer_with(&o, last);
    if (last)
        call_stack_free(last);
    if (!err) { /* it was gone already where the last word is */
        stk->reply.op_ret = 0;
        return XL_DONE;
    }
    return err;
}
