/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The mount and the checks of all copies, for unit tests of cluster/replicate on bricks in memory. */
#ifndef KILN_CLUSTER_REPLICATE_TEST_REPLICAS_H
#define KILN_CLUSTER_REPLICATE_TEST_REPLICAS_H

#include <stdio.h>
#include <string.h>

#include "xlators/cluster/replicate/changelog.h"
#include "xlators/cluster/test-children.h"

extern const struct xlator_type cluster_replicate_xlator;

/* Begins a mount that heals everything. `more`: further options, as lines of a volfile. */
static inline void
replicas_begin(const char *more)
{
    char options[1024];

    snprintf(options, sizeof options,
             " option data-self-heal on\n option metadata-self-heal on\n option entry-self-heal on\n"
             " option use-anonymous-inode yes\n option volume-id 11111111-2222-3333-4444-555555555555\n%s",
             more);
    scene_begin(&cluster_replicate_xlator, options);
}

/* Returns the first counter that is not 0, as text; NULL: all are 0. */
static inline const char *
counters_left(void)
{
    static char text[160];

    for (unsigned i = 0; i < scene.count; i++) {
        for (unsigned n = 0; n < STORED_OBJECTS_MAX; n++) {
            struct stored_object *o = &scene.store[i].object[n];

            for (unsigned k = 0; o->stat.mode && o->stat.nlink && k < o->xattr_count; k++) {
                struct changelog counters;

                changelog_get(&counters, o->xattr[k].bytes, o->xattr[k].len);
                if (strncmp(o->xattr[k].key, "trusted.afr.", 12) != 0 ||
                    !(counters.count[0] | counters.count[1] | counters.count[2]))
                    continue;
                snprintf(text, sizeof text, "%s of object %02x..%u on c%u is %u %u %u", o->xattr[k].key,
                         o->stat.gfid.b[0], o->stat.gfid.b[15], i, counters.count[0], counters.count[1],
                         counters.count[2]);
                return text;
            }
        }
    }
    return NULL;
}

/* Returns the first difference of the copies, as text; NULL: they are equal. */
static inline const char *
copies_difference(void)
{
    static char text[320];

    for (unsigned k = 1; k < scene.count; k++) {
        const char *why = store_difference(&scene.store[0], &scene.store[k]);

        if (why) {
            snprintf(text, sizeof text, "c0 and c%u differ: %s", k, why);
            return text;
        }
    }
    return NULL;
}

#endif
