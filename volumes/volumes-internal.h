/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* What operations on volumes share: volumes.c has the list, the other files operations. */
#ifndef KILN_VOLUMES_VOLUMES_INTERNAL_H
#define KILN_VOLUMES_VOLUMES_INTERNAL_H

#include <urcu/list.h>

#include "volumes/volumes.h"

struct entry {
    struct cds_list_head link;
    /* under volumes.c's lock; who has the entry reads it without, and alone replaces it */
    struct volume *now;
    const struct volume *next; /* under the lock: its paths are taken, too. NULL: none */
    bool is_busy;              /* under the lock: an operation has it */
};

/* The volume is the caller's until release. NULL with *why. */
struct entry *volumes_claim(const char *name, struct problem *why);
void volumes_release(struct entry *e);
/* `v`, which is taken over, is the volume from now on; then whoever follows it is told. */
void volumes_become(struct entry *e, struct volume *v);
/* Nobody else gets the paths of `next`, which stays the caller's, until this is called with NULL. -EINVAL or
 * -EEXIST with *why: others have some of them. */
int volumes_reserve_paths(struct entry *e, const struct volume *next, struct problem *why);
/* On disk; after a failure `old` is there again. */
int volumes_save(const struct volume *fresh, const struct volume *old, struct problem *why);
/* struct volumes_hooks' */
int volumes_prepare(struct volfile *file, char *error, size_t error_size);

#endif
