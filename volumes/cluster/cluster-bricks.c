/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/cluster/cluster-bricks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"
#include "volumes/brick-host.h"
#include "volumes/bricks/brick-plan.h"
#include "volumes/bricks/fragments.h"
#include "volumes/cluster/cluster-ask.h"
#include "volumes/cluster/cluster-change.h"
#include "volumes/cluster/cluster.h"
#include "volumes/volumes-internal.h"

enum { TRIES = 16 };

/* ---- a plan as JSON -------------------------------------------------------------------------- */

static json_t *
json_of_flags(const bool *flags, unsigned count)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < count; i++) {
        if (flags[i])
            json_array_append_new(list, json_integer((json_int_t)i));
    }
    return list;
}

static void
flags_of_json(const json_t *list, bool flags[VOLUME_BRICKS_MAX])
{
    json_t *one;
    size_t i;

    memset(flags, 0, VOLUME_BRICKS_MAX * sizeof *flags);
    json_array_foreach(list, i, one)
    {
        json_int_t n = json_integer_value(one);

        if (n >= 0 && n < VOLUME_BRICKS_MAX)
            flags[n] = true;
    }
}

/* The question of all steps. */
static json_t *
json_of_plan(const struct brick_plan *plan, const struct volume *now, int64_t from)
{
    return json_pack("{ss ss sI so so so sb}", "name", now->name, "from", brick_host_own(), "at",
                     (json_int_t)from, "fresh", volume_to_json(plan->fresh), "comes",
                     json_of_flags(plan->comes, plan->fresh->brick_count), "leaves",
                     json_of_flags(plan->leaves, now->brick_count), "fewer", plan->is_fewer_replicas);
}

/* ---- the steps, on each host ----------------------------------------------------------------- */

static int
run_step(int (*step)(struct entry *e, const struct brick_plan *plan, json_t **out, struct problem *why),
         json_t *args, json_t **out, struct problem *why)
{
    const char *name = json_string_value(json_object_get(args, "name"));
    const char *from = json_string_value(json_object_get(args, "from"));
    struct brick_plan plan = {.fresh = volume_from_json(json_object_get(args, "fresh"), why),
                              .is_fewer_replicas = json_is_true(json_object_get(args, "fewer"))};
    int err = plan.fresh ? 0 : why->err;

    if (!err && (!name || !from || strcmp(name, plan.fresh->name) != 0))
        err = problem_set(why, -EINVAL, "the question names no volume");
    flags_of_json(json_object_get(args, "comes"), plan.comes);
    flags_of_json(json_object_get(args, "leaves"), plan.leaves);
    /* the fault of a brick that does not start is no reason to refuse the change that replaces the brick */
    if (!err &&
        cluster_wait_applied(name, json_integer_value(json_object_get(args, "at")), why) == -ETIMEDOUT)
        err = why->err;
    struct entry *e = err ? NULL : volumes_claim_waiting(name);
    if (e) {
        cluster_hold(name, from);
        err = step(e, &plan, out, why);
        volumes_release(e);
    } else if (!err) {
        err = problem_set(why, -ENOENT, "there is no volume %.200s", name);
    }
    volume_free(plan.fresh);
    return err;
}

static int
serve_begin(struct entry *e, const struct brick_plan *plan, json_t **out, struct problem *why)
{
    (void)out;
    return volumes_make_coming(e, plan, why);
}

static int
serve_leave(struct entry *e, const struct brick_plan *plan, json_t **out, struct problem *why)
{
    (void)out;
    return volumes_detach_leaving(e, plan, why);
}

/* The answer has the bricks of this host, except arbiters, that record which bricks of their sets are new. */
static int
serve_mark(struct entry *e, const struct brick_plan *plan, json_t **out, struct problem *why)
{
    bool told[VOLUME_BRICKS_MAX] = {false};
    int err = volumes_mark_coming(e, plan, told, why);

    *out = json_pack("{so}", "told", json_of_flags(told, VOLUME_BRICKS_MAX));
    return err;
}

static int
serve_undo(json_t *args, struct problem *why)
{
    const char *name = json_string_value(json_object_get(args, "name"));
    struct problem ignored;

    if (!name)
        return problem_set(why, -EINVAL, "the question names no volume");
    cluster_check_again(name);
    (void)cluster_wait_applied(name, 0, &ignored); /* a brick that fails is in the log */
    return 0;
}

static int
serve_down(json_t *args, struct problem *why)
{
    const char *name = json_string_value(json_object_get(args, "name"));
    const char *brick = json_string_value(json_object_get(args, "brick"));

    return name && brick ? volumes_take_brick_down(name, brick, why)
                         : problem_set(why, -EINVAL, "the question names no brick");
}

static int
serve_fragments(json_t *args, json_t **out, struct problem *why)
{
    const char *name = json_string_value(json_object_get(args, "name"));
    json_int_t first = json_integer_value(json_object_get(args, "first"));
    struct volume *v = name ? volumes_find(name, why) : NULL;

    if (!v)
        return name ? why->err : problem_set(why, -EINVAL, "the question names no volume");
    if (first < 0 || first >= v->brick_count || first % v->replica != 0 || !v->redundancy)
        problem_set(why, -EINVAL, "brick %lld begins no dispersed set of volume %s", (long long)first, name);
    else if (!(*out = fragments_here(v, (unsigned)first, json_object_get(args, "gfids"))))
        problem_no_memory(why);
    else
        why->err = 0;
    volume_free(v);
    return why->err;
}

int
cluster_bricks_serve(const char *verb, json_t *args, json_t **out, struct problem *why)
{
    if (strcmp(verb, "bricks-begin") == 0)
        return run_step(serve_begin, args, out, why);
    if (strcmp(verb, "bricks-leave") == 0)
        return run_step(serve_leave, args, out, why);
    if (strcmp(verb, "bricks-mark") == 0)
        return run_step(serve_mark, args, out, why);
    if (strcmp(verb, "bricks-undo") == 0)
        return serve_undo(args, why);
    if (strcmp(verb, "brick-down") == 0)
        return serve_down(args, why);
    if (strcmp(verb, "fragments") == 0)
        return serve_fragments(args, out, why);
    return -ENOSYS;
}

/* ---- the changing host ----------------------------------------------------------------------- */

/* The hosts of both volumes, each once. Returns the number. */
static unsigned
hosts_of_both(const struct volume *now, const struct volume *fresh, struct cluster_ask *asks)
{
    const struct volume *const both[] = {now, fresh};
    unsigned count = 0;

    for (size_t n = 0; n < 2; n++) {
        for (unsigned i = 0; i < both[n]->brick_count; i++) {
            const char *host = both[n]->bricks[i].host;
            unsigned k = 0;

            while (k < count && strcmp(asks[k].host, host) != 0)
                k++;
            if (k == count)
                asks[count++].host = host;
        }
    }
    return count;
}

/* Tells whether the step cannot go on without this host. */
static bool
is_host_needed(const struct brick_plan *plan, const struct volume *now, const char *host)
{
    bool is_replaced = false;

    for (unsigned i = 0; i < plan->fresh->brick_count; i++) {
        is_replaced |= plan->comes[i];
        if (plan->comes[i] && strcmp(plan->fresh->bricks[i].host, host) == 0)
            return true;
    }
    for (unsigned i = 0; i < now->brick_count && !is_replaced; i++) {
        if (plan->leaves[i] && strcmp(now->bricks[i].host, host) == 0)
            return true;
    }
    return plan->is_fewer_replicas;
}

/* Runs one step on all hosts. `told` (NULL: not wanted): the sets of the answers. */
static int
step_on_hosts(const char *verb, const struct brick_plan *plan, const struct volume *now, json_t *args,
              bool *told, struct problem *why)
{
    struct cluster_ask *asks = calloc(now->brick_count + plan->fresh->brick_count, sizeof *asks);
    unsigned count = asks ? hosts_of_both(now, plan->fresh, asks) : 0;
    int err = count ? 0 : problem_no_memory(why);

    cluster_ask_all(asks, count, verb, args, CLUSTER_CHANGE_S);
    for (unsigned i = 0; i < count && !err; i++) {
        bool is_away = asks[i].err == -EHOSTUNREACH || asks[i].err == -ETIMEDOUT;
        bool more[VOLUME_BRICKS_MAX];

        if (asks[i].err && (!is_away || is_host_needed(plan, now, asks[i].host))) {
            *why = asks[i].why;
            err = asks[i].err;
        }
        flags_of_json(json_object_get(asks[i].answer, "told"), more);
        for (unsigned k = 0; told && k < VOLUME_BRICKS_MAX; k++)
            told[k] |= more[k];
    }
    cluster_asks_end(asks, count);
    free(asks);
    return err;
}

static unsigned
count_told(const struct volume *v, unsigned brick, const bool *told)
{
    const unsigned first = brick - brick % v->replica;
    unsigned count = 0;

    for (unsigned i = first; i < first + v->replica; i++)
        count += told[i];
    return count;
}

/* Checks that enough online bricks of each set that was there before have recorded which bricks are new:
 * those that can make the files of the new bricks. */
static int
check_told(const struct brick_plan *plan, const struct volume *now, const bool *told, struct problem *why)
{
    const unsigned needed = volume_data_bricks(plan->fresh);

    for (unsigned i = 0; i < plan->fresh->brick_count; i++) {
        if (!plan->comes[i] || brick_plan_is_whole_set(plan, now, i) ||
            count_told(plan->fresh, i, told) >= needed)
            continue;
        problem_set(why, -EBUSY, "%u online bricks have the files for %s:%s",
                    count_told(plan->fresh, i, told), plan->fresh->bricks[i].host,
                    plan->fresh->bricks[i].path);
        problem_expected(why, "at least %u of the set", needed);
        problem_type(why, "kiln volume status %s", now->name);
        return why->err;
    }
    return 0;
}

/* ---- dispersed sets -------------------------------------------------------------------------- */

/* Adds a host's answer: lists are joined, other members are of one host each. */
static void
merge_answer(json_t *all, const json_t *answer)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)answer, key, value)
    {
        json_t *have = json_object_get(all, key);

        if (have && json_is_array(have) && json_is_array(value))
            json_array_extend(have, value);
        else
            json_object_set(all, key, value);
    }
}

/* A fragments_ask. A host that is away has no brick that counts. */
static json_t *
ask_hosts_of_set(const struct volume *v, unsigned first, const json_t *gfids, struct problem *why)
{
    struct cluster_ask *asks = calloc(v->replica, sizeof *asks);
    json_t *args = json_pack("{ss si sO*}", "name", v->name, "first", (int)first, "gfids", gfids);
    json_t *all = json_object();
    unsigned count = 0;
    int err = args && all && asks ? 0 : problem_no_memory(why);

    for (unsigned i = first; i < first + v->replica && !err; i++) {
        unsigned k = 0;

        while (k < count && strcmp(asks[k].host, v->bricks[i].host) != 0)
            k++;
        if (k == count)
            asks[count++].host = v->bricks[i].host;
    }
    if (!err)
        cluster_ask_all(asks, count, "fragments", args, CLUSTER_CHANGE_S);
    for (unsigned k = 0; k < count && !err; k++) {
        if (asks[k].err && asks[k].err != -EHOSTUNREACH && asks[k].err != -ETIMEDOUT) {
            *why = asks[k].why;
            err = asks[k].err;
        }
        merge_answer(all, asks[k].answer);
    }
    cluster_asks_end(asks, count);
    free(asks);
    json_decref(args);
    if (!err)
        return all;
    json_decref(all);
    return NULL;
}

/* Checks that the sets of a started, dispersed volume can do without the bricks that are replaced. */
static int
check_fragments(const struct brick_plan *plan, const struct volume *now, struct problem *why)
{
    if (!now->redundancy || now->status != VOLUME_STARTED)
        return 0;
    for (unsigned i = 0; i < now->brick_count; i++) {
        if (plan->leaves[i] && plan->comes[i] && fragments_check_without(now, i, ask_hosts_of_set, why))
            return why->err;
    }
    return 0;
}

static int
prepare_on_hosts(const struct brick_plan *plan, const struct volume *now, json_t *args, struct problem *why)
{
    bool told[VOLUME_BRICKS_MAX] = {false};
    const bool is_started = now->status == VOLUME_STARTED;
    int err = check_fragments(plan, now, why); /* a refusal does not disturb clients */

    err = err ? err : step_on_hosts("bricks-begin", plan, now, args, NULL, why);
    err = err ? err : step_on_hosts("bricks-leave", plan, now, args, NULL, why);
    err = err ? err : check_fragments(plan, now, why);
    if (!err && is_started && plan->fresh->replica > 1)
        err = step_on_hosts("bricks-mark", plan, now, args, told, why);
    return err || !is_started || plan->fresh->replica == 1 ? err : check_told(plan, now, told, why);
}

struct bricks_change {
    /* Makes the plan from the volume. Returns 0 or -errno with *why. */
    int (*make)(struct brick_plan *plan, const struct volume *now, const struct bricks_change *c,
                struct problem *why);
    const struct volume *bricks;
    const char *from;
    unsigned replica;
    bool with_arbiter;
};

/* Tries the change once. -ESTALE: another host was faster. */
static int
change_bricks_once(const char *name, const struct bricks_change *c, struct problem *why)
{
    struct brick_plan plan = {0};
    struct problem undo;
    int64_t from, at, layout;
    struct volume *now = cluster_read_volume(name, &from, why);
    int err = now ? 0 : why->err;

    if (!err && now->status == VOLUME_CREATING)
        err = problem_set(why, -EBUSY, "volume %s is being created", name);
    err = err ? err : c->make(&plan, now, c, why);
    err = err ? err : volumes_check_task(now, &plan, why);
    err = err ? err : volumes_check_own_paths(plan.fresh, why);
    err = err ? err : cluster_compare_paths(plan.fresh, &layout, why);
    err = err ? err : volumes_check(plan.fresh, why);
    json_t *args = err ? NULL : json_of_plan(&plan, now, from);
    if (!err && !args)
        err = problem_no_memory(why);
    if (!err) {
        err = prepare_on_hosts(&plan, now, args, why);
        if (!err)
            err = cluster_commit(now, plan.fresh, from, layout, &at, why);
        if (err)
            (void)step_on_hosts("bricks-undo", &plan, now, args, NULL, &undo);
    }
    json_decref(args);
    volume_free(now);
    brick_plan_end(&plan);
    return err;
}

static int
change_bricks(const char *name, const struct bricks_change *c, struct problem *why)
{
    int err = cluster_check_store(why);

    for (unsigned i = 0; i < TRIES && !err; i++) {
        err = change_bricks_once(name, c, why);
        if (err != -ESTALE)
            return err;
        err = 0;
    }
    return err ? err
               : problem_set(why, -EBUSY, "volume %.200s was changed by other hosts during each try", name);
}

/* ---- the changes ----------------------------------------------------------------------------- */

static int
plan_add(struct brick_plan *plan, const struct volume *now, const struct bricks_change *c,
         struct problem *why)
{
    return brick_plan_add(plan, now, c->bricks, c->replica, c->with_arbiter, why);
}

int
cluster_add_bricks(const char *name, const struct volume *added, unsigned replica, bool with_arbiter,
                   struct problem *why)
{
    const struct bricks_change c = {plan_add, added, NULL, replica, with_arbiter};

    return change_bricks(name, &c, why);
}

static int
plan_remove(struct brick_plan *plan, const struct volume *now, const struct bricks_change *c,
            struct problem *why)
{
    return brick_plan_remove(plan, now, c->bricks, c->replica, why);
}

int
cluster_remove_bricks(const char *name, const struct volume *removed, unsigned replica, struct problem *why)
{
    const struct bricks_change c = {plan_remove, removed, NULL, replica, false};

    return change_bricks(name, &c, why);
}

static int
plan_replace(struct brick_plan *plan, const struct volume *now, const struct bricks_change *c,
             struct problem *why)
{
    int err = brick_plan_replace(plan, now, c->from, c->bricks, why);

    if (!err)
        plan->fresh->next_id++; /* hosts see by it that a brick of the same path and id was replaced */
    return err;
}

int
cluster_replace_brick(const char *name, const char *from, const struct volume *to, struct problem *why)
{
    const struct bricks_change c = {plan_replace, to, from, 0, false};

    return change_bricks(name, &c, why);
}

int
cluster_take_brick_down(const char *name, const char *brick, struct problem *why)
{
    int64_t from;
    struct volume *v = cluster_read_volume(name, &from, why);
    int at = v ? brick_host_find(v, brick) : -1;

    if (!v)
        return why->err;
    if (at < 0) {
        problem_set(why, -ENOENT, "%s is no brick of volume %s", brick, name);
        problem_type(why, "kiln volume info %s", name);
        volume_free(v);
        return why->err;
    }
    if (v->redundancy && v->status == VOLUME_STARTED &&
        fragments_check_without(v, (unsigned)at, ask_hosts_of_set, why)) {
        volume_free(v);
        return why->err;
    }
    struct cluster_ask ask = {.host = v->bricks[at].host};
    json_t *args = json_pack("{ss ss}", "name", name, "brick", v->bricks[at].path);
    cluster_ask_all(&ask, 1, "brick-down", args, CLUSTER_CHANGE_S);
    json_decref(args);
    cluster_asks_end(&ask, 1);
    volume_free(v);
    if (ask.err)
        *why = ask.why;
    return ask.err;
}
