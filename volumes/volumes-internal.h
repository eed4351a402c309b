/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The list of volumes (volumes.c) and its operations share these declarations. */
#ifndef KILN_VOLUMES_VOLUMES_INTERNAL_H
#define KILN_VOLUMES_VOLUMES_INTERNAL_H

#include <urcu/list.h>

#include "volumes/volumes.h"

struct entry {
    struct cds_list_head link;
    /* Guarded by the lock of volumes.c. The operation that has claimed the entry reads it without the
     * lock, and alone replaces it. */
    struct volume *now;
    const struct volume *next; /* guarded by the lock: paths of this volume are reserved, too; NULL: none */
    bool is_busy;              /* guarded by the lock: an operation has claimed the entry */
};

/* Claims the volume for the caller until release. Returns NULL with *why on failure. */
struct entry *volumes_claim(const char *name, struct problem *why);
void volumes_release(struct entry *e);
/* Replaces the volume by `v`, which is consumed, and then notifies followers. */
void volumes_become(struct entry *e, struct volume *v);
/* Reserves the paths of `next`, which stays the caller's, until this is called with NULL. Returns 0, or
 * -EINVAL or -EEXIST with *why if another volume has some of them. */
int volumes_reserve_paths(struct entry *e, const struct volume *next, struct problem *why);
/* Saves to disk; after a failure restores `old`. */
int volumes_save(const struct volume *fresh, const struct volume *old, struct problem *why);
/* Runs the hook `prepare` of struct volumes_hooks. */
int volumes_prepare(struct volfile *file, char *error, size_t error_size);

#endif
