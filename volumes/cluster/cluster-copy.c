/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The copy of the store in memory: this host reads the store as a whole at the start, follows each change of
 * a key, and applies a volume whose text has changed to its bricks. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urcu.h>

#include "log/log.h"
#include "volumes/cluster/cluster-ask.h"
#include "volumes/cluster/cluster-internal.h"
#include "volumes/cluster/host-proof.h"
#include "volumes/cluster/quota-hosts.h"
#include "volumes/state-dir.h"
#include "volumes/volumes.h"

enum { AGAIN_S = 1, APPLY_S = 60 };

/* ---- what the store holds -------------------------------------------------------------------- */

/* The rest of the key behind the folder, or NULL. */
static const char *
key_below(const char *key, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(key, folder, n) == 0 ? key + n : NULL;
}

static json_t *
host_record_read(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);

    return json ? json : json_object();
}

static void
set_volume_locked(const char *name, const char *text, int64_t revision)
{
    if (text)
        json_object_set_new(cluster.texts, name, json_string_nocheck(text)); /* the parser checks UTF-8 */
    else
        json_object_del(cluster.texts, name);
    json_object_set_new(cluster.revisions, name, json_integer(revision));
    json_object_set_new(cluster.dirty, name, json_true());
}

void
cluster_hold(const char *name, const char *from)
{
    pthread_mutex_lock(&cluster.lock);
    json_object_set_new(cluster.held, name, json_string(from));
    pthread_mutex_unlock(&cluster.lock);
}

/* The host that was changing bricks is dead: its volumes are compared again. */
static void
release_held_locked(const char *host)
{
    const char *name, *from;
    json_t *value;
    void *next;

    json_object_foreach_safe(cluster.held, next, name, value)
    {
        from = json_string_value(value);
        if (strcmp(from, host) != 0)
            continue;
        json_object_set_new(cluster.dirty, name, json_true());
        json_object_del(cluster.held, name);
    }
}

static void
set_host_locked(json_t *table, const char *name, const char *text)
{
    if (text)
        json_object_set_new(table, name, host_record_read(text));
    else
        json_object_del(table, name);
}

/* Judges the record of a live host, and drops a record without a proof. Returns the record or NULL. */
static json_t *
judge_host_locked(const char *name, json_t *record)
{
    char place[300];
    struct problem why = {0};

    snprintf(place, sizeof place, "alive/%.255s", name);
    if (!record || strcmp(name, cluster.o->host) == 0 || host_proof_check(record, place, name, &why) == 0) {
        json_object_del(cluster.refused, name);
        return record;
    }
    const char *before = json_string_value(json_object_get(cluster.refused, name));
    if (!before || strcmp(before, why.wrong) != 0)
        log_event(LOG_ERROR, NULL, "host-refused", "%s; the host counts as down", why.wrong);
    json_object_set_new(cluster.refused, name, json_string(why.wrong));
    json_decref(record);
    return NULL;
}

static void
set_alive_locked(const char *name, const char *text)
{
    json_t *record = judge_host_locked(name, text ? host_record_read(text) : NULL);

    if (record)
        json_object_set_new(cluster.alive, name, record);
    else
        json_object_del(cluster.alive, name);
}

static void
judge_all_locked(json_t *table)
{
    const char *name;
    json_t *record;
    void *next;

    json_object_foreach_safe(table, next, name, record)
    {
        if (!judge_host_locked(name, json_incref(record)))
            json_object_del(table, name);
        else
            json_decref(record);
    }
}

/* The hosts prove themselves to the new authority; this host signs its record anew. */
static void
authority_seen_locked(const char *text)
{
    if (!host_proof_set_authority(text))
        return;
    judge_all_locked(cluster.alive);
    cluster.roots_changed = true;
}

/* Splits "HOST/ID" of a question or an answer. */
static bool
split_ask(const char *rest, char host[256], const char **id)
{
    const char *slash = strchr(rest, '/');

    if (!slash || slash - rest > 255)
        return false;
    memcpy(host, rest, (size_t)(slash - rest));
    host[slash - rest] = '\0';
    *id = slash + 1;
    return true;
}

static void
route_question_key(const char *key, const char *text)
{
    const char *rest, *id;
    char host[256];

    if (!text)
        return;
    if ((rest = key_below(key, "ask/")) && split_ask(rest, host, &id))
        cluster_ask_seen(host, id, text);
    else if ((rest = key_below(key, "answer/")) && split_ask(rest, host, &id) &&
             strcmp(host, cluster.o->host) == 0)
        cluster_answer_seen(id, text);
}

static void
see_own_record(const char *name, const char *text)
{
    if (text || strcmp(name, cluster.o->host) != 0)
        return;
    log_event(LOG_CRITICAL, NULL, "host-removed",
              "host %s was removed from the store: it takes part again when its kilnd is restarted", name);
    pthread_mutex_lock(&cluster.lock);
    cluster.is_removed = cluster.is_away = true;
    snprintf(cluster.away_reason, sizeof cluster.away_reason, "host %s was removed from the store", name);
    pthread_mutex_unlock(&cluster.lock);
}

static void
key_seen(const char *key, const char *text, int64_t revision, void *arg)
{
    const char *name, *gone = NULL;
    bool is_of_hosts = false;

    (void)arg;
    pthread_mutex_lock(&cluster.lock);
    if ((name = key_below(key, "volumes/"))) {
        set_volume_locked(name, text, revision);
    } else if ((name = key_below(key, "hosts/"))) {
        set_host_locked(cluster.hosts, name, text);
    } else if ((name = key_below(key, "jobs/"))) {
        set_host_locked(cluster.jobs, name, text);
    } else if ((name = key_below(key, "alive/"))) {
        set_alive_locked(name, text);
        is_of_hosts = true;
        gone = json_object_get(cluster.alive, name) ? NULL : name;
        if (gone)
            release_held_locked(gone);
    } else if (strcmp(key, "authority") == 0) {
        authority_seen_locked(text);
    }
    pthread_cond_broadcast(&cluster.changed);
    pthread_mutex_unlock(&cluster.lock);
    route_question_key(key, text);
    if ((name = key_below(key, "usage/")))
        quota_hosts_seen(name, text);
    if ((name = key_below(key, "hosts/")))
        see_own_record(name, text);
    if (gone)
        cluster_ask_host_gone(gone);
    if (is_of_hosts)
        cluster_follow_healers(); /* another host may heal now */
}

/* The whole store as one reading. */
struct reading {
    json_t *hosts, *alive, *texts, *revisions, *jobs, *asks, *usage;
    char *authority; /* the text of its record; NULL: none */
};

static void
key_listed(const char *key, const char *text, int64_t revision, void *arg)
{
    struct reading *r = arg;
    const char *name;

    if ((name = key_below(key, "volumes/"))) {
        json_object_set_new(r->texts, name, json_string_nocheck(text)); /* NULL would mean: deleted */
        json_object_set_new(r->revisions, name, json_integer(revision));
    } else if ((name = key_below(key, "hosts/"))) {
        json_object_set_new(r->hosts, name, host_record_read(text));
    } else if ((name = key_below(key, "alive/"))) {
        json_object_set_new(r->alive, name, host_record_read(text));
    } else if ((name = key_below(key, "jobs/"))) {
        json_object_set_new(r->jobs, name, host_record_read(text));
    } else if (strcmp(key, "authority") == 0) {
        free(r->authority);
        r->authority = strdup(text);
    } else if (key_below(key, "usage/")) {
        json_object_set_new(r->usage, key, json_string(text));
    } else if (key_below(key, "ask/") || key_below(key, "answer/")) {
        json_object_set_new(r->asks, key, json_string(text));
    }
}

void
cluster_check_again(const char *name)
{
    pthread_mutex_lock(&cluster.lock);
    json_object_set_new(cluster.dirty, name, json_true());
    pthread_cond_broadcast(&cluster.changed);
    pthread_mutex_unlock(&cluster.lock);
}

/* Takes a reading in the place of the one before. Volumes that differ are applied. */
static void
apply_reading(struct reading *r, int64_t at)
{
    const char *name, *key;
    json_t *value;

    pthread_mutex_lock(&cluster.lock);
    json_object_foreach(cluster.texts, name, value)
    {
        if (!json_object_get(r->texts, name)) {
            json_object_set_new(cluster.dirty, name, json_true());
            json_object_set_new(r->revisions, name, json_integer(at));
        }
    }
    json_object_foreach(r->texts, name, value)
    {
        if (!json_equal(value, json_object_get(cluster.texts, name)))
            json_object_set_new(cluster.dirty, name, json_true());
    }
    if (host_proof_set_authority(r->authority))
        cluster.roots_changed = true;
    judge_all_locked(r->alive);
    json_t *const old[] = {cluster.hosts, cluster.alive, cluster.texts, cluster.revisions, cluster.jobs};
    cluster.hosts = r->hosts;
    cluster.alive = r->alive;
    cluster.texts = r->texts;
    cluster.revisions = r->revisions;
    cluster.jobs = r->jobs;
    for (size_t i = 0; i < sizeof old / sizeof old[0]; i++)
        json_decref(old[i]);
    pthread_cond_broadcast(&cluster.changed);
    pthread_mutex_unlock(&cluster.lock);
    json_object_foreach(r->asks, key, value) route_question_key(key, json_string_value(value));
    json_decref(r->asks);
    quota_hosts_reset();
    json_object_foreach(r->usage, key, value)
        quota_hosts_seen(key_below(key, "usage/"), json_string_value(value));
    json_decref(r->usage);
}

int
cluster_read_all(int64_t *at, struct problem *why)
{
    struct reading r = {json_object(), json_object(), json_object(), json_object(),
                        json_object(), json_object(), json_object(), NULL};
    int err = store_list(cluster.store, "", key_listed, &r, at, why);

    if (err) {
        json_t *const all[] = {r.hosts, r.alive, r.texts, r.revisions, r.jobs, r.asks, r.usage};

        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            json_decref(all[i]);
        free(r.authority);
        return err;
    }
    apply_reading(&r, *at);
    free(r.authority);
    pthread_mutex_lock(&cluster.lock);
    bool is_first = !cluster.has_read;
    cluster.has_read = true;
    pthread_mutex_unlock(&cluster.lock);
    if (is_first) /* the copy may have volumes that the store no longer has */
        (void)volumes_each_name(cluster_check_again, why);
    cluster_follow_healers();
    return 0;
}

static bool
watch_is_wanted(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&cluster.lock);
    bool is = !cluster.is_ending && !cluster.watch_is_old;
    pthread_mutex_unlock(&cluster.lock);
    return is;
}

static void
watcher_begin(void)
{
    pthread_mutex_lock(&cluster.lock);
    cluster.watch_is_old = false;
    pthread_mutex_unlock(&cluster.lock);
}

void *
cluster_watcher_run(void *arg)
{
    const struct store_watch w = {key_seen, watch_is_wanted, NULL};
    int64_t *start = arg, at = *start;
    struct problem why;
    int err;

    rcu_register_thread();
    do {
        watcher_begin();
        err = at ? 0 : cluster_read_all(&at, &why);
        while (!err && watch_is_wanted(NULL))
            err = store_watch(cluster.store, &at, &w, &why);
        if (err == -ENODATA || err == -EACCES)
            at = 0;
    } while (cluster_pause(AGAIN_S));
    rcu_unregister_thread();
    return NULL;
}

/* ---- applying -------------------------------------------------------------------------------- */

/* Takes the name of a volume that is to be applied, and its text (NULL: deleted; the caller frees it). */
static bool
next_volume(char **text)
{
    pthread_mutex_lock(&cluster.lock);
    cluster.applying[0] = '\0';
    pthread_cond_broadcast(&cluster.changed);
    while (!cluster.is_ending && (!cluster.has_read || json_object_size(cluster.dirty) == 0))
        pthread_cond_wait(&cluster.changed, &cluster.lock);
    bool goes_on = !cluster.is_ending;
    if (goes_on) {
        const char *name = json_object_iter_key(json_object_iter(cluster.dirty));
        const json_t *now = json_object_get(cluster.texts, name);

        snprintf(cluster.applying, sizeof cluster.applying, "%s", name);
        *text = now ? strdup(json_string_value(now)) : NULL;
        json_object_del(cluster.faults, name);
        json_object_del(cluster.dirty, name); /* `applying` has only a part of a key that is too long */
    }
    pthread_mutex_unlock(&cluster.lock);
    return goes_on;
}

static void
volume_fault_note(const char *name, const struct problem *why)
{
    log_event(LOG_ERROR, NULL, "cluster-volume", "this host does not follow volume %s: %s", name, why->wrong);
    pthread_mutex_lock(&cluster.lock);
    json_object_set_new(cluster.faults, name, json_pack("{ss si}", "error", why->wrong, "errno", why->err));
    pthread_mutex_unlock(&cluster.lock);
}

void *
cluster_applier_run(void *arg)
{
    char *text = NULL;

    (void)arg;
    rcu_register_thread();
    while (next_volume(&text)) {
        struct problem why = {0};
        struct volume *v = text ? state_dir_parse(text, strlen(text), &why) : NULL;
        /* only this thread writes the name */
        int err = text && !v ? why.err : volumes_take(cluster.applying, v, &why);

        if (err)
            volume_fault_note(cluster.applying, &why);
        free(text);
        text = NULL;
    }
    rcu_unregister_thread();
    return NULL;
}

int
cluster_wait_applied(const char *name, int64_t at, struct problem *why)
{
    struct timespec end = cluster_time_in(APPLY_S);
    int late = 0;

    why->err = 0;
    pthread_mutex_lock(&cluster.lock);
    while (!cluster.is_ending && !late &&
           (json_integer_value(json_object_get(cluster.revisions, name)) < at ||
            json_object_get(cluster.dirty, name) || strcmp(cluster.applying, name) == 0))
        late = pthread_cond_timedwait(&cluster.changed, &cluster.lock, &end);
    const json_t *fault = json_object_get(cluster.faults, name);
    if (late || cluster.is_ending)
        problem_set(why, -ETIMEDOUT, "host %s has not applied the change yet", cluster.o->host);
    else if (fault)
        problem_set(why, (int)json_integer_value(json_object_get(fault, "errno")), "%s",
                    json_string_value(json_object_get(fault, "error")));
    pthread_mutex_unlock(&cluster.lock);
    return why->err;
}
