/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/cluster/quota-hosts.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "log/log.h"
#include "volumes/brick-host.h"
#include "volumes/cluster/cluster.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything below */
static json_t *others;    /* {"HOST/VOLUME": {"id", "sets", "rows"}} of other hosts; NULL: none */
static json_t *published; /* {VOLUME: {"lease", "at", "value"}}: the last keys of this host; NULL: none */

/* ---- rows of other hosts --------------------------------------------------------------------- */

static bool
is_own_key(const char *rest)
{
    size_t n = strlen(brick_host_own());

    return strncmp(rest, brick_host_own(), n) == 0 && rest[n] == '/';
}

void
quota_hosts_seen(const char *rest, const char *text)
{
    json_t *value = text ? json_loads(text, 0, NULL) : NULL;

    pthread_mutex_lock(&lock);
    if (!others)
        others = json_object();
    if (is_own_key(rest) || !json_is_object(value))
        json_object_del(others, rest);
    else
        json_object_set(others, rest, value);
    pthread_mutex_unlock(&lock);
    json_decref(value);
}

void
quota_hosts_reset(void)
{
    pthread_mutex_lock(&lock);
    json_object_clear(others);
    pthread_mutex_unlock(&lock);
}

void
quota_hosts_add(const struct volume *v, struct quota_rows *r)
{
    const char *key;
    json_t *value;

    pthread_mutex_lock(&lock);
    json_object_foreach(others, key, value)
    {
        const char *slash = strchr(key, '/'), *id = json_string_value(json_object_get(value, "id"));

        /* a volume of another id was deleted, and this one has its name now */
        if (slash && strcmp(slash + 1, v->name) == 0 && id && strcmp(id, GFID(&v->id)) == 0)
            quota_rows_add_json(r, value, v->brick_count / v->replica);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- rows of this host ----------------------------------------------------------------------- */

/* Compares row by row: both lists are in the order of bricks and gfids. */
static bool
is_moved(const json_t *before, const json_t *now)
{
    const json_t *old = json_object_get(before, "rows"), *fresh = json_object_get(now, "rows"), *row;
    size_t i;

    if (json_array_size(old) != json_array_size(fresh) ||
        !json_equal(json_object_get(before, "sets"), json_object_get(now, "sets")) ||
        !json_equal(json_object_get(before, "id"), json_object_get(now, "id")))
        return true;
    json_array_foreach(fresh, i, row)
    {
        const json_t *was = json_array_get(old, i);
        json_int_t limit = json_integer_value(json_array_get(row, 2));
        json_int_t by =
            json_integer_value(json_array_get(row, 3)) - json_integer_value(json_array_get(was, 3));

        for (size_t k = 0; k < 5; k++) {
            if (k != 3 && !json_equal(json_array_get(was, k), json_array_get(row, k)))
                return true;
        }
        if (limit && llabs(by) > limit / QUOTA_HOSTS_PART)
            return true;
    }
    return false;
}

static bool
is_due_locked(const char *volume, const json_t *value, int64_t lease, time_t now)
{
    const json_t *last = json_object_get(published, volume), *before = json_object_get(last, "value");

    if (!before || json_integer_value(json_object_get(last, "lease")) != lease || is_moved(before, value))
        return true;
    return now - (time_t)json_integer_value(json_object_get(last, "at")) >= QUOTA_HOSTS_OLD_S &&
           !json_equal(before, value);
}

static time_t
monotonic_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

static void
publish_value(const char *volume, json_t *value, int64_t lease, time_t now)
{
    char key[VOLUME_NAME_MAX + 300], *text = json_dumps(value, JSON_COMPACT);
    struct problem why = {0};

    snprintf(key, sizeof key, "usage/%.255s/%s", brick_host_own(), volume);
    const struct store_change c = {key, text, STORE_ANY_REVISION, lease};
    int err = text && strlen(text) < STORE_VALUE_MAX ? store_change(cluster_store(), &c, 1, NULL, &why)
                                                     : problem_no_memory(&why);
    free(text);
    if (err) {
        log_event(LOG_WARNING, NULL, "quota-not-told", "volume %s: other hosts do not get its usage: %s",
                  volume, why.wrong);
        return;
    }
    pthread_mutex_lock(&lock);
    if (!published)
        published = json_object();
    json_object_set_new(published, volume,
                        json_pack("{sI sI sO}", "lease", (json_int_t)lease, "at", (json_int_t)now, "value",
                                  value));
    pthread_mutex_unlock(&lock);
}

void
quota_hosts_publish(const struct volume *v, const struct quota_rows *own)
{
    struct problem why;
    int64_t lease = cluster_is_on() && !cluster_check_store(&why) ? cluster_lease() : 0;
    json_t *value = lease ? quota_rows_to_json(own) : NULL;
    time_t now = monotonic_seconds();

    if (!value)
        return;
    json_object_set_new(value, "id", json_string(GFID(&v->id)));
    pthread_mutex_lock(&lock);
    bool is_due = is_due_locked(v->name, value, lease, now);
    pthread_mutex_unlock(&lock);
    if (is_due)
        publish_value(v->name, value, lease, now);
    json_decref(value);
}

void
quota_hosts_close(void)
{
    json_decref(others);
    json_decref(published);
    others = published = NULL;
}
