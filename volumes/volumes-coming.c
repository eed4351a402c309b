/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The steps of a change of bricks on one host of a store (cluster-bricks.h). The entry is claimed by the
 * caller; the volume in the list gets the coming bricks of this host, and keeps all others. */
#include <errno.h>
#include <string.h>

#include "bricks/bricks.h"
#include "graph/graph.h"
#include "log/log.h"
#include "volumes/brick-host.h"
#include "volumes/bricks/brick-jobs.h"
#include "volumes/bricks/brick-marks.h"
#include "volumes/bricks/brick-place.h"
#include "volumes/bricks/brick-plan.h"
#include "volumes/volumes-internal.h"

static bool
is_brick_served(const struct volume_brick *b)
{
    struct graph *g = brick_host_is_here(b) ? bricks_find(b->path) : NULL;

    if (g)
        graph_unpin(g);
    return g != NULL;
}

/* ---- new bricks ------------------------------------------------------------------------------ */

/* Records the bricks in the list and in the copy. A repeated step finds them there. */
static int
record_coming(struct entry *e, const struct brick_plan *plan, struct problem *why)
{
    struct volume *with = volume_copy(e->now);
    int err = with ? 0 : -ENOMEM;

    if (with)
        volume_drop_coming(with);
    for (unsigned i = 0; i < plan->fresh->brick_count && !err; i++) {
        if (plan->comes[i] && brick_host_is_here(&plan->fresh->bricks[i]))
            err = volume_add_coming(with, &plan->fresh->bricks[i]);
    }
    err = err ? problem_no_memory(why) : volumes_save(with, e->now, why);
    if (err)
        volume_free(with);
    else
        volumes_become(e, with);
    return err;
}

int
volumes_make_coming(struct entry *e, const struct brick_plan *plan, struct problem *why)
{
    struct volume *v = plan->fresh;
    bool is_any = false, is_missing;

    for (unsigned i = 0; i < v->brick_count; i++) {
        if (!plan->comes[i] || !brick_host_is_here(&v->bricks[i]))
            continue;
        if (brick_place_check(v->bricks[i].path, &is_missing, why))
            return why->err;
        v->bricks[i].made = is_missing;
        is_any = true;
    }
    if (!is_any)
        return 0;
    if (record_coming(e, plan, why))
        return why->err;
    for (unsigned i = 0; i < v->brick_count; i++) {
        if (plan->comes[i] && brick_host_is_here(&v->bricks[i]) && brick_place_make(v, &v->bricks[i], why))
            return why->err; /* the changing host has the bricks made so far undone */
    }
    return 0;
}

void
volumes_undo_coming(const struct volume *old, const struct volume *fresh)
{
    for (unsigned i = 0; i < old->coming_count; i++) {
        const struct volume_brick *b = &old->coming[i];
        struct problem why;

        if (fresh && fresh->next_id > old->next_id && brick_host_has(fresh, b))
            continue; /* each change that brings bricks raises next_id */
        if (brick_place_clear(old, b, &why) || brick_place_unmake(old, b, &why))
            log_event(LOG_ERROR, NULL, "cluster-brick-undo",
                      "volume %s: the folder of an undone brick stays: %s", old->name, why.wrong);
    }
}

/* ---- leaving bricks -------------------------------------------------------------------------- */

/* With fewer replicas the bricks that remain in the set of a leaving one must be served. */
static int
check_remaining_here(const struct volume *now, const struct brick_plan *plan, struct problem *why)
{
    for (unsigned i = 0; i < now->brick_count; i++) {
        if (plan->leaves[i] || !brick_host_is_here(&now->bricks[i]) || is_brick_served(&now->bricks[i]))
            continue;
        problem_set(why, -EBUSY, "remaining brick %s is offline", now->bricks[i].path);
        problem_type(why, "kiln volume start %s force", now->name);
        return why->err;
    }
    return 0;
}

int
volumes_detach_leaving(struct entry *e, const struct brick_plan *plan, struct problem *why)
{
    const struct volume *now = e->now;
    bool only[VOLUME_BRICKS_MAX] = {false}, was_served[VOLUME_BRICKS_MAX] = {false}, is_any = false;

    if (plan->is_fewer_replicas && now->status == VOLUME_STARTED && check_remaining_here(now, plan, why))
        return why->err;
    for (unsigned i = 0; i < now->brick_count; i++) {
        only[i] = plan->leaves[i] && brick_host_is_here(&now->bricks[i]);
        was_served[i] = only[i] && is_brick_served(&now->bricks[i]);
        is_any |= only[i];
    }
    if (!is_any)
        return 0;
    if (volumes_removes_drained(plan, now)) /* clients first follow the new volume */
        return volumes_check_leaving_here(now, plan, NULL, why);
    if (volumes_check_leaving_here(now, plan, was_served, why)) /* a refusal does not disturb clients */
        return why->err;
    brick_jobs_detach(now, was_served);
    return volumes_check_leaving_here(now, plan, was_served, why);
}

/* ---- marks ----------------------------------------------------------------------------------- */

int
volumes_mark_coming(struct entry *e, const struct brick_plan *plan, bool *told, struct problem *why)
{
    const struct volume *v = plan->fresh;

    why->err = 0;
    for (unsigned first = 0; first < v->brick_count; first += v->replica) {
        bool comes = false;

        for (unsigned i = first; i < first + v->replica; i++)
            comes |= plan->comes[i];
        if (!comes || brick_plan_is_whole_set(plan, e->now, first))
            continue;
        for (unsigned i = first; i < first + v->replica; i++) {
            if (plan->comes[i] || !is_brick_served(&v->bricks[i]))
                continue;
            if (brick_marks_put(v, i, plan->comes, why))
                return why->err;
            told[i] = !volume_is_arbiter(v, i);
        }
    }
    return 0;
}
