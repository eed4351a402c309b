/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The list of volumes (volumes.c) and its operations share these declarations:
 *
 *     volumes-create.c   create, adopt                     volumes-paths.c   paths that clash
 *     volumes-set.c      options, other small changes      volumes-coming.c  new bricks, a host of a store
 *     volumes-bricks.c   add, remove and replace bricks    volumes-take.c    follow the store
 *
 * volumes.c has the list, start, stop, delete, and the questions. */
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
/* Adds the volume to the list as a claimed entry, which reserves its name and paths. NULL with *why. */
struct entry *volumes_reserve(struct volume *v, struct problem *why);
/* Removes a claimed entry from the list and frees it. */
void volumes_forget(struct entry *e);
/* Replaces the volume by `v`, which is consumed. */
void volumes_replace(struct entry *e, struct volume *v);
/* The same, and then notifies followers. */
void volumes_become(struct entry *e, struct volume *v);
/* Reserves the paths of `next`, which stays the caller's, until this is called with NULL. Returns 0, or
 * -EINVAL or -EEXIST with *why if another volume has some of them. */
int volumes_reserve_paths(struct entry *e, const struct volume *next, struct problem *why);
/* Saves to disk; after a failure restores `old` (may be NULL). */
int volumes_save(const struct volume *fresh, const struct volume *old, struct problem *why);
/* Removes the saved volume. */
int volumes_unsave(const char *name, struct problem *why);
/* Undoes the first `count` bricks of a volume of the status CREATING, then its saved state. Logs failures. */
void volumes_unmake(const struct volume *v, unsigned count);
/* Waits while another operation has the volume. Returns NULL if there is no such volume. */
struct entry *volumes_claim_waiting(const char *name);
void volumes_tell_changed(const char *name);
/* Return 0 or -errno with *why. Paths on different hosts do not clash. */
int volumes_check_own_paths(const struct volume *v, struct problem *why);
int volumes_compare_paths(const struct volume *v, const struct volume *other, struct problem *why);
/* Checks the volfiles of all bricks. */
int volumes_check(const struct volume *v, struct problem *why);
/* Sets or drops options of a volume that no other thread sees. */
int volumes_put_options(struct volume *v, const json_t *options, struct problem *why);
int volumes_drop_options(struct volume *v, const char *key, unsigned *count, struct problem *why);
/* True if the options of TLS of the bricks differ: these count when a brick starts. */
bool volumes_change_tls(const struct volume *a, const struct volume *b);
/* Adds a copy of the volume to the list, claimed, with the status CREATED. NULL with *why. */
struct entry *volumes_insert(const struct volume *v, struct problem *why);
/* Removes a claimed volume from the list and the state folder; bricks that were made for a volume of the
 * status CREATING are undone. The bricks must be detached. */
int volumes_drop(struct entry *e, struct problem *why);
/* The steps of a change of bricks on a host of a store (volumes-coming.c); the caller has claimed the entry.
 * They return 0 or -errno with *why. */
struct brick_plan;
int volumes_make_coming(struct entry *e, const struct brick_plan *plan, struct problem *why);
int volumes_detach_leaving(struct entry *e, const struct brick_plan *plan, struct problem *why);
/* told[N]: an online brick of this host, which holds data, accuses the new bricks of set N. */
int volumes_mark_coming(struct entry *e, const struct brick_plan *plan, bool *told, struct problem *why);
/* Removes the coming bricks of `old` that `fresh` (NULL: no volume) does not have. Logs failures. */
void volumes_undo_coming(const struct volume *old, const struct volume *fresh);
/* Checks that no data is only on the leaving bricks of this host. */
int volumes_check_leaving_here(const struct volume *now, const struct brick_plan *plan,
                               const bool *was_served, struct problem *why);
/* Refuses a change of bricks during a rebalance, and between a drain and the removal of its bricks, unless
 * the change is this removal. The new volume of the plan gets no task. Returns 0 or -EBUSY with *why. */
int volumes_check_task(const struct volume *now, struct brick_plan *plan, struct problem *why);
/* Tells whether the plan only removes bricks of a started volume that a rebalance has drained. */
bool volumes_removes_drained(const struct brick_plan *plan, const struct volume *now);
/* Detaches drained bricks that are no bricks of the volume any more, when their clients have gone, or after
 * some seconds. */
void volumes_detach_drained(const struct volume *old, const bool *leaves);
/* Runs the hook `prepare` of struct volumes_hooks. */
int volumes_prepare(struct volfile *file, char *error, size_t error_size);

#endif
