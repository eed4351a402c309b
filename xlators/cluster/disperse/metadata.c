/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Attributes and extended attributes. Each child has the whole of them, so changes go to all good children
 * and most reads to one; but the size is only in trusted.ec.size, which the hold knows, and the times of a
 * file are the latest of all fragments. Applications neither see nor change trusted.ec.*; trusted.ec.heal is
 * no xattr: to read it heals the object.
 *
 * A change marks the children's dirty counter only if a child is missing or behind (hold.c). A mount that
 * dies in a change with all children present leaves attributes that differ: LOOKUP and STAT then answer
 * from the larger group, until the next mount or healer has compared the object (dead-objects.c). */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xlators/cluster/disperse/heal.h"

static bool
is_ec_key(const char *name)
{
    return name && strncmp(name, "trusted.ec.", 11) == 0;
}

static bool
has_ec_key(const struct dict *d)
{
    dict_for_each (p, d) {
        if (is_ec_key(p->key))
            return true;
    }
    return false;
}

/* ---- STAT ------------------------------------------------------------------------------------ */

void
ec_stat_go(struct ec_op *op)
{
    struct ec_user u = {.end = UINT64_MAX, .is_shared = true};
    int err = ec_join(op, op->inode, &u, NEEDS_INFO), ret;
    struct fan f;

    if (err) {
        ec_fail(op, err);
        return;
    }
    struct ec_hold *h = ec_hold_of(op->d, op->inode);
    err = ec_ask(&f, op, ec_good(h), ec_fork, NULL);
    if (!err) {
        child_set good = answers_judge(op, &f, true, &ret);

        err = ret < 0 ? ret : answers_take(op, &f, good);
        if (good)
            ec_blame(h, f.sent & ~f.unread & ~good);
        fan_end(&f);
    }
    iatt_set_size(&op->stk->reply.stat, ec_size(h));
    ec_finish(op, err);
    ec_leave(op, op->inode, &u);
}

/* ---- limits of folders ----------------------------------------------------------------------- */

/* A brick counts fragments, so it gets 1/K of a limit or usage that an application sets. The application
 * reads K times the brick's value. A copy of the xattr through this mount, which is how distribute heals
 * folders, therefore keeps the limit. Stock divides the limit, but not the usage, and answers the divided
 * limit. */
static const char *const usage_keys[] = {"trusted.gfs.squota.limit", "trusted.gfs.squota.size",
                                         "glusterfs.quota.total-usage"};

/* Multiplies or divides the decimal number of the pair. Other texts stay: they are no limit. */
static int
scale_usage(struct dict *d, const struct dict_pair *p, unsigned times, unsigned by)
{
    char text[32] = "", *end;

    if ((p->type != DICT_STR && p->type != DICT_PTR && p->type != DICT_UNTYPED) || p->len >= sizeof text)
        return 0;
    memcpy(text, p->v.bytes, p->len);
    long long n = strtoll(text, &end, 10);
    if (end == text || end[strspn(end, " \n")] != '\0' || n <= 0 || n > LLONG_MAX / times)
        return 0;
    n = n * times / by;
    int len = snprintf(text, sizeof text, "%lld", n ? n : 1);

    return dict_set_text(d, p->key, p->type, text, (uint32_t)len + (p->type == DICT_STR));
}

enum { USAGE_KEYS = sizeof usage_keys / sizeof usage_keys[0] };

static bool
has_usage(const struct dict *d)
{
    bool has = false;

    for (size_t k = 0; k < USAGE_KEYS && !has; k++)
        has = dict_find_text(d, usage_keys[k]);
    return has;
}

static int
scale_usages(struct dict *d, unsigned times, unsigned by)
{
    int err = 0;

    for (size_t k = 0; k < USAGE_KEYS && !err; k++) {
        const struct dict_pair *p = dict_find_text(d, usage_keys[k]);

        err = p ? scale_usage(d, p, times, by) : 0;
    }
    return err;
}

/* ---- operations that one child answers ------------------------------------------------------- */

/* Returns whether the next child may know more. */
static bool
is_childs_own_failure(int ret)
{
    return ret == -ENOTCONN || ret == -ESTALE || ret == -ENOENT || ret == -EBADFD || ret == -EIO;
}

static int
ask_one(struct ec_op *op, child_set left)
{
    unsigned first = read_first_child(op->d, op->inode);
    int ret = -ENOTCONN;

    for (unsigned n = 0; n < op->d->count; n++) {
        unsigned i = (first + n) % op->d->count;

        if (!(left & CHILD(i)))
            continue;
        ret = ec_call_child(op, i);
        if (!is_childs_own_failure(ret))
            break;
    }
    return ret;
}

void
ec_one_go(struct ec_op *op)
{
    struct ec_user u = {.end = UINT64_MAX, .is_shared = true};
    int err = ec_join(op, op->inode, &u, NEEDS_INFO);

    if (err) {
        ec_fail(op, err);
        return;
    }
    struct ec_hold *h = ec_hold_of(op->d, op->inode);
    err = ask_one(op, ec_good(h));
    if (err >= 0) {
        int short_of_memory = scale_usages(op->stk->reply.dict, op->d->data, 1);

        err = short_of_memory ? short_of_memory : err;
        dict_hide_ec(op->stk->reply.dict);
        iatt_set_size(&op->stk->reply.stat, ec_size(h));
        iatt_set_size(&op->stk->reply.pre, ec_size(h));
        iatt_set_size(&op->stk->reply.post, ec_size(h));
    }
    ec_finish(op, err);
    ec_leave(op, op->inode, &u);
}

/* ---- xattrs ---------------------------------------------------------------------------------- */

static void
ec_pathinfo_go(struct ec_op *op)
{
    struct fan f;
    int err = ec_ask(&f, op, atomic_load(&op->d->up), ec_fork, NULL);

    if (!err) {
        err = f.good ? fan_join_places(&f, op->stk, op->d->xl, "EC") : -ENOTCONN;
        fan_end(&f);
    }
    ec_finish(op, err);
}

/* Names that each child must act on; the first success is the answer. */
static void
clear_locks_go(struct ec_op *op)
{
    struct fan f;
    int ret, err = ec_ask(&f, op, atomic_load(&op->d->up), ec_fork, NULL);

    if (!err) {
        (void)answers_winner(&f, false, &ret);
        err = f.good ? fan_copy_reply(&f, child_first(f.good), op->stk) : ret;
        fan_end(&f);
    }
    ec_finish(op, err);
}

/* ---- heal on request ------------------------------------------------------------------------- */

/* Returns the children whose counters are those of most children. */
static child_set
whole_children(const struct ec_heal *h)
{
    child_set best = 0;

    for_each_child (i, h->has) {
        child_set same = 0;

        for_each_child (k, h->has)
            same |= memcmp(h->copy[k].version, h->copy[i].version, sizeof h->copy[k].version) == 0 &&
                            h->copy[k].size == h->copy[i].size
                        ? CHILD(k)
                        : 0;
        best = children_count(same) > children_count(best) ? same : best;
    }
    return best;
}

/* Writes a digit for each child, the first child's as the last. */
static void
print_children(const struct disperse *d, child_set which, char out[FAN_CHILDREN_MAX + 1])
{
    for (unsigned i = 0; i < d->count; i++)
        out[d->count - 1 - i] = which & CHILD(i) ? '1' : '0';
    out[d->count] = '\0';
}

/* Fills in the reply. Returns 0 or -errno. */
static int
tell_whole_children(struct ec_op *op)
{
    char good[FAN_CHILDREN_MAX + 1], bad[FAN_CHILDREN_MAX + 1], text[2 * FAN_CHILDREN_MAX + 32];
    struct call_stack *stk = op->stk;
    struct ec_heal h;

    ec_heal_begin(&h, op->d, op->inode);
    int err = ec_heal_see(&h);
    child_set whole = whole_children(&h);

    print_children(op->d, whole, good);
    print_children(op->d, h.on & ~whole, bad);
    ec_heal_end(&h);
    if (err)
        return err;
    int len = snprintf(text, sizeof text, "Good: %s, Bad: %s", good, bad);
    stk->reply.dict = dict_new(&stk->arena);
    return stk->reply.dict ? dict_set_text(stk->reply.dict, stk->call.name, DICT_STR, text, (uint32_t)len + 1)
                           : -ENOMEM;
}

enum { HEAL_TRIES = 50, HEAL_PAUSE_MS = 100 };

/* A program heals an object by reading an xattr, as with stock's clients: heals it now, when no other healer
 * is at work on it, and answers which bricks then have it. */
static void
heal_now_go(struct ec_op *op)
{
    bool was_whole;
    int err = -EAGAIN;

    for (int i = 0; i < HEAL_TRIES && err == -EAGAIN && !atomic_load(&op->d->is_stopping); i++) {
        if (i)
            coro_pause(HEAL_PAUSE_MS);
        err = ec_heal_object(op->d, op->inode, HEAL_FOR_CALL, &was_whole);
    }
    ec_finish(op, err ? err : tell_whole_children(op));
}

void
ec_getxattr_go(struct ec_op *op)
{
    const char *name = op->stk->call.name;

    if (name && strcmp(name, "trusted.ec.heal") == 0)
        heal_now_go(op);
    else if (is_ec_key(name))
        ec_fail(op, -ENODATA);
    else if (name && strcmp(name, "trusted.glusterfs.lockinfo") == 0)
        ec_fail(op, -EOPNOTSUPP); /* locks do not move to another graph */
    else if (name && (strcmp(name, "trusted.glusterfs.pathinfo") == 0 ||
                      strcmp(name, "glusterfs.pathinfo") == 0))
        ec_pathinfo_go(op);
    else if (name &&
             (strncmp(name, "glusterfs.clrlk", 15) == 0 || strncmp(name, "glusterfs.intrlk", 16) == 0))
        clear_locks_go(op);
    else
        ec_one_go(op);
}

/* ---- changes --------------------------------------------------------------------------------- */

/* A fork with a part of the limit or usage that the caller sets. */
static struct call_stack *
fork_change(const struct ec_op *op, unsigned i, bool is_spare, const void *unused)
{
    struct call_stack *stk = ec_fork_held(op, i, is_spare, unused);
    int err = 0;

    if (!stk || !has_usage(stk->call.dict))
        return stk;
    stk->call.dict = dict_dup(stk->call.dict, &stk->arena, &err);
    if (!err)
        err = scale_usages(stk->call.dict, 1, op->d->data);
    if (!err)
        return stk;
    call_stack_free(stk);
    return NULL;
}

void
ec_setattr_go(struct ec_op *op)
{
    struct ec_user u = {.end = UINT64_MAX};
    struct fan f;
    int ret;

    if (has_ec_key(op->stk->call.dict)) {
        ec_fail(op, -EPERM);
        return;
    }
    if (op->file)
        ec_fd_complete(op);
    int err = ec_join(op, op->inode, &u, NEEDS_INFO | COUNTS_METADATA);
    if (err) {
        ec_fail(op, err);
        return;
    }
    struct ec_hold *h = ec_hold_of(op->d, op->inode);
    err = ec_ask(&f, op, ec_good(h), fork_change, NULL);
    if (!err) {
        child_set good = answers_judge_change(op, &f, true, &ret);

        if (answers_show_waiter(&f, good))
            ec_hurry(h);
        err = ret < 0 ? ret : answers_take(op, &f, good);
        ec_record(op, op->inode, COUNTS_METADATA, f.sent & ~f.unread, good, ret >= 0);
        fan_end(&f);
    }
    iatt_set_size(&op->stk->reply.pre, ec_size(h));
    iatt_set_size(&op->stk->reply.post, ec_size(h));
    ec_finish(op, err);
    ec_leave(op, op->inode, &u);
}

void
ec_setxattr_go(struct ec_op *op)
{
    if (is_ec_key(op->stk->call.name))
        ec_fail(op, -EPERM);
    else if (dict_find_text(op->stk->call.dict, "trusted.glusterfs.lockinfo"))
        ec_fail(op, -EOPNOTSUPP);
    else
        ec_setattr_go(op);
}
