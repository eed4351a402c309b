/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* recover: corrects the usage at the start of a brick whose process was killed. Each slot of the state file
 * names an object that may have changed since its charge was noted; each gets a stat.
 *
 * A process that dies while it creates an object or removes a last name can leave the name without a handle
 * (storage/posix, entry-create.c and entry-remove.c), or a new object without a gfid. The folder was being
 * changed, too, so it has a slot. If an object is not found by its gfid, the folders with slots are listed,
 * and a LOOKUP of the name makes the handle. A folder with an object without a gfid has its namespace counted
 * anew.
 *
 * A death in here repeats the work at the next start: settling a charge twice changes nothing, and the slots
 * of folders are given back last. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "log/log.h"
#include "xlators/features/simple-quota/squota-internal.h"

/* An object that the previous process left in the middle of a change. */
struct left {
    struct gfid object;
    unsigned slot, record; /* record 0: the namespace is gone */
    int64_t charge;        /* bytes */
    bool is_done, is_folder;
    struct inode *inode; /* a file to be watched: a reference; else NULL */
};

struct recovery {
    struct xlator *xl;
    struct squota *q;
    struct left *lefts; /* in the order of their gfids */
    unsigned count;
    unsigned folder_record; /* of the folder that is being listed */
};

static int
left_compare(const void *a, const void *b)
{
    const struct left *x = a, *y = b;

    return memcmp(&x->object, &y->object, sizeof x->object);
}

static void
left_charge(struct recovery *r, struct left *l, int64_t bytes)
{
    struct squota_state *s = r->q->state;

    squota_state_settle(s, l->record, squota_state_used(s, l->record) + bytes - l->charge, l->slot, bytes);
    l->charge = bytes;
    l->is_done = true;
}

/* Stats the object. It stays undone if no handle leads to it. */
static void
left_look(struct recovery *r, struct left *l)
{
    struct posix_allotted found = {.bytes = 0};
    struct squota_mark mark;
    struct iatt stat;

    l->is_done = l->record == 0;
    if (l->is_done)
        return;
    int err = squota_lookup(r->xl, NULL, NULL, &l->object, &stat, &mark);
    struct inode *inode = err ? NULL : inode_link(r->xl->graph->inodes, NULL, NULL, &stat);
    if (!err)
        err = inode ? squota_stat(r->xl, inode, &found) : -ENOMEM;
    l->is_folder = !err && S_ISDIR(stat.mode);
    if (!err)
        left_charge(r, l, found.bytes);
    if (!err && found.is_file)
        l->inode = inode;
    else
        inode_unref(inode);
    if (err && err != -ENOENT && err != -ESTALE) {
        squota_state_counting(r->q->state, l->record, true);
        l->is_done = true;
    }
}

/* An entry of a folder that was being changed. */
static void
entry_look(void *arg, struct inode *folder, const struct dirent_entry *e)
{
    struct recovery *r = arg;
    const struct left key = {.object = e->iatt.gfid};
    const struct left *same = bsearch(&key, r->lefts, r->count, sizeof key, left_compare);
    struct squota_mark mark;
    struct iatt stat;

    if (gfid_is_null(&key.object))
        squota_state_counting(r->q->state, r->folder_record, true);
    if (!same)
        return;
    unsigned i = (unsigned)(same - r->lefts);
    while (i > 0 && gfid_equal(&r->lefts[i - 1].object, &key.object))
        i--;
    if (!r->lefts[i].is_done)
        (void)squota_lookup(r->xl, folder, e->name, NULL, &stat, &mark); /* left_look() meets its error */
    for (; i < r->count && gfid_equal(&r->lefts[i].object, &key.object); i++) {
        if (!r->lefts[i].is_done)
            left_look(r, &r->lefts[i]);
    }
}

static void
folder_look(struct recovery *r, const struct left *folder)
{
    struct fd *fd;
    uint64_t offset = 0;
    int n = squota_folder_open(r->xl, &folder->object, &fd);

    r->folder_record = folder->record;
    while (n >= 0 && (n = squota_folder_list(r->xl, fd, &offset, entry_look, r)) > 0)
        continue;
    fd_unref(fd);
    if (n < 0)
        squota_state_counting(r->q->state, folder->record, true);
}

static bool
is_any_undone(const struct recovery *r)
{
    bool is_any = false;

    for (unsigned i = 0; i < r->count; i++)
        is_any |= !r->lefts[i].is_done;
    return is_any;
}

static void
slots_give(struct recovery *r, bool of_folders)
{
    for (unsigned i = 0; i < r->count; i++) {
        if (r->lefts[i].is_folder == of_folders)
            squota_slot_give(r->q->state, r->lefts[i].slot);
    }
}

static void
lefts_settle(struct recovery *r)
{
    for (unsigned i = 0; i < r->count; i++)
        left_look(r, &r->lefts[i]);
    for (unsigned i = 0; is_any_undone(r) && i < r->count; i++) {
        if (r->lefts[i].is_folder)
            folder_look(r, &r->lefts[i]);
    }
    for (unsigned i = 0; i < r->count; i++) {
        if (!r->lefts[i].is_done)
            left_charge(r, &r->lefts[i], 0); /* it has no name */
    }
    slots_give(r, false);
    slots_give(r, true);
    if (r->count)
        log_event(LOG_INFO, r->xl, "squota-recovered",
                  "%u objects that were being changed when the brick ended were looked at", r->count);
}

static unsigned
slots_read(struct recovery *r)
{
    unsigned slot = 0, n = 0;
    struct left l = {.slot = 0};

    while ((slot = squota_slot_next(r->q->state, slot, &l.record, &l.object, &l.charge))) {
        l.slot = slot;
        if (r->lefts)
            r->lefts[n] = l;
        n++;
    }
    return n;
}

/* Without memory for the objects: their namespaces are counted anew. */
static void
count_all(struct recovery *r)
{
    unsigned slot = 0, record;
    struct gfid object;
    int64_t charge;

    while ((slot = squota_slot_next(r->q->state, slot, &record, &object, &charge))) {
        squota_state_counting(r->q->state, record, true);
        squota_slot_give(r->q->state, slot);
    }
}

void
squota_recover(struct xlator *xl)
{
    struct recovery r = {.xl = xl, .q = squota_of(xl)};
    unsigned count = slots_read(&r);

    r.lefts = count ? calloc(count, sizeof *r.lefts) : NULL;
    if (count && !r.lefts)
        count_all(&r);
    if (r.lefts) {
        r.count = slots_read(&r);
        qsort(r.lefts, r.count, sizeof *r.lefts, left_compare);
        lefts_settle(&r);
    }
    squota_ns_load_all(xl);
    /* The blocks of these files may still change without a change by a client: may_drift() in account.c. */
    for (unsigned i = 0; i < r.count; i++) {
        if (r.lefts[i].inode)
            squota_watch(xl, r.lefts[i].inode, r.lefts[i].charge);
        inode_unref(r.lefts[i].inode);
    }
    free(r.lefts);
}
