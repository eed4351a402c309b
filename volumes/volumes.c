/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/volumes-internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/list.h>

#include "bricks/bricks.h"
#include "graph/graph.h"
#include "log/log.h"
#include "volumes/brick-host.h"
#include "volumes/bricks/brick-jobs.h"
#include "volumes/bricks/brick-place.h"
#include "volumes/front.h"
#include "volumes/state-dir.h"
#include "volumes/volfile-text.h"
#include "volumes/volume-options.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cds_list_head entries = CDS_LIST_HEAD_INIT(entries); /* under `lock`; sorted by name */
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;          /* an entry is no longer claimed */
/* Both set by volumes_open() before any operation. */
static struct state_dir *state;
static struct volumes_hooks hooks;

/* ---- the list -------------------------------------------------------------------------------- */

static struct entry *
find_volume_locked(const char *name)
{
    struct entry *e;

    cds_list_for_each_entry(e, &entries, link)
        if (strcmp(e->now->name, name) == 0)
            return e;
    return NULL;
}

static void
insert_locked(struct entry *e)
{
    struct cds_list_head *place = &entries;
    struct entry *other;

    cds_list_for_each_entry(other, &entries, link) {
        if (strcmp(other->now->name, e->now->name) > 0) {
            place = &other->link;
            break;
        }
    }
    cds_list_add_tail(&e->link, place); /* inserts before `place` */
}

static int
no_volume(const char *name, struct problem *why)
{
    problem_set(why, -ENOENT, "there is no volume %.200s", name);
    problem_type(why, "kiln volume list");
    return why->err;
}

struct entry *
volumes_claim(const char *name, struct problem *why)
{
    why->err = 0;
    pthread_mutex_lock(&lock);
    struct entry *e = find_volume_locked(name);
    bool is_free = e && !e->is_busy;
    if (is_free)
        e->is_busy = true;
    pthread_mutex_unlock(&lock);
    if (is_free)
        return e;
    if (!e)
        no_volume(name, why);
    else
        problem_set(why, -EBUSY, "another operation on volume %s is under way", name);
    return NULL;
}

void
volumes_release(struct entry *e)
{
    pthread_mutex_lock(&lock);
    e->is_busy = false;
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&lock);
}

struct entry *
volumes_claim_waiting(const char *name)
{
    struct entry *e;

    pthread_mutex_lock(&lock);
    while ((e = find_volume_locked(name)) && e->is_busy)
        pthread_cond_wait(&released, &lock);
    if (e)
        e->is_busy = true;
    pthread_mutex_unlock(&lock);
    return e;
}

/* Removes a claimed entry from the list and frees it. */
static void
forget(struct entry *e)
{
    pthread_mutex_lock(&lock);
    cds_list_del(&e->link);
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&lock);
    volume_free(e->now);
    free(e);
}

/* Replaces the volume by `v`, which is consumed. */
static void
entry_replace(struct entry *e, struct volume *v)
{
    pthread_mutex_lock(&lock);
    struct volume *old = e->now;
    e->now = v;
    pthread_mutex_unlock(&lock);
    volume_free(old);
}

int
volumes_save(const struct volume *fresh, const struct volume *old, struct problem *why)
{
    struct problem again;
    bool is_there = false;
    int err = state_dir_save(state, fresh, &is_there, why);

    if (err && is_there && old && state_dir_save(state, old, NULL, &again))
        log_event(LOG_CRITICAL, NULL, "volume-state-unknown",
                  "volume %s: neither the new state nor the old one could be written: %s", fresh->name,
                  again.wrong);
    return err;
}

void
volumes_tell_changed(const char *name)
{
    if (hooks.changed)
        hooks.changed(name);
}

void
volumes_become(struct entry *e, struct volume *v)
{
    entry_replace(e, v);
    volumes_tell_changed(v->name);
}

int
volumes_prepare(struct volfile *file, char *error, size_t error_size)
{
    return hooks.prepare ? hooks.prepare(file, error, error_size) : 0;
}

/* ---- create ---------------------------------------------------------------------------------- */

/* Tells whether one path equals the other or lies below it, on the same machine. */
static bool
bricks_meet(const struct volume_brick *one, const struct volume_brick *other)
{
    const char *a = one->path, *b = other->path;
    size_t n = strlen(a), m = strlen(b), least = n < m ? n : m;

    return brick_host_is_same(one, other) && strncmp(a, b, least) == 0 &&
           (n == m || (n < m ? b[n] : a[m]) == '/');
}

struct mount_point {
    const char *name, *dir; /* of the volume to mount; where */
    struct problem *why;
};

static void
check_mount_point(const struct volume *v, void *arg)
{
    const struct mount_point *m = arg;
    struct volume_brick dir = {.path = (char *)m->dir};

    for (unsigned i = 0; i < v->brick_count && !m->why->err; i++) {
        if (!brick_host_is_here(&v->bricks[i]))
            continue;
        dir.host = v->bricks[i].host;
        if (!bricks_meet(&v->bricks[i], &dir))
            continue;
        problem_set(m->why, -EBUSY, "a mount on %s would hide the brick %s of volume %s", m->dir,
                    v->bricks[i].path, v->name);
        problem_expected(m->why, "a folder that neither is a brick, nor lies in one, nor contains one");
        problem_type(m->why, "mkdir -p /mnt/%s && kiln mount %s /mnt/%s", m->name, m->name, m->name);
    }
}

int
volumes_check_mount_point(const char *name, const char *dir, struct problem *why)
{
    struct mount_point m = {name, dir, why};

    why->err = 0;
    volumes_each(check_mount_point, &m);
    return why->err;
}

int
volumes_check_own_paths(const struct volume *v, struct problem *why)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        for (unsigned k = 0; k < i; k++) {
            if (!bricks_meet(&v->bricks[i], &v->bricks[k]))
                continue;
            const char *host = v->bricks[i].host, *colon = *host ? ":" : "";
            if (strcmp(v->bricks[i].path, v->bricks[k].path) == 0)
                problem_set(why, -EINVAL, "volume %s would have the brick %s%s%s twice", v->name, host, colon,
                            v->bricks[i].path);
            else
                problem_set(why, -EINVAL, "brick %s%s%s and brick %s%s%s overlap: one lies in the other",
                            host, colon, v->bricks[k].path, host, colon, v->bricks[i].path);
            problem_expected(why, "a folder of its own for each brick");
            return why->err;
        }
    }
    return 0;
}

int
volumes_compare_paths(const struct volume *v, const struct volume *other, struct problem *why)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        for (unsigned k = 0; k < other->brick_count; k++) {
            if (!bricks_meet(&v->bricks[i], &other->bricks[k]))
                continue;
            problem_set(why, -EEXIST, "%s cannot become a brick: volume %s has its brick %s",
                        v->bricks[i].path, other->name, other->bricks[k].path);
            problem_expected(why, "a folder that no volume uses");
            return why->err;
        }
    }
    return 0;
}

/* Checks all volumes except `own`. */
static int
check_others_locked(const struct volume *v, const struct entry *own, struct problem *why)
{
    struct entry *e;

    cds_list_for_each_entry(e, &entries, link) {
        if (e != own && (volumes_compare_paths(v, e->now, why) ||
                         (e->next && volumes_compare_paths(v, e->next, why))))
            return why->err;
    }
    return 0;
}

static int
check_new_locked(const struct volume *v, struct problem *why)
{
    if (!find_volume_locked(v->name))
        return check_others_locked(v, NULL, why);
    problem_set(why, -EEXIST, "volume %s exists already", v->name);
    problem_type(why, "kiln volume info %s", v->name);
    return why->err;
}

int
volumes_reserve_paths(struct entry *e, const struct volume *next, struct problem *why)
{
    int err = next ? volumes_check_own_paths(next, why) : 0;

    pthread_mutex_lock(&lock);
    if (!err && next)
        err = check_others_locked(next, e, why);
    if (!err)
        e->next = next;
    pthread_mutex_unlock(&lock);
    return err;
}

/* Adds the volume to the list as a claimed entry, which reserves its name and paths. */
static struct entry *
reserve(struct volume *v, struct problem *why)
{
    struct entry *e = calloc(1, sizeof *e);

    if (!e) {
        problem_no_memory(why);
        return NULL;
    }
    *e = (struct entry){.now = v, .is_busy = true};
    pthread_mutex_lock(&lock);
    int err = check_new_locked(v, why);
    if (!err)
        insert_locked(e);
    pthread_mutex_unlock(&lock);
    if (!err)
        return e;
    free(e);
    return NULL;
}

/* Checks only, without changes. */
static int
check_brick_places(struct volume *v, struct problem *why)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        bool is_missing;

        if (!brick_host_is_here(&v->bricks[i]))
            continue;
        if (brick_place_check(v->bricks[i].path, &is_missing, why))
            return why->err;
        v->bricks[i].made = is_missing;
    }
    return brick_jobs_check(v, hooks.prepare, why);
}

static void
unmake(const struct volume *v, unsigned count)
{
    struct problem why;
    bool is_clean = true;

    while (count-- > 0) {
        if (brick_host_is_here(&v->bricks[count]) && brick_place_unmake(v, &v->bricks[count], &why)) {
            log_event(LOG_ERROR, NULL, "volume-undo", "volume %s: %s; the next start tries again", v->name,
                      why.wrong);
            is_clean = false;
        }
    }
    /* The definition still lists the bricks to undo. */
    if (is_clean && state_dir_remove(state, v->name, &why))
        log_event(LOG_ERROR, NULL, "volume-undo-state",
                  "volume %s was not created, but its definition stays: %s", v->name, why.wrong);
}

/* `is_whole`: all bricks of the volume are here, so it is created with them. */
static int
make_brick_folders(struct volume *v, bool is_whole, struct problem *why)
{
    unsigned made = 0;

    v->status = VOLUME_CREATING;
    if (state_dir_save(state, v, NULL, why))
        return why->err;
    while (made < v->brick_count && (!brick_host_is_here(&v->bricks[made]) ||
                                     brick_place_make(v, &v->bricks[made], why) == 0))
        made++;
    if (made == v->brick_count && !is_whole)
        return 0;
    if (made == v->brick_count) {
        v->status = VOLUME_CREATED; /* no other thread reads it: the entry is busy, and was CREATING */
        if (state_dir_save(state, v, NULL, why) == 0)
            return 0;
        v->status = VOLUME_CREATING;
    }
    unmake(v, made);
    return why->err;
}

/* Consumes `v`. */
static int
create_volume(struct volume *v, bool is_whole, struct problem *why)
{
    struct volume *fresh = NULL;

    why->err = 0;
    struct entry *e = volumes_check_own_paths(v, why) ? NULL : reserve(v, why);
    if (!e) {
        volume_free(v);
        return why->err;
    }
    /* A volume in the list is constant, so a copy is changed. */
    if (!(fresh = volume_copy(v)))
        problem_no_memory(why);
    if (!fresh || check_brick_places(fresh, why) || make_brick_folders(fresh, is_whole, why)) {
        volume_free(fresh);
        forget(e);
        return why->err;
    }
    if (is_whole)
        log_event(LOG_INFO, NULL, "volume-created", "volume %s of %u bricks", fresh->name,
                  fresh->brick_count);
    entry_replace(e, fresh);
    volumes_release(e);
    return 0;
}

int
volumes_create(struct volume *v, struct problem *why)
{
    return create_volume(v, true, why);
}

int
volumes_make_here(struct volume *v, struct problem *why)
{
    return create_volume(v, false, why);
}

int
volumes_adopt(struct volume *v, struct problem *why)
{
    struct entry *e = volumes_check_own_paths(v, why) ? NULL : reserve(v, why);

    if (!e) {
        volume_free(v);
        return why->err;
    }
    int err = state_dir_save(state, v, NULL, why);
    if (err) {
        forget(e);
        return err;
    }
    log_event(LOG_INFO, NULL, "volume-adopted", "volume %s of %u bricks", v->name, v->brick_count);
    volumes_release(e);
    return 0;
}

/* ---- start and stop -------------------------------------------------------------------------- */

static int
set_status(struct entry *e, enum volume_status status, struct problem *why)
{
    struct volume *fresh = volume_copy(e->now);

    if (!fresh)
        return problem_no_memory(why);
    fresh->status = status;
    if (volumes_save(fresh, e->now, why)) {
        volume_free(fresh);
        return why->err;
    }
    entry_replace(e, fresh);
    return 0;
}

static int
start_claimed(struct entry *e, bool is_forced, struct problem *why)
{
    const bool was_started = e->now->status == VOLUME_STARTED;

    if (was_started && !is_forced) {
        problem_set(why, -EALREADY, "volume %s is started already", e->now->name);
        problem_type(why, "kiln volume status %s", e->now->name);
        return why->err;
    }
    struct problem left = {0};
    int err = brick_jobs_attach(e->now, NULL, hooks.prepare, is_forced, &left);
    if (err && !is_forced) {
        *why = left;
        problem_expected(why,
                         "all bricks to start; a lost folder is replaced by kiln volume reset-brick %s BRICK",
                         e->now->name);
        problem_type(why, "kiln volume start %s force   # starts without this brick", e->now->name);
        return err;
    }
    if (err)
        log_event(LOG_ERROR, NULL, "volume-brick-left-out", "volume %s is started without a brick: %s",
                  e->now->name, left.wrong);
    if (!was_started && set_status(e, VOLUME_STARTED, why)) {
        brick_jobs_detach(e->now, NULL);
        return why->err;
    }
    log_event(LOG_INFO, NULL, "volume-started", "volume %s is started", e->now->name);
    volumes_tell_changed(e->now->name);
    problem_set(why, 0, "%s", err ? left.wrong : "");
    return 0;
}

int
volumes_start(const char *name, bool is_forced, struct problem *why)
{
    struct entry *e = volumes_claim(name, why);

    if (!e)
        return why->err;
    int err = start_claimed(e, is_forced, why);
    volumes_release(e);
    return err;
}

static int
require_started(const struct volume *v, struct problem *why)
{
    if (v->status == VOLUME_STARTED)
        return 0;
    problem_set(why, -EINVAL, "volume %s is not started", v->name);
    problem_type(why, "kiln volume start %s", v->name);
    return why->err;
}

int
volumes_stop(const char *name, struct problem *why)
{
    struct entry *e = volumes_claim(name, why);

    if (!e)
        return why->err;
    if (require_started(e->now, why) == 0 && set_status(e, VOLUME_STOPPED, why) == 0) {
        volumes_tell_changed(e->now->name); /* ends the self-heal daemon before the bricks */
        brick_jobs_detach(e->now, NULL);
        log_event(LOG_INFO, NULL, "volume-stopped", "volume %s is stopped", e->now->name);
    }
    volumes_release(e);
    return why->err;
}

int
volumes_delete(const char *name, struct problem *why)
{
    struct entry *e = volumes_claim(name, why);

    if (!e)
        return why->err;
    if (e->now->status == VOLUME_STARTED) {
        problem_set(why, -EINVAL, "volume %s is started", name);
        problem_expected(why, "a volume that is stopped");
        problem_type(why, "kiln volume stop %s", name);
    } else if (state_dir_remove(state, name, why) == 0) {
        log_event(LOG_INFO, NULL, "volume-deleted", "volume %s; its bricks' folders stay", name);
        volumes_tell_changed(name); /* a stopped volume has no self-heal daemon */
        forget(e);
        return 0;
    }
    volumes_release(e);
    return why->err;
}

/* ---- options --------------------------------------------------------------------------------- */

/* True if the options of TLS of the bricks differ: these count when a brick starts. */
bool
volumes_change_tls(const struct volume *a, const struct volume *b)
{
    static const char prefix[] = "transport.socket.ssl-";
    const struct volume_key *k;

    for (unsigned i = 0; (k = volume_keys(i)); i++)
        if (k->side == SIDE_BRICK && strncmp(k->check.key, prefix, sizeof prefix - 1) == 0 &&
            strcmp(volume_option_value(a, k->key), volume_option_value(b, k->key)) != 0)
            return true;
    return false;
}

/* Attaches the bricks of `fresh` in the place of the bricks of `old`. Clients lose their connections and
 * connect again. After a failure the bricks of `old` serve. A death of kilnd between the two steps leaves
 * the saved volume, which the next start of kilnd serves. */
static int
restart_bricks(const struct volume *fresh, const struct volume *old, struct problem *why)
{
    struct problem ignored;

    brick_jobs_detach(old, NULL);
    int err = brick_jobs_attach(fresh, NULL, hooks.prepare, false, why);
    if (err)
        (void)brick_jobs_attach(old, NULL, hooks.prepare, true, &ignored);
    return err;
}

/* Replaces the volume by `fresh`, which is consumed, on the bricks first. */
static int
entry_become(struct entry *e, struct volume *fresh, struct problem *why)
{
    const bool is_started = e->now->status == VOLUME_STARTED;
    const bool restarts = is_started && volumes_change_tls(e->now, fresh);
    struct problem ignored;
    int err = brick_jobs_check(fresh, hooks.prepare, why);

    if (!err && is_started)
        err = restarts ? restart_bricks(fresh, e->now, why)
                       : brick_jobs_reconfigure(fresh, e->now, hooks.prepare, why);
    if (!err && (err = volumes_save(fresh, e->now, why)) && is_started) {
        if (restarts)
            (void)restart_bricks(e->now, fresh, &ignored);
        else
            brick_jobs_revert(e->now, hooks.prepare);
    }
    if (err) {
        volume_free(fresh);
        return err;
    }
    entry_replace(e, fresh);
    volumes_tell_changed(e->now->name);
    return 0;
}

int
volumes_check(const struct volume *v, struct problem *why)
{
    return brick_jobs_check(v, hooks.prepare, why);
}

int
volumes_put_options(struct volume *v, const json_t *options, struct problem *why)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)options, key, value)
    {
        const char *text = json_string_value(value);

        if (!text)
            return problem_set(why, -EINVAL, "the value of %.200s is no text", key);
        if (volume_option_check(v, key, text, why))
            return why->err;
        if (v->option_count >= VOLUME_OPTIONS_MAX)
            return problem_set(why, -E2BIG, "volume %s has %d options already", v->name, VOLUME_OPTIONS_MAX);
        if (volume_set_option(v, key, text))
            return problem_no_memory(why);
    }
    return 0;
}

int
volumes_set(const char *name, const json_t *options, struct problem *why)
{
    struct entry *e = volumes_claim(name, why);

    if (!e)
        return why->err;
    struct volume *fresh = volume_copy(e->now);
    if (!fresh) {
        problem_no_memory(why);
    } else if (volumes_put_options(fresh, options, why)) {
        volume_free(fresh);
    } else if (entry_become(e, fresh, why) == 0) {
        log_event(LOG_INFO, NULL, "volume-set", "volume %s: options set: %zu", name,
                  json_object_size(options));
    }
    volumes_release(e);
    return why->err;
}

int
volumes_change(const char *name, int (*fn)(struct volume *fresh, void *arg, struct problem *why),
               void *arg, struct problem *why)
{
    struct entry *e = volumes_claim(name, why);

    if (!e)
        return why->err;
    struct volume *fresh = volume_copy(e->now);
    if (!fresh)
        problem_no_memory(why);
    else if (fn(fresh, arg, why))
        volume_free(fresh);
    else
        (void)entry_become(e, fresh, why);
    volumes_release(e);
    return why->err;
}

int
volumes_drop_options(struct volume *v, const char *key, unsigned *count, struct problem *why)
{
    *count = 0;
    if (strcmp(key, "all") == 0) {
        while (v->option_count > 0)
            *count += volume_unset_option(v, v->options[v->option_count - 1].key);
        return volume_options_of_new(v) ? problem_no_memory(why) : 0;
    }
    if (volume_unset_option(v, key)) {
        *count = 1;
        return 0;
    }
    if (!volume_key_find(key)) {
        const char *like = volume_key_like(key);

        problem_set(why, -ENOENT, "there is no option '%.200s'", key);
        if (like)
            problem_expected(why, "did you mean %s?", like);
    } else {
        problem_set(why, -ENODATA, "option %s of volume %s is not set", key, v->name);
    }
    problem_type(why, "kiln volume info %s", v->name);
    return why->err;
}

int
volumes_reset(const char *name, const char *key, unsigned *count, struct problem *why)
{
    struct entry *e = volumes_claim(name, why);

    if (!e)
        return why->err;
    struct volume *fresh = volume_copy(e->now);
    if (!fresh) {
        problem_no_memory(why);
    } else if (volumes_drop_options(fresh, key, count, why)) {
        volume_free(fresh);
    } else if (entry_become(e, fresh, why) == 0) {
        log_event(LOG_INFO, NULL, "volume-reset", "volume %s: %u options", name, *count);
    }
    volumes_release(e);
    return why->err;
}

int
volumes_at_rest(const char *name, int (*fn)(const struct volume *v, void *arg, struct problem *why),
                void *arg, struct problem *why)
{
    struct entry *e = volumes_claim(name, why);
    int err = why->err;

    if (!e)
        return err;
    if (e->now->status == VOLUME_STARTED) {
        err = problem_set(why, -EINVAL, "volume %s is started", name);
        problem_expected(why,
                         "a stopped volume, because the bricks of a started one change during the check");
        problem_type(why, "kiln volume stop %s", name);
    } else {
        err = fn(e->now, arg, why);
    }
    volumes_release(e);
    return err;
}

/* ---- following a store ----------------------------------------------------------------------- */

struct entry *
volumes_insert(const struct volume *v, struct problem *why)
{
    struct volume *copy = volume_copy(v);
    struct entry *e = copy ? calloc(1, sizeof *e) : NULL;

    if (!e) {
        volume_free(copy);
        problem_no_memory(why);
        return NULL;
    }
    copy->status = VOLUME_CREATED;
    *e = (struct entry){.now = copy, .is_busy = true};
    pthread_mutex_lock(&lock);
    insert_locked(e);
    pthread_mutex_unlock(&lock);
    return e;
}

int
volumes_drop(struct entry *e, struct problem *why)
{
    if (e->now->status == VOLUME_CREATING) {
        unmake(e->now, e->now->brick_count);
        forget(e);
        return 0;
    }
    char name[VOLUME_NAME_MAX + 1];
    int err = state_dir_remove(state, e->now->name, why);

    snprintf(name, sizeof name, "%s", e->now->name);
    forget(e);
    volumes_tell_changed(name);
    return err;
}

/* ---- questions ------------------------------------------------------------------------------- */

struct volume *
volumes_find(const char *name, struct problem *why)
{
    pthread_mutex_lock(&lock);
    struct entry *e = find_volume_locked(name);
    bool is_there = e && e->now->status != VOLUME_CREATING;
    struct volume *copy = is_there ? volume_copy(e->now) : NULL;
    pthread_mutex_unlock(&lock);
    if (!is_there)
        no_volume(name, why);
    else if (!copy)
        problem_no_memory(why);
    return copy;
}

void
volumes_each(void (*fn)(const struct volume *v, void *arg), void *arg)
{
    struct entry *e;

    pthread_mutex_lock(&lock);
    cds_list_for_each_entry(e, &entries, link)
        if (e->now->status != VOLUME_CREATING)
            fn(e->now, arg);
    pthread_mutex_unlock(&lock);
}

static void
count_missing(const struct volume *v, void *arg)
{
    unsigned *n = arg;

    for (unsigned i = 0; i < v->brick_count && v->status == VOLUME_STARTED; i++) {
        struct graph *g = brick_host_is_here(&v->bricks[i]) ? bricks_find(v->bricks[i].path) : NULL;

        if (g)
            graph_unpin(g);
        *n += g == NULL && brick_host_is_here(&v->bricks[i]);
    }
}

unsigned
volumes_bricks_missing(void)
{
    unsigned n = 0;

    volumes_each(count_missing, &n);
    return n;
}

int
volumes_each_name(void (*fn)(const char *name), struct problem *why)
{
    struct entry *e;
    json_t *names = json_array(), *name;
    bool is_short = !names;
    size_t i;

    pthread_mutex_lock(&lock);
    cds_list_for_each_entry(e, &entries, link)
        is_short |= json_array_append_new(names, json_string(e->now->name)) < 0;
    pthread_mutex_unlock(&lock);
    json_array_foreach(names, i, name) fn(json_string_value(name));
    json_decref(names);
    return is_short ? problem_no_memory(why) : 0;
}

char *
volumes_client_volfile(const char *name, const struct volfile_place *place, const struct op_versions *known,
                       uint32_t *needed, int *err)
{
    char *text = NULL;

    *needed = 0;
    pthread_mutex_lock(&lock);
    struct entry *e = find_volume_locked(name);
    if (!e || e->now->status == VOLUME_CREATING)
        *err = -ENOENT;
    else if (e->now->status != VOLUME_STARTED)
        *err = -EAGAIN;
    else if ((*needed = volfile_op_version(e->now)) < known->min || *needed > known->max)
        *err = -EOPNOTSUPP;
    else
        *err = (text = volfile_text_client(e->now, place)) ? 0 : -ENOMEM;
    pthread_mutex_unlock(&lock);
    return text;
}

int
volumes_id(const char *name, struct gfid *out)
{
    pthread_mutex_lock(&lock);
    struct entry *e = find_volume_locked(name);
    bool is_there = e && e->now->status != VOLUME_CREATING;

    if (is_there)
        *out = e->now->id;
    pthread_mutex_unlock(&lock);
    return is_there ? 0 : -ENOENT;
}

json_t *
volumes_heal_sets(const char *name, uint16_t brick_port, bool *is_wanted, bool *heals)
{
    json_t *sets = NULL;

    pthread_mutex_lock(&lock);
    struct entry *e = find_volume_locked(name);
    *is_wanted = e && e->now->status == VOLUME_STARTED && e->now->replica > 1;
    *is_wanted = *is_wanted && brick_host_has_any(e->now);
    *heals = *is_wanted && volume_option_bool(e->now, "cluster.self-heal-daemon") &&
             (!hooks.heals || hooks.heals(e->now));
    if (*is_wanted)
        sets = json_array();
    for (unsigned i = 0; sets && i < e->now->brick_count / e->now->replica; i++) {
        char *text = volfile_text_heal(e->now, brick_port, i);
        json_t *one = text ? json_string(text) : NULL;

        free(text);
        if (!one || json_array_append_new(sets, one)) {
            json_decref(sets);
            sets = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    return sets;
}

/* ---- start and end of the daemon ------------------------------------------------------------- */

static int
add_loaded_volume(struct volume *v, void *arg, struct problem *why)
{
    struct entry *e;

    (void)arg;
    if (volumes_check_own_paths(v, why) || !(e = reserve(v, why))) {
        volume_free(v);
        return why->err;
    }
    if (volume_name_is_keyword(v->name)) /* created by an earlier kilnd */
        log_event(
            LOG_WARNING, NULL, "volume-name-keyword",
            "volume %s: no client can mount it, because its name is a word of the volfile's grammar; its "
            "bricks' files are whole: move them to a volume of another name",
            v->name);
    volumes_release(e);
    return 0;
}

/* Undoes an unfinished add of bricks. Bricks that cannot be undone stay in the state, and the next start
 * tries again. */
static void
undo_coming(struct entry *e)
{
    struct volume *fresh = volume_copy(e->now);
    struct problem why;
    int err = fresh ? 0 : problem_no_memory(&why);

    for (unsigned i = 0; i < e->now->coming_count && !err; i++)
        err = brick_place_clear(e->now, &e->now->coming[i], &why) ||
                      brick_place_unmake(e->now, &e->now->coming[i], &why)
                  ? why.err
                  : 0;
    if (!err) {
        volume_drop_coming(fresh);
        err = volumes_save(fresh, e->now, &why);
    }
    log_event(LOG_WARNING, NULL, "volume-bricks-half-made",
              "volume %s got bricks when the daemon ended: %s", e->now->name, err ? why.wrong : "undone");
    if (err)
        volume_free(fresh);
    else
        entry_replace(e, fresh);
}

/* Runs before other threads read the list. */
static void
undo_half_made(void)
{
    struct entry *e, *next;

    cds_list_for_each_entry_safe(e, next, &entries, link) {
        if (e->now->status != VOLUME_CREATING) {
            if (e->now->coming_count)
                undo_coming(e);
            continue;
        }
        log_event(LOG_WARNING, NULL, "volume-half-made",
                  "volume %s was being created when the daemon ended: undone", e->now->name);
        unmake(e->now, e->now->brick_count);
        forget(e);
    }
}

int
volumes_open(const char *path, const struct volumes_hooks *wanted, struct problem *why)
{
    hooks = *wanted;
    state = state_dir_open(path, why);
    if (!state)
        return why->err;
    int err = state_dir_load(state, add_loaded_volume, NULL, why);
    if (!err && !*brick_host_own()) /* with a store, the store says whether a volume was created */
        undo_half_made();
    return err;
}

void
volumes_attach(void)
{
    struct entry *e;
    const struct volume **started;
    unsigned n = 0;

    /* No operation runs yet, so no volume is removed meanwhile. */
    pthread_mutex_lock(&lock);
    cds_list_for_each_entry(e, &entries, link)
        n += e->now->status == VOLUME_STARTED;
    started = calloc(n + 1, sizeof *started);
    n = 0;
    cds_list_for_each_entry(e, &entries, link)
        if (started && e->now->status == VOLUME_STARTED)
            started[n++] = e->now;
    pthread_mutex_unlock(&lock);
    if (!started)
        log_event(LOG_CRITICAL, NULL, "volumes-attach-memory", "no memory to start the volumes");
    else
        brick_jobs_attach_all(started, n, hooks.prepare);
    free(started);
}

void
volumes_close(void)
{
    struct entry *e, *next;

    cds_list_for_each_entry_safe(e, next, &entries, link)
        forget(e);
    state_dir_close(state);
    state = NULL;
}

const char *
volumes_state_path(void)
{
    return state_dir_path(state);
}
