/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Adds, removes and replaces bricks of a volume, by a plan of brick-plan.h.
 *
 *     names reserved ─▶ everything checked ─▶ saved: incoming bricks ─▶ folders made   undone at next start
 *     ─▶ leaving bricks detached ─▶ no data only on them? ─▶ remaining bricks accuse the new ones
 *     ─▶ new bricks attached ─▶ SAVED: takes effect ─▶ clients and the self-heal daemon notified
 *
 * Bricks that a rebalance has drained are detached last, after the clients have left them: nothing is created
 * on these bricks since the drain began, and a client that calls a detached brick would get an error, or
 * would wait.
 *
 * Everything is checked before the leaving bricks are detached, and again afterwards. A dispersed set needs K
 * other bricks with the newest fragments of all objects (fragments.h), which record the new brick's lack.
 *
 * A failure undoes the steps so far. The leaving bricks are detached first, so that their contents do not
 * change after the check, and so that the self-heal daemon does not find the old brick complete and remove
 * the marks. */
#include <errno.h>
#include <fts.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "bricks/bricks.h"
#include "fs/brick-client.h"
#include "graph/graph.h"
#include "log/log.h"
#include "volumes/brick-host.h"
#include "volumes/bricks/brick-jobs.h"
#include "volumes/bricks/brick-marks.h"
#include "volumes/bricks/brick-place.h"
#include "volumes/bricks/brick-plan.h"
#include "volumes/bricks/fragments.h"
#include "volumes/heal/heal-pending.h"
#include "volumes/volume-task.h"
#include "volumes/volumes-internal.h"

enum { CLIENTS_LEAVE_MS = 5000, POLL_MS = 20 };

/* ---- folders --------------------------------------------------------------------------------- */

static int
check_new_places(struct brick_plan *plan, struct problem *why)
{
    struct volume *v = plan->fresh;
    bool is_missing;

    for (unsigned i = 0; i < v->brick_count; i++) {
        if (!plan->comes[i])
            continue;
        if (brick_place_check(v->bricks[i].path, &is_missing, why))
            return why->err;
        v->bricks[i].made = is_missing;
    }
    return brick_jobs_check(v, volumes_prepare, why);
}

static void
unmake_places(const struct brick_plan *plan, const struct volume *now, unsigned count)
{
    struct problem why;
    bool is_clean = true;

    for (unsigned i = 0; i < count; i++) {
        const struct volume_brick *b = &plan->fresh->bricks[i];

        if (plan->comes[i] && (brick_place_clear(now, b, &why) || brick_place_unmake(now, b, &why))) {
            log_event(LOG_ERROR, NULL, "volume-bricks-undo", "volume %s: %s; the next start tries again",
                      now->name, why.wrong);
            is_clean = false;
        }
    }
    /* The state still lists the bricks to undo. */
    if (is_clean && volumes_save(now, NULL, &why))
        log_event(LOG_ERROR, NULL, "volume-bricks-undo-state",
                  "volume %s: undone bricks stay in the state folder: %s", now->name, why.wrong);
}

static int
save_coming(const struct brick_plan *plan, const struct volume *now, struct problem *why)
{
    struct volume *with = volume_copy(now);
    int err = with ? 0 : -ENOMEM;

    for (unsigned i = 0; i < plan->fresh->brick_count && !err; i++) {
        if (plan->comes[i])
            err = volume_add_coming(with, &plan->fresh->bricks[i]);
    }
    err = err ? problem_no_memory(why) : volumes_save(with, now, why);
    volume_free(with);
    return err;
}

static bool
has_any(const bool *list, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (list[i])
            return true;
    }
    return false;
}

static int
make_places(const struct brick_plan *plan, const struct volume *now, struct problem *why)
{
    const struct volume *v = plan->fresh;

    if (!has_any(plan->comes, v->brick_count))
        return 0;
    if (save_coming(plan, now, why))
        return why->err;
    for (unsigned i = 0; i < v->brick_count; i++) {
        if (plan->comes[i] && brick_place_make(v, &v->bricks[i], why)) {
            unmake_places(plan, now, i);
            return why->err;
        }
    }
    return 0;
}

/* ---- data that only leaving bricks have ------------------------------------------------------ */

/* A link file of distribute points to another brick and holds no data. */
static bool
is_link_file(const FTSENT *e)
{
    return e->fts_info == FTS_F && (e->fts_statp->st_mode & 07777) == 01000 &&
           lgetxattr(e->fts_path, "trusted.glusterfs.dht.linkto", NULL, 0) > 0;
}

static int
check_no_files(const char *brick, struct problem *why)
{
    char *const roots[] = {(char *)brick, NULL};
    const FTSENT *e;
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, NULL);

    why->err = 0;
    while (walk && !why->err && (errno = 0, e = fts_read(walk))) {
        if (e->fts_level == 1 &&
            (strcmp(e->fts_name, ".glusterfs") == 0 || strcmp(e->fts_name, "lost+found") == 0))
            (void)fts_set(walk, (FTSENT *)e, FTS_SKIP);
        else if (e->fts_info == FTS_ERR || e->fts_info == FTS_DNR || e->fts_info == FTS_NS)
            problem_set(why, -e->fts_errno, "%s: %s", e->fts_path, strerror(e->fts_errno));
        else if (e->fts_info != FTS_D && e->fts_info != FTS_DP && !is_link_file(e)) {
            problem_set(why, -ENOTEMPTY, "brick %s holds files, such as %s", brick,
                        e->fts_path + strlen(brick));
            problem_expected(why, "bricks without files; remove-brick ... start moves them");
        }
    }
    if (!walk || (!why->err && errno))
        problem_set(why, -errno, "brick %s: %s", brick, strerror(errno));
    if (walk)
        fts_close(walk);
    return why->err;
}

static bool
is_served(const struct volume *v, unsigned brick)
{
    struct graph *g = bricks_find(v->bricks[brick].path);

    if (g)
        graph_unpin(g);
    return g != NULL;
}

/* Checks that the remaining bricks of the set are online, and that the leaving brick records no changes
 * that they missed. */
static int
check_remaining(const struct brick_plan *plan, const struct volume *now, unsigned brick,
                  struct problem *why)
{
    const unsigned first = brick - brick % now->replica;
    long n = heal_pending_accused(now->bricks[brick].path);

    for (unsigned i = first; i < first + now->replica; i++) {
        if (plan->leaves[i] || !brick_host_is_here(&now->bricks[i]) || is_served(now, i))
            continue;
        problem_set(why, -EBUSY, "remaining brick %s is offline", now->bricks[i].path);
        problem_type(why, "kiln volume start %s force", now->name);
        return why->err;
    }
    if (n == 0)
        return 0;
    if (n < 0)
        problem_set(why, (int)n, "brick %s: its index cannot be read: %s", now->bricks[brick].path,
                    strerror((int)-n));
    else
        problem_set(why, -EBUSY, "brick %s has %ld pending entries that other bricks missed",
                    now->bricks[brick].path, n);
    problem_expected(why, "replicas that are equal");
    problem_type(why, "kiln volume heal %s info", now->name);
    return why->err;
}

/* Refuses to replace an online brick that records changes which others missed. An offline brick of a
 * replicated set is not checked, because it is lost anyway. */
static int
check_replaced(const struct volume *now, unsigned brick, bool was_served, struct problem *why)
{
    if (now->redundancy) /* with a store the changing host has asked all hosts */
        return *brick_host_own() ? 0 : fragments_check_without(now, brick, NULL, why);
    long n = was_served ? heal_pending_accused(now->bricks[brick].path) : 0;

    if (n <= 0)
        return 0;
    problem_set(why, -EBUSY, "online brick %s has %ld pending entries that other bricks missed",
                now->bricks[brick].path, n);
    problem_expected(why, "replicas that are equal, or an offline brick");
    problem_type(why, "kiln volume heal %s info", now->name);
    return why->err;
}

static int
check_leaving(const struct brick_plan *plan, const struct volume *now, const bool *was_served,
              struct problem *why)
{
    const bool is_replaced = has_any(plan->comes, plan->fresh->brick_count);

    for (unsigned i = 0; i < now->brick_count; i++) {
        int err = 0;

        if (!plan->leaves[i] || !brick_host_is_here(&now->bricks[i]))
            continue;
        if (plan->is_fewer_replicas)
            err = check_remaining(plan, now, i, why);
        else if (is_replaced)
            err = check_replaced(now, i, was_served && was_served[i], why);
        else
            err = check_no_files(now->bricks[i].path, why);
        if (err)
            return err;
    }
    return 0;
}

int
volumes_check_leaving_here(const struct volume *now, const struct brick_plan *plan, const bool *was_served,
                           struct problem *why)
{
    return check_leaving(plan, now, was_served, why);
}

/* ---- what the new ones lack ------------------------------------------------------------------ */

/* Makes each online brick of the set accuse the new bricks of lacking everything. */
static int
mark_set(const struct brick_plan *plan, unsigned first, struct problem *why)
{
    const struct volume *v = plan->fresh;
    const unsigned needed = volume_data_bricks(v);
    unsigned told = 0;

    for (unsigned i = first; i < first + v->replica; i++) {
        if (plan->comes[i] || !is_served(v, i))
            continue;
        if (brick_marks_put(v, i, plan->comes, why))
            return why->err;
        told += !volume_is_arbiter(v, i);
    }
    if (told >= needed)
        return 0;
    problem_set(why, -EBUSY, "%u online bricks have the files for the new bricks of the set of %s", told,
                v->bricks[first].path);
    problem_expected(why, "at least %u", needed);
    problem_type(why, "kiln volume start %s force", v->name);
    return why->err;
}

static int
mark_all(const struct brick_plan *plan, const struct volume *now, struct problem *why)
{
    const struct volume *v = plan->fresh;

    for (unsigned first = 0; first < v->brick_count && v->replica > 1; first += v->replica) {
        if (!brick_plan_is_whole_set(plan, now, first) && has_any(plan->comes + first, v->replica) &&
            mark_set(plan, first, why))
            return why->err;
    }
    return 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Changes the bricks of a started volume to those of the plan. Restores the old bricks after a failure. */
static int
exchange_bricks(const struct brick_plan *plan, const struct volume *now, const bool *was_served,
                struct problem *why)
{
    struct problem again;

    brick_jobs_detach(now, plan->leaves);
    int err = check_leaving(plan, now, was_served, why);
    err = err ? err : mark_all(plan, now, why);
    if (!err && has_any(plan->comes, plan->fresh->brick_count))
        err = brick_jobs_attach(plan->fresh, plan->comes, volumes_prepare, false, why);
    if (!err && (err = brick_jobs_reconfigure(plan->fresh, now, volumes_prepare, why)))
        brick_jobs_detach(plan->fresh, plan->comes);
    if (err && has_any(was_served, now->brick_count) &&
        brick_jobs_attach(now, was_served, volumes_prepare, true, &again))
        log_event(LOG_ERROR, NULL, "volume-bricks-back",
                  "volume %s: a former brick does not serve after an undone change: %s", now->name,
                  again.wrong);
    return err;
}

static void
restore_bricks(const struct brick_plan *plan, const struct volume *now)
{
    struct problem why;

    brick_jobs_revert(now, volumes_prepare);
    brick_jobs_detach(plan->fresh, plan->comes);
    if (brick_jobs_attach(now, plan->leaves, volumes_prepare, true, &why))
        log_event(LOG_ERROR, NULL, "volume-bricks-back-again",
                  "volume %s: a leaving brick does not serve after an undone change: %s", now->name,
                  why.wrong);
}

bool
volumes_removes_drained(const struct brick_plan *plan, const struct volume *now)
{
    bool is = now->status == VOLUME_STARTED && !volume_task_is_running(now) && !plan->is_fewer_replicas;

    for (unsigned i = 0; i < now->brick_count; i++)
        is &= !plan->leaves[i] || volume_task_leaves(now, i);
    return is && !has_any(plan->comes, plan->fresh->brick_count);
}

static bool
has_clients(const struct volume *v, unsigned brick)
{
    struct graph *g = bricks_find(v->bricks[brick].path);

    if (!g)
        return false;
    pthread_mutex_lock(&g->clients_lock);
    bool has = !cds_list_empty(&g->clients);
    pthread_mutex_unlock(&g->clients_lock);
    graph_unpin(g);
    return has;
}

void
volumes_detach_drained(const struct volume *old, const bool *leaves)
{
    struct problem why;
    bool has = true;

    for (unsigned ms = 0; ms < CLIENTS_LEAVE_MS && has; ms += POLL_MS) {
        has = false;
        for (unsigned i = 0; i < old->brick_count; i++)
            has |= leaves[i] && has_clients(old, i);
        if (has)
            usleep(POLL_MS * 1000);
    }
    brick_jobs_detach(old, leaves);
    for (unsigned i = 0; i < old->brick_count; i++) {
        if (leaves[i] && check_no_files(old->bricks[i].path, &why))
            log_event(LOG_ERROR, NULL, "volume-bricks-late-file", "volume %s after the removal: %s",
                      old->name, why.wrong);
    }
}

static int
do_plan(struct entry *e, struct brick_plan *plan, struct problem *why)
{
    const bool is_started = e->now->status == VOLUME_STARTED;
    const bool is_drained = volumes_removes_drained(plan, e->now);
    bool was_served[VOLUME_BRICKS_MAX] = {false};

    for (unsigned i = 0; i < e->now->brick_count; i++)
        was_served[i] = plan->leaves[i] && is_served(e->now, i);
    /* Checks run first, so that a refused operation does not disturb clients. */
    if (check_leaving(plan, e->now, was_served, why) || check_new_places(plan, why) ||
        make_places(plan, e->now, why))
        return why->err;
    int err = is_drained   ? brick_jobs_reconfigure(plan->fresh, e->now, volumes_prepare, why)
              : is_started ? exchange_bricks(plan, e->now, was_served, why)
                           : check_leaving(plan, e->now, NULL, why);
    if (!err && (err = volumes_save(plan->fresh, e->now, why)) && is_started)
        restore_bricks(plan, e->now);
    if (err && has_any(plan->comes, plan->fresh->brick_count))
        unmake_places(plan, e->now, plan->fresh->brick_count);
    return err;
}

int
volumes_check_task(const struct volume *now, struct brick_plan *plan, struct problem *why)
{
    bool is_removal = true;

    for (unsigned i = 0; i < now->brick_count; i++)
        is_removal &= !volume_task_leaves(now, i) || (plan->leaves[i] && !plan->is_fewer_replicas);
    is_removal &= !has_any(plan->comes, plan->fresh->brick_count);
    bool is_drain = now->task && strcmp(volume_task_kind(now), TASK_DRAIN) == 0 &&
                    strcmp(volume_task_state(now), TASK_STOPPED) != 0;
    if (volume_task_is_running(now) || (is_drain && !is_removal)) {
        problem_set(why, -EBUSY, is_drain ? "volume %s drains bricks" : "volume %s has a running rebalance",
                    now->name);
        problem_expected(why, is_drain ? "remove-brick ... commit, or stop, first"
                                       : "the end of the rebalance, or rebalance ... stop");
        problem_type(why, is_drain ? "kiln volume info %s" : "kiln volume rebalance %s status", now->name);
        return why->err;
    }
    json_decref(plan->fresh->task);
    plan->fresh->task = NULL;
    return 0;
}

/* Executes a plan; `err` is the result of making it. On success the plan's volume becomes the volume. */
static int
run_plan(struct entry *e, struct brick_plan *plan, int err, struct problem *why)
{
    err = err ? err : volumes_check_task(e->now, plan, why);
    err = err ? err : volumes_reserve_paths(e, plan->fresh, why);
    if (!err) {
        err = do_plan(e, plan, why);
        (void)volumes_reserve_paths(e, NULL, why);
    }
    struct volume *old = !err && volumes_removes_drained(plan, e->now) ? volume_copy(e->now) : NULL;
    if (!err) {
        log_event(LOG_INFO, NULL, "volume-bricks", "volume %s has %u bricks, replica %u", plan->fresh->name,
                  plan->fresh->brick_count, plan->fresh->replica);
        volumes_become(e, plan->fresh);
        plan->fresh = NULL;
    }
    if (old)
        volumes_detach_drained(old, plan->leaves);
    volume_free(old);
    brick_plan_end(plan);
    volumes_release(e);
    return err;
}

int
volumes_add_bricks(const char *name, const struct volume *added, unsigned replica, bool with_arbiter,
                   struct problem *why)
{
    struct entry *e = volumes_claim(name, why);
    struct brick_plan plan;

    return e ? run_plan(e, &plan, brick_plan_add(&plan, e->now, added, replica, with_arbiter, why), why)
             : why->err;
}

int
volumes_remove_bricks(const char *name, const struct volume *removed, unsigned replica, struct problem *why)
{
    struct entry *e = volumes_claim(name, why);
    struct brick_plan plan;

    return e ? run_plan(e, &plan, brick_plan_remove(&plan, e->now, removed, replica, why), why) : why->err;
}

int
volumes_replace_brick(const char *name, const char *from, const struct volume *to, struct problem *why)
{
    struct entry *e = volumes_claim(name, why);
    struct brick_plan plan;

    return e ? run_plan(e, &plan, brick_plan_replace(&plan, e->now, from, to, why), why) : why->err;
}

int
volumes_take_brick_down(const char *name, const char *path, struct problem *why)
{
    struct entry *e = volumes_claim(name, why);
    bool only[VOLUME_BRICKS_MAX] = {false};

    if (!e)
        return why->err;
    int at = brick_host_find(e->now, path);
    if (at < 0) {
        problem_set(why, -ENOENT, "%s is no brick of volume %s", path, name);
        problem_type(why, "kiln volume info %s", name);
    } else if (e->now->redundancy && !*brick_host_own() &&
               fragments_check_without(e->now, (unsigned)at, NULL, why)) {
        (void)at;
    } else if (e->now->replica == 1) {
        problem_set(why, -EINVAL, "volume %s is not replicated: the files of %s are nowhere else", name,
                    path);
        problem_expected(why, "a brick that has others with the same files");
    } else {
        only[at] = true;
        brick_jobs_detach(e->now, only);
    }
    volumes_release(e);
    return why->err;
}
