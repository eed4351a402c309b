/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The comparison of folders whose names a client was changing when it died (xlators/cluster/dead-changes.h):
 * all names of a noted folder are compared, and those that differ are healed; of a large folder, only the
 * names that some children do not list (heal-entry.c).
 *
 * With all children there, a change of names leaves no marks (entry.c). After the death of a client in it,
 * the name is on some children only. A LOOKUP of the name heals it, too. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "xlators/cluster/replicate/heal.h"

/* LOOKED_UP_MAX: of a folder with fewer names each name is looked up. This finds a name that leads to
 * different objects, too: the rest of a rename over an existing name. */
enum { LOOKED_UP_MAX = 10000 };

/* ---- sets of names --------------------------------------------------------------------------- */

struct name_set {
    uint64_t *hash;
    size_t count, room;
};

struct name_sets {
    unsigned children;
    struct name_set of[];
};

struct name_sets *
name_sets_new(unsigned children)
{
    struct name_sets *s = calloc(1, sizeof *s + children * sizeof s->of[0]);

    if (s)
        s->children = children;
    return s;
}

void
name_sets_free(struct name_sets *s)
{
    for (unsigned i = 0; s && i < s->children; i++)
        free(s->of[i].hash);
    free(s);
}

int
name_sets_add(struct name_sets *s, unsigned i, const char *name)
{
    struct name_set *set = &s->of[i];

    if (set->count == set->room) {
        size_t room = set->room ? 2 * set->room : 64;
        uint64_t *hash = realloc(set->hash, room * sizeof *hash);

        if (!hash)
            return -ENOMEM;
        set->hash = hash;
        set->room = room;
    }
    set->hash[set->count++] = hash_text(name);
    return 0;
}

static int
hash_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

void
name_sets_sort(struct name_sets *s)
{
    for (unsigned i = 0; i < s->children; i++)
        if (s->of[i].count)
            qsort(s->of[i].hash, s->of[i].count, sizeof s->of[i].hash[0], hash_compare);
}

bool
name_sets_all_have(const struct name_sets *s, const char *name)
{
    uint64_t hash = hash_text(name);

    for (unsigned i = 0; i < s->children; i++)
        if (s->of[i].count < LOOKED_UP_MAX ||
            !bsearch(&hash, s->of[i].hash, s->of[i].count, sizeof hash, hash_compare))
            return false;
    return true;
}

/* ---- the comparison -------------------------------------------------------------------------- */

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
