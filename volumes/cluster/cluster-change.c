/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/cluster/cluster-change.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"
#include "volumes/brick-host.h"
#include "volumes/cluster/cluster-ask.h"
#include "volumes/cluster/cluster-bricks.h"
#include "volumes/cluster/cluster-look.h"
#include "volumes/cluster/cluster-quota.h"
#include "volumes/cluster/cluster.h"
#include "volumes/state-dir.h"
#include "volumes/volume-options.h"
#include "volumes/volumes-internal.h"

enum { TRIES = 16, KEY_BYTES = VOLUME_NAME_MAX + 16 };

/* ---- volumes of the store -------------------------------------------------------------------- */

static void
volume_key(char key[KEY_BYTES], const char *name)
{
    snprintf(key, KEY_BYTES, "volumes/%.*s", VOLUME_NAME_MAX, name);
}

struct volume *
cluster_read_volume(const char *name, int64_t *revision, struct problem *why)
{
    char key[KEY_BYTES], *text;

    if (volume_check_name(name, why))
        return NULL;
    volume_key(key, name);
    if (store_get(cluster_store(), key, &text, revision, why))
        return NULL;
    struct volume *v = text ? state_dir_parse(text, strlen(text), why) : NULL;
    if (!text) {
        problem_set(why, -ENOENT, "there is no volume %.200s", name);
        problem_type(why, "kiln volume list");
    }
    free(text);
    return v;
}

/* Writes the volume, or deletes it with `v` NULL. `layout`: the revision of the layout that the change was
 * made from, or STORE_ANY_REVISION for a change that moves no brick. `also`: a further key; NULL: none. */
static int
write_volume(const char *name, const struct volume *v, int64_t from, int64_t layout, int64_t lease,
             const struct store_change *also, int64_t *at, struct problem *why)
{
    json_t *json = v ? volume_to_json(v) : NULL;
    char key[KEY_BYTES], *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    if (v && !text)
        return problem_no_memory(why);
    volume_key(key, name);
    struct store_change c[3] = {{key, text, from, lease}};
    size_t count = 1;

    if (layout != STORE_ANY_REVISION)
        c[count++] = (struct store_change){"layout", name, layout, 0};
    if (also)
        c[count++] = *also;
    int err = store_change(cluster_store(), c, count, at, why);
    free(text);
    return err;
}

static int
gave_up(const char *name, struct problem *why)
{
    problem_set(why, -EBUSY, "volume %.200s changes all the time: other hosts were faster %d times", name,
                TRIES);
    problem_type(why, "kiln volume info %.200s", name);
    return why->err;
}

/* ---- hosts of a volume ----------------------------------------------------------------------- */

unsigned
cluster_hosts_of(const struct volume *v, struct cluster_ask *asks)
{
    unsigned count = 0;

    asks[count++].host = brick_host_own();
    for (unsigned i = 0; i < v->brick_count; i++) {
        const char *host = *v->bricks[i].host ? v->bricks[i].host : brick_host_own();
        unsigned k = 0;

        while (k < count && strcmp(asks[k].host, host) != 0)
            k++;
        if (k == count)
            asks[count++].host = host;
    }
    return count;
}

static int
check_hosts_are_up(const struct volume *v, const char *type, struct problem *why)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        const char *host = v->bricks[i].host;

        if (!*host || cluster_is_alive(host))
            continue;
        problem_set(why, -EHOSTUNREACH, "host %s is down, which has brick %s", host, v->bricks[i].path);
        problem_expected(why, "hosts that kiln host list shows as up");
        if (type)
            problem_type(why, type, v->name);
        return why->err;
    }
    return 0;
}

/* Asks the hosts of the volume. Puts the first failure into *why; with is_lenient a host that is down or that
 * does not answer is no failure, because the host follows the store when it returns. */
static int
ask_hosts(const struct volume *v, const char *verb, json_t *args, bool is_lenient, struct problem *why)
{
    struct cluster_ask *asks = calloc(v->brick_count + 1, sizeof *asks);
    unsigned count = asks && args ? cluster_hosts_of(v, asks) : 0;
    int err = count ? 0 : problem_no_memory(why);

    cluster_ask_all(asks, count, verb, args, CLUSTER_CHANGE_S);
    for (unsigned i = 0; i < count && !err; i++) {
        bool is_away = asks[i].err == -EHOSTUNREACH || asks[i].err == -ETIMEDOUT || asks[i].err == -EAGAIN;

        if (asks[i].err && is_away && is_lenient) {
            log_event(LOG_WARNING, NULL, "host-follows-later", "volume %s: %s: it follows when it returns",
                      v->name, asks[i].why.wrong);
        } else if (asks[i].err) {
            *why = asks[i].why;
            err = asks[i].err;
        }
    }
    cluster_asks_end(asks, count);
    free(asks);
    json_decref(args);
    return err;
}

int
cluster_ask_hosts(const struct volume *v, const char *verb, json_t *args, struct problem *why)
{
    return ask_hosts(v, verb, args, false, why);
}

/* Waits until the hosts have applied revision `at` of the volume. */
static int
apply_on_hosts(const struct volume *v, int64_t at, bool is_lenient, struct problem *why)
{
    return ask_hosts(v, "apply", json_pack("{ss sI}", "name", v->name, "at", (json_int_t)at), is_lenient,
                     why);
}

/* Writes `before` in the place of the volume of revision `from`, after hosts have refused the change. */
static void
restore_before_change(const struct volume *before, int64_t from)
{
    struct problem why;
    int64_t at;
    int err = write_volume(before->name, before, from, STORE_ANY_REVISION, 0, NULL, &at, &why);

    err = err ? err : apply_on_hosts(before, at, true, &why);
    if (err)
        log_event(LOG_ERROR, NULL, "cluster-take-back",
                  "volume %s: the change that a host refused cannot be taken back: %s", before->name,
                  why.wrong);
}

int
cluster_commit(const struct volume *now, const struct volume *fresh, int64_t from, int64_t layout,
               int64_t *at, struct problem *why)
{
    int err = write_volume(fresh->name, fresh, from, layout, 0, NULL, at, why);

    if (err)
        return err;
    err = apply_on_hosts(fresh, *at, true, why);
    if (err)
        restore_before_change(now, *at);
    return err;
}

/* ---- create ---------------------------------------------------------------------------------- */

struct others {
    const struct volume *v;
    struct problem *why;
};

static void
compare_with_other(const char *key, const char *text, int64_t revision, void *arg)
{
    const struct others *o = arg;
    struct problem ignored;
    struct volume *other = o->why->err ? NULL : state_dir_parse(text, strlen(text), &ignored);

    (void)key, (void)revision;
    if (other && strcmp(other->name, o->v->name) != 0)
        (void)volumes_compare_paths(o->v, other, o->why);
    volume_free(other);
}

int
cluster_compare_paths(const struct volume *v, int64_t *layout, struct problem *why)
{
    struct problem clash = {0};
    const struct others o = {v, &clash};
    char *text;
    int64_t at;

    if (store_get(cluster_store(), "layout", &text, layout, why))
        return why->err;
    free(text);
    if (store_list(cluster_store(), "volumes/", compare_with_other, (void *)&o, &at, why))
        return why->err;
    if (clash.err)
        *why = clash;
    return clash.err;
}

/* Checks name and bricks against all volumes of the store. *layout: the revision of this check. */
static int
check_new_volume(const struct volume *v, int64_t *layout, struct problem *why)
{
    char *text, key[KEY_BYTES];
    int64_t revision;

    volume_key(key, v->name);
    if (store_get(cluster_store(), key, &text, &revision, why))
        return why->err;
    free(text);
    if (!revision)
        return cluster_compare_paths(v, layout, why);
    problem_set(why, -EEXIST, "volume %s exists already", v->name);
    problem_type(why, "kiln volume info %s", v->name);
    return why->err;
}

/* Puts the new volume into the store; one that is CREATING is bound to this host's lease. */
static int
reserve_volume(const struct volume *v, int64_t *at, struct problem *why)
{
    const bool is_leased = v->status == VOLUME_CREATING;
    int64_t lease = is_leased ? cluster_lease() : 0, layout;
    int err = lease || !is_leased ? 0
                                  : problem_set(why, -EAGAIN, "this host has no lease of the store yet");

    for (unsigned i = 0; i < TRIES && !err; i++) {
        if ((err = check_new_volume(v, &layout, why)))
            return err;
        err = write_volume(v->name, v, 0, layout, lease, NULL, at, why);
        if (err != -ESTALE)
            return err;
        err = 0;
    }
    return err ? err : gave_up(v->name, why);
}

int
cluster_create(struct volume *v, struct problem *why)
{
    int64_t at;
    struct problem undo;
    int err = cluster_check_store(why);

    v->status = VOLUME_CREATING;
    err = err ? err : volumes_check_own_paths(v, why);
    err = err ? err : check_hosts_are_up(v, NULL, why);
    err = err ? err : reserve_volume(v, &at, why);
    if (err) {
        volume_free(v);
        return err;
    }
    err = ask_hosts(v, "make", json_pack("{so sI}", "volume", volume_to_json(v), "at", (json_int_t)at),
                    false, why);
    if (!err) {
        v->status = VOLUME_CREATED;
        err = write_volume(v->name, v, at, STORE_ANY_REVISION, 0, NULL, &at, why);
        err = err ? err : apply_on_hosts(v, at, true, why);
    }
    /* each host undoes its bricks when the volume is gone; without the store when the lease ends */
    if (err && v->status == VOLUME_CREATING &&
        write_volume(v->name, NULL, at, STORE_ANY_REVISION, 0, NULL, &at, &undo) == 0)
        (void)apply_on_hosts(v, at, true, &undo);
    if (!err)
        log_event(LOG_INFO, NULL, "cluster-volume-created", "volume %s of %u bricks", v->name,
                  v->brick_count);
    volume_free(v);
    return err;
}

int
cluster_adopt(struct volume *v, struct problem *why)
{
    int64_t at;
    int err = cluster_check_store(why);

    err = err ? err : volumes_check_own_paths(v, why);
    err = err ? err : reserve_volume(v, &at, why);
    err = err ? err : apply_on_hosts(v, at, true, why);
    volume_free(v);
    return err;
}

/* ---- changes of one volume ------------------------------------------------------------------- */

/* Changes a copy of the volume. Returns 0 or -errno with *why. */
typedef int (*change_fn)(struct volume *v, void *arg, struct problem *why);

/* Reads, changes and writes the volume until no other host was faster. *before and *after get the volume (the
 * caller frees both), *at the new revision. */
static int
change_volume_also(const char *name, change_fn change, void *arg, const struct store_change *also,
                   struct volume **before, struct volume **after, int64_t *at, struct problem *why)
{
    int err = cluster_check_store(why);

    *before = *after = NULL;
    for (unsigned i = 0; i < TRIES && !err; i++) {
        int64_t from;
        struct volume *now = cluster_read_volume(name, &from, why), *fresh = now ? volume_copy(now) : NULL;

        if (now && now->status == VOLUME_CREATING)
            err = problem_set(why, -EBUSY, "volume %s is being created", name);
        else if (!fresh)
            err = now ? problem_no_memory(why) : why->err;
        err = err ? err : change(fresh, arg, why);
        err = err ? err : write_volume(name, fresh, from, STORE_ANY_REVISION, 0, also, at, why);
        if (!err) {
            *before = now;
            *after = fresh;
            return 0;
        }
        volume_free(now);
        volume_free(fresh);
        if (err == -ESTALE)
            err = 0;
    }
    return err ? err : gave_up(name, why);
}

static int
change_volume(const char *name, change_fn change, void *arg, struct volume **before, struct volume **after,
              int64_t *at, struct problem *why)
{
    return change_volume_also(name, change, arg, NULL, before, after, at, why);
}

static int
to_started(struct volume *v, void *arg, struct problem *why)
{
    const bool *is_forced = arg;

    if (v->status == VOLUME_STARTED && !*is_forced) {
        problem_set(why, -EALREADY, "volume %s is started already", v->name);
        problem_type(why, "kiln volume status %s", v->name);
        return why->err;
    }
    if (!*is_forced && check_hosts_are_up(v, "kiln volume start %s force   # starts without this brick", why))
        return why->err;
    v->status = VOLUME_STARTED;
    return 0;
}

/* Lets the hosts apply revision `at`, and puts the failures of all of them into *left. */
static void
start_on_hosts(const struct volume *v, int64_t at, struct problem *left)
{
    struct cluster_ask *asks = calloc(v->brick_count + 1, sizeof *asks);
    json_t *args = json_pack("{ss sI}", "name", v->name, "at", (json_int_t)at);
    unsigned count = asks && args ? cluster_hosts_of(v, asks) : 0;

    problem_set(left, 0, "%s", "");
    if (!count)
        problem_no_memory(left);
    cluster_ask_all(asks, count, "apply", args, CLUSTER_CHANGE_S);
    for (unsigned i = 0; i < count; i++) {
        if (asks[i].err)
            problem_also(left, "host %s: %s", asks[i].host, asks[i].why.wrong);
    }
    left->err = 0;
    cluster_asks_end(asks, count);
    free(asks);
    json_decref(args);
}

int
cluster_start_volume(const char *name, bool is_forced, struct problem *why)
{
    struct volume *before, *after;
    int64_t at;
    int err = change_volume(name, to_started, &is_forced, &before, &after, &at, why);

    if (err)
        return err;
    if (is_forced) {
        start_on_hosts(after, at, why);
        if (why->wrong[0])
            log_event(LOG_ERROR, NULL, "cluster-brick-left-out", "volume %s is started without a brick: %s",
                      name, why->wrong);
    } else if ((err = apply_on_hosts(after, at, false, why))) {
        if (before->status != VOLUME_STARTED)
            restore_before_change(before, at);
        problem_expected(why, "all bricks to start");
        problem_type(why, "kiln volume start %s force   # starts without this brick", name);
    }
    volume_free(before);
    volume_free(after);
    return err;
}

static int
to_stopped(struct volume *v, void *arg, struct problem *why)
{
    (void)arg;
    if (v->status != VOLUME_STARTED) {
        problem_set(why, -EINVAL, "volume %s is not started", v->name);
        problem_type(why, "kiln volume start %s", v->name);
        return why->err;
    }
    v->status = VOLUME_STOPPED;
    return 0;
}

int
cluster_stop_volume(const char *name, struct problem *why)
{
    struct volume *before, *after;
    int64_t at;
    int err = change_volume(name, to_stopped, NULL, &before, &after, &at, why);

    if (err)
        return err;
    err = apply_on_hosts(after, at, true, why);
    volume_free(before);
    volume_free(after);
    return err;
}

int
cluster_delete(const char *name, struct problem *why)
{
    int64_t from, at;
    int err = cluster_check_store(why);

    for (unsigned i = 0; i < TRIES && !err; i++) {
        struct volume *v = cluster_read_volume(name, &from, why);

        if (!v)
            return why->err;
        if (v->status == VOLUME_STARTED || v->status == VOLUME_CREATING) {
            err = problem_set(why, -EINVAL, "volume %s is %s", name,
                              v->status == VOLUME_STARTED ? "started" : "being created");
            problem_expected(why, "a volume that is stopped");
            problem_type(why, "kiln volume stop %s", name);
        } else {
            err = write_volume(name, NULL, from, STORE_ANY_REVISION, 0, NULL, &at, why);
            bool is_done = !err;
            if (is_done)
                err = apply_on_hosts(v, at, true, why);
            if (is_done) {
                volume_free(v);
                return err;
            }
        }
        volume_free(v);
        if (err == -ESTALE)
            err = 0;
    }
    return err ? err : gave_up(name, why);
}

/* ---- options --------------------------------------------------------------------------------- */

static int
with_options(struct volume *v, void *arg, struct problem *why)
{
    int err = volumes_put_options(v, arg, why);

    return err ? err : volumes_check(v, why);
}

/* Applies the change on all hosts that are up, or takes it back. */
static int
apply_or_take_back(struct volume *before, struct volume *after, int64_t at, struct problem *why)
{
    int err = apply_on_hosts(after, at, true, why);

    if (err)
        restore_before_change(before, at);
    volume_free(before);
    volume_free(after);
    return err;
}

int
cluster_set(const char *name, const json_t *options, struct problem *why)
{
    struct volume *before, *after;
    int64_t at;
    int err = change_volume(name, with_options, (void *)options, &before, &after, &at, why);

    return err ? err : apply_or_take_back(before, after, at, why);
}

int
cluster_change(const char *name, change_fn fn, void *arg, const struct store_change *also,
               struct problem *why)
{
    struct volume *before, *after;
    int64_t at;
    int err = change_volume_also(name, fn, arg, also, &before, &after, &at, why);

    return err ? err : apply_or_take_back(before, after, at, why);
}

struct dropping {
    const char *key;
    unsigned *count;
};

static int
without_options(struct volume *v, void *arg, struct problem *why)
{
    struct dropping *d = arg;
    int err = volumes_drop_options(v, d->key, d->count, why);

    return err ? err : volumes_check(v, why);
}

int
cluster_reset(const char *name, const char *key, unsigned *count, struct problem *why)
{
    struct dropping d = {key, count};
    struct volume *before, *after;
    int64_t at;
    int err = change_volume(name, without_options, &d, &before, &after, &at, why);

    return err ? err : apply_or_take_back(before, after, at, why);
}

/* ---- hosts ----------------------------------------------------------------------------------- */

struct needing {
    const char *host;
    char volume[VOLUME_NAME_MAX + 1]; /* one that needs the host; "": none */
};

static void
look_for_bricks(const char *key, const char *text, int64_t revision, void *arg)
{
    struct needing *n = arg;
    struct problem ignored;
    struct volume *v = state_dir_parse(text, strlen(text), &ignored);

    (void)key, (void)revision;
    for (unsigned i = 0; v && i < v->brick_count; i++) {
        if (strcmp(v->bricks[i].host, n->host) == 0)
            snprintf(n->volume, sizeof n->volume, "%s", v->name);
    }
    volume_free(v);
}

/* Tries the removal once. -ESTALE: another host has changed bricks meanwhile. */
static int
remove_host_once(const char *host, struct problem *why)
{
    struct needing n = {.host = host};
    int64_t layout, at, revision;
    char key[300], *text;

    if (store_get(cluster_store(), "layout", &text, &layout, why))
        return why->err;
    free(text);
    snprintf(key, sizeof key, "hosts/%.255s", host);
    if (store_get(cluster_store(), key, &text, &revision, why) ||
        store_list(cluster_store(), "volumes/", look_for_bricks, &n, &at, why))
        return why->err;
    free(text);
    if (!revision)
        return cluster_check_host(host, why) ? why->err
                                             : problem_set(why, -ENOENT, "host %s is not registered", host);
    if (*n.volume) {
        problem_set(why, -EBUSY, "host %s has bricks of volume %s", host, n.volume);
        problem_expected(why, "a host without bricks");
        problem_type(why, "kiln volume info %s", n.volume);
        return why->err;
    }
    const struct store_change c[] = {{key, NULL, revision, 0}, {"layout", host, layout, 0}};
    return store_change(cluster_store(), c, 2, NULL, why);
}

int
cluster_remove_host(const char *host, struct problem *why)
{
    int err = cluster_check_store(why);

    err = err ? err : volume_check_host(host, why);
    err = err ? err : cluster_check_member(host, why);
    if (!err && cluster_is_alive(host)) {
        err = problem_set(why, -EBUSY, "host %s is up, and would register again", host);
        problem_expected(why, "a host whose kilnd is stopped");
        problem_type(why, "systemctl disable --now kilnd   # on %s", host);
    }
    for (unsigned i = 0; i < TRIES && !err; i++) {
        err = remove_host_once(host, why);
        if (err != -ESTALE)
            return err;
        err = 0;
    }
    return err ? err : gave_up(host, why);
}

/* ---- questions of hosts ---------------------------------------------------------------------- */

static int
serve_make(json_t *args, struct problem *why)
{
    struct volume *v = volume_from_json(json_object_get(args, "volume"), why);

    if (!v)
        return why->err;
    if (v->status != VOLUME_CREATING) {
        volume_free(v);
        return problem_set(why, -EINVAL, "the volume is not being created");
    }
    char name[VOLUME_NAME_MAX + 1];
    snprintf(name, sizeof name, "%s", v->name);
    /* This host must know of the volume, or it would take the new bricks for those of a dead creator. */
    int err = cluster_wait_applied(name, json_integer_value(json_object_get(args, "at")), why);
    if (err) {
        volume_free(v);
        return err;
    }
    err = volumes_make_here(v, why);
    cluster_check_again(name); /* its creator may have given up meanwhile */
    return err;
}

static int
serve_apply(json_t *args, struct problem *why)
{
    const char *name = json_string_value(json_object_get(args, "name"));

    return name ? cluster_wait_applied(name, json_integer_value(json_object_get(args, "at")), why)
                : problem_set(why, -EINVAL, "the question names no volume");
}

int
cluster_serve(const char *verb, json_t *args, json_t **out, struct problem *why)
{
    *out = NULL;
    if (strcmp(verb, "make") == 0)
        return serve_make(args, why);
    if (strcmp(verb, "apply") == 0)
        return serve_apply(args, why);
    int err = cluster_bricks_serve(verb, args, out, why);
    err = err == -ENOSYS ? cluster_quota_serve(verb, args, out, why) : err;
    return err == -ENOSYS ? cluster_look_here(verb, args, out, why) : err;
}
