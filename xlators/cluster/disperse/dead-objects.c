/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The comparison of objects that a client was changing when it died (xlators/cluster/dead-changes.h).
 *
 * A change of attributes or names counts nothing beforehand while all children are good (hold.c). After the
 * death of a client in such a change the children differ with equal versions. The bricks note each object
 * whose lock the client held, and the comparison heals attributes, and names of folders, whether the
 * counters ask for it or not. A write has marked the file dirty before. Of a client that died in a write,
 * the healer that sees the mark compares the contents. Stock's daemon only takes the mark back: so the note
 * tells of a mark, and the contents are compared without it.
 *
 * Notes and not dirty marks, because stock's daemon would follow the marks: of a half done rename it removes
 * both names if fewer than K children have each (tests/disperse/disperse-half-done-renames-are-healed.t).
 *
 * A note may be needless: a client holds locks for reads, too, and for a second after the last call. Then a
 * file costs one look at its attributes, a folder a LOOKUP of each name, or a listing of a large one. */
#include <errno.h>

#include "xlators/cluster/disperse/heal.h"

static bool
is_ready(struct xlator *xl)
{
    struct disperse *d = xl->private;

    return atomic_load(&d->up) == d->all && !atomic_load(&d->is_stopping);
}

/* An object that K children or fewer have waits: the comparison of its folder comes first, and removes it. */
static int
compare_object(struct xlator *xl, const struct gfid *gfid, bool contents)
{
    struct disperse *d = xl->private;
    struct iatt a = {.gfid = *gfid};
    struct inode *inode = inode_link(xl->graph->inodes, NULL, NULL, &a);
    uint32_t generation = atomic_load(&d->generation);
    bool is_gone, was_whole;

    if (!inode)
        return -ENOMEM;
    ec_heal_type(d, inode, &is_gone);
    enum ec_heal_how how = contents ? HEAL_DEAD_WRITE : HEAL_DEAD;
    int err = is_gone ? 0 : ec_heal_object(d, inode, how, &was_whole);
    inode_unref(inode);
    return !err && !(is_ready(xl) && atomic_load(&d->generation) == generation) ? -ENOTCONN : err;
}

const struct dead_changes_of dead_objects = {.is_ready = is_ready, .compare = compare_object};
