/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/cluster/cluster-jobs.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <urcu.h>

#include "base/gfid.h"
#include "base/thread.h"
#include "bricks/upgrade.h"
#include "log/log.h"
#include "volumes/brick-host.h"
#include "volumes/cluster/cluster-change.h"
#include "volumes/cluster/cluster-jobs-internal.h"
#include "volumes/cluster/cluster-place.h"
#include "volumes/cluster/cluster.h"
#include "volumes/cluster/host-proof.h"
#include "volumes/heal/rebalance.h"
#include "volumes/volume-task.h"
#include "volumes/volumes.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything below */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned running;
static bool is_ending;

static const struct job_kind {
    const char *name;
    const char *subject; /* the member of the record that names the subject */
    void (*run)(const struct cluster_job *j);
} kinds[] = {
    {"drain", "host", job_drain_run},
    {"heal", "volume", job_heal_run},
    {"rebalance", "volume", job_rebalance_run},
    {"upgrade", "scope", job_upgrade_run},
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

json_t *
cluster_job_read(const char *id, struct problem *why)
{
    int64_t revision;
    json_t *record = read_job(id, &revision, why);

    if (!record || is_job_running(record))
        return record;
    json_decref(record);
    problem_set(why, -ENOENT, "job %.40s has ended", id);
    return NULL;
}

bool
cluster_job_update(const char *id, json_t *members)
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
        log_event(LOG_WARNING, NULL, "job-record", "job %s: its record in the store is old: %s", id,
                  why.wrong);
    return goes_on && !why.err;
}

void
cluster_job_finish(const char *id, const char *state, const char *text)
{
    (void)cluster_job_update(id, json_pack("{ss ss sI}", "state", state, "text", text, "ended",
                                   (json_int_t)time(NULL)));
    log_event(LOG_INFO, NULL, "job-ended", "job %s: %s%s%s", id, state, *text ? ": " : "", text);
}

bool
cluster_job_goes_on(void)
{
    pthread_mutex_lock(&lock);
    bool is = !is_ending;
    pthread_mutex_unlock(&lock);
    return is;
}

/* ---- owners ---------------------------------------------------------------------------------- */

static void
owner_key(char key[64], const char *id)
{
    snprintf(key, 64, "job-owner/%.40s", id);
}

int
cluster_job_check_owner(const char *id, struct problem *why)
{
    char key[64], *text;
    int64_t revision;

    owner_key(key, id);
    if (cluster_check_store(why) || store_get(cluster_store(), key, &text, &revision, why))
        return why->err;
    bool is_own = text && strcmp(text, brick_host_own()) == 0;
    free(text);
    return is_own ? 0 : problem_set(why, -EPERM, "another host owns job %.40s", id);
}

static const struct job_kind *
kind_of_job(const json_t *record)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, job_text(record, "kind")) == 0)
            return &kinds[i];
    }
    return NULL;
}

static void *
job_run(void *arg)
{
    struct cluster_job *j = arg;
    char key[64];
    const struct store_change c = {key, NULL, STORE_ANY_REVISION, 0};
    struct problem why;

    rcu_register_thread();
    log_event(LOG_INFO, NULL, "job-begins", "job %s: %s of %s", j->id, j->kind->name, j->subject);
    j->kind->run(j);
    owner_key(key, j->id);
    if (cluster_job_check_owner(j->id, &why) == 0)
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
claim_job(const char *id, const struct job_kind *kind, const char *subject)
{
    char key[64];
    const struct store_change c = {key, brick_host_own(), 0, cluster_lease()};
    struct cluster_job *j = calloc(1, sizeof *j);
    struct problem why;

    owner_key(key, id);
    if (!j || !c.lease || store_change(cluster_store(), &c, 1, NULL, &why)) {
        free(j); /* another host was faster, or the next look tries again */
        return;
    }
    snprintf(j->id, sizeof j->id, "%s", id);
    snprintf(j->subject, sizeof j->subject, "%s", subject);
    j->kind = kind;
    pthread_mutex_lock(&lock);
    running++;
    pthread_mutex_unlock(&lock);
    int err = thread_start(job_run, j);
    if (!err)
        return;
    log_event(LOG_ERROR, NULL, "job-thread", "job %s cannot start a thread: %s", id, strerror(-err));
    pthread_mutex_lock(&lock);
    running--;
    pthread_mutex_unlock(&lock);
    free(j);
}

struct jobs_reading {
    json_t *jobs, *owners;
};

static void
read_job_key(const char *key, const char *text, int64_t revision, void *arg)
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
    int err = store_list(cluster_store(), "jobs/", read_job_key, r, &at, why);
    err = err ? err : store_list(cluster_store(), "job-owner/", read_job_key, r, &at, why);
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

    if (!cluster_job_goes_on() || !cluster_has_jobs() || read_jobs(&r, &why))
        return;
    json_object_foreach(r.jobs, id, record)
    {
        const struct job_kind *kind = kind_of_job(record); /* NULL: of a newer kilnd */
        const char *subject = kind ? job_text(record, kind->subject) : "";

        /* a drained host drains itself only if no other host is there to do it: it may be about to end */
        if (kind && is_job_running(record) && !json_object_get(r.owners, id) &&
            strlen(id) == GFID_TEXT_SIZE - 1 &&
            (strcmp(kind->subject, "host") != 0 || strcmp(subject, brick_host_own()) != 0))
            claim_job(id, kind, subject);
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

/* Refuses a second job of this subject. */
static int
check_no_job(const char *kind, const char *key, const char *subject, const char *wrong, struct problem *why)
{
    struct jobs_reading r;
    const char *other;
    json_t *record;

    if (read_jobs(&r, why))
        return why->err;
    why->err = 0;
    json_object_foreach(r.jobs, other, record)
    {
        if (!is_job_running(record) || strcmp(job_text(record, "kind"), kind) != 0 ||
            strcmp(job_text(record, key), subject) != 0)
            continue;
        problem_set(why, -EALREADY, "%s: job %s", wrong, other);
        problem_type(why, "kiln job list");
    }
    json_decref(r.jobs);
    json_decref(r.owners);
    return why->err;
}

char *
cluster_job_text(const char *kind, const char *key, const char *subject)
{
    json_t *record = json_pack("{ss ss ss si si sI ss}", "kind", kind, key, subject, "state", "running",
                               "done", 0, "total", 0, "started", (json_int_t)time(NULL), "text", "");
    char *text = record ? json_dumps(record, JSON_COMPACT) : NULL;

    json_decref(record);
    return text;
}

char *
cluster_job_ended_text(const char *id, const char *state)
{
    struct problem why;
    int64_t revision;
    json_t *record = read_job(id, &revision, &why);
    int err = json_object_set_new(record, "state", json_string(state)) ||
              json_object_set_new(record, "ended", json_integer((json_int_t)time(NULL)));
    char *text = record && !err ? json_dumps(record, JSON_COMPACT) : NULL;

    json_decref(record);
    return text;
}

int
cluster_job_begin(const char *kind, const char *key, const char *subject, char id[GFID_TEXT_SIZE],
                  struct problem *why)
{
    char *text = cluster_job_text(kind, key, subject);
    json_t *record = text ? json_loads(text, 0, NULL) : NULL;
    struct gfid g;

    gfid_random(&g);
    gfid_text(&g, id);
    int err = write_job(id, record, 0, why);
    json_decref(record);
    free(text);
    return err;
}

static void
note_name(const struct volume *v, void *names)
{
    json_array_append_new(names, json_string(v->name));
}

/* Refuses the drain of a host with a brick of this volume for which no other host has a place. */
static int
check_drained_volume(const char *name, const char *host, struct problem *why)
{
    struct volume *v = volumes_find(name, why);

    why->err = 0; /* a volume that has been deleted meanwhile */
    for (unsigned i = 0; v && i < v->brick_count && !why->err; i++) {
        struct volume *to = strcmp(v->bricks[i].host, host) == 0 ? volume_new("bricks", 1, false) : NULL;

        if (to)
            (void)cluster_place_other(v, i, to, why);
        volume_free(to);
    }
    volume_free(v);
    return why->err;
}

static int
check_drained_volumes(const char *host, struct problem *why)
{
    json_t *names = json_array(), *name;
    int err = names ? 0 : problem_no_memory(why);
    size_t i;

    volumes_each(note_name, names);
    json_array_foreach(names, i, name)
    {
        if (!err)
            err = check_drained_volume(json_string_value(name), host, why);
    }
    json_decref(names);
    return err;
}

int
cluster_jobs_drain(const char *host, char *id, struct problem *why)
{
    char wrong[320];

    snprintf(wrong, sizeof wrong, "host %.255s is being drained", host);
    if (cluster_check_store(why) || cluster_check_member(host, why) ||
        check_no_job("drain", "host", host, wrong, why) || check_drained_volumes(host, why))
        return why->err;
    return cluster_job_begin("drain", "host", host, id, why);
}

int
cluster_jobs_heal(const char *volume, char id[GFID_TEXT_SIZE], struct problem *why)
{
    char wrong[VOLUME_NAME_MAX + 64];

    snprintf(wrong, sizeof wrong, "volume %.*s is being healed in full", VOLUME_NAME_MAX, volume);
    if (cluster_check_store(why) || job_heal_check(volume, why) ||
        check_no_job("heal", "volume", volume, wrong, why))
        return why->err;
    return cluster_job_begin("heal", "volume", volume, id, why);
}

/* Names all hosts, or returns NULL with *why if one is down. */
static json_t *
list_hosts_to_upgrade(struct problem *why)
{
    json_t *all = cluster_describe(), *names = json_array(), *one;
    size_t i;

    why->err = all && names ? 0 : problem_no_memory(why);
    json_array_foreach(json_object_get(all, "hosts"), i, one)
    {
        if (!json_is_true(json_object_get(one, "alive")) && !why->err) {
            problem_set(why, -EHOSTUNREACH, "host %s is down", job_text(one, "name"));
            problem_expected(why, "all hosts up; remove a host that does not return");
            problem_type(why, "kiln host list");
        }
        json_array_append(names, json_object_get(one, "name"));
    }
    json_decref(all);
    if (!why->err)
        return names;
    json_decref(names);
    return NULL;
}

/* Each host runs the program as root, so only a host may name it: the order does not change with the record,
 * and has a host's signature. Returns 0 or -errno with *why. */
static int
order_program(json_t *record, const char *id, const char *program, struct problem *why)
{
    json_t *order = json_pack("{ss ss}", "from", brick_host_own(), "program", program);
    char place[80];

    snprintf(place, sizeof place, "jobs/%.40s/order", id);
    int err = order ? host_proof_sign(order, place, brick_host_own(), why) : problem_no_memory(why);
    json_object_set_new(record, "order", order);
    return err;
}

int
cluster_job_ordered_program(const json_t *record, const char *id, char *program, size_t size,
                            struct problem *why)
{
    const json_t *order = json_object_get(record, "order");
    char place[80];

    *program = '\0';
    if (!json_object_get(record, "program") && !order)
        return 0;
    snprintf(place, sizeof place, "jobs/%.40s/order", id);
    if (host_proof_check(order ? order : record, place, job_text(order ? order : record, "from"), why))
        return why->err;
    snprintf(program, size, "%s", job_text(order ? order : record, "program"));
    return 0;
}

int
cluster_jobs_upgrade(const char *program, char *id, struct problem *why)
{
    char wrong[1024];
    struct gfid g;

    if (cluster_check_store(why) ||
        check_no_job("upgrade", "scope", "hosts", "the hosts are being upgraded", why))
        return why->err;
    int unfit = program ? upgrade_check_program(program, wrong, sizeof wrong) : 0;
    if (unfit) {
        problem_set(why, unfit, "%s", wrong);
        problem_expected(why, "a kilnd at this path on each host");
        problem_type(why, "kiln upgrade --rolling   # the file that each kilnd was started from");
        return why->err;
    }
    json_t *hosts = list_hosts_to_upgrade(why);
    char *text = hosts ? cluster_job_text("upgrade", "scope", "hosts") : NULL;
    json_t *record = text ? json_loads(text, 0, NULL) : NULL;

    free(text);
    if (!record) {
        json_decref(hosts);
        return hosts ? problem_no_memory(why) : why->err;
    }
    json_object_set_new(record, "total", json_integer((json_int_t)json_array_size(hosts)));
    json_object_set_new(record, "hosts", hosts);
    gfid_random(&g);
    gfid_text(&g, id);
    int err = program ? order_program(record, id, program, why) : 0;
    err = err ? err : write_job(id, record, 0, why);
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

/* kiln-heal follows the task of the volume, so a rebalance is stopped there. */
static int
stop_rebalance(const json_t *record, struct problem *why)
{
    const char *volume = job_text(record, "volume");
    int64_t from;
    struct volume *v = cluster_read_volume(volume, &from, why);
    bool is_drain = v && v->task && strcmp(volume_task_kind(v), TASK_DRAIN) == 0;

    if (!v)
        return why->err;
    bool is_running = volume_task_is_running(v);
    volume_free(v);
    return is_running ? rebalance_stop(volume, is_drain, why) : 0;
}

int
cluster_jobs_stop(const char *id, struct problem *why)
{
    int64_t revision;
    json_t *record = read_job(id, &revision, why);

    if (!record)
        return why->err;
    int err = 0;
    if (!is_job_running(record))
        err = problem_set(why, -EINVAL, "job %.40s is not running: it is %s", id, job_text(record, "state"));
    else if (strcmp(job_text(record, "kind"), "rebalance") == 0)
        err = stop_rebalance(record, why);
    const bool is_heal = strcmp(job_text(record, "kind"), "heal") == 0;
    char volume[VOLUME_NAME_MAX + 1];
    snprintf(volume, sizeof volume, "%s", job_text(record, "volume"));
    json_decref(record);
    if (!err)
        (void)cluster_job_update(id,
                                 json_pack("{ss sI}", "state", "stopped", "ended", (json_int_t)time(NULL)));
    if (!err && is_heal)
        job_heal_stop_walk(volume);
    return err;
}

json_t *
cluster_jobs_progress(const char *id)
{
    struct problem why;
    int64_t revision;
    json_t *record = read_job(id, &revision, &why);
    json_t *look = json_incref(json_object_get(record, "look"));

    json_decref(record);
    return look;
}
