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
#include "volumes/cluster/cluster-jobs.h"
#include "volumes/cluster/cluster-register.h"
#include "volumes/cluster/host-proof.h"
#include "volumes/cluster/quota-hosts.h"
#include "volumes/heal/heal-watch.h"
#include "volumes/heal/healer.h"
#include "volumes/state-dir.h"
#include "volumes/cluster/store-history.h"
#include "volumes/volumes.h"

enum { KEEP_S = 3, AGAIN_S = 1, APPLY_S = 60, HEAL_LOOK_S = 15 };

static struct {
    const struct cluster_options *o; /* NULL: no store */
    struct store *store;
    char id[GFID_TEXT_SIZE]; /* of this machine, from the state folder */
    uint16_t brick_port;
    json_int_t since; /* seconds since 1970 */
    pthread_t threads[3]; /* the main thread's, like the next field */
    unsigned thread_count;
} cluster;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything below */
static pthread_cond_t changed; /* of the monotonic clock */
/* By name: the records of hosts, of live hosts, the texts of volumes, the revisions of these texts, the
 * volumes that are to be applied, and the faults of the last application. */
static json_t *hosts, *alive, *texts, *revisions, *dirty, *faults;
static json_t *jobs; /* records of jobs, by their ids */
static json_t *refused; /* the reason, by the names of hosts without a proof (host-proof.h) */
static json_t *roots; /* [{"path", "free"}] of this host */
static bool is_measuring, roots_changed;
static json_t *held; /* the host that is changing the bricks of a volume, by the name of the volume */
static char applying[256]; /* "": no volume */
static bool has_read, is_away = true, is_ending, is_removed;
/* The store was away and is back: a connection from before may hang in TCP's retransmission. */
static bool watch_is_old;
static char away_reason[512] = "kilnd has not reached it yet";
static int64_t lease;

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

static struct timespec
time_in(unsigned seconds)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += seconds;
    return t;
}

/* Waits for a change, or for so long. Returns false at the end of the cluster. */
static bool
cluster_pause(unsigned seconds)
{
    struct timespec end = time_in(seconds);
    int err = 0;

    pthread_mutex_lock(&lock);
    while (!is_ending && !err)
        err = pthread_cond_timedwait(&changed, &lock, &end);
    bool goes_on = !is_ending;
    pthread_mutex_unlock(&lock);
    return goes_on;
}

/* ---- the store comes and goes ---------------------------------------------------------------- */

static void
follow_all_healers(void)
{
    struct problem why;

    if (volumes_each_name(healer_follow, &why))
        log_event(LOG_ERROR, NULL, "cluster-healers", "the volumes that this host heals cannot be read: %s",
                  why.wrong);
}

static void
note_store(const struct problem *why)
{
    pthread_mutex_lock(&lock);
    bool was_away = is_away;
    is_away = why != NULL;
    watch_is_old |= was_away && !is_away;
    if (why)
        snprintf(away_reason, sizeof away_reason, "%.500s", why->wrong);
    pthread_mutex_unlock(&lock);
    if (why && !was_away)
        log_event(LOG_ERROR, NULL, "store-away",
                  "%s; bricks and volfiles are served, changes are refused until it is back", why->wrong);
    else if (!why && was_away)
        log_event(LOG_INFO, NULL, "store-back", "the store %s answers", store_location(cluster.store));
    if ((why != NULL) != was_away)
        follow_all_healers();
}

int
cluster_check_store(struct problem *why)
{
    why->err = 0;
    pthread_mutex_lock(&lock);
    if (is_away) {
        problem_set(why, -EAGAIN, "%s", away_reason);
        problem_expected(why,
                         "a store that answers: until then nothing can change; data is served meanwhile");
    }
    pthread_mutex_unlock(&lock);
    return why->err;
}

bool
cluster_has_read(void)
{
    pthread_mutex_lock(&lock);
    bool has = !cluster.o || has_read;
    pthread_mutex_unlock(&lock);
    return has;
}

int64_t
cluster_lease(void)
{
    pthread_mutex_lock(&lock);
    int64_t now = lease;
    pthread_mutex_unlock(&lock);
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
    pthread_mutex_lock(&lock);
    roots_changed = !json_equal(list, roots);
    json_decref(roots);
    roots = list;
    is_measuring = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
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
    pthread_mutex_lock(&lock);
    bool may = !is_measuring && cluster.o->root_count > 0;
    is_measuring |= may;
    pthread_mutex_unlock(&lock);
    if (!may || thread_start(measure_run, NULL) == 0)
        return;
    pthread_mutex_lock(&lock);
    is_measuring = false;
    pthread_mutex_unlock(&lock);
}

static int
host_announce(int64_t own_lease, struct problem *why)
{
    char key[300];
    struct upgrade_figures figures;

    upgrade_figures(&figures);
    pthread_mutex_lock(&lock);
    json_t *record = json_pack("{ss ss si si si sI sO*}", "id", cluster.id, "version", PACKAGE_VERSION,
                               "port", (int)cluster.brick_port, "pid", (int)getpid(), "upgrades",
                               (int)figures.count, "since", cluster.since, "roots", roots);
    roots_changed = false;
    pthread_mutex_unlock(&lock);
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
    pthread_mutex_lock(&lock);
    lease = fresh;
    pthread_mutex_unlock(&lock);
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
        pthread_mutex_lock(&lock);
        lease = 0;
        pthread_mutex_unlock(&lock);
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

    pthread_mutex_lock(&lock);
    json_object_foreach(alive, name, record)
        is_first &= strcmp(cluster.o->host, name) <= 0;
    pthread_mutex_unlock(&lock);
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
        pthread_mutex_lock(&lock);
        bool was_removed = is_removed, has_news = roots_changed;
        pthread_mutex_unlock(&lock);
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
        json_object_set_new(texts, name, json_string(text));
    else
        json_object_del(texts, name);
    json_object_set_new(revisions, name, json_integer(revision));
    json_object_set_new(dirty, name, json_true());
}

void
cluster_hold(const char *name, const char *from)
{
    pthread_mutex_lock(&lock);
    json_object_set_new(held, name, json_string(from));
    pthread_mutex_unlock(&lock);
}

/* The host that was changing bricks is dead: its volumes are compared again. */
static void
release_held_locked(const char *host)
{
    const char *name, *from;
    json_t *value;
    void *next;

    json_object_foreach_safe(held, next, name, value)
    {
        from = json_string_value(value);
        if (strcmp(from, host) != 0)
            continue;
        json_object_set_new(dirty, name, json_true());
        json_object_del(held, name);
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
        json_object_del(refused, name);
        return record;
    }
    const char *before = json_string_value(json_object_get(refused, name));
    if (!before || strcmp(before, why.wrong) != 0)
        log_event(LOG_ERROR, NULL, "host-refused", "%s; the host counts as down", why.wrong);
    json_object_set_new(refused, name, json_string(why.wrong));
    json_decref(record);
    return NULL;
}

static void
set_alive_locked(const char *name, const char *text)
{
    json_t *record = judge_host_locked(name, text ? host_record_read(text) : NULL);

    if (record)
        json_object_set_new(alive, name, record);
    else
        json_object_del(alive, name);
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
    judge_all_locked(alive);
    roots_changed = true;
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
    pthread_mutex_lock(&lock);
    is_removed = is_away = true;
    snprintf(away_reason, sizeof away_reason, "host %s was removed from the store", name);
    pthread_mutex_unlock(&lock);
}

static void
key_seen(const char *key, const char *text, int64_t revision, void *arg)
{
    const char *name, *gone = NULL;
    bool is_of_hosts = false;

    (void)arg;
    pthread_mutex_lock(&lock);
    if ((name = key_below(key, "volumes/"))) {
        set_volume_locked(name, text, revision);
    } else if ((name = key_below(key, "hosts/"))) {
        set_host_locked(hosts, name, text);
    } else if ((name = key_below(key, "jobs/"))) {
        set_host_locked(jobs, name, text);
    } else if ((name = key_below(key, "alive/"))) {
        set_alive_locked(name, text);
        is_of_hosts = true;
        gone = json_object_get(alive, name) ? NULL : name;
        if (gone)
            release_held_locked(gone);
    } else if (strcmp(key, "authority") == 0) {
        authority_seen_locked(text);
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    route_question_key(key, text);
    if ((name = key_below(key, "usage/")))
        quota_hosts_seen(name, text);
    if ((name = key_below(key, "hosts/")))
        see_own_record(name, text);
    if (gone)
        cluster_ask_host_gone(gone);
    if (is_of_hosts)
        follow_all_healers(); /* another host may heal now */
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
        json_object_set_new(r->texts, name, json_string(text));
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
    pthread_mutex_lock(&lock);
    json_object_set_new(dirty, name, json_true());
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Takes a reading in the place of the one before. Volumes that differ are applied. */
static void
apply_reading(struct reading *r, int64_t at)
{
    const char *name, *key;
    json_t *value;

    pthread_mutex_lock(&lock);
    json_object_foreach(texts, name, value)
    {
        if (!json_object_get(r->texts, name)) {
            json_object_set_new(dirty, name, json_true());
            json_object_set_new(r->revisions, name, json_integer(at));
        }
    }
    json_object_foreach(r->texts, name, value)
    {
        if (!json_equal(value, json_object_get(texts, name)))
            json_object_set_new(dirty, name, json_true());
    }
    if (host_proof_set_authority(r->authority))
        roots_changed = true;
    judge_all_locked(r->alive);
    json_t *const old[] = {hosts, alive, texts, revisions, jobs};
    hosts = r->hosts;
    alive = r->alive;
    texts = r->texts;
    revisions = r->revisions;
    jobs = r->jobs;
    for (size_t i = 0; i < sizeof old / sizeof old[0]; i++)
        json_decref(old[i]);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    json_object_foreach(r->asks, key, value) route_question_key(key, json_string_value(value));
    json_decref(r->asks);
    quota_hosts_reset();
    json_object_foreach(r->usage, key, value)
        quota_hosts_seen(key_below(key, "usage/"), json_string_value(value));
    json_decref(r->usage);
}

static int
read_everything(int64_t *at, struct problem *why)
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
    pthread_mutex_lock(&lock);
    bool is_first = !has_read;
    has_read = true;
    pthread_mutex_unlock(&lock);
    if (is_first) /* the copy may have volumes that the store no longer has */
        (void)volumes_each_name(cluster_check_again, why);
    follow_all_healers();
    return 0;
}

static bool
watch_is_wanted(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    bool is = !is_ending && !watch_is_old;
    pthread_mutex_unlock(&lock);
    return is;
}

static void
watcher_begin(void)
{
    pthread_mutex_lock(&lock);
    watch_is_old = false;
    pthread_mutex_unlock(&lock);
}

static void *
watcher_run(void *arg)
{
    const struct store_watch w = {key_seen, watch_is_wanted, NULL};
    int64_t *start = arg, at = *start;
    struct problem why;
    int err;

    rcu_register_thread();
    do {
        watcher_begin();
        err = at ? 0 : read_everything(&at, &why);
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
    pthread_mutex_lock(&lock);
    applying[0] = '\0';
    pthread_cond_broadcast(&changed);
    while (!is_ending && (!has_read || json_object_size(dirty) == 0))
        pthread_cond_wait(&changed, &lock);
    bool goes_on = !is_ending;
    if (goes_on) {
        const char *name = json_object_iter_key(json_object_iter(dirty));
        const json_t *now = json_object_get(texts, name);

        snprintf(applying, sizeof applying, "%s", name);
        *text = now ? strdup(json_string_value(now)) : NULL;
        json_object_del(dirty, applying);
        json_object_del(faults, applying);
    }
    pthread_mutex_unlock(&lock);
    return goes_on;
}

static void
volume_fault_note(const char *name, const struct problem *why)
{
    log_event(LOG_ERROR, NULL, "cluster-volume", "this host does not follow volume %s: %s", name, why->wrong);
    pthread_mutex_lock(&lock);
    json_object_set_new(faults, name, json_pack("{ss si}", "error", why->wrong, "errno", why->err));
    pthread_mutex_unlock(&lock);
}

static void *
applier_run(void *arg)
{
    char *text = NULL;

    (void)arg;
    rcu_register_thread();
    while (next_volume(&text)) {
        struct problem why = {0};
        struct volume *v = text ? state_dir_parse(text, strlen(text), &why) : NULL;
        /* only this thread writes the name */
        int err = text && !v ? why.err : volumes_take(applying, v, &why);

        if (err)
            volume_fault_note(applying, &why);
        free(text);
        text = NULL;
    }
    rcu_unregister_thread();
    return NULL;
}

int
cluster_wait_applied(const char *name, int64_t at, struct problem *why)
{
    struct timespec end = time_in(APPLY_S);
    int late = 0;

    why->err = 0;
    pthread_mutex_lock(&lock);
    while (!is_ending && !late &&
           (json_integer_value(json_object_get(revisions, name)) < at || json_object_get(dirty, name) ||
            strcmp(applying, name) == 0))
        late = pthread_cond_timedwait(&changed, &lock, &end);
    const json_t *fault = json_object_get(faults, name);
    if (late || is_ending)
        problem_set(why, -ETIMEDOUT, "host %s has not applied the change yet", cluster.o->host);
    else if (fault)
        problem_set(why, (int)json_integer_value(json_object_get(fault, "errno")), "%s",
                    json_string_value(json_object_get(fault, "error")));
    pthread_mutex_unlock(&lock);
    return why->err;
}

/* ---- hosts ----------------------------------------------------------------------------------- */

int
cluster_check_host(const char *host, struct problem *why)
{
    char known[400] = "";
    const char *name;
    json_t *record;

    why->err = 0;
    pthread_mutex_lock(&lock);
    bool is_known = json_object_get(hosts, host) != NULL;
    json_object_foreach(hosts, name, record)
    {
        size_t n = strlen(known);

        snprintf(known + n, sizeof known - n, "%s%.60s", n ? ", " : "", name);
    }
    pthread_mutex_unlock(&lock);
    if (is_known)
        return 0;
    problem_set(why, -ENOENT, "host %.255s is not registered", host);
    problem_expected(why, "one of %s", known);
    problem_type(why, "kilnd --store %.200s --host %.200s   # on that machine", store_location(cluster.store),
                 host);
    return why->err;
}

bool
cluster_is_alive(const char *host)
{
    pthread_mutex_lock(&lock);
    bool is = json_object_get(alive, host) != NULL || strcmp(host, cluster.o->host) == 0;
    pthread_mutex_unlock(&lock);
    return is;
}

json_t *
cluster_host_record(const char *host)
{
    pthread_mutex_lock(&lock);
    json_t *copy = json_deep_copy(json_object_get(alive, host));
    pthread_mutex_unlock(&lock);
    return copy;
}

int
cluster_announce(struct problem *why)
{
    int64_t now = cluster_lease();

    return now ? host_announce(now, why)
               : problem_set(why, -EAGAIN, "this host has no lease of the store yet");
}

json_t *
cluster_live_hosts(void)
{
    pthread_mutex_lock(&lock);
    json_t *copy = json_deep_copy(alive);
    pthread_mutex_unlock(&lock);
    return copy;
}

bool
cluster_has_jobs(void)
{
    const char *id, *state;
    json_t *record;
    bool has = false;

    pthread_mutex_lock(&lock);
    json_object_foreach(jobs, id, record)
    {
        state = json_string_value(json_object_get(record, "state"));
        has |= state && strcmp(state, "running") == 0;
    }
    pthread_mutex_unlock(&lock);
    return has;
}

/* FNV-1a of both texts: spreads the volumes over their hosts. */
static uint32_t
host_name_hash(const char *a, const char *b)
{
    uint32_t h = 2166136261u;

    for (; *a; a++)
        h = (h ^ (unsigned char)*a) * 16777619u;
    for (; *b; b++)
        h = (h ^ (unsigned char)*b) * 16777619u;
    return h;
}

const char *
cluster_healer(const struct volume *v)
{
    const char *best = NULL;
    uint32_t highest = 0;

    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < v->brick_count && !is_away; i++) {
        const char *host = v->bricks[i].host;
        uint32_t h = host_name_hash(host, v->name);

        if (!json_object_get(alive, host) && strcmp(host, cluster.o->host) != 0)
            continue;
        if (!best || h > highest || (h == highest && strcmp(host, best) > 0)) {
            best = host;
            highest = h;
        }
    }
    pthread_mutex_unlock(&lock);
    return best ? best : cluster.o->host;
}

bool
cluster_heals(const struct volume *v)
{
    return !cluster.o || (brick_host_has_any(v) && strcmp(cluster_healer(v), cluster.o->host) == 0);
}

/* {"host": number of bricks, ...} */
static void
count_bricks(const struct volume *v, void *arg)
{
    json_t *counts = arg;

    for (unsigned i = 0; i < v->brick_count; i++) {
        const char *host = v->bricks[i].host;
        json_int_t n = json_integer_value(json_object_get(counts, host));

        json_object_set_new(counts, host, json_integer(n + 1));
    }
}

static json_t *
describe_host_locked(const char *name, const json_t *counts)
{
    const json_t *a = json_object_get(alive, name), *record = json_object_get(hosts, name);
    const char *version = json_string_value(json_object_get(a, "version"));
    const char *address = json_string_value(json_object_get(record, "address"));

    return json_pack("{ss ss? ss? sb sb ss? sI sI sO? sb}", "name", name, "address", address, "refused",
                     json_string_value(json_object_get(refused, name)), "registered",
                     json_object_get(record, "id") != NULL, "alive", a != NULL, "version", version,
                     "since", json_integer_value(json_object_get(a, "since")), "bricks",
                     json_integer_value(json_object_get(counts, name)), "roots", json_object_get(a, "roots"),
                     "self", strcmp(name, cluster.o->host) == 0);
}

json_t *
cluster_describe(void)
{
    json_t *list = json_array(), *counts = json_object(), *record;
    const char *name;
    int is_short = 0;

    volumes_each(count_bricks, counts);
    pthread_mutex_lock(&lock);
    json_object_foreach(hosts, name, record)
        is_short |= json_array_append_new(list, describe_host_locked(name, counts));
    json_t *json = json_pack("{so s{ss ss ss*}}", "hosts", list, "store", "location",
                             store_location(cluster.store), "state", is_away ? "away" : "answers", "reason",
                             is_away ? away_reason : NULL);
    pthread_mutex_unlock(&lock);
    json_decref(counts);
    if (!is_short)
        return json;
    json_decref(json);
    return NULL;
}

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

/* ---- life ------------------------------------------------------------------------------------ */

int
cluster_open(const struct cluster_options *o, struct problem *why)
{
    pthread_condattr_t attr;
    json_t **const tables[] = {&hosts, &alive, &texts, &revisions, &dirty, &faults, &held, &jobs, &refused};

    cluster.o = o;
    host_proof_files(o->store.cert, o->store.key);
    brick_jobs_check_places(brick_age_check);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attr);
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
    static void *(*const runs[])(void *arg) = {keeper_run, applier_run, watcher_run};

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
    err = err ? err : read_everything(&at, why);
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
    pthread_mutex_lock(&lock);
    is_ending = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
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
    if (lease && !is_away && store_end_lease(cluster.store, lease, &why))
        log_event(LOG_WARNING, NULL, "host-lease-stays",
                  "other hosts count this host as up for some seconds: %s", why.wrong);
}

void
cluster_close(void)
{
    json_t *const tables[] = {hosts, alive, texts, revisions, dirty, faults, held, jobs, refused, roots};

    if (!cluster.o)
        return;
    brick_ages_finish(cluster.store && !is_away);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        json_decref(tables[i]);
    quota_hosts_close();
    host_proof_close();
    store_close(cluster.store);
}
