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

void
volumes_forget(struct entry *e)
{
    pthread_mutex_lock(&lock);
    cds_list_del(&e->link);
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&lock);
    volume_free(e->now);
    free(e);
}

void
volumes_replace(struct entry *e, struct volume *v)
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

int
volumes_unsave(const char *name, struct problem *why)
{
    return state_dir_remove(state, name, why);
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
    volumes_replace(e, v);
    volumes_tell_changed(v->name);
}

int
volumes_prepare(struct volfile *file, char *error, size_t error_size)
{
    return hooks.prepare ? hooks.prepare(file, error, error_size) : 0;
}

/* ---- reserved names and paths ---------------------------------------------------------------- */

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

struct entry *
volumes_reserve(struct volume *v, struct problem *why)
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
    volumes_replace(e, fresh);
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
        volumes_forget(e);
        return 0;
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
        volumes_unmake(e->now, e->now->brick_count);
        volumes_forget(e);
        return 0;
    }
    char name[VOLUME_NAME_MAX + 1];
    int err = state_dir_remove(state, e->now->name, why);

    snprintf(name, sizeof name, "%s", e->now->name);
    volumes_forget(e);
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
    if (volumes_check_own_paths(v, why) || !(e = volumes_reserve(v, why))) {
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
        volumes_replace(e, fresh);
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
        volumes_unmake(e->now, e->now->brick_count);
        volumes_forget(e);
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
        volumes_forget(e);
    state_dir_close(state);
    state = NULL;
}

const char *
volumes_state_path(void)
{
    return state_dir_path(state);
}
