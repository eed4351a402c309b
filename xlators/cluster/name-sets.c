/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/cluster/name-sets.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/hash.h"

/* LOOKED_UP_MAX: of a folder with fewer names each name is looked up. This finds a name that leads to
 * different objects, too: the rest of a rename over an existing name. */
enum { LOOKED_UP_MAX = 10000 };

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
