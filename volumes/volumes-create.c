/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Creates a volume, or adopts a volume whose bricks exist.
 *
 *     name and paths reserved ─▶ folders checked ─▶ saved: CREATING ─▶ folders made      undone at next start
 *     ─▶ SAVED as CREATED: takes effect
 *
 * On a host of a store (volumes_make_here()) the store says whether the volume was created, so it stays
 * CREATING here until volumes_take(). */
#include <errno.h>

#include "log/log.h"
#include "volumes/brick-host.h"
#include "volumes/bricks/brick-jobs.h"
#include "volumes/bricks/brick-place.h"
#include "volumes/volumes-internal.h"

/* Checks only, without changes. */
static int
check_brick_places(struct volume *v, struct problem *why)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        bool is_missing;

        if (!brick_host_is_here(&v->bricks[i]))
            continue;
        if (brick_place_check(v->bricks[i].path, &is_missing, why))
            return why->err;
        v->bricks[i].made = is_missing;
    }
    return brick_jobs_check(v, volumes_prepare, why);
}

void
volumes_unmake(const struct volume *v, unsigned count)
{
    struct problem why;
    bool is_clean = true;

    while (count-- > 0) {
        if (brick_host_is_here(&v->bricks[count]) && brick_place_unmake(v, &v->bricks[count], &why)) {
            log_event(LOG_ERROR, NULL, "volume-undo", "volume %s: %s; the next start tries again", v->name,
                      why.wrong);
            is_clean = false;
        }
    }
    /* The definition still lists the bricks to undo. */
    if (is_clean && volumes_unsave(v->name, &why))
        log_event(LOG_ERROR, NULL, "volume-undo-state",
                  "volume %s was not created, but its definition stays: %s", v->name, why.wrong);
}

/* `is_whole`: all bricks of the volume are here, so it is created with them. */
static int
make_brick_folders(struct volume *v, bool is_whole, struct problem *why)
{
    unsigned made = 0;

    v->status = VOLUME_CREATING;
    if (volumes_save(v, NULL, why))
        return why->err;
    while (made < v->brick_count && (!brick_host_is_here(&v->bricks[made]) ||
                                     brick_place_make(v, &v->bricks[made], why) == 0))
        made++;
    if (made == v->brick_count && !is_whole)
        return 0;
    if (made == v->brick_count) {
        v->status = VOLUME_CREATED; /* no other thread reads it: the entry is busy, and was CREATING */
        if (volumes_save(v, NULL, why) == 0)
            return 0;
        v->status = VOLUME_CREATING;
    }
    volumes_unmake(v, made);
    return why->err;
}

/* Consumes `v`. */
static int
create_volume(struct volume *v, bool is_whole, struct problem *why)
{
    struct volume *fresh = NULL;

    why->err = 0;
    struct entry *e = volumes_check_own_paths(v, why) ? NULL : volumes_reserve(v, why);
    if (!e) {
        volume_free(v);
        return why->err;
    }
    /* A volume in the list is constant, so a copy is changed. */
    if (!(fresh = volume_copy(v)))
        problem_no_memory(why);
    if (!fresh || check_brick_places(fresh, why) || make_brick_folders(fresh, is_whole, why)) {
        volume_free(fresh);
        volumes_forget(e);
        return why->err;
    }
    if (is_whole)
        log_event(LOG_INFO, NULL, "volume-created", "volume %s of %u bricks", fresh->name,
                  fresh->brick_count);
    volumes_replace(e, fresh);
    volumes_release(e);
    return 0;
}

int
volumes_create(struct volume *v, struct problem *why)
{
    return create_volume(v, true, why);
}

int
volumes_make_here(struct volume *v, struct problem *why)
{
    return create_volume(v, false, why);
}

int
volumes_adopt(struct volume *v, struct problem *why)
{
    struct entry *e = volumes_check_own_paths(v, why) ? NULL : volumes_reserve(v, why);

    if (!e) {
        volume_free(v);
        return why->err;
    }
    int err = volumes_save(v, NULL, why);
    if (err) {
        volumes_forget(e);
        return err;
    }
    log_event(LOG_INFO, NULL, "volume-adopted", "volume %s of %u bricks", v->name, v->brick_count);
    volumes_release(e);
    return 0;
}
