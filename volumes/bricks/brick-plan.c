/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/bricks/brick-plan.h"

#include <errno.h>
#include <string.h>

#include "volumes/brick-host.h"
#include "volumes/volume-options.h"

static int
plan_begin(struct brick_plan *plan, const struct volume *now, struct problem *why)
{
    memset(plan, 0, sizeof *plan);
    why->err = 0;
    plan->fresh = volume_copy(now);
    return plan->fresh ? 0 : problem_no_memory(why);
}

void
brick_plan_end(struct brick_plan *plan)
{
    volume_free(plan->fresh);
    plan->fresh = NULL;
}

bool
brick_plan_is_whole_set(const struct brick_plan *plan, const struct volume *now, unsigned brick)
{
    return now->replica == plan->fresh->replica && brick >= now->brick_count;
}

static int
no_brick_of(const struct volume *v, const char *path, struct problem *why)
{
    problem_set(why, -ENOENT, "%s is no brick of volume %s", path, v->name);
    problem_type(why, "kiln volume info %s", v->name);
    return why->err;
}

/* Only online bricks can record that new bricks are incomplete, so the volume must be started. */
static int
check_started(const struct volume *v, struct problem *why)
{
    if (v->status == VOLUME_STARTED)
        return 0;
    problem_set(why, -EINVAL, "volume %s is not started", v->name);
    problem_expected(why,
                     "a started volume, because its bricks must record that the new bricks are incomplete");
    problem_type(why, "kiln volume start %s", v->name);
    return why->err;
}

/* ---- add ------------------------------------------------------------------------------------- */

/* Inserts a new brick with a fresh id before the brick at `place`. */
static int
insert_new(struct brick_plan *plan, unsigned place, const struct volume_brick *b, struct problem *why)
{
    struct volume *v = plan->fresh;
    struct volume_brick fresh = {b->host, b->path, false, v->next_id};

    if (v->brick_count >= VOLUME_BRICKS_MAX)
        return problem_set(why, -E2BIG, "volume %s would have more than %d bricks", v->name,
                           VOLUME_BRICKS_MAX);
    if (volume_insert_brick(v, place, &fresh))
        return problem_no_memory(why);
    memmove(&plan->comes[place + 1], &plan->comes[place], (VOLUME_BRICKS_MAX - place - 1) * sizeof(bool));
    plan->comes[place] = true;
    return 0;
}

static int
add_sets(struct brick_plan *plan, const struct volume *added, struct problem *why)
{
    struct volume *v = plan->fresh;

    if (added->brick_count % v->replica != 0) {
        problem_set(why, -EINVAL, "%u brick%s with %s %u", added->brick_count,
                    added->brick_count == 1 ? "" : "s", v->redundancy ? "disperse" : "replica", v->replica);
        problem_expected(why, "a multiple of %u bricks%s", v->replica,
                         v->redundancy ? "" : ", or replica N to have more copies of each file");
        return why->err;
    }
    for (unsigned i = 0; i < added->brick_count; i++) {
        if (insert_new(plan, v->brick_count, &added->bricks[i], why))
            return why->err;
    }
    return 0;
}

static int
check_growth(const struct volume *v, const struct volume *added, unsigned replica, bool with_arbiter,
             struct problem *why)
{
    const unsigned sets = v->brick_count / v->replica, wanted = (replica - v->replica) * sets;

    if (check_started(v, why))
        return why->err;
    if (v->has_arbiter) {
        problem_set(why, -EINVAL, "volume %s has arbiters: it cannot get replica %u", v->name, replica);
        problem_expected(why, "whole sets of replica 3 arbiter 1");
    } else if (with_arbiter && (v->replica != 2 || replica != 3)) {
        problem_set(why, -EINVAL, "an arbiter for replica %u", v->replica);
        problem_expected(why, "replica 3 arbiter 1 of a volume with replica 2");
    } else if (added->brick_count != wanted) {
        problem_set(why, -EINVAL, "%u bricks to go from replica %u to %u", added->brick_count, v->replica,
                    replica);
        problem_expected(why, "%u: %u for each of %u sets", wanted, replica - v->replica, sets);
    }
    return why->err;
}

static int
add_replicas(struct brick_plan *plan, const struct volume *added, unsigned replica, bool with_arbiter,
             struct problem *why)
{
    struct volume *v = plan->fresh;
    const unsigned sets = v->brick_count / v->replica, more = replica - v->replica;
    const bool was_plain = v->replica == 1;

    for (unsigned i = 0; i < sets * more; i++) {
        unsigned place = i / more * replica + v->replica + i % more;

        if (insert_new(plan, place, &added->bricks[i], why))
            return why->err;
    }
    v->replica = replica;
    v->has_arbiter = with_arbiter;
    return was_plain && volume_options_of_new(v) ? problem_no_memory(why) : 0;
}

int
brick_plan_add(struct brick_plan *plan, const struct volume *now, const struct volume *added,
               unsigned replica, bool with_arbiter, struct problem *why)
{
    if (plan_begin(plan, now, why) ||
        (replica != 0 && volume_refuse_dispersed(now, "a change of the number of bricks in a set", why)))
        return why->err;
    if (replica != 0 && replica < now->replica) {
        problem_set(why, -EINVAL, "volume %s has replica %u, which is more than %u", now->name, now->replica,
                    replica);
        problem_type(why, "kiln volume remove-brick %s replica %u BRICK...", now->name, replica);
        return why->err;
    }
    if (replica == 0 || replica == now->replica) {
        if (with_arbiter && !now->has_arbiter)
            return problem_set(why, -EINVAL, "volume %s has no arbiters", now->name);
        add_sets(plan, added, why);
    } else if (check_growth(now, added, replica, with_arbiter, why) == 0) {
        add_replicas(plan, added, replica, with_arbiter, why);
    }
    return why->err ? why->err : volume_check_shape(plan->fresh, why);
}

/* ---- remove ---------------------------------------------------------------------------------- */

static int
mark_leaving(struct brick_plan *plan, const struct volume *now, const struct volume *removed,
             struct problem *why)
{
    for (unsigned i = 0; i < removed->brick_count; i++) {
        int at = brick_host_find_same(now, &removed->bricks[i]);

        if (at < 0)
            return no_brick_of(now, removed->bricks[i].path, why);
        if (plan->leaves[at])
            return problem_set(why, -EINVAL, "%s is named twice", removed->bricks[i].path);
        plan->leaves[at] = true;
    }
    return 0;
}

/* Checks the number of leaving bricks in each set: it must be `few`, or with `or_all` zero or the whole
 * set. */
static int
check_sets(const struct brick_plan *plan, const struct volume *now, unsigned few, bool or_all,
           struct problem *why)
{
    for (unsigned set = 0; set < now->brick_count / now->replica; set++) {
        unsigned n = 0;

        for (unsigned i = 0; i < now->replica; i++)
            n += plan->leaves[set * now->replica + i];
        if (or_all ? n == 0 || n == now->replica : n == few)
            continue;
        problem_set(why, -EINVAL, "%u of the %u bricks of the set of %s", n, now->replica,
                    now->bricks[set * now->replica].path);
        if (or_all)
            problem_expected(why, "whole sets, or replica N to have fewer copies of each file");
        else
            problem_expected(why, "%u of each set", few);
        return why->err;
    }
    return 0;
}

static int
check_arbiters_leave(const struct brick_plan *plan, const struct volume *now, struct problem *why)
{
    for (unsigned i = 0; i < now->brick_count; i++) {
        if (now->has_arbiter && plan->leaves[i] != volume_is_arbiter(now, i)) {
            problem_set(why, -EINVAL, "a set of replica 3 arbiter 1 without its data bricks");
            problem_expected(why, "replica 2 and all arbiters, which are the third brick of each set");
            return why->err;
        }
    }
    return 0;
}

int
brick_plan_remove(struct brick_plan *plan, const struct volume *now, const struct volume *removed,
                  unsigned replica, struct problem *why)
{
    if (plan_begin(plan, now, why) ||
        (replica != 0 && volume_refuse_dispersed(now, "a change of the number of bricks in a set", why)) ||
        mark_leaving(plan, now, removed, why))
        return why->err;
    if (removed->brick_count == now->brick_count) {
        problem_set(why, -EINVAL, "these are all bricks of volume %s", now->name);
        problem_type(why, "kiln volume stop %s, and delete", now->name);
        return why->err;
    }
    if (replica > now->replica)
        return problem_set(why, -EINVAL, "volume %s has replica %u, which is less than %u", now->name,
                           now->replica, replica);
    plan->is_fewer_replicas = replica != 0 && replica < now->replica;
    if (check_sets(plan, now, now->replica - replica, !plan->is_fewer_replicas, why) ||
        (plan->is_fewer_replicas && (check_started(now, why) || check_arbiters_leave(plan, now, why))))
        return why->err;
    for (unsigned i = now->brick_count; i-- > 0;) {
        if (plan->leaves[i])
            volume_remove_brick(plan->fresh, i);
    }
    if (plan->is_fewer_replicas) {
        plan->fresh->replica = replica;
        plan->fresh->has_arbiter = false;
    }
    return volume_check_shape(plan->fresh, why);
}

/* ---- replace --------------------------------------------------------------------------------- */

int
brick_plan_replace(struct brick_plan *plan, const struct volume *now, const char *from,
                   const struct volume *to, struct problem *why)
{
    int at = brick_host_find(now, from);

    if (plan_begin(plan, now, why))
        return why->err;
    if (at < 0)
        return no_brick_of(now, from, why);
    if (now->replica == 1) {
        problem_set(why, -EINVAL, "volume %s is not replicated: the files of %s are nowhere else", now->name,
                    from);
        problem_expected(why, "a brick that has others with the same files");
        return why->err;
    }
    if (check_started(now, why))
        return why->err;
    struct volume_brick b = {to->bricks[0].host, to->bricks[0].path, false, now->bricks[at].id};
    volume_remove_brick(plan->fresh, (unsigned)at);
    if (volume_insert_brick(plan->fresh, (unsigned)at, &b))
        return problem_no_memory(why);
    plan->comes[at] = plan->leaves[at] = true;
    return 0;
}
