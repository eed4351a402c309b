/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/heal/rebalance.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <urcu.h>

#include "base/gfid.h"
#include "base/thread.h"
#include "log/log.h"
#include "volumes/brick-host.h"
#include "volumes/bricks/brick-plan.h"
#include "volumes/cluster/cluster-change.h"
#include "volumes/cluster/cluster-jobs.h"
#include "volumes/cluster/cluster.h"
#include "volumes/heal/healer.h"
#include "volumes/volfile-text.h"
#include "volumes/volume-options.h"
#include "volumes/volume-task.h"
#include "volumes/volumes.h"

enum { ANSWER_S = 10, AGAIN_MS = 100, WIDTH_LAZY = 1, WIDTH_NORMAL = 8, WIDTH_AGGRESSIVE = 32 };

static uint16_t brick_port; /* set once, before any task */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t saved = PTHREAD_COND_INITIALIZER;
static unsigned savers; /* under the lock: threads that save the end of a task */
static bool is_ending;  /* under the lock: kilnd ends */

/* ---- messages to the process ----------------------------------------------------------------- */

static int
files_at_a_time(const struct volume *v)
{
    const char *throttle = volume_option_value(v, "cluster.rebal-throttle");

    return strcmp(throttle, "lazy") == 0         ? WIDTH_LAZY
           : strcmp(throttle, "aggressive") == 0 ? WIDTH_AGGRESSIVE
                                                 : WIDTH_NORMAL;
}

/* Returns whether the rebalance gives way to clients. */
static bool
gives_way(const struct volume *v)
{
    return strcmp(volume_option_value(v, "cluster.rebal-throttle"), "aggressive") != 0;
}

/* Returns the message that begins the volume's task; NULL: no memory. The caller frees the line. */
static char *
task_message(const struct volume *v)
{
    char *text = volfile_text_rebalance(v, brick_port);
    json_t *message = text ? json_pack("{ss ss sI ss si sb ss}", "do", "rebalance", "name", v->name, "job",
                                       volume_task_number(v), "kind", volume_task_kind(v), "width",
                                       files_at_a_time(v), "gives-way", gives_way(v), "volfile", text)
                           : NULL;
    char *line = message ? json_dumps(message, JSON_COMPACT) : NULL;

    json_decref(message);
    free(text);
    return line;
}

static void
task_key(const char *volume, char key[VOLUME_NAME_MAX + 32])
{
    snprintf(key, VOLUME_NAME_MAX + 32, "rebalance:%.*s", VOLUME_NAME_MAX, volume);
}

void
rebalance_follow(const char *volume)
{
    char key[VOLUME_NAME_MAX + 32], drop[VOLUME_NAME_MAX + 64];
    struct problem why;
    struct volume *v = volumes_find(volume, &why);

    task_key(volume, key);
    if (!v || v->status != VOLUME_STARTED || !volume_task_is_running(v) ||
        (cluster_is_on() && !cluster_jobs_does_task(v))) {
        snprintf(drop, sizeof drop, "{\"do\":\"drop-rebalance\",\"name\":\"%.*s\"}", VOLUME_NAME_MAX, volume);
        healer_take_away(key, drop);
    } else {
        char *line = task_message(v);

        if (!line || healer_give(key, line))
            log_event(LOG_ERROR, NULL, "rebalance-memory", "volume %s is not rebalanced: no memory", volume);
    }
    volume_free(v);
}

/* ---- the end of a task ----------------------------------------------------------------------- */

struct task_end {
    char *volume;
    json_t *look;
    json_int_t number;
};

static int
record_task_end(struct volume *fresh, void *arg, struct problem *why)
{
    const struct task_end *end = arg;
    const char *state = json_string_value(json_object_get(end->look, "state"));

    if (!volume_task_is_running(fresh) || volume_task_number(fresh) != end->number)
        return problem_set(why, -EALREADY, "the task has ended");
    if (!state || strcmp(state, "completed") != 0)
        state = "failed";
    return volume_task_end(fresh, state, end->look) ? problem_no_memory(why) : 0;
}

/* Ends the task of a volume of the store and the record of its job in one transaction. */
static int
end_with_job(const char *volume, const char *job_state, int (*fn)(struct volume *, void *, struct problem *),
             void *arg, struct problem *why)
{
    int64_t revision;
    struct volume *v = cluster_read_volume(volume, &revision, why);
    const char *id = v ? volume_task_job(v) : NULL;
    char key[64], *text = id ? cluster_job_ended_text(id, job_state) : NULL;

    if (!v)
        return why->err;
    snprintf(key, sizeof key, "jobs/%.40s", id ? id : "");
    const struct store_change record = {key, text, STORE_ANY_REVISION, 0};
    int err = cluster_change(volume, fn, arg, text ? &record : NULL, why);
    free(text);
    volume_free(v);
    return err;
}

static int
end_task(const char *volume, const char *job_state, int (*fn)(struct volume *, void *, struct problem *),
         void *arg, struct problem *why)
{
    return cluster_is_on() ? end_with_job(volume, job_state, fn, arg, why)
                           : volumes_change(volume, fn, arg, why);
}

static bool
savers_must_end(void)
{
    pthread_mutex_lock(&lock);
    bool is = is_ending;
    pthread_mutex_unlock(&lock);
    return is;
}

/* Another operation has the volume, or the store does not answer. */
static bool
may_save_later(int err)
{
    return err == -EBUSY || err == -EAGAIN;
}

/* A save that kilnd's end prevents is no loss: the next kilnd, or the next owner of the job, begins the task
 * again, which then finds nothing to do. */
static void
save_end(struct task_end *end)
{
    const char *state = json_string_value(json_object_get(end->look, "state"));
    const char *job_state = state && strcmp(state, "completed") == 0 ? "done" : "failed";
    struct problem why;
    int err;

    while (may_save_later(err = end_task(end->volume, job_state, record_task_end, end, &why)) &&
           !savers_must_end())
        usleep(AGAIN_MS * 1000);
    if (err && err != -EALREADY && err != -ENOENT && !may_save_later(err))
        log_event(LOG_ERROR, NULL, "rebalance-save", "volume %s: the end of its rebalance is not saved: %s",
                  end->volume, why.wrong);
}

static void
task_end_free(struct task_end *end)
{
    if (!end)
        return;
    json_decref(end->look);
    free(end->volume);
    free(end);
}

static void *
saver_run(void *arg)
{
    struct task_end *end = arg;

    rcu_register_thread();
    save_end(end);
    task_end_free(end);
    rcu_unregister_thread();
    pthread_mutex_lock(&lock);
    savers--;
    pthread_cond_broadcast(&saved);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Called by the healer with its lock. */
static void
note_task_end(const json_t *notice)
{
    const char *volume = json_string_value(json_object_get(notice, "ended"));
    const json_t *look = json_object_get(notice, "look");
    struct task_end *end = volume && json_is_object(look) ? calloc(1, sizeof *end) : NULL;

    if (!end)
        return;
    end->volume = strdup(volume);
    end->look = json_deep_copy(look);
    end->number = json_integer_value(json_object_get(notice, "job"));
    pthread_mutex_lock(&lock);
    bool may = end->volume && end->look && !is_ending;
    savers += may;
    pthread_mutex_unlock(&lock);
    if (may && !thread_start(saver_run, end))
        return;
    task_end_free(end);
    pthread_mutex_lock(&lock);
    savers -= may;
    pthread_mutex_unlock(&lock);
}

/* A task that has ended is being saved as an operation on the volume. */
static void
await_savers(void)
{
    pthread_mutex_lock(&lock);
    while (savers > 0 && !is_ending)
        pthread_cond_wait(&saved, &lock);
    pthread_mutex_unlock(&lock);
}

void
rebalance_begin(uint16_t port)
{
    brick_port = port;
    healer_set_notice(note_task_end);
}

void
rebalance_end(void)
{
    pthread_mutex_lock(&lock);
    is_ending = true;
    while (savers > 0)
        pthread_cond_wait(&saved, &lock);
    pthread_mutex_unlock(&lock);
}

/* ---- start ----------------------------------------------------------------------------------- */

struct beginning {
    const char *kind;
    const struct volume *removed; /* NULL: no drain */
    const char *job;              /* NULL: no store */
};

static int
check_startable(const struct volume *v, const char *verb, struct problem *why)
{
    if (v->status != VOLUME_STARTED) {
        problem_set(why, -EINVAL, "volume %s is not started", v->name);
        problem_type(why, "kiln volume start %s", v->name);
    } else if (v->brick_count == v->replica) {
        problem_set(why, -EINVAL, "volume %s has one set of bricks: there is nothing to %s", v->name, verb);
        problem_expected(why, "a volume with two sets or more");
        problem_type(why, "kiln volume add-brick %s [HOST:]PATH...", v->name);
    } else if (volume_task_is_running(v)) {
        problem_set(why, -EBUSY, "volume %s has a running rebalance (%s)", v->name, volume_task_kind(v));
        problem_type(why, strcmp(volume_task_kind(v), TASK_DRAIN) == 0
                              ? "kiln volume remove-brick %s BRICK... status"
                              : "kiln volume rebalance %s status",
                     v->name);
    } else {
        why->err = 0;
    }
    return why->err;
}

static int
check_no_drain(const struct volume *v, struct problem *why)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        if (!volume_task_leaves(v, i))
            continue;
        problem_set(why, -EBUSY, "brick %s of volume %s waits for its removal", v->bricks[i].path, v->name);
        problem_expected(why, "remove-brick ... commit, or stop, first");
        return why->err;
    }
    return 0;
}

static int
begin_task(struct volume *fresh, void *arg, struct problem *why)
{
    const struct beginning *b = arg;
    struct brick_plan plan;
    int err = check_startable(fresh, b->removed ? "drain" : "rebalance", why);

    if (err || (err = check_no_drain(fresh, why)))
        return err;
    if (!b->removed)
        return volume_task_begin(fresh, b->kind, NULL, b->job) ? problem_no_memory(why) : 0;
    err = brick_plan_remove(&plan, fresh, b->removed, 0, why);
    if (!err && volume_task_begin(fresh, b->kind, plan.leaves, b->job))
        err = problem_no_memory(why);
    brick_plan_end(&plan);
    return err;
}

/* The task and the job that does it begin in one transaction. */
static int
begin_job(const char *volume, struct beginning *b, struct problem *why)
{
    char id[GFID_TEXT_SIZE], key[64], *text = cluster_job_text("rebalance", "volume", volume);
    const struct store_change record = {key, text, 0, 0};
    struct gfid g;

    if (!text)
        return problem_no_memory(why);
    gfid_random(&g);
    snprintf(key, sizeof key, "jobs/%s", gfid_text(&g, id));
    b->job = id;
    int err = cluster_change(volume, begin_task, b, &record, why);
    free(text);
    if (!err)
        cluster_jobs_look();
    return err;
}

static int
begin(const char *volume, struct beginning *b, struct problem *why)
{
    if (cluster_is_on() && cluster_check_store(why))
        return why->err;
    await_savers();
    return cluster_is_on() ? begin_job(volume, b, why) : volumes_change(volume, begin_task, b, why);
}

int
rebalance_start(const char *volume, const char *kind, struct problem *why)
{
    return begin(volume, &(struct beginning){.kind = kind}, why);
}

int
rebalance_start_drain(const char *volume, const struct volume *removed, struct problem *why)
{
    return begin(volume, &(struct beginning){TASK_DRAIN, removed, NULL}, why);
}

/* ---- status ---------------------------------------------------------------------------------- */

json_t *
rebalance_progress(const char *volume)
{
    json_t *question = json_pack("{ss ss}", "do", "progress", "name", volume), *answer = NULL;

    if (!question || healer_ask(question, ANSWER_S, &answer))
        return NULL;
    json_t *look = json_incref(json_object_get(answer, "look"));
    json_decref(answer);
    return look;
}

static json_t *
list_leaving(const struct volume *v)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < v->brick_count; i++) {
        const struct volume_brick *b = &v->bricks[i];

        if (volume_task_leaves(v, i))
            json_array_append_new(list, *b->host && cluster_is_on() ? json_sprintf("%s:%s", b->host, b->path)
                                                                    : json_string(b->path));
    }
    return list;
}

json_t *
rebalance_status(const struct volume *v)
{
    if (!v->task)
        return NULL;
    bool is_running = volume_task_is_running(v);
    json_t *look = is_running && v->status == VOLUME_STARTED
                       ? (cluster_is_on() ? cluster_jobs_progress(volume_task_job(v))
                                          : rebalance_progress(v->name))
                       : json_incref(json_object_get(v->task, "look"));
    const char *at = json_string_value(json_object_get(look, "state"));
    const char *state = volume_task_state(v);

    if (is_running) /* until the end is saved */
        state = !at || strcmp(at, "waiting") == 0 ? "waiting" : TASK_RUNNING;
    return json_pack("{ss ss so* so}", "kind", volume_task_kind(v), "state", state, "look", look, "leaving",
                     list_leaving(v));
}

/* ---- stop, commit ---------------------------------------------------------------------------- */

struct stopping {
    bool is_drain;
    json_t *look;
};

static int
stop_task(struct volume *fresh, void *arg, struct problem *why)
{
    const struct stopping *s = arg;
    bool is_drain = fresh->task && strcmp(volume_task_kind(fresh), TASK_DRAIN) == 0;
    bool is_stoppable = fresh->task && is_drain == s->is_drain &&
                        (volume_task_is_running(fresh) || (is_drain && check_no_drain(fresh, why)));

    why->err = 0;
    if (is_stoppable)
        return volume_task_end(fresh, TASK_STOPPED, s->look) ? problem_no_memory(why) : 0;
    problem_set(why, -EINVAL,
                s->is_drain ? "volume %s drains no brick" : "volume %s has no running rebalance",
                fresh->name);
    problem_type(why, "kiln volume info %s", fresh->name);
    return why->err;
}

/* Returns the volume as it is after the last change, of any host. */
static struct volume *
find_now(const char *volume, struct problem *why)
{
    int64_t revision;

    return cluster_is_on() ? cluster_read_volume(volume, &revision, why) : volumes_find(volume, why);
}

int
rebalance_stop(const char *volume, bool is_drain, struct problem *why)
{
    if (cluster_is_on() && cluster_check_store(why))
        return why->err;
    await_savers();
    struct volume *v = find_now(volume, why);
    json_t *status = v ? rebalance_status(v) : NULL;
    struct stopping s = {is_drain, json_object_get(status, "look")};
    int err = v ? end_task(volume, "stopped", stop_task, &s, why) : why->err;

    json_decref(status);
    volume_free(v);
    return err;
}

/* `v` as it is after the last save. */
static int
check_drained_bricks(const struct volume *v, const struct volume *removed, struct problem *why)
{
    unsigned leaving = 0, named = 0;

    why->err = 0;
    for (unsigned i = 0; i < v->brick_count; i++)
        leaving += volume_task_leaves(v, i);
    for (unsigned i = 0; i < removed->brick_count; i++) {
        int at = brick_host_find_same(v, &removed->bricks[i]);

        named += at >= 0 && volume_task_leaves(v, (unsigned)at);
    }
    if (!leaving || leaving != named || named != removed->brick_count) {
        problem_set(why, -EINVAL, "volume %s has not drained exactly these bricks", v->name);
        problem_type(why, "kiln volume remove-brick %s BRICK... start", v->name);
    } else if (volume_task_is_running(v)) {
        problem_set(why, -EBUSY, "volume %s still moves files from these bricks", v->name);
        problem_type(why, "kiln volume remove-brick %s BRICK... status", v->name);
    }
    return why->err;
}

int
rebalance_check_drained(const char *volume, const struct volume *removed, struct problem *why)
{
    if (cluster_is_on() && cluster_check_store(why))
        return why->err;
    await_savers();
    struct volume *v = find_now(volume, why);
    int err = v ? check_drained_bricks(v, removed, why) : why->err;

    volume_free(v);
    return err;
}
