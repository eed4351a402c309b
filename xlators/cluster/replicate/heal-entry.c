/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Heal of a directory: all of its names.
 *
 *      lock       the whole directory in the healers' domain; if it is taken, another healer is at work
 *      look       under a lock of all names: reads the counters of entries (pending xattrs). Unlock
 *      names      are listed on the accused children, then on the other children. A name with the same
 *                 object on all children is skipped without a lock; any other name is healed under its lock
 *                 (heal-name.c) after another look at the directory's counters. The daemon heals several
 *                 names at a time
 *      times      of a good child are copied to the mended children
 *      count back the counters of the first look, and have the bricks' indexes forget the names; unlock
 *
 * Each name is a unit of the throttle (heal-throttle.h).
 *
 * Of a folder that a dead client leaves without a mark (dead-folders.c), the names of all children are listed
 * first. In a large folder only the names that some children do not list are looked up.
 *
 * If one name could not be healed, all counters stay, and the next healer checks all names again. Clients
 * that change names meanwhile hold the names' locks, and change them on all children. */
#include <errno.h>
#include <string.h>

#include "xlators/cluster/replicate/heal.h"

/* ---- one name -------------------------------------------------------------------------------- */

bool
heal_is_reserved_name(const struct inode *dir, const char *name)
{
    static const char *const reserved[] = {".glusterfs", ".landfill"};

    if (!gfid_is_root(&dir->gfid))
        return false;
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        if (strncmp(name, reserved[i], strlen(reserved[i])) == 0)
            return true; /* .glusterfs-anonymous-inode-..., too */
    }
    return false;
}

static int
heal_odd_entry_name(struct heal *h, struct inode *dir, const char *name)
{
    struct lock_entity e = {.is_entry = true, .inode = dir, .name = name};

    if (heal_name_is_whole(h, name))
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

static int
heal_entry_name(struct heal *h, unsigned listed_on, struct inode *dir, const char *name)
{
    (void)listed_on;
    if (heal_is_reserved_name(dir, name))
        return 0;
    uint64_t begun = heal_unit_begin(&h->op.r->throttle);
    int err = heal_odd_entry_name(h, dir, name);

    heal_unit_end(&h->op.r->throttle, begun);
    return err;
}

/* ---- all names ------------------------------------------------------------------------------- */

static int
note_listed_name(struct heal *h, unsigned listed_on, struct inode *dir, const char *name)
{
    (void)dir;
    return name_sets_add(h->names, listed_on, name);
}

static int
heal_odd_name(struct heal *h, unsigned listed_on, struct inode *dir, const char *name)
{
    return name_sets_all_have(h->names, name) ? 0 : heal_entry_name(h, listed_on, dir, name);
}

/* Heals the names that some children do not list. Names that change meanwhile are looked up, too. */
static int
heal_odd_names(struct heal *h)
{
    int err = 0;

    for_each_child (i, h->op.r->all)
        err = err ? err : heal_list(h, i, h->op.inode, note_listed_name);
    name_sets_sort(h->names);
    for_each_child (i, h->op.r->all)
        err = err ? err : heal_list(h, i, h->op.inode, heal_odd_name);
    return err;
}

static int
heal_names(struct heal *h, const struct direction *way)
{
    child_set order[] = {way->sinks, h->op.r->all & ~way->sinks};
    int err = 0;

    if (heal_is_hidden(h->op.r, h->op.inode))
        return 0; /* heal-park.c */
    if (h->names && way->sources == h->op.r->all && !way->is_dirty)
        return heal_odd_names(h);
    for (size_t n = 0; n < sizeof order / sizeof order[0]; n++) {
        for_each_child (i, order[n])
            err = err ? err : heal_list(h, i, h->op.inode, heal_entry_name);
    }
    return err;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void
copy_dir_times(struct heal *h, unsigned source, child_set sinks)
{
    for_each_child (i, sinks) {
        struct call_stack *stk = heal_call(h, FOP_setattr, i);

        if (stk) {
            stk->call.stbuf = h->stat[source];
            stk->call.valid = SETATTR_ATIME | SETATTR_MTIME | SETATTR_CTIME;
        }
        (void)heal_send(h, i, stk); /* a wrong time is no reason to heal all names again */
    }
}

/* Copies the times and counts back. `found` has the counters to subtract, `way` the direction that they
 * gave. */
static int
heal_entries_finish(struct heal *h, const struct replica *found, const struct direction *way)
{
    struct lock_entity names = {.is_entry = true, .inode = h->op.inode};
    int err = heal_lock(h, &names);

    if (err)
        return err;
    err = heal_look(h, CHANGE_ENTRY);
    if (!err && way->sources)
        copy_dir_times(h, child_first(way->sources), way->sinks);
    if (!err) {
        memcpy(h->replica, found, sizeof h->replica);
        err = heal_count_back(h, CHANGE_ENTRY, 0);
    }
    heal_unlock(h, &names);
    return err;
}

static int
heal_entries_locked(struct heal *h)
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
    heal_unit_end(&h->op.r->throttle, h->unit_ns);
    err = heal_names(h, &way);
    h->unit_ns = heal_unit_begin(&h->op.r->throttle);
    return err ? err : heal_entries_finish(h, found, &way);
}

int
heal_entries(struct heal *h)
{
    struct lock_entity alone = {
        .is_entry = true, .inode = h->op.inode, .domain = h->op.r->heal_domain};
    int err = heal_lock_alone(h, &alone);

    if (err)
        return err;
    err = heal_entries_locked(h);
    heal_unlock(h, &alone);
    return err;
}
