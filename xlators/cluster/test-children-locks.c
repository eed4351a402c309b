/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Locks of bricks in memory: INODELK and ENTRYLK with ranges, domains and owners, as features/locks has
 * them. A call that cannot have its lock either fails or waits in the list. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xlators/cluster/test-children-internal.h"

#define METADATA_START ((uint64_t)INT64_MAX - 1)

struct stored_lock {
    struct cds_list_head link;
    unsigned child;
    bool is_entry, is_all_names, is_shared; /* is_shared: a read lock */
    uint64_t start, end;                    /* `end` excluded */
    struct gfid gfid;
    char domain[STORED_TEXT_MAX], name[STORED_TEXT_MAX];
    uint64_t owner;
    struct call_stack *waiting; /* NULL: the lock is held */
};
static CDS_LIST_HEAD(locks);

static bool
locks_conflict(const struct stored_lock *a, const struct stored_lock *b)
{
    if (a->child != b->child || a->is_entry != b->is_entry || !gfid_equal(&a->gfid, &b->gfid) ||
        strcmp(a->domain, b->domain) != 0)
        return false;
    if (a->is_entry)
        return a->is_all_names || b->is_all_names || strcmp(a->name, b->name) == 0;
    /* bricks keep locks of attributes, at the end of the range, apart from locks of data */
    if ((a->start >= METADATA_START) != (b->start >= METADATA_START))
        return false;
    return a->start < b->end && b->start < a->end;
}

static bool
lock_is_free(const struct stored_lock *wanted)
{
    struct stored_lock *l;

    cds_list_for_each_entry(l, &locks, link)
    {
        if (!l->waiting && locks_conflict(l, wanted) && l->owner != wanted->owner &&
            !(l->is_shared && wanted->is_shared))
            return false;
    }
    return true;
}

void
locks_grant_waiting(void)
{
    struct stored_lock *l, *next;

    cds_list_for_each_entry_safe(l, next, &locks, link)
    {
        if (!l->waiting || !lock_is_free(l))
            continue;
        struct call_stack *stk = l->waiting;

        l->waiting = NULL;
        child_call_answer(stk, 0);
        locks_grant_waiting(); /* the list may have changed */
        return;
    }
}

void
locks_drop_child(unsigned i)
{
    struct stored_lock *l, *next;
    CDS_LIST_HEAD(gone);

    cds_list_for_each_entry_safe(l, next, &locks, link)
    {
        if (l->child == i)
            cds_list_move(&l->link, &gone);
    }
    cds_list_for_each_entry_safe(l, next, &gone, link)
    {
        if (l->waiting)
            child_call_answer(l->waiting, -ENOTCONN);
        else if (scene.lock_lost)
            scene.lock_lost(i, &l->gfid, l->domain);
        free(l);
    }
}

static int
lock_release(const struct stored_lock *wanted)
{
    struct stored_lock *l;

    cds_list_for_each_entry(l, &locks, link)
    {
        bool is_same = l->child == wanted->child && l->is_entry == wanted->is_entry &&
                       gfid_equal(&l->gfid, &wanted->gfid) && strcmp(l->domain, wanted->domain) == 0 &&
                       l->owner == wanted->owner && !l->waiting && l->start == wanted->start &&
                       l->end == wanted->end && l->is_all_names == wanted->is_all_names &&
                       strcmp(l->name, wanted->name) == 0;

        if (!is_same)
            continue;
        cds_list_del(&l->link);
        free(l);
        locks_grant_waiting();
        return 0;
    }
    return -EINVAL;
}

unsigned
store_locks(void)
{
    struct stored_lock *l;
    unsigned count = 0;

    cds_list_for_each_entry(l, &locks, link) count++;
    return count;
}

const char *
store_locks_text(void)
{
    static char text[512];
    struct stored_lock *l;
    size_t at = 0;

    text[0] = '\0';
    cds_list_for_each_entry(l, &locks, link)
    {
        if (at + 100 < sizeof text)
            at += (size_t)snprintf(text + at, sizeof text - at, "c%u %s %s of object %u%s; ", l->child,
                                   l->is_entry ? "entry" : "range", l->name, l->gfid.b[15],
                                   l->waiting ? " (waits)" : "");
    }
    return text;
}

bool
is_lock_call(enum fop fop)
{
    return fop == FOP_inodelk || fop == FOP_finodelk || fop == FOP_entrylk || fop == FOP_fentrylk;
}

bool
is_unlock(const struct fop_call *call)
{
    bool is_entry = call->fop == FOP_entrylk || call->fop == FOP_fentrylk;

    return is_lock_call(call->fop) && (is_entry ? call->cmd == 1 : call->flock.type == FLOCK_UNLOCK);
}

int
lock_serve(unsigned child, struct call_stack *stk, const struct gfid *gfid)
{
    const struct fop_call *c = &stk->call;
    bool is_entry = c->fop == FOP_entrylk || c->fop == FOP_fentrylk;
    struct stored_lock l = {.child = child, .is_entry = is_entry, .gfid = *gfid};

    snprintf(l.domain, sizeof l.domain, "%s", c->volume);
    memcpy(&l.owner, stk->caller.lk_owner.bytes, sizeof l.owner);
    if (is_entry) {
        l.is_all_names = !c->has_name;
        snprintf(l.name, sizeof l.name, "%s", c->has_name ? c->name : "");
    } else {
        l.start = (uint64_t)c->flock.start;
        l.end = c->flock.len ? l.start + (uint64_t)c->flock.len : UINT64_MAX;
    }
    l.is_shared = (is_entry ? c->type : c->flock.type) == FLOCK_READ;
    if (is_unlock(c))
        return lock_release(&l);
    bool is_free = lock_is_free(&l), waits = is_entry ? c->cmd == 0 : c->cmd == 2;

    if (!is_free && !waits)
        return -EAGAIN;
    struct stored_lock *kept = malloc(sizeof *kept);

    *kept = l;
    kept->waiting = is_free ? NULL : stk;
    cds_list_add_tail(&kept->link, &locks);
    return is_free ? 0 : 1;
}

int64_t
locks_count(unsigned child, const struct gfid *gfid, bool is_entry)
{
    struct stored_lock *l;
    int64_t count = 0;

    cds_list_for_each_entry(l, &locks, link) count +=
        l->child == child && l->is_entry == is_entry && gfid_equal(&l->gfid, gfid);
    return count;
}
