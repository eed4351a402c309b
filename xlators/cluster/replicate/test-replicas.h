/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The mount and the checks of all copies, for unit tests of cluster/replicate on bricks in memory. */
#ifndef KILN_CLUSTER_REPLICATE_TEST_REPLICAS_H
#define KILN_CLUSTER_REPLICATE_TEST_REPLICAS_H

#include <stdio.h>
#include <string.h>

#include "xlators/cluster/replicate/changelog.h"
#include "xlators/cluster/test-children.h"

extern const struct xlator_type cluster_replicate_xlator;

/* Returns the options of a client that heals everything. `more`: further options, as lines of a volfile. */
static inline const char *
replicas_options(const char *more)
{
    static char options[1024];

    snprintf(options, sizeof options,
             " option data-self-heal on\n option metadata-self-heal on\n option entry-self-heal on\n"
             " option use-anonymous-inode yes\n option volume-id 11111111-2222-3333-4444-555555555555\n%s",
             more);
    return options;
}

static inline void
replicas_begin(const char *more)
{
    scene_begin(&cluster_replicate_xlator, replicas_options(more));
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

/* ---- calls, and copies that accuse each other ------------------------------------------------ */

/* Returns the inode of the path on the first child that has the path; NULL: none has. */
static inline struct inode *
replica_inode(const char *path)
{
    for (unsigned i = 0; i < scene.count; i++) {
        struct inode *inode = scene_inode(i, path);

        if (inode)
            return inode;
    }
    return NULL;
}

static const char *replica_path;
static void (*replica_fill_more)(struct call_stack *stk);

/* Fills in the object of replica_call(), or scene.fd. */
static inline void
replica_fill(struct call_stack *stk)
{
    if (fop_info[stk->call.fop].traits & FOP_BY_FD)
        stk->call.fd = fd_ref(scene.fd);
    else
        stk->call.loc.inode = replica_inode(replica_path);
    stk->call.size = 4096;
    if (replica_fill_more)
        replica_fill_more(stk);
}

/* Makes a call about the object, or about scene.fd; `more` sets further arguments and may be NULL. */
static inline int
replica_call(enum fop fop, const char *path, void (*more)(struct call_stack *stk))
{
    replica_path = path;
    replica_fill_more = more;
    return scene_call(fop, replica_fill, 0);
}

/* Lets the copy of the object on child `by` accuse child `whom` of one missed change. */
static inline void
replica_accuse(const char *path, unsigned by, unsigned whom, enum change what)
{
    struct stored_object *o = store_find(&scene.store[by], path);
    char key[STORED_TEXT_MAX];
    unsigned char bytes[CHANGELOG_BYTES];
    struct changelog c;

    snprintf(key, sizeof key, "trusted.afr.c%u", whom);
    struct stored_xattr *x = store_xattr(o, key);

    changelog_get(&c, x ? x->bytes : NULL, x ? x->len : 0);
    c.count[what]++;
    changelog_put(&c, bytes);
    (void)store_set_xattr(o, key, bytes, sizeof bytes);
}

#endif
