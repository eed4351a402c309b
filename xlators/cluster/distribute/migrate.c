/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Migration of a file from one subvolume to another, while clients read and write the file (client 2.20,
 * 2.21). S is the subvolume that has the file, D the hashed subvolume of the name, which gets the file.
 *
 *   1. WRLCK dht.file.migrate on the file on S, and the locks of the name on D: no client renames the file,
 *      and no other process migrates the file.
 *   2. LOOKUP of the name on S and on D. D may have a linkto file, or the remains of an earlier attempt;
 *      else a linkto file to S is created there. The linkto file is emptied: it becomes the copy.
 *   3. The mark: S gets the xattr linkto with the name of D, then the mode bits S_ISVTX and S_ISGID. From
 *      now on each client repeats its changes of S on D. If clients had begun to write on a
 *      replicated S before, the lock of cluster/replicate on the whole file makes sure that they have ended.
 *   4. Contents: each block is read from S, written to D, and read from S once more. If the block has
 *      changed in between, it is copied again. So a block on D is never older than the last change that a
 *      client made before, and later changes reach D by the client. The size is handled in the same way.
 *      Holes stay holes.
 *   5. Xattrs, FSYNC. Then LOOKUP on S: a file with POSIX locks of applications stays, because locks do not
 *      move.
 *   6. D gets the ACL and the mode: D is a file, and complete. Its linkto xattr shows that S is not yet
 *      switched. A D of several bricks gets the xattr MIGRATE_DONE_KEY before, because the mode may reach
 *      some bricks only.
 *   7. The switch: S gets the mode of a linkto file. Clients that use S now look the file up, and find D.
 *      If the reply shows that a client could not repeat a change (MIGRATE_VETO_KEY), or that S had lost the
 *      mark to a change of its mode, the switch is taken back at once, before a client can have written to D.
 *   8. Owner, mode and xattrs of S as of the switch are compared with D's, and repaired.
 *   9. D loses the xattr linkto. S is truncated and its name is removed, if it is a linkto file. Unlock.
 *
 * If this process dies, the locks end with its connections. Before 6 the file is on S, with the mark, and D
 * is a linkto file with part of the contents, which no client reads; clients go on repeating their changes.
 * Between 6 and 7 lookups find D, which is complete, and clients with the file open on S change both. After
 * 7 lookups find D, and S has a linkto file that no lookup uses. The next walk of the volume (rebalance.c)
 * finds the name on S: before 6 it migrates the file from the start, between 6 and 7 from step 7 on, and
 * after 7 it removes the linkto file.
 *
 * In 6 a replicated D may be a file on one brick, and a linkto file on another one. Clients that read the one
 * change D only; those that read the other one change S and D. A heal may make D a linkto file again. So a
 * linkto file with MIGRATE_DONE_KEY "1", of a marked S, is not emptied: D has all changes of S, and maybe
 * more, and the next walk goes on with the ACL and the mode. A replica without the xattr is accused before
 * the mode changes anywhere (replicate/transaction.c). An attempt from the start sets the xattr to "0" before
 * S is marked. If step 6 fails after the xattr was set, the state stays for the next walk.
 *
 * If a step before 6 fails, S loses the mark and D is emptied. If the failure was the death of S or D, the
 * states are those of a dead process.
 *
 * All this needs clients that know D. The walk waits for other clients before it begins (old-clients.h).
 *
 * Visible to other clients between 6 and 7, for the time of one call: a client that has looked the file up
 * anew changes D, and a client that has the file open still reads S.
 *
 * A file with S_ISVTX or S_ISGID of its own has an additional xattr with its mode on S, during the migration,
 * and on D. A file with both would look like a marked one: it gets these bits last, when D has lost the xattr
 * linkto. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/distribute/migrate-internal.h"

/* ---- looking --------------------------------------------------------------------------------- */

/* The state of the name on S and D. */
struct both {
    struct call_stack *source, *copy; /* replies; copy may be NULL: no such name */
    bool has_mark;                    /* S is marked, maybe for a child that the volume has no more */
    bool is_marked;                   /* S is marked for D */
    int other;                        /* S is marked for this child instead; -1: it is not */
    bool is_complete;                 /* D is the file, and S is not switched */
    bool is_done;                     /* D has all of the file, and may be the file on some bricks */
};

static struct call_stack *
migrate_lookup_call(const struct migrating *g, bool wants_counts)
{
    struct call_stack *stk = lookup_call(g->o, g->m->parent, g->m->name, NULL, true);

    stk = wants_counts ? dist_call_put_uint(stk, DICT_KEY_POSIXLK_COUNT, 1)
                       : dist_call_put_int(stk, DICT_KEY_CLEAN_WRITEXATTR, 1);
    if (stk &&
        dict_set_text_int(stk->call.xdata, wants_counts ? MIGRATE_VETO_KEY : MIGRATE_DONE_KEY, 0)) {
        call_stack_free(stk);
        return NULL;
    }
    return stk;
}

static void
both_end(struct both *b)
{
    if (b->source)
        call_stack_free(b->source);
    if (b->copy)
        call_stack_free(b->copy);
    *b = (struct both){0};
}

/* Returns whether the reply shows the mark of a migration. The xattr linkto tells the mark from bits of the
 * file's own. */
static bool
is_marked_reply(const struct call_stack *stk)
{
    const struct iatt *a = &stk->reply.stat;

    return S_ISREG(a->mode) && (a->mode & MIGRATE_MARK) == MIGRATE_MARK &&
           dict_has(stk->reply.xdata, DICT_KEY_DHT_LINKTO);
}

static bool
is_done_reply(const struct call_stack *stk)
{
    const struct dict_pair *p = dict_find_text(stk->reply.xdata, MIGRATE_DONE_KEY);

    return p && p->len > 0 && (p->type == DICT_PTR || p->type == DICT_UNTYPED || p->type == DICT_STR) &&
           *(const char *)p->v.bytes == '1';
}

static int
both_judge(const struct migrating *g, struct both *b)
{
    const struct migration *m = g->m;
    const struct iatt *s = &b->source->reply.stat;

    if (!gfid_equal(&s->gfid, &m->file->gfid) || reply_is_linkto(b->source))
        return -ENOENT; /* renamed, replaced or migrated meanwhile */
    b->has_mark = is_marked_reply(b->source);
    int marked_for = b->has_mark ? linkto_target(g->o->d, b->source) : -1;

    b->is_marked = marked_for == (int)m->to;
    b->other = b->is_marked || marked_for == (int)m->from ? -1 : marked_for;
    if (!b->copy)
        return 0;
    if (!gfid_equal(&b->copy->reply.stat.gfid, &s->gfid))
        return -EEXIST;
    bool is_of_source = b->is_marked && linkto_target(g->o->d, b->copy) == (int)m->from;

    if (reply_is_linkto(b->copy)) {
        b->is_done = is_of_source && is_done_reply(b->copy);
        return 0;
    }
    b->is_complete = is_of_source;
    return b->is_complete ? 0 : -EEXIST;
}

static int
lookup_source_and_copy(const struct migrating *g, struct both *b)
{
    struct coro_group group;

    b->source = migrate_lookup_call(g, true);
    b->copy = migrate_lookup_call(g, false);
    if (!b->source || !b->copy)
        return -ENOMEM;
    coro_group_begin(&group);
    coro_group_wind(&group, b->source, g->o->d->child[g->m->from].xl);
    coro_group_wind(&group, b->copy, g->o->d->child[g->m->to].xl);
    coro_group_wait(&group);
    int at_s = coro_call_result(b->source), at_d = coro_call_result(b->copy);

    if (at_s < 0)
        return at_s;
    if (at_d < 0 && at_d != -ENOENT)
        return at_d;
    if (at_d < 0) {
        call_stack_free(b->copy);
        b->copy = NULL;
    }
    return both_judge(g, b);
}

/* Reads the mode in the xattr that an attempt has left. Returns false if there is none. */
static bool
read_own_mode(const struct migrating *g, unsigned child, uint32_t *mode)
{
    struct call_stack *stk = migrate_call(g, FOP_getxattr);
    const struct dict_pair *p = NULL;
    unsigned number = 0;

    if (stk) {
        stk->call.name = MIGRATE_MODE_KEY;
        stk->call.has_name = 1;
    }
    if (dist_call_at(g->o, child, stk) >= 0)
        p = dict_find_text(stk->reply.dict, MIGRATE_MODE_KEY);
    bool is = p && p->len > 1 && p->len < 16 && memchr(p->v.bytes, 0, p->len) &&
              sscanf((const char *)p->v.bytes, "%o", &number) == 1;
    *mode = number & 07777;
    if (stk)
        call_stack_free(stk);
    return is;
}

/* Learns the file's own mode: the bits in the xattr of an earlier attempt, and the mode without the mark. */
static void
learn_own_mode(struct migrating *g, const struct both *b)
{
    uint32_t kept;

    g->mode = b->source->reply.stat.mode & 07777;
    if (!b->has_mark)
        return;
    g->mode &= ~(uint32_t)MIGRATE_MARK;
    if (read_own_mode(g, g->m->from, &kept))
        g->mode |= kept & MIGRATE_MARK;
}

/* Returns whether the file's own mode looks like the mark. */
static bool
has_mark_of_its_own(const struct migrating *g)
{
    return (g->mode & MIGRATE_MARK) == MIGRATE_MARK;
}

static bool
has_posix_locks(const struct call_stack *stk)
{
    const struct dict_pair *p = dict_find(stk->reply.xdata, DICT_KEY_POSIXLK_COUNT);

    return p && (p->type == DICT_INT || p->type == DICT_UINT) && p->v.i != 0;
}

static const char *
reason_to_stay(const struct migrating *g, const struct both *b)
{
    if (b->source->reply.stat.nlink != g->names.count + 1)
        return "it has several names";
    if (has_posix_locks(b->source))
        return "an application has locked it";
    if (!space_has_room(g->o->d, g->m->to, b->source->reply.stat.blocks * 512))
        return "the other subvolume has too little space";
    return NULL;
}

/* ---- the mark -------------------------------------------------------------------------------- */

/* Waits until the writes of clients on a replicated S that began before the mark have ended, by the lock
 * that each of them holds: another client may have written one replica before the mark, and another one
 * after. */
static int
wait_for_writers(const struct migrating *g)
{
    const struct xlator *s = g->o->d->child[g->m->from].xl;

    if (strcmp(s->type->name, "cluster/replicate") != 0)
        return 0;
    struct dist_lock lock = {
        .child = g->m->from, .inode = g->m->file, .domain = s->name, .type = FLOCK_WRITE};
    int err = dist_locks_take(g->o, &lock, 1);

    if (!err)
        dist_locks_drop(g->o, &lock, 1);
    return err;
}

/* Adds the mark to the mode. The reply shows whether a client has changed the mode since the last look. */
static int
set_mark(struct migrating *g)
{
    uint32_t own = g->mode & MIGRATE_MARK, expected = g->mode;

    for (unsigned n = 0; n < MIGRATE_TRIES_MAX; n++) {
        struct iatt before = {0};
        int err = migrate_set_mode(g, g->m->from, g->mode | MIGRATE_MARK, &before);

        if (err || ((before.mode ^ expected) & 07777 & ~(uint32_t)MIGRATE_MARK) == 0)
            return err;
        expected = g->mode; /* S has this mode now, in the place of the client's */
        g->mode = (before.mode & 07777 & ~(uint32_t)MIGRATE_MARK) | own;
    }
    return -EBUSY;
}

static int
mark_source(struct migrating *g, bool has_veto)
{
    int err = has_veto ? migrate_remove_xattr(g, g->m->from, MIGRATE_VETO_KEY) : 0;

    err = err ? err : migrate_set_linkto(g, g->m->from, g->m->to, g->mode & MIGRATE_MARK ? &g->mode : NULL);

    if (!err && has_mark_of_its_own(g))
        err = migrate_set_linkto(g, g->m->to, g->m->from, &g->mode);
    err = err ? err : set_mark(g);
    err = err ? err : wait_for_writers(g);
    return err ? err : migrate_stat(g, g->m->from, &g->source);
}

static int
make_copy(const struct migrating *g, const struct both *b)
{
    const struct migration *m = g->m;

    if (!b->copy)
        return linkto_make(g->o, m->to, m->parent, m->name, &m->file->gfid, m->from, false);
    int err = migrate_set_done(g, false);

    if (!err && linkto_target(g->o->d, b->copy) != (int)m->from)
        err = migrate_set_linkto(g, m->to, m->from, NULL);
    return err || !b->copy->reply.stat.size ? err : migrate_truncate(g, m->to, 0);
}

/* Undoes the mark. Failures leave the state of a process that died, which the next walk handles. */
static void
unmark_source(const struct migrating *g, bool has_copy)
{
    struct iatt now;

    if (migrate_stat(g, g->m->from, &now) || (now.mode & MIGRATE_MARK) != MIGRATE_MARK)
        return;
    if (migrate_set_mode(g, g->m->from,
                         (now.mode & 07777 & ~(uint32_t)MIGRATE_MARK) | (g->mode & MIGRATE_MARK), NULL) ||
        migrate_remove_xattr(g, g->m->from, MIGRATE_LINKTO_KEY))
        return;
    if (g->mode & MIGRATE_MARK)
        (void)migrate_remove_xattr(g, g->m->from, MIGRATE_MODE_KEY);
    if (has_copy)
        (void)migrate_truncate(g, g->m->to, 0);
}

/* ---- the switch ------------------------------------------------------------------------------ */

static int
copy_attributes(struct migrating *g)
{
    return migrate_setattr(g, g->m->to, &g->source,
                           SETATTR_UID | SETATTR_GID | SETATTR_ATIME | SETATTR_MTIME, NULL);
}

/* Returns the mode of D as long as D has the xattr linkto. */
static uint32_t
mode_of_copy(const struct migrating *g, uint32_t mode)
{
    return has_mark_of_its_own(g) ? mode & ~(uint32_t)MIGRATE_MARK : mode;
}

/* Finds out whether the file is still there, and whether its copy lacks changes. */
static int
check_locks(const struct migrating *g)
{
    struct call_stack *stk = migrate_lookup_call(g, true);
    int ret = dist_call_at(g->o, g->m->from, stk), err = ret < 0 ? ret : 0;

    if (!err && !gfid_equal(&stk->reply.stat.gfid, &g->m->file->gfid))
        err = -ENOENT;
    if (!err && dict_find_text(stk->reply.xdata, MIGRATE_VETO_KEY))
        err = -EBUSY;
    if (!err && (g->m->stays = stk->reply.stat.nlink != g->names.count + 1 ? "it has several names"
                               : has_posix_locks(stk) ? "an application has locked it"
                                                      : NULL))
        err = -EAGAIN;
    if (stk)
        call_stack_free(stk);
    return err;
}

/* Makes D a file. */
static int
expose_copy(struct migrating *g)
{
    g->may_be_complete = true;
    int err = migrate_give_xattrs(g, g->list->reply.dict, true);

    return err ? err : migrate_set_mode(g, g->m->to, mode_of_copy(g, g->mode), NULL);
}

/* Step 6 once more, after a process has died in it. */
static int
expose_copy_again(struct migrating *g)
{
    int err = migrate_read_xattrs(g);

    return err ? err : expose_copy(g);
}

/* Step 6. */
static int
complete_copy(struct migrating *g)
{
    int err = migrate_stat(g, g->m->from, &g->source);

    if (!err && (g->source.mode & MIGRATE_MARK) != MIGRATE_MARK)
        err = -EBUSY; /* the mark was lost to a change of the mode: writes may have been missed */
    if (err)
        return err;
    g->mode = (g->source.mode & 07777 & ~(uint32_t)MIGRATE_MARK) | (g->mode & MIGRATE_MARK);
    err = copy_attributes(g);
    err = err ? err : migrate_copy_changed_xattrs(g);
    err = err ? err : migrate_set_done(g, true);
    return err ? err : expose_copy(g);
}

/* After a failure in step 6: returns 0 if D is complete, else the error. *may_undo: D is no file yet, on any
 * brick. */
static int
judge_copy(const struct migrating *g, int failure, bool *may_undo)
{
    struct iatt copy;
    int err = g->may_be_complete ? migrate_stat(g, g->m->to, &copy) : -ENOENT;

    bool is_linkto = !err && file_is_copied(&copy);

    *may_undo = !g->may_be_complete || (is_linkto && !migrate_has_replicas(g));
    return !err && !is_linkto ? 0 : failure;
}

/* Step 8. `at_switch`: attributes of S before the switch. */
static int
repair_copy(struct migrating *g, const struct iatt *at_switch)
{
    uint32_t mode = (at_switch->mode & 07777 & ~(uint32_t)MIGRATE_MARK) | (g->mode & MIGRATE_MARK);
    int err = g->list ? migrate_copy_changed_xattrs(g) : 0;

    if (!err && (at_switch->uid != g->source.uid || at_switch->gid != g->source.gid)) {
        g->source = *at_switch;
        err = copy_attributes(g);
        g->mode = ~mode; /* a change of the owner may have cleared bits */
    }
    if (!err && mode != g->mode)
        err = migrate_set_mode(g, g->m->to, mode_of_copy(g, mode), NULL);
    g->mode = mode;
    return err;
}

/* Step 9 on D. */
static int
release_copy(const struct migrating *g)
{
    int err = migrate_has_replicas(g) ? migrate_remove_xattr(g, g->m->to, MIGRATE_DONE_KEY) : 0;

    err = err ? err : migrate_remove_xattr(g, g->m->to, MIGRATE_LINKTO_KEY);
    if (err || !has_mark_of_its_own(g))
        return err;
    err = migrate_set_mode(g, g->m->to, g->mode, NULL);
    return err ? err : migrate_remove_xattr(g, g->m->to, MIGRATE_MODE_KEY);
}

static int
remove_source(const struct migrating *g)
{
    int err = migrate_truncate(g, g->m->from, 0);
    struct call_stack *stk = migrate_name_call(g, FOP_unlink);

    if (err && err != -ENOENT && err != -ESTALE)
        log_event(LOG_WARNING, g->o->d->xl, "migrate-truncate", "%s on %s: %s", GFID(&g->m->file->gfid),
                  g->o->d->child[g->m->from].xl->name, strerror(-err));
    err = migrate_at(g, g->m->from, dist_call_put_int(stk, DICT_KEY_UNLINK_ONLY_LINKTO, 1));
    return err == -ENOENT || err == -ESTALE ? 0 : err; /* a lookup of a client may have removed it */
}

/* Returns whether the name on S is gone: a client has removed the file. */
static bool
is_removed(const struct migrating *g)
{
    int err = migrate_at(g, g->m->from, migrate_lookup_call(g, true));

    return err == -ENOENT || err == -ESTALE;
}

/* Step 7. Sets *before to the attributes of S before the switch. */
static int
switch_source(const struct migrating *g, struct iatt *before)
{
    struct call_stack *stk = dist_call_put_int(migrate_call(g, FOP_setattr), DICT_KEY_INTERNAL_CTX, 1);
    int ret = stk ? dict_set_text_int(stk->call.xdata, MIGRATE_VETO_KEY, 0) : -ENOMEM;

    if (!ret) {
        stk->call.stbuf.mode = LINKTO_MODE;
        stk->call.valid = SETATTR_MODE;
        ret = dist_call_at(g->o, g->m->from, stk);
    }
    bool is_missing_changes = false;
    if (ret >= 0) {
        *before = stk->reply.pre;
        is_missing_changes = (before->mode & MIGRATE_MARK) != MIGRATE_MARK ||
                             dict_find_text(stk->reply.xdata, MIGRATE_VETO_KEY);
    }
    if (stk)
        call_stack_free(stk);
    if (!is_missing_changes)
        return ret < 0 ? ret : 0;
    int err = migrate_set_mode(g, g->m->from, before->mode & 07777, NULL);
    err = err ? err : migrate_set_done(g, false);
    err = err ? err : migrate_set_mode(g, g->m->to, S_ISVTX, NULL);
    return err ? err : -EBUSY;
}

/* Steps 7 to 9. */
static int
switch_to_copy(struct migrating *g)
{
    struct iatt before = {0};
    int err = switch_source(g, &before);

    if ((err == -ENOENT || err == -ESTALE) && is_removed(g)) {
        (void)migrate_at(g, g->m->to, migrate_name_call(g, FOP_unlink));
        return -ENOENT;
    }
    if (err)
        return err;
    (void)place_set(g->o->d, g->m->file, (int)g->m->to);
    err = repair_copy(g, &before);
    err = err ? err : release_copy(g);
    if (!err)
        migrate_names_switch(g->o, g->m, &g->names);
    err = err ? err : remove_source(g);
    if (!err) /* removes the mark of clients' writes */
        (void)migrate_at(g, g->m->to, migrate_lookup_call(g, false));
    return err;
}

/* ---- an attempt with another target ---------------------------------------------------------- */

/* Ends an attempt to migrate the file to `other`, which was the hashed subvolume then. Returns 0: the file
 * is on S, without a mark; -ENOENT: the attempt had completed the copy, and the file is there now. */
static int
end_other_attempt(struct migrating *g, unsigned other)
{
    unsigned to = g->m->to;
    struct both b = {0};

    g->m->to = other;
    int err = lookup_source_and_copy(g, &b);
    if (!err || err == -EEXIST) {
        learn_own_mode(g, &b);
        g->source = b.source->reply.stat;
    }
    if (!err && (b.is_complete || b.is_done)) {
        err = b.is_done ? expose_copy_again(g) : 0;
        err = err ? err : switch_to_copy(g);
        err = err ? err : -ENOENT;
    } else if (!err || err == -EEXIST) {
        bool has_copy = !err && b.copy;

        unmark_source(g, has_copy);
        err = has_copy ? linkto_remove(g->o, other, g->m->parent, g->m->name, true) : 0;
        err = err == -ENOENT || err == -EBUSY ? 0 : err;
    }
    g->m->to = to;
    both_end(&b);
    return err;
}

/* ---- the whole migration --------------------------------------------------------------------- */

/* Steps 3 to 6. */
static int
migrate_copy(struct migrating *g, const struct both *b)
{
    int err = make_copy(g, b);

    err = err ? err : migrate_names_check(g->o, g->m, &g->names);
    err = err ? err : migrate_names_make(g->o, g->m, &g->names);
    err = err ? err : migrate_open(g);
    err = err ? err : mark_source(g, dict_find_text(b->source->reply.xdata, MIGRATE_VETO_KEY));
    err = err ? err : migrate_copy_data(g);
    err = err ? err : migrate_copy_size(g);
    err = err ? err : migrate_copy_xattrs(g);
    err = err ? err : migrate_at(g, g->m->to, migrate_fd_call(g, FOP_fsync));
    err = err ? err : check_locks(g);
    return err ? err : complete_copy(g);
}

static int
migrate_locked(struct migrating *g)
{
    struct both b = {0};
    int err = lookup_source_and_copy(g, &b);

    if (!err && b.other >= 0) {
        err = end_other_attempt(g, (unsigned)b.other);
        both_end(&b);
        err = err ? err : lookup_source_and_copy(g, &b);
    }
    if (!err) {
        learn_own_mode(g, &b);
        g->source = b.source->reply.stat;
    }
    if (!err && b.is_done)
        err = expose_copy_again(g);
    bool is_there = b.is_complete || b.is_done;
    if (!err && !is_there && (g->m->stays = reason_to_stay(g, &b)))
        err = -EAGAIN;
    if (!err && !is_there) {
        bool may_undo = false;

        err = migrate_copy(g, &b);
        if (err)
            err = judge_copy(g, err, &may_undo);
        if (err && may_undo)
            unmark_source(g, true);
    }
    if (!err && (err = switch_to_copy(g)) == -EBUSY)
        unmark_source(g, true);
    both_end(&b);
    return err;
}

/* Runs `fn` with the locks of step 1. */
static int
migrate_with_locks(const struct op *o, struct migration *m, int (*fn)(struct migrating *g))
{
    struct migrating g = {.m = m, .o = o};
    struct dist_lock lock[3 + 2 * MIGRATE_NAMES_MAX] = {
        {.child = m->from, .inode = m->file, .domain = DOMAIN_MIGRATE, .type = FLOCK_WRITE}};
    unsigned count = 1 + dist_locks_namespace(&lock[1], m->to, m->parent, m->name);
    int err = m->moves_links ? migrate_names_find(o, m, &g.names) : 0;

    count += migrate_names_locks(&g.names, &lock[count]);
    err = err ? err : dist_locks_take_parts(o, lock, 1, count);
    if (err) {
        migrate_names_end(&g.names);
        return err;
    }
    err = fn(&g);
    if (g.list)
        call_stack_free(g.list);
    fd_unref(g.fd);
    dist_locks_drop(o, lock, count);
    migrate_names_end(&g.names);
    return err;
}

int
migrate_file(const struct op *o, struct migration *m)
{
    return migrate_with_locks(o, m, migrate_locked);
}

/* ---- remains on the hashed subvolume --------------------------------------------------------- */

/* Returns whether `other` may have the file, marked for a copy here: then S is there, and the switch is still
 * to be made. */
static bool
is_copy_of(const struct migrating *g, unsigned other)
{
    struct call_stack *stk = migrate_lookup_call(g, true);
    int ret = dist_call_at(g->o, other, stk);
    bool is = ret < 0 ? ret != -ENOENT && ret != -ESTALE : !reply_is_linkto(stk);

    if (stk)
        call_stack_free(stk);
    return is;
}

/* The walk has found the file on its hashed subvolume m->from, with remains. */
static int
settle_found(struct migrating *g, const struct call_stack *stk)
{
    int target = linkto_target(g->o->d, stk), err = 0;
    uint32_t mode;

    if (target == (int)g->m->from)
        target = -1;
    if (target >= 0 && (stk->reply.stat.mode & MIGRATE_MARK) == MIGRATE_MARK)
        return end_other_attempt(g, (unsigned)target);
    if (target >= 0 && is_copy_of(g, (unsigned)target))
        return 0;
    if (is_marked_reply(stk)) /* for a child that the volume has no more */
        err = migrate_set_mode(g, g->m->from, stk->reply.stat.mode & 07777 & ~(uint32_t)MIGRATE_MARK, NULL);
    if (!err && dict_has(stk->reply.xdata, DICT_KEY_DHT_LINKTO)) {
        err = migrate_remove_xattr(g, g->m->from, MIGRATE_DONE_KEY);
        err = err ? err : migrate_remove_xattr(g, g->m->from, MIGRATE_LINKTO_KEY);
    }
    if (!err && read_own_mode(g, g->m->from, &mode)) {
        err = migrate_set_mode(g, g->m->from, mode, NULL);
        err = err ? err : migrate_remove_xattr(g, g->m->from, MIGRATE_MODE_KEY);
    }
    return err;
}

static int
migrate_settle_locked(struct migrating *g)
{
    struct call_stack *stk = migrate_lookup_call(g, true);
    int ret = dist_call_at(g->o, g->m->from, stk), err = ret < 0 ? ret : 0;

    if (!err && gfid_equal(&stk->reply.stat.gfid, &g->m->file->gfid) && !reply_is_linkto(stk))
        err = settle_found(g, stk);
    if (stk)
        call_stack_free(stk);
    return err;
}

int
migrate_settle(const struct op *o, struct migration *m)
{
    return migrate_with_locks(o, m, migrate_settle_locked);
}

/* ---- symbolic links and devices -------------------------------------------------------------- */

static struct call_stack *
special_call(const struct migrating *g, const char *text)
{
    const struct iatt *a = &g->source;
    struct call_stack *stk = migrate_name_call(g, S_ISLNK(a->mode) ? FOP_symlink : FOP_mknod);

    if (stk && S_ISLNK(a->mode))
        stk->call.name2 = text;
    else if (stk) {
        stk->call.mode = a->mode;
        stk->call.rdev = a->rdev;
    }
    return dist_call_put_gfid(stk, DICT_KEY_GFID_REQ, &a->gfid);
}

/* Replaces the linkto file on D. In between lookups look on all subvolumes, as the layout demands. */
static int
make_special(const struct migrating *g, bool has_linkto)
{
    struct call_stack *link = S_ISLNK(g->source.mode) ? migrate_call(g, FOP_readlink) : NULL;
    const char *text = NULL;
    int err = 0;

    if (S_ISLNK(g->source.mode)) {
        if (link)
            link->call.size = FOP_LINKNAME_MAX + 1;
        int ret = dist_call_at(g->o, g->m->from, link);

        err = ret < 0 ? ret : 0;
        text = err ? NULL : link->reply.path;
    }
    if (!err && has_linkto)
        err = linkto_remove(g->o, g->m->to, g->m->parent, g->m->name, false);
    if (!err)
        err = migrate_at(g, g->m->to, special_call(g, text));
    if (link)
        call_stack_free(link);
    return err;
}

static int
move_special(struct migrating *g, const struct both *b)
{
    int32_t valid = SETATTR_UID | SETATTR_GID | SETATTR_ATIME | SETATTR_MTIME |
                    (S_ISLNK(g->source.mode) ? 0 : SETATTR_MODE);
    bool has_linkto = b->copy && reply_is_linkto(b->copy);
    int err = b->copy && !has_linkto ? 0 : make_special(g, has_linkto);

    err = err ? err : migrate_copy_xattrs(g);
    err = err ? err : migrate_setattr(g, g->m->to, &g->source, valid, NULL);
    if (!err)
        (void)place_set(g->o->d, g->m->file, (int)g->m->to);
    err = err ? err : migrate_at(g, g->m->from, migrate_name_call(g, FOP_unlink));
    return err == -ESTALE ? -ENOENT : err;
}

static int
migrate_special_locked(struct migrating *g)
{
    struct both b = {0};
    int err = lookup_source_and_copy(g, &b);

    if (err == -EEXIST && b.copy && gfid_equal(&b.copy->reply.stat.gfid, &b.source->reply.stat.gfid) &&
        !((b.copy->reply.stat.mode ^ b.source->reply.stat.mode) & S_IFMT))
        err = 0; /* an earlier attempt has made it */
    if (!err && b.source->reply.stat.nlink > 1) {
        g->m->stays = "it has several names";
        err = -EAGAIN;
    }
    if (!err) {
        g->source = b.source->reply.stat;
        err = move_special(g, &b);
    }
    both_end(&b);
    return err;
}

int
migrate_special(const struct op *o, struct migration *m)
{
    return migrate_with_locks(o, m, migrate_special_locked);
}
