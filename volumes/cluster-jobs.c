/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/cluster-jobs.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <urcu.h>

#include "base/gfid.h"
#include "base/thread.h"
#include "log/log.h"
#include "volumes/brick-host.h"
#include "volumes/cluster-bricks.h"
#include "volumes/cluster-look.h"
#include "volumes/cluster-place.h"
#include "volumes/cluster.h"
#include "volumes/volumes.h"

enum { HEAL_LOOK_S = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything below */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned running;
static bool is_ending;

/* A job that this host owns. */
struct job {
    char id[GFID_TEXT_SIZE], host[256];
};

/* ---- records --------------------------------------------------------------------------------- */

static int
write_job(const char *id, json_t *record, int64_t from, struct problem *why)
{
    char key[64], *text = record ? json_dumps(record, JSON_COMPACT) : NULL;
    const struct store_change c = {key, text, from, 0};

    snprintf(key, sizeof key, "jobs/%.40s", id);
    int err = text ? store_change(cluster_store(), &c, 1, NULL, why) : problem_no_memory(why);
    free(text);
    return err;
}

/* Returns the record, or NULL with *why. */
static json_t *
read_job(const char *id, int64_t *revision, struct problem *why)
{
    char key[64], *text;

    snprintf(key, sizeof key, "jobs/%.40s", id);
    if (store_get(cluster_store(), key, &text, revision, why))
        return NULL;
    json_t *json = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    if (json)
        return json;
    problem_set(why, -ENOENT, "there is no job %.40s", id);
    problem_type(why, "kiln job list");
    return NULL;
}

static const char *
job_text(const json_t *record, const char *key)
{
    const char *text = json_string_value(json_object_get(record, key));

    return text ? text : "";
}

static bool
is_job_running(const json_t *record)
{
    return strcmp(job_text(record, "state"), "running") == 0;
}

/* Changes members of a record that is still running. Returns false if the job is to end. */
static bool
update_job(const char *id, json_t *members)
{
    struct problem why = {0};
    bool goes_on = false;

    for (unsigned i = 0; i < 8; i++) {
        int64_t revision;
        json_t *record = read_job(id, &revision, &why);

        goes_on = record && is_job_running(record);
        int err = goes_on ? (json_object_update(record, members) ? problem_no_memory(&why)
                                                                 : write_job(id, record, revision, &why))
                          : 0;
        json_decref(record);
        if (err != -ESTALE)
            break;
    }
    json_decref(members);
    if (why.err)
        log_event(LOG_WARNING, NULL, "job-record", "job %s: %s", id, why.wrong);
    return goes_on && !why.err;
}

static void
finish_job(const char *id, const char *state, const char *text)
{
    (void)update_job(id, json_pack("{ss ss sI}", "state", state, "text", text, "ended",
                                   (json_int_t)time(NULL)));
    log_event(LOG_INFO, NULL, "job-ended", "job %s: %s%s%s", id, state, *text ? ": " : "", text);
}

/* ---- drain ----------------------------------------------------------------------------------- */

static bool
job_goes_on(void)
{
    pthread_mutex_lock(&lock);
    bool is = !is_ending;
    pthread_mutex_unlock(&lock);
    return is;
}

struct drain_look {
    const char *host;
    json_int_t left;
    char volume[VOLUME_NAME_MAX + 1]; /* the first with a brick there; "": none */
};

static void
look_at_volume(const struct volume *v, void *arg)
{
    struct drain_look *d = arg;

    for (unsigned i = 0; i < v->brick_count; i++) {
        if (strcmp(v->bricks[i].host, d->host) != 0)
            continue;
        d->left++;
        if (!*d->volume)
            snprintf(d->volume, sizeof d->volume, "%s", v->name);
    }
}

/* Returns true if no brick of the volume has an object that others missed. */
static bool
is_volume_healed(const char *name)
{
    json_t *args = json_pack("{ss ss}", "name", name, "what", "info"), *out = NULL, *brick;
    struct problem why;
    bool is_well = cluster_look("volume-heal", args, &out, &why) == 0;
    size_t i;

    json_array_foreach(json_object_get(out, "bricks"), i, brick)
    {
        const json_t *count = json_object_get(brick, "count");

        is_well &= json_is_integer(count) && json_integer_value(count) == 0;
    }
    json_decref(out);
    json_decref(args);
    return is_well;
}

/* Replaces the first brick of the volume on the host. */
static int
drain_brick(const char *volume, const char *host, struct problem *why)
{
    struct volume *v = volumes_find(volume, why), *to = v ? volume_new("bricks", 1, false) : NULL;
    char from[VOLUME_BRICK_PATH_MAX + 300] = "";
    unsigned i = 0;
    int err = to ? 0 : v ? problem_no_memory(why) : why->err;

    while (!err && i < v->brick_count && strcmp(v->bricks[i].host, host) != 0)
        i++;
    if (!err && i < v->brick_count) {
        snprintf(from, sizeof from, "%s:%s", v->bricks[i].host, v->bricks[i].path);
        err = cluster_place_other(v, i, to, why);
        err = err ? err : cluster_replace_brick(volume, from, to, why);
        if (!err)
            log_event(LOG_INFO, NULL, "job-brick", "volume %s: %s replaced by %s:%s", volume, from,
                      to->bricks[0].host, to->bricks[0].path);
    }
    volume_free(v);
    volume_free(to);
    return err;
}

/* Waits until the volume is healed. Returns false if the job is to end. */
static bool
await_heal(const struct job *j, const char *volume)
{
    while (!is_volume_healed(volume)) {
        char text[VOLUME_NAME_MAX + 64];

        snprintf(text, sizeof text, "volume %s is being healed", volume);
        if (!job_goes_on() || !update_job(j->id, json_pack("{ss}", "text", text)))
            return false;
        sleep(HEAL_LOOK_S);
    }
    return true;
}

/* Tells whether a step may succeed later without the operator: a host was down, or bricks were not equal. */
static bool
may_pass(int err)
{
    return err == -EHOSTUNREACH || err == -ETIMEDOUT || err == -EBUSY;
}

static void
drain_host(const struct job *j)
{
    json_int_t total = 0;

    while (job_goes_on()) {
        struct drain_look d = {.host = j->host};
        struct problem why;

        volumes_each(look_at_volume, &d);
        total = total ? total : d.left;
        if (!update_job(j->id, json_pack("{sI sI ss}", "done", total - d.left, "total", total, "text", "")))
            return;
        if (!*d.volume) {
            finish_job(j->id, "done", "");
            return;
        }
        int err = drain_brick(d.volume, j->host, &why);
        if (err == -EAGAIN)
            return; /* without the store; the next owner goes on when it is back */
        if (err && !may_pass(err)) {
            finish_job(j->id, "failed", why.wrong);
            return;
        }
        if (err) {
            if (!update_job(j->id, json_pack("{ss}", "text", why.wrong)))
                return;
            sleep(HEAL_LOOK_S);
            continue;
        }
        if (!await_heal(j, d.volume))
            return;
    }
}

/* ---- owners ---------------------------------------------------------------------------------- */

static void
owner_key(char key[64], const char *id)
{
    snprintf(key, 64, "job-owner/%.40s", id);
}

static void *
job_run(void *arg)
{
    struct job *j = arg;
    char key[64];
    const struct store_change c = {key, NULL, STORE_ANY_REVISION, 0};
    struct problem why;

    rcu_register_thread();
    log_event(LOG_INFO, NULL, "job-begins", "job %s: host %s is drained", j->id, j->host);
    drain_host(j);
    owner_key(key, j->id);
    (void)store_change(cluster_store(), &c, 1, NULL, &why); /* else the lease releases the job */
    rcu_unregister_thread();
    pthread_mutex_lock(&lock);
    running--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    free(j);
    return NULL;
}

static void
claim_job(const char *id, const char *host)
{
    char key[64];
    const struct store_change c = {key, brick_host_own(), 0, cluster_lease()};
    struct job *j = calloc(1, sizeof *j);
    struct problem why;

    owner_key(key, id);
    if (!j || !c.lease || store_change(cluster_store(), &c, 1, NULL, &why)) {
        free(j); /* another host was faster, or the next look tries again */
        return;
    }
    snprintf(j->id, sizeof j->id, "%s", id);
    snprintf(j->host, sizeof j->host, "%s", host);
    pthread_mutex_lock(&lock);
    running++;
    pthread_mutex_unlock(&lock);
    int err = thread_start(job_run, j);
    if (!err)
        return;
    log_event(LOG_ERROR, NULL, "job-thread", "job %s: %s", id, strerror(-err));
    pthread_mutex_lock(&lock);
    running--;
    pthread_mutex_unlock(&lock);
    free(j);
}

struct jobs_reading {
    json_t *jobs, *owners;
};

static void
take_job(const char *key, const char *text, int64_t revision, void *arg)
{
    struct jobs_reading *r = arg;

    (void)revision;
    if (strncmp(key, "jobs/", 5) == 0)
        json_object_set_new(r->jobs, key + 5, json_loads(text, 0, NULL));
    else if (strncmp(key, "job-owner/", 10) == 0)
        json_object_set_new(r->owners, key + 10, json_string(text));
}

static int
read_jobs(struct jobs_reading *r, struct problem *why)
{
    int64_t at;

    *r = (struct jobs_reading){json_object(), json_object()};
    int err = store_list(cluster_store(), "jobs/", take_job, r, &at, why);
    err = err ? err : store_list(cluster_store(), "job-owner/", take_job, r, &at, why);
    if (err) {
        json_decref(r->jobs);
        json_decref(r->owners);
    }
    return err;
}

void
cluster_jobs_look(void)
{
    struct jobs_reading r;
    struct problem why;
    const char *id;
    json_t *record;

    if (!job_goes_on() || !cluster_has_jobs() || read_jobs(&r, &why))
        return;
    json_object_foreach(r.jobs, id, record)
    {
        /* a drained host drains itself only if no other host is there to do it: it may be about to end */
        if (is_job_running(record) && !json_object_get(r.owners, id) && strlen(id) == GFID_TEXT_SIZE - 1 &&
            strcmp(job_text(record, "host"), brick_host_own()) != 0)
            claim_job(id, job_text(record, "host"));
    }
    json_decref(r.jobs);
    json_decref(r.owners);
}

void
cluster_jobs_end(void)
{
    pthread_mutex_lock(&lock);
    is_ending = true;
    while (running > 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* ---- the operator ---------------------------------------------------------------------------- */

int
cluster_jobs_drain(const char *host, char *id, struct problem *why)
{
    struct jobs_reading r;
    const char *other;
    json_t *record;
    struct gfid g;

    if (cluster_check_store(why) || cluster_check_host(host, why) || read_jobs(&r, why))
        return why->err;
    why->err = 0;
    json_object_foreach(r.jobs, other, record)
    {
        if (!is_job_running(record) || strcmp(job_text(record, "host"), host) != 0)
            continue;
        problem_set(why, -EALREADY, "host %s is being drained: job %s", host, other);
        problem_type(why, "kiln job list");
    }
    json_decref(r.jobs);
    json_decref(r.owners);
    if (why->err)
        return why->err;
    gfid_random(&g);
    gfid_text(&g, id);
    record = json_pack("{ss ss ss si si sI ss}", "kind", "drain", "host", host, "state", "running", "done", 0,
                       "total", 0, "started", (json_int_t)time(NULL), "text", "");
    int err = write_job(id, record, 0, why);
    json_decref(record);
    return err;
}

int
cluster_jobs_list(json_t **out, struct problem *why)
{
    struct jobs_reading r;
    json_t *list = json_array(), *record;
    const char *id;

    if (read_jobs(&r, why)) {
        json_decref(list);
        return why->err;
    }
    json_object_foreach(r.jobs, id, record)
    {
        json_object_set_new(record, "id", json_string(id));
        if (json_object_get(r.owners, id))
            json_object_set(record, "owner", json_object_get(r.owners, id));
        json_array_append(list, record);
    }
    json_decref(r.jobs);
    json_decref(r.owners);
    *out = json_pack("{so}", "jobs", list);
    return 0;
}

int
cluster_jobs_stop(const char *id, struct problem *why)
{
    int64_t revision;
    json_t *record = read_job(id, &revision, why);

    if (!record)
        return why->err;
    int err = 0;
    if (!is_job_running(record)) {
        err = problem_set(why, -EINVAL, "job %.40s is not running: it is %s", id, job_text(record, "state"));
    } else {
        json_object_set_new(record, "state", json_string("stopped"));
        json_object_set_new(record, "ended", json_integer((json_int_t)time(NULL)));
        err = write_job(id, record, revision, why);
    }
    json_decref(record);
    return err;
}
