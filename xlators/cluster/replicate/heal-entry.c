/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Heal of a directory: all of its names.
 *
 *      lock       the whole directory in the healers' domain, or leave it to who has it
 *      look       under a lock of all its names: who accuses whom of entries. Unlock
 *      names      are listed on the accused children, then on the others. A name behind which all have the
 *                 same is passed over, without a lock; any other is healed under its lock (heal-name.c),
 *                 which looks at the directory's counters again
 *      times      of a good child are given to the mended ones
 *      count back what the first look has found, and have the bricks forget the names of that; unlock
 *
 * Where one name could not be healed all counts stay, and all names are looked at again by the next healer.
 * Names that change meanwhile are changed on all children, by who holds their locks. */
#include <errno.h>
#include <string.h>

#include "xlators/cluster/replicate/heal.h"

/* ---- one name -------------------------------------------------------------------------------- */

/* The volume's own folders. */
static bool
is_passed_over(const struct heal *h, const char *name)
{
    static const char *const reserved[] = {".glusterfs", ".landfill"};

    if (!gfid_is_root(&h->op.inode->gfid))
        return false;
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        if (strncmp(name, reserved[i], strlen(reserved[i])) == 0)
            return true; /* .glusterfs-anonymous-inode-..., too */
    }
    return false;
}

static int
heal_one(struct heal *h, unsigned listed_on, struct inode *dir, const char *name)
{
    struct lock_entity e = {.is_entry = true, .inode = dir, .name = name};

    (void)listed_on;
    if (is_passed_over(h, name) || heal_name_is_whole(h, name))
        return 0;
    int err = heal_lock(h, &e);

    if (err)
        return err;
    err = heal_look(h, CHANGE_ENTRY);
    if (!err)
        err = heal_name_locked(h, name);
    heal_unlock(h, &e);
    return err < 0 ? err : 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int
heal_names(struct heal *h, const struct direction *way)
{
    child_set order[] = {way->sinks, h->op.r->all & ~way->sinks};
    int err = 0;

    for (size_t n = 0; n < sizeof order / sizeof order[0]; n++) {
        for_each_child (i, order[n])
            err = err ? err : heal_list(h, i, h->op.inode, heal_one);
    }
    return err;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void
give_times(struct heal *h, unsigned source, child_set sinks)
{
    for_each_child (i, sinks) {
        struct call_stack *stk = heal_call(h, FOP_setattr, i);

        if (stk) {
            stk->call.stbuf = h->stat[source];
            stk->call.valid = SETATTR_ATIME | SETATTR_MTIME | SETATTR_CTIME;
        }
        (void)heal_send(h, i, stk); /* a time that is not right is no reason to go over all names again */
    }
}

/* `found` is what is to be counted back, `way` what was decided by it. */
static int
finish(struct heal *h, const struct replica *found, const struct direction *way)
{
    struct lock_entity names = {.is_entry = true, .inode = h->op.inode};
    int err = heal_lock(h, &names);

    if (err)
        return err;
    err = heal_look(h, CHANGE_ENTRY);
    if (!err && way->sources)
        give_times(h, child_first(way->sources), way->sinks);
    if (!err) {
        memcpy(h->replica, found, sizeof h->replica);
        err = heal_count_back(h, CHANGE_ENTRY, 0);
    }
    heal_unlock(h, &names);
    return err;
}

static int
heal_alone(struct heal *h)
{
    struct lock_entity names = {.is_entry = true, .inode = h->op.inode};
    struct replica found[REPLICAS_MAX];
    int err = heal_lock(h, &names);

    if (err)
        return err;
    err = heal_look(h, CHANGE_ENTRY);
    struct direction way = h->way;

    memcpy(found, h->replica, sizeof found);
    heal_unlock(h, &names);
    if (err || (way.sources == h->op.r->all && !way.is_dirty && !h->wants_all_names))
        return err;
    err = heal_names(h, &way);
    return err ? err : finish(h, found, &way);
}

int
heal_entries(struct heal *h)
{
    struct lock_entity alone = {
        .is_entry = true, .inode = h->op.inode, .domain = h->op.r->heal_domain};
    int err = heal_lock_alone(h, &alone);

    if (err)
        return err;
    err = heal_alone(h);
    heal_unlock(h, &alone);
    return err;
}
