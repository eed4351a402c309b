/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Makes a volume of this host equal to the store's (cluster.h).
 *
 *     the list, the copy in the state folder ─▶ clients and healer notified ─▶ leaving bricks detached
 *     ─▶ a removed limit cleared ─▶ staying bricks reconfigured, or restarted for other options of TLS
 *     ─▶ missing bricks attached ─▶ limits set
 *
 * The copy only matters for a start without the store, so a copy that cannot be written is logged. A death
 * between any two steps is no matter: the next start reads the store and comes here again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bricks/bricks.h"
#include "graph/graph.h"
#include "log/log.h"
#include "volumes/brick-host.h"
#include "volumes/bricks/brick-jobs.h"
#include "volumes/quota.h"
#include "volumes/volume-options.h"
#include "volumes/volume-task.h"
#include "volumes/volumes-internal.h"

static bool
is_attached(const struct volume_brick *b)
{
    struct graph *g = bricks_find(b->path);

    if (g)
        graph_unpin(g);
    return g != NULL;
}

static void
detach_leaving(const struct volume *old, const struct volume *fresh, bool restarts)
{
    bool only[VOLUME_BRICKS_MAX] = {false}, drained[VOLUME_BRICKS_MAX] = {false};
    bool has_any = false, has_drained = false;
    const bool stays = fresh && fresh->status == VOLUME_STARTED && !restarts;

    for (unsigned i = 0; i < old->brick_count && old->status == VOLUME_STARTED; i++) {
        only[i] = brick_host_is_here(&old->bricks[i]) && !(stays && brick_host_has(fresh, &old->bricks[i]));
        has_any |= only[i];
    }
    if (!has_any)
        return;
    for (unsigned i = 0; i < old->brick_count; i++) {
        drained[i] = only[i] && stays && volume_task_leaves(old, i);
        has_drained |= drained[i];
    }
    if (has_drained)
        volumes_detach_drained(old, drained);
    brick_jobs_detach(old, only); /* bricks that are detached already are no error */
}

/* Returns true if bricks were attached. */
static bool
attach_missing(const struct volume *v, int *err, struct problem *why)
{
    bool only[VOLUME_BRICKS_MAX] = {false}, has_any = false;

    for (unsigned i = 0; i < v->brick_count && v->status == VOLUME_STARTED; i++) {
        only[i] = brick_host_is_here(&v->bricks[i]) && !is_attached(&v->bricks[i]);
        has_any |= only[i];
    }
    if (has_any)
        *err = brick_jobs_attach(v, only, volumes_prepare, true, why);
    return has_any;
}

static int
apply_stored_change(struct entry *e, struct volume *fresh, struct problem *why)
{
    struct volume *old = volume_copy(e->now), *now = old ? volume_copy(fresh) : NULL;
    struct problem copy, attach;
    int err = 0, attach_err = 0;

    if (!now) {
        volume_free(old);
        volume_free(fresh);
        return problem_no_memory(why);
    }
    const bool both = old->status == VOLUME_STARTED && fresh->status == VOLUME_STARTED;
    /* a volume of another id was deleted and created again while this host was down */
    const bool restarts = both && (volumes_change_tls(old, fresh) || !gfid_equal(&old->id, &fresh->id));

    volumes_undo_coming(old, now);
    if (volumes_save(fresh, NULL, &copy))
        log_event(LOG_ERROR, NULL, "cluster-copy", "the copy of volume %s in the state folder is old: %s",
                  fresh->name, copy.wrong);
    volumes_become(e, fresh);
    detach_leaving(old, now, restarts);
    if (volume_limit(old) && !volume_limit(now))
        quota_clear(now); /* before the bricks stop to count */
    if (both && !restarts)
        err = brick_jobs_reconfigure(now, old, volumes_prepare, why);
    if (attach_missing(now, &attach_err, &attach))
        volumes_tell_changed(now->name);
    else
        quotas_follow(now->name); /* the bricks may count only now */
    if (!err && attach_err) {
        *why = attach;
        err = attach_err;
    }
    volume_free(old);
    volume_free(now);
    return err;
}

int
volumes_take(const char *name, struct volume *fresh, struct problem *why)
{
    struct entry *e;

    why->err = 0;
    if (fresh && (fresh->status == VOLUME_CREATING || strcmp(fresh->name, name) != 0)) {
        volume_free(fresh); /* its creator asks for its bricks */
        return 0;
    }
    e = volumes_claim_waiting(name);
    if (!e && !fresh)
        return 0;
    if (!fresh) {
        detach_leaving(e->now, NULL, false);
        volumes_undo_coming(e->now, NULL);
        return volumes_drop(e, why);
    }
    if (!e && !(e = volumes_insert(fresh, why))) {
        volume_free(fresh);
        return why->err;
    }
    int err = apply_stored_change(e, fresh, why);
    volumes_release(e);
    return err;
}
