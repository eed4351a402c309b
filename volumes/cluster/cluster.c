/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <config.h>

#include "volumes/cluster/cluster.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>
#include <urcu.h>

#include "base/gfid.h"
#include "base/thread.h"
#include "bricks/upgrade.h"
#include "log/log.h"
#include "volumes/brick-host.h"
#include "volumes/bricks/brick-jobs.h"
#include "volumes/cluster/brick-age.h"
#include "volumes/cluster/cluster-ask.h"
#include "volumes/cluster/cluster-identity.h"
#include "volumes/cluster/cluster-internal.h"
#include "volumes/cluster/cluster-jobs.h"
#include "volumes/cluster/cluster-register.h"
#include "volumes/cluster/host-proof.h"
#include "volumes/cluster/quota-hosts.h"
#include "volumes/cluster/store-history.h"
#include "volumes/heal/heal-watch.h"
#include "volumes/heal/healer.h"
#include "volumes/state-dir.h"
#include "volumes/volumes.h"

enum { KEEP_S = 3, HEAL_LOOK_S = 15 };

struct cluster_state cluster = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .is_away = true,
    .away_reason = "kilnd has not reached it yet",
};

bool
cluster_is_on(void)
{
    return cluster.o != NULL;
}

struct store *
cluster_store(void)
{
    return cluster.store;
}

/* ---- waiting --------------------------------------------------------------------------------- */

struct timespec
cluster_time_in(unsigned seconds)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += seconds;
    return t;
}

bool
cluster_pause(unsigned seconds)
{
    struct timespec end = cluster_time_in(seconds);
    int err = 0;

    pthread_mutex_lock(&cluster.lock);
    while (!cluster.is_ending && !err)
        err = pthread_cond_timedwait(&cluster.changed, &cluster.lock, &end);
    bool goes_on = !cluster.is_ending;
    pthread_mutex_unlock(&cluster.lock);
    return goes_on;
}

/* ---- the store comes and goes ---------------------------------------------------------------- */

void
cluster_follow_healers(void)
{
    struct problem why;

    if (volumes_each_name(healer_follow, &why))
        log_event(LOG_ERROR, NULL, "cluster-healers", "the volumes that this host heals cannot be read: %s",
                  why.wrong);
}

static void
note_store(const struct problem *why)
{
    pthread_mutex_lock(&cluster.lock);
    bool was_away = cluster.is_away;
    cluster.is_away = why != NULL;
    cluster.watch_is_old |= was_away && !cluster.is_away;
    if (why)
        snprintf(cluster.away_reason, sizeof cluster.away_reason, "%.500s", why->wrong);
    pthread_mutex_unlock(&cluster.lock);
    if (why && !was_away)
        log_event(LOG_ERROR, NULL, "store-away",
                  "%s; bricks and volfiles are served, changes are refused until it is back", why->wrong);
    else if (!why && was_away)
        log_event(LOG_INFO, NULL, "store-back", "the store %s answers", store_location(cluster.store));
    if ((why != NULL) != was_away)
        cluster_follow_healers();
}

int
cluster_check_store(struct problem *why)
{
    why->err = 0;
    pthread_mutex_lock(&cluster.lock);
    if (cluster.is_away) {
        problem_set(why, -EAGAIN, "%s", cluster.away_reason);
        problem_expected(why,
                         "a store that answers: until then nothing can change; data is served meanwhile");
    }
    pthread_mutex_unlock(&cluster.lock);
    return why->err;
}

bool
cluster_has_read(void)
{
    pthread_mutex_lock(&cluster.lock);
    bool has = !cluster.o || cluster.has_read;
    pthread_mutex_unlock(&cluster.lock);
    return has;
}

int64_t
cluster_lease(void)
{
    pthread_mutex_lock(&cluster.lock);
    int64_t now = cluster.lease;
    pthread_mutex_unlock(&cluster.lock);
    return now;
}

/* ---- registration ---------------------------------------------------------------------------- */

/* Measures the free space of the brick roots, which may wait for a disk. */
static void
measure_roots(void)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < cluster.o->root_count; i++) {
        struct statvfs fs;
        bool is_there = statvfs(cluster.o->roots[i], &fs) == 0;

        if (!is_there)
            log_event(LOG_ERROR, NULL, "brick-root", "--brick-root %s: %s", cluster.o->roots[i],
                      strerror(errno));
        else
            json_array_append_new(list, json_pack("{ss sI}", "path", cluster.o->roots[i], "free",
                                                  (json_int_t)(fs.f_bavail * fs.f_frsize)));
    }
    pthread_mutex_lock(&cluster.lock);
    cluster.roots_changed = !json_equal(list, cluster.roots);
    json_decref(cluster.roots);
    cluster.roots = list;
    cluster.is_measuring = false;
    pthread_cond_broadcast(&cluster.changed);
    pthread_mutex_unlock(&cluster.lock);
}

static void *
measure_run(void *arg)
{
    measure_roots();
    return arg;
}

/* Has the roots measured in another thread: a disk that does not answer must not end the lease. */
static void
measure_later(void)
{
    pthread_mutex_lock(&cluster.lock);
    bool may = !cluster.is_measuring && cluster.o->root_count > 0;
    cluster.is_measuring |= may;
    pthread_mutex_unlock(&cluster.lock);
    if (!may || thread_start(measure_run, NULL) == 0)
        return;
    pthread_mutex_lock(&cluster.lock);
    cluster.is_measuring = false;
    pthread_mutex_unlock(&cluster.lock);
}

static int
host_announce(int64_t own_lease, struct problem *why)
{
    char key[300];
    struct upgrade_figures figures;

    upgrade_figures(&figures);
    pthread_mutex_lock(&cluster.lock);
    json_t *record = json_pack("{ss ss si si si sI sO*}", "id", cluster.id, "version", PACKAGE_VERSION,
                               "port", (int)cluster.brick_port, "pid", (int)getpid(), "upgrades",
                               (int)figures.count, "since", cluster.since, "roots", cluster.roots);
    cluster.roots_changed = false;
    pthread_mutex_unlock(&cluster.lock);
    snprintf(key, sizeof key, "alive/%s", cluster.o->host);
    int err = record ? host_proof_sign(record, key, cluster.o->host, why) : problem_no_memory(why);
    char *text = err ? NULL : json_dumps(record, JSON_COMPACT);
    json_decref(record);
    const struct store_change c = {key, text, STORE_ANY_REVISION, own_lease};
    if (!err)
        err = text ? store_change(cluster.store, &c, 1, NULL, why) : problem_no_memory(why);
    free(text);
    return err;
}

/* Registers the host and takes a lease. */
static int
host_sign_in(struct problem *why)
{
    int64_t fresh = 0;
    int err = cluster_register(cluster.store, cluster.o->host, cluster.id, why);

    err = err ? err : store_lease(cluster.store, CLUSTER_LEASE_S, &fresh, why);
    err = err ? err : host_announce(fresh, why);
    if (err)
        return err;
    pthread_mutex_lock(&cluster.lock);
    cluster.lease = fresh;
    pthread_mutex_unlock(&cluster.lock);
    log_event(LOG_INFO, NULL, "host-signed-in", "host %s of the store %s", cluster.o->host,
              store_location(cluster.store));
    return 0;
}

/* Renews the lease, or signs in. */
static int
renew_or_sign_in(struct problem *why)
{
    int64_t now = cluster_lease();
    int err = now ? store_renew(cluster.store, now, why) : host_sign_in(why);

    if (err == -ENOENT) {
        pthread_mutex_lock(&cluster.lock);
        cluster.lease = 0;
        pthread_mutex_unlock(&cluster.lock);
        err = host_sign_in(why);
    }
    return err;
}

/* One live host at a time, chosen by the names alone. */
static bool
is_first_alive(void)
{
    const char *name;
    json_t *record;
    bool is_first = true;

    pthread_mutex_lock(&cluster.lock);
    json_object_foreach(cluster.alive, name, record)
        is_first &= strcmp(cluster.o->host, name) <= 0;
    pthread_mutex_unlock(&cluster.lock);
    return is_first;
}

static void *
keeper_run(void *arg)
{
    struct problem why;
    int last = 0;
    unsigned beats = 0;

    (void)arg;
    rcu_register_thread();
    do {
        if (++beats % (CLUSTER_SPACE_S / KEEP_S) == 0)
            measure_later();
        pthread_mutex_lock(&cluster.lock);
        bool was_removed = cluster.is_removed, has_news = cluster.roots_changed;
        pthread_mutex_unlock(&cluster.lock);
        int err = was_removed ? 0 : renew_or_sign_in(&why);

        if (!err && has_news && !was_removed)
            err = host_announce(cluster_lease(), &why);

        if (err && err != last && err != -EAGAIN)
            log_event(LOG_ERROR, NULL, "host-no-lease", "this host cannot renew its record in the store: %s",
                      why.wrong);
        last = err;
        if (!was_removed)
            note_store(err ? &why : NULL);
        if (!err && !was_removed)
            cluster_jobs_look();
        if (beats % (HEAL_LOOK_S / KEEP_S) == 0)
            heal_watch_look();
        if (beats % (STORE_HISTORY_S / KEEP_S) == 0 && !err && is_first_alive())
            store_history_look(cluster.store);
        if (beats % (BRICK_AGE_S / KEEP_S) == 1)
            brick_ages_grow();
    } while (cluster_pause(KEEP_S));
    rcu_unregister_thread();
    return NULL;
}

int
cluster_announce(struct problem *why)
{
    int64_t now = cluster_lease();

    return now ? host_announce(now, why)
               : problem_set(why, -EAGAIN, "this host has no lease of the store yet");
}

/* ---- life ------------------------------------------------------------------------------------ */

static void
volume_counts(const struct volume *v, void *arg)
{
    (void)v;
    ++*(unsigned *)arg;
}

/* A state folder that has volumes, but no identity, belongs to a kilnd without a store. */
static int
load_or_make_identity(struct problem *why)
{
    const char *dir = cluster.o->state_dir;
    unsigned count = 0;
    int err = cluster_identity_read(dir, cluster.o->host, cluster.id, why);

    if (err != -ENOENT)
        return err;
    volumes_each(volume_counts, &count);
    if (!count)
        return cluster_identity_make(dir, cluster.o->host, cluster.id, why);
    problem_set(why, -ENOTEMPTY, "%s has %u volumes of a kilnd without a store", dir, count);
    problem_expected(why, "an empty state folder");
    return why->err;
}

int
cluster_open(const struct cluster_options *o, struct problem *why)
{
    pthread_condattr_t attr;
    json_t **const tables[] = {&cluster.hosts,     &cluster.alive, &cluster.texts,
                               &cluster.revisions, &cluster.dirty, &cluster.faults,
                               &cluster.held,      &cluster.jobs,  &cluster.refused};

    cluster.o = o;
    host_proof_files(o->store.cert, o->store.key);
    brick_jobs_check_places(brick_age_check);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&cluster.changed, &attr);
    pthread_condattr_destroy(&attr);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if (!(*tables[i] = json_object()))
            return problem_no_memory(why);
    }
    if (load_or_make_identity(why))
        return why->err;
    cluster.store = store_open(&o->store, why);
    return cluster.store ? 0 : why->err;
}

static int
start_threads(int64_t *at, struct problem *why)
{
    static void *(*const runs[])(void *arg) = {keeper_run, cluster_applier_run, cluster_watcher_run};

    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        int err = pthread_create(&cluster.threads[i], NULL, runs[i], at);

        if (err)
            return problem_set(why, -err, "threads: %s", strerror(err));
        cluster.thread_count++;
    }
    return 0;
}

int
cluster_start(uint16_t brick_port, struct problem *why)
{
    static int64_t at; /* the watcher reads it when it starts */

    cluster.brick_port = brick_port;
    cluster.since = (json_int_t)time(NULL);
    measure_roots();
    int err = host_sign_in(why);
    err = err ? err : cluster_read_all(&at, why);
    if (err && err != -EAGAIN)
        return err;
    note_store(err ? why : NULL);
    if (err)
        log_event(LOG_WARNING, NULL, "store-away-at-start",
                  "%s: the bricks of the copy in %s are served; mounts get volfiles when the store is back",
                  why->wrong, cluster.o->state_dir);
    return start_threads(&at, why);
}

void
cluster_quiet(void)
{
    if (!cluster.o)
        return;
    cluster_asks_stop();
    pthread_mutex_lock(&cluster.lock);
    cluster.is_ending = true;
    pthread_cond_broadcast(&cluster.changed);
    pthread_mutex_unlock(&cluster.lock);
}

void
cluster_stop(void)
{
    struct problem why;

    if (!cluster.o)
        return;
    cluster_quiet();
    cluster_jobs_end();
    while (cluster.thread_count > 0)
        pthread_join(cluster.threads[--cluster.thread_count], NULL);
    heal_watch_end();
    brick_ages_end();
    cluster_asks_drain();
    if (cluster.lease && !cluster.is_away && store_end_lease(cluster.store, cluster.lease, &why))
        log_event(LOG_WARNING, NULL, "host-lease-stays",
                  "other hosts count this host as up for some seconds: %s", why.wrong);
}

void
cluster_close(void)
{
    json_t *const tables[] = {cluster.hosts, cluster.alive, cluster.texts, cluster.revisions, cluster.dirty,
                              cluster.faults, cluster.held, cluster.jobs, cluster.refused, cluster.roots};

    if (!cluster.o)
        return;
    brick_ages_finish(cluster.store && !cluster.is_away);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        json_decref(tables[i]);
    quota_hosts_close();
    host_proof_close();
    store_close(cluster.store);
}
