/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Split-brain: each copy of an object is accused by another one (pending xattrs), so no copy is known to be
 * good. Reads and changes of the object get EIO. Two ways out:
 *
 *   the volume     favorite-child-policy: sizes or times decide which copy wins. A client that accesses
 *                  such an object subtracts, under the lock of the kind, the other copies' counters about
 *                  the winner (XATTROP). The winner is then accused by no copy, and is read; the other
 *                  copies stay accused, for a heal. A tie has no winner
 *   the user       by xattrs, on any mount:
 *
 *      getfattr -n replica.split-brain-status F             prints the kinds, and the children of the set
 *      setfattr -n replica.split-brain-choice -v CHILD F    this mount reads F from that child, for
 *                                                           replica.split-brain-choice-timeout minutes (5);
 *                                                           none: ends the choice. Nothing is written to F
 *      setfattr -n replica.split-brain-heal-finalize -v CHILD F   heals F from that child, at once
 *
 * The names and texts are those of stock (whose own finalize, tested on 10.3 with the self-heal options
 * off, returns 0 and heals nothing). A choice is valid for this mount only. It takes no lock, and a heal
 * from the chosen child is an ordinary heal (heal.h). The kernel keeps cached attributes and data of the
 * object for up to --attribute-timeout. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "xlators/cluster/replicate/heal.h"

#define STATUS "replica.split-brain-status"
#define CHOICE "replica.split-brain-choice"
#define TIMEOUT "replica.split-brain-choice-timeout"
#define FINALIZE "replica.split-brain-heal-finalize"
#define HEAL_INFO "glusterfs.heal-info" /* the heal tool's own client handles these two, a mount does not */
#define HEAL_SPLIT "glusterfs.heal-sbrain"
#define METADATA_START ((uint64_t)INT64_MAX - 1)

enum { MINUTES_MAX = 24 * 60 };

/* ---- choosing a winner ----------------------------------------------------------------------- */

static int
compare_timestamps(int64_t a, uint32_t a_nsec, int64_t b, uint32_t b_nsec)
{
    if (a != b)
        return a > b ? 1 : -1;
    return (a_nsec > b_nsec) - (a_nsec < b_nsec);
}

static int
compare_by_policy(const struct iatt *a, const struct iatt *b, enum favorite policy)
{
    switch (policy) {
    case FAVORITE_SIZE:
        return (a->size > b->size) - (a->size < b->size);
    case FAVORITE_CTIME:
        return compare_timestamps(a->ctime, a->ctime_nsec, b->ctime, b->ctime_nsec);
    case FAVORITE_MTIME:
        return compare_timestamps(a->mtime, a->mtime_nsec, b->mtime, b->mtime_nsec);
    case FAVORITE_NONE:
    case FAVORITE_MAJORITY:
        break;
    }
    return 0;
}

/* Returns the child whose value is greater than the value of every other child, or -1. */
static int
greatest_copy(const struct iatt *stat, child_set set, enum favorite policy)
{
    int best = -1;
    bool is_tie = false;

    for_each_child (i, set) {
        int by = best < 0 ? 1 : compare_by_policy(&stat[i], &stat[best], policy);

        is_tie = by == 0 || (is_tie && by < 0);
        best = by > 0 ? (int)i : best;
    }
    return is_tie ? -1 : best;
}

static int
majority_copy(const struct iatt *stat, child_set set, unsigned count)
{
    for_each_child (i, set) {
        unsigned same = 0;

        for_each_child (k, set)
            same += stat[k].size == stat[i].size && !compare_by_policy(&stat[k], &stat[i], FAVORITE_MTIME);
        if (2 * same > count)
            return (int)i;
    }
    return -1;
}

int
split_favorite(const struct replicate *r, const struct iatt *stat, child_set set)
{
    const struct replicate_conf *conf = xlator_conf(r->xl);

    if (r->arbiter >= 0)
        set &= ~CHILD(r->arbiter); /* the arbiter does not know the size */
    if (conf->favorite == FAVORITE_MAJORITY)
        return majority_copy(stat, set, r->count);
    return conf->favorite == FAVORITE_NONE ? -1 : greatest_copy(stat, set, (enum favorite)conf->favorite);
}

/* Clears all accusations of child `winner`. */
static int
clear_accusations(struct heal *h, enum change what, unsigned winner)
{
    struct replicate *r = h->op.r;
    struct fan f;

    fan_begin(&f);
    for_each_child (i, r->all) {
        struct changelog each[REPLICAS_MAX] = {0};
        struct marks m = {.inode = h->op.inode, .each = each};

        each[winner].count[what] = 0u - h->replica[i].about[winner].count[what];
        if (each[winner].count[what])
            fan_wind(&f, &h->op, i, marks_call(&h->op, i, &m));
    }
    fan_wait(&f);
    int err = f.good == f.sent ? 0 : -fan_errno(&f);
    fan_end(&f);
    return err;
}

static void
apply_policy(struct heal *h, enum change what)
{
    struct lock_entity e = {.inode = h->op.inode, .start = what == CHANGE_DATA ? 0 : METADATA_START};

    if (heal_lock(h, &e))
        return;
    if (!heal_look(h, what) && !h->way.sources) {
        int winner = split_favorite(h->op.r, h->stat, h->op.r->all);

        if (winner >= 0)
            (void)clear_accusations(h, what, (unsigned)winner); /* on failure the next access tries again */
    }
    heal_unlock(h, &e);
}

bool
split_ask_policy(struct replicate *r, struct inode *inode, const struct view *v)
{
    const struct replicate_conf *conf = xlator_conf(r->xl);
    struct heal h;

    if (conf->favorite == FAVORITE_NONE || (v->data && v->metadata) || atomic_load(&r->up) != r->all)
        return false;
    heal_begin(&h, r, inode);
    if (!v->data && S_ISREG(inode->type))
        apply_policy(&h, CHANGE_DATA);
    if (!v->metadata)
        apply_policy(&h, CHANGE_METADATA);
    heal_end(&h);
    return true;
}

/* ---- the user's choice ----------------------------------------------------------------------- */

static uint64_t
monotonic_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec;
}

int
split_choice(struct replicate *r, struct inode *inode)
{
    struct repl_inode *ri = inode_ctx(inode, r->xl);
    uint64_t choice = ri ? atomic_load(&ri->choice) : 0;

    return choice && choice >> 8 > monotonic_s() ? (int)(choice & 0xff) : -1;
}

/* Copies the value as text. Returns false if the value is no text of a suitable length. */
static bool
copy_text_value(const struct dict_pair *p, char *out, size_t size)
{
    bool has_bytes = p->type == DICT_PTR || p->type == DICT_STR || p->type == DICT_UNTYPED;
    size_t len = has_bytes ? strnlen(p->v.bytes, p->len) : 0;

    if (!len || len >= size)
        return false;
    memcpy(out, p->v.bytes, len);
    out[len] = '\0';
    return true;
}

static int
child_named(const struct replicate *r, const char *name)
{
    for (unsigned i = 0; i < r->count; i++) {
        if (strcmp(r->xl->children[i]->name, name) == 0)
            return (int)i;
    }
    return -1;
}

static bool
is_in_split_brain(const struct op *op, const struct view *v)
{
    return !v->metadata || (!v->data && S_ISREG(op->inode->type));
}

static int
set_choice(struct op *op, const char *value)
{
    struct replicate *r = op->r;
    struct repl_inode *ri = repl_inode(r, op->inode);
    struct view v;
    int child = child_named(r, value), err = ri ? view_of(op, op->inode, &v) : -ENOMEM;

    if (err)
        return err;
    if (!is_in_split_brain(op, &v) || (child < 0 && strcmp(value, "none") != 0) ||
        (child >= 0 && child == r->arbiter))
        return -EINVAL;
    uint64_t until = monotonic_s() + 60 * (uint64_t)atomic_load(&r->choice_minutes);

    atomic_store(&ri->choice, child < 0 ? 0 : until << 8 | (uint64_t)child);
    /* the kernel has pages of the copy that was read before */
    xlator_tell_invalidated(r->xl, &op->inode->gfid, INVALIDATED_CONTENTS);
    return 0;
}

static int
set_timeout(struct op *op, const char *value)
{
    char *end;
    unsigned long minutes = strtoul(value, &end, 10);

    if (*end || end == value || minutes > MINUTES_MAX)
        return -EINVAL;
    atomic_store(&op->r->choice_minutes, (unsigned)minutes);
    return 0;
}

static int
heal_from_choice(struct op *op, const char *value)
{
    struct replicate *r = op->r;
    struct repl_inode *ri = repl_inode(r, op->inode);
    int child = child_named(r, value), err = 0;
    struct heal h;

    if (child < 0 || child == r->arbiter)
        return -EINVAL;
    heal_begin(&h, r, op->inode);
    h.has_chosen = true;
    h.chosen = (unsigned)child;
    if (S_ISREG(op->inode->type))
        err = heal_data(&h);
    if (!err)
        err = heal_metadata(&h);
    heal_end(&h);
    if (!err && ri)
        atomic_store(&ri->choice, 0);
    return err;
}

bool
split_set(struct op *op)
{
    static const struct {
        const char *name;
        int (*set)(struct op *op, const char *value);
    } names[] = {{CHOICE, set_choice}, {TIMEOUT, set_timeout}, {FINALIZE, heal_from_choice}};
    const struct dict *d = op->fop == FOP_setxattr ? op->stk->call.dict : NULL;
    char value[256];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct dict_pair *p = dict_find_text(d, names[i].name);

        if (!p)
            continue;
        int err = copy_text_value(p, value, sizeof value) ? names[i].set(op, value) : -EINVAL;

        if (err)
            op_fail(op, err);
        else
            op_reply(op);
        return true;
    }
    return false;
}

/* ---- status for the user --------------------------------------------------------------------- */

static int
status_text(struct op *op, char *out, size_t size)
{
    struct replicate *r = op->r;
    const char *comma = "";
    struct view v;
    int err = view_of(op, op->inode, &v);

    if (err)
        return err;
    if (!is_in_split_brain(op, &v)) {
        snprintf(out, size, "The file is not under data or metadata split-brain");
        return 0;
    }
    bool is_data = !v.data && S_ISREG(op->inode->type);
    int at = snprintf(out, size, "data-split-brain:%s    metadata-split-brain:%s    Choices:",
                      is_data ? "yes" : "no", v.metadata ? "no" : "yes");

    for_each_child (i, atomic_load(&r->up)) {
        if ((int)i == r->arbiter || at < 0 || (size_t)at >= size)
            continue;
        at += snprintf(out + at, size - (size_t)at, "%s%s", comma, r->xl->children[i]->name);
        comma = ",";
    }
    return at < 0 || (size_t)at >= size ? -ERANGE : 0;
}

bool
split_get(struct op *op)
{
    char text[4096];

    const char *name = op->stk->call.name;

    if (name && (strcmp(name, HEAL_INFO) == 0 || strcmp(name, HEAL_SPLIT) == 0)) {
        op_fail(op, -ENODATA);
        return true;
    }
    if (!name || strcmp(name, STATUS) != 0)
        return false;
    int err = status_text(op, text, sizeof text);
    struct dict *d = err ? NULL : dict_new(&op->stk->arena);

    if (!err)
        err = d ? dict_set_text(d, STATUS, DICT_STR, text, (uint32_t)strlen(text) + 1) : -ENOMEM;
    op->stk->reply.dict = d;
    if (err)
        op_fail(op, err);
    else
        op_reply(op);
    return true;
}
