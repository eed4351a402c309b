/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The comparison of folders whose names a client was changing when it died (xlators/cluster/dead-changes.h):
 * all names of a noted folder are compared, and those that differ are healed; of a large folder, only the
 * names that some children do not list (heal-entry.c).
 *
 * With all children there, a change of names leaves no marks (entry.c). After the death of a client in it,
 * the name is on some children only. A LOOKUP of the name heals it, too. */
#include <errno.h>

#include "xlators/cluster/replicate/heal.h"

/* Compares the folder. Returns 0 if the names are the same now, or the folder is gone; or -errno. */
static int
compare_folder(struct xlator *xl, const struct gfid *gfid, bool contents)
{
    struct replicate *r = xl->private;
    struct iatt a = {.gfid = *gfid, .mode = S_IFDIR | 0755};
    struct inode *dir = inode_link(xl->graph->inodes, NULL, NULL, &a);
    struct heal h;

    (void)contents; /* writes mark all replicas, and healers compare what is marked */
    if (!dir)
        return -ENOMEM;
    heal_begin(&h, r, dir);
    h.wants_all_names = true;
    h.names = name_sets_new(r->count);
    int err = h.names ? heal_entries(&h) : -ENOMEM;

    if (err && h.gone != r->all)
        (void)heal_look(&h, CHANGE_ENTRY); /* a lock on a folder that has gone fails, too: is it gone? */
    if (err && h.gone == r->all)
        err = 0;
    name_sets_free(h.names);
    heal_end(&h);
    inode_unref(dir);
    return err;
}

static bool
is_ready(struct xlator *xl)
{
    struct replicate *r = xl->private;

    return atomic_load(&r->up) == r->all && !atomic_load(&r->is_stopping);
}

const struct dead_changes_of dead_folders = {.is_ready = is_ready, .compare = compare_folder};
